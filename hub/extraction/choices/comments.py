"""Labels that ticks and comments on the options choose: "A ❌, B ✅", "A – wrong"."""

import itertools
import re
from collections.abc import Sequence

from hub.extraction.choices.labels import SEVERAL, LabelReader
from hub.extraction.choices.options import flatten
from hub.extraction.choices.phrases import OPTION, SAID_RIGHT, SAID_WRONG, TICKS
from hub.extraction.choices.positions import without_listing

_CROSSES = "❌✗✘✖✕"
_MARK_END = re.compile(rf"(?<=\S[ \t][{TICKS}{_CROSSES}])\ufe0f?[ \t]*[,;]?[ \t]+(?=\S)")
_NO_CELL = r"(?<![|*])(?<!\|\s)"  # the heading of a column says what yes and no mean in it
_LINE_END = r"(?=[*_.!]*\s*$)"
# "A) Paris – wrong, it is in France", "| B | correct |", "Berlin is right"
_COMMENTED = re.compile(
    r"(?P<option>\S.{0,300}?)(?:[.)\]:]?\s*(?:<-+|[-–—:|(=→])\s*|[.)\]?]\s+|\s+(?:is|ist|est|es|è)\s+)[*_\s]{0,4}"
    rf"(?:(?P<right>{SAID_RIGHT}|{_NO_CELL}(?i:yes){_LINE_END})|(?P<wrong>{SAID_WRONG}|{_NO_CELL}(?i:no){_LINE_END}))"
)
_VERDICT_HEADING = re.compile(
    r"\|[*_\s]*(?:correct|right|the answer|answer|valid|true)\s?\??[*_\s]*\|\s*", re.IGNORECASE
)
_VERDICT_CELL = re.compile(r"\|[*_\s]*(?P<verdict>yes|no)[*_\s]*\|\s*", re.IGNORECASE)


def ticked_label(reader: LabelReader, text: str) -> str | None:
    """Return the only label that *text* ticks: "A ❌, B ✅", "| B | ✅ |", "- [x] B"."""
    label = reader.label.replace("label", "before")
    pattern = re.compile(
        rf"[\s>•*-]*(?:(?:[{TICKS}]\ufe0f?|\[[xX]\]\s){reader.label}(?![\w'’]).*"
        rf"|{label}(?:[)\]*_\"'.:,]{{1,4}}.*|\s[-–—:(|].*|\s*)[{TICKS}]\ufe0f?[\s*_.]*)"
    )
    parts = (part for line in text.split("\n") for part in _MARK_END.split(line.strip(" \t|")))
    ticked = {match["label"] or match["before"] for part in parts if (match := pattern.fullmatch(part))}
    return str(ticked.pop()) if len(ticked) == 1 else None


def commented_label(reader: LabelReader, text: str) -> tuple[str | None, set[str]]:
    """Return the label that comments on the options leave ("A – wrong"), and the labels that they call wrong.

    The label is that of the only option called right, or else of the only one not called wrong. It is SEVERAL if
    several are called right, and None unless at least two options have a comment and one of them is called wrong,
    or the text consists of the options and calls one of them right.
    """
    right: set[str] = set()
    wrong: set[str] = set()
    if reader.options.are_comments:
        return None, wrong
    lines = _with_verdicts(text.split("\n"))
    next_option = re.compile(
        rf"[,;]\s+(?=[(\[]?(?:{reader.any})[)\].]?\s*[-–—:=]\s)"
        rf"|\.\s+(?=[(\[]?(?:{reader.any})[)\].]\s+(?:{SAID_RIGHT}|{SAID_WRONG}))"
    )
    for part in itertools.chain.from_iterable(map(next_option.split, lines)):
        comment = _COMMENTED.match(part.strip(" \t>|•-*_"))
        if comment and (label := _label_of_commented(reader, comment["option"])):
            (right if comment["right"] else wrong).add(label)
    if len(right) == 1 and not wrong and not without_listing(reader, [line for line in lines if line.strip()]):
        return right.pop(), wrong
    if len(right | wrong) < 2 or not wrong or right & wrong:
        return None, wrong
    left = right or set(reader.labels) - wrong
    if len(left) == 1:
        return left.pop(), wrong
    return (SEVERAL if right else None), wrong


def _with_verdicts(lines: Sequence[str]) -> list[str]:
    """Return *lines* with "yes" and "no" in the last cells of a table replaced, if its heading is "Correct?"."""
    found = []
    in_table = False
    for line in lines:
        last = line[line.rstrip(" |").rfind("|") :] if "|" in line else ""
        in_table = bool(last) and (in_table or _VERDICT_HEADING.fullmatch(last) is not None)
        cell = _VERDICT_CELL.fullmatch(last) if in_table else None
        comment = "right" if cell and cell["verdict"].casefold() == "yes" else "wrong"
        found.append(f"{line[: -len(last)]}| {comment} |" if cell else line)
    return found


def _label_of_commented(reader: LabelReader, option: str) -> str | None:
    """Return the label of a commented option, written as "A", "Option A", "A) Paris" or "Paris"."""
    option = re.sub(rf"^(?i:{OPTION})\s+(?=\S)", "", re.sub(r"[*_`]", "", option)).strip(" |")
    if label := reader.exact_label(option) or reader.options.label_of_equal_option(option, flatten, 2):
        return label
    match = re.match(rf"[(\[]?(?P<label>{reader.any})(?:[)\].:]|\s+[-–—|])\s*\S", option)
    return match["label"] if match and not reader.contradicts_itself(option) else None
