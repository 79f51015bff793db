"""Texts that name several labels as the answer, or as possible: "A or B", "A. C is also correct."."""

import re
from collections.abc import Sequence

from hub.extraction.choices.exclusions import ruled_out_patterns, several_pattern
from hub.extraction.choices.labels import LabelReader
from hub.extraction.choices.phrases import CHOSEN, DENIAL, LEADS_TO, OPTION, REASON, VERDICT, WRONG
from hub.extraction.corrections import ALTERNATIVELY
from hub.extraction.markup import strip_markup

_LONGEST_END = 400  # characters at the end that are searched for labels joined as possible


def alternative_pattern(reader: LabelReader) -> str:
    """Return the pattern of another label after a chosen one: "or B", "and C". It is the group `other`."""
    return (
        r"(?:\bor\b|\band\b|\bo\b|\boder\b|\bou\b|\bund\b|/|&|\+|,|;|或|和|、)\s*"
        r"(?i:(?:or|and|maybe|possibly|perhaps|also|even|either|the|option|choice|answer|letter)\s+){0,4}"
        rf"[(\[*_\"']{{0,4}}(?P<other>{reader.any})(?![\w'’])"
        rf"(?![)\]*_.:]*\s*(?:\S+\s+){{0,3}}?(?:(?:is|are|was|were|be|can|could|would|does|do)\s*)?{WRONG})"
        r"(?=[)\]*_\"'.,;:!?/]|\s*$|\s+(?:or|and|as|are|is|seems?|looks?|could|might|both)\b|\s*[^\x00-\x7f])"
    )


def _other_clause(reader: LabelReader) -> str:
    """Return the pattern of a clause about another label that does not call it an answer: "B; A is too small"."""
    several = several_pattern(reader)
    return (
        rf";\s*{several.replace('?P<several>', '?:')}\s+(?i:is|are|was|were|has|have|do|does)\b"
        r"(?!\s+(?i:also|equally|both|possible|plausible|acceptable|correct|right|valid|true"
        r"|the(?!\s+(?:second|third|next|least)\b))\b)"
    )


def chosen_too_patterns(reader: LabelReader) -> tuple[str, str, str]:
    """Return the patterns of another label after a chosen one: "D is also correct.", "and so is D".

    The label is the group `too`.
    """
    too = rf"(?i:{OPTION}\s+)?[(\[*_\"']{{0,4}}(?P<too>{reader.any})(?![\w'’])[)\]*_\"'.:]{{0,4}}"
    right = r"(?i:correct|right|true|valid|acceptable|accepted|possible)"
    return (
        rf"(?:[.!;,]|\n|,?\s(?i:and|but|though|although))\s{{0,9}}(?<=\s)(?i:(?:and|but|though|although|the)\s+){{0,2}}{too}\s+(?i:is|are)\s+(?:(?i:also|equally)\s+{right}"
        rf"|{right}\s*,?\s*(?i:as well|too))(?!\w)(?!,?\s+(?i:but|except|only))",
        rf"(?i:\band\s+so\s+is\s+(?:the\s+)?){too}(?=\s*[.!;,]|\s*$)",
        rf"(?:^|[.!;,]|\n)\s{{0,9}}[(*_]{{0,3}}(?i:also)(?:\s+{right})?(?:\s+is|[*_]*\s?:)[*_]*\s+{too}(?=[\s*_]*(?:[.!;,)]|\n|$))",
    )


def names_several(reader: LabelReader, text: str) -> bool:
    """Return whether a statement names several labels: "A or B", "B and C", "A) Paris or B) London", "B (or C)"."""
    text = REASON.split(strip_markup(text), maxsplit=1)[0]
    if len(reader.all_labels(text)) > 1:
        return True
    first = re.match(rf"(?i:either|both|between|options?)?\s*{reader.label}(?![\w'’])", text)
    if first is None:
        return False
    rest = re.sub(
        ruled_out_patterns(reader)[0], " ", re.split(_other_clause(reader), text[first.end() :], maxsplit=1)[0]
    )
    # In "C) Both A and B" the text of the option names others: "and B" does not follow the first label.
    within = re.compile(rf"\b(?!{re.escape(first['label'])}\b)(?:{reader.any})[)\]*_]{{0,3}}\s*$")
    return any(
        match["other"] != first["label"] and not within.search(rest[: match.start()])
        for match in re.finditer(alternative_pattern(reader), rest)
    )


def other_follows(reader: LabelReader, after: str, stated: str) -> bool:
    """Return whether the sentence after a statement offers another label: "Or maybe C." """
    if not ALTERNATIVELY.match(after):
        return False
    named = re.search(
        rf"(?<![\w'’])[(\[*_\"']{{0,4}}(?P<label>{reader.any})(?=[)\]*_\"'.,;:!?]|\s*$"
        rf"|\s+(?:is|as|if|could|might|may|would|works|fits)\b(?!\s*(?:be\s+)?{WRONG}))",
        after,
    )
    return named is not None and named["label"] != reader.leading_label(stated)


def calls_right_too(reader: LabelReader, text: str, label: str) -> bool:
    """Return whether *text* calls another label right as well: "A. C is also correct."."""
    return label not in reader.options.combining and any(
        match["too"] != label
        for pattern in chosen_too_patterns(reader)
        for match in re.finditer(pattern, reader.options.with_labels(text[:_LONGEST_END]))
    )


def _is_decided(after: str, labels: Sequence[str]) -> bool:
    """Return whether *after*, which follows *labels*, chooses one of them: "between B and D, I'd pick B"."""
    one = rf"(?i:{OPTION}\s+)?[(\[*_\"']{{0,4}}(?:{'|'.join(map(re.escape, labels))})(?![\w'’])[)\]*_\"']{{0,4}}"
    return (
        re.match(rf"\s*[,;:—–-]\s+(?:(?i:{CHOSEN})\s+{one}|{one}(?:\s+{VERDICT}|(?=[.!*_]*\s*\Z)))", after) is not None
    )


def is_uncertain(reader: LabelReader, text: str) -> bool:
    """Return whether the last sentences of a text join labels as possible: "Could be B or D; both have it."."""
    label = rf"(?i:(?:the\s+)?{OPTION}\s+)?[(\[*_\"']{{0,4}}(?P<NAME>{reader.any})(?![\w'’])[)\]*_\"'.]{{0,4}}"
    joined = (
        r"(?:\s*[,;]?\s*(?i:or|or maybe|or perhaps|or possibly|oder|ou"
        r"|o|maybe|possibly|perhaps)\s+(?i:also\s+|even\s+)?|\s*/\s*)"
    )
    pattern = (
        r"(?i:\b(?:could|might|may|can|either|between|maybe|perhaps|possibly|probably|torn|toss-up|it(?:['’]s| is))"
        rf"(?:\s+(?:also|well|be|is|it['’]s|either|between|equally"
        rf"|the|just)){{0,3}}\s+){label.replace('NAME', 'one')}"
        rf"(?:{joined}|\s+(?i:and|und|et|y)\s+){label.replace('NAME', 'other')}"
    )
    text = text[-_LONGEST_END:]
    return any(
        match["one"] != match["other"]
        and not re.match(rf"\s*(?:(?:is|are|be|can|could)\s*)?{WRONG}", text[match.end() :])
        and not DENIAL.search(text[max(match.start() - 20, 0) : match.end()])
        and not re.search(rf"(?i:\bbut\s+{CHOSEN}\s+(?:{OPTION}\s+)?){reader.label}(?!\w)", text[match.end() :])
        and not _is_decided(text[match.end() :], (match["one"], match["other"]))
        # "between A and C, but A is less likely, so C"
        and not re.search(
            rf"(?i:(?<!\w){LEADS_TO}\s+(?:it(?:['’]s| is)\s+)?(?:{OPTION}\s+)?){reader.label}"
            r"[)\]*_\"'.!]{0,4}\s*\Z",
            text[match.end() :],
        )
        for match in re.finditer(pattern, text)
    )
