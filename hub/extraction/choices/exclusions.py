"""Labels that a text rules out: "A, C and D are wrong", "neither A nor C"."""

import re

from hub.extraction.choices.labels import LabelReader
from hub.extraction.choices.phrases import OPTION, WRONG


def _one(reader: LabelReader) -> str:
    """Return the pattern of a label with marks around it."""
    return rf"[(\[*_\"']{{0,4}}(?:{reader.any})[)\]*_\"'.:]{{0,4}}(?![\w'’])"


def several_pattern(reader: LabelReader) -> str:
    """Return the pattern of one or more labels in a row: "A", "A, B and C". They are the group `several`."""
    one = _one(reader)
    return (
        rf"(?P<several>{one}"
        rf"(?:(?:\s*,\s*(?:and\s+|or\s+|nor\s+)?|\s+(?:and|or|nor)\s+|\s*/\s*)(?i:{OPTION}\s+)?{one}){{0,30}})"
    )


def ruled_out_patterns(reader: LabelReader) -> tuple[str, str]:
    """Return the patterns of "A, C and D are wrong", and of "not A", "neither A nor C"."""
    several = several_pattern(reader)
    return (
        rf"(?<![\w'’]){several}\s*(?:(?:is|are|was|were|can|could|must|do|does)\s*)?(?:all\s+|both\s+|clearly\s+|also\s+|be\s+)*{WRONG}",
        rf"(?i:\b(?:not|neither|nor|rul(?:e|es|ed|ing) out|eliminat(?:e|es|ed|ing)|exclud(?:e|es|ed|ing)"
        rf"|isn['’]t|can['’]t be|"
        rf"cannot be)\s+(?:{OPTION}\s+)?){several}",
    )


def none_of_pattern(reader: LabelReader) -> str:
    """Return the pattern before the last label in "none of A, B and C is right", "neither A nor C is right"."""
    one = _one(reader)
    return (
        rf"(?i:\b(?:none\s+of|neither))\s+(?i:(?:the\s+)?(?:{OPTION}\s+)?)"
        rf"(?:{one}(?:\s*,\s*|\s+)(?:(?:and|or|nor)\s+)?){{1,30}}[(\[*_\"']{{0,4}}$"
    )


def without_rejected(reader: LabelReader, text: str) -> str:
    """Return *text* without labels that are called wrong: "(A) is wrong"."""
    return re.sub(
        rf"[(\[*_\"']{{0,4}}\b(?:{reader.any})[)\]*_\"'.:]{{0,4}}\s+(?:is|was)\s+(?:\w+ly\s+)?{WRONG}", "", text
    )


def remaining_label(reader: LabelReader, text: str) -> str | None:
    """Return the only remaining label if *text* rules out all others."""
    if len(reader.labels) < 2:
        return None
    out = {
        label
        for pattern in ruled_out_patterns(reader)
        for match in re.finditer(pattern, reader.options.with_labels(text))
        for label in re.findall(rf"(?<![\w'’])(?:{reader.any})(?![\w'’])", match["several"])
    }
    kept = [label for label in reader.labels if label not in out]
    return kept[0] if len(kept) == 1 else None
