"""Extraction of the number from a text that does not mark its answer."""

import re
from collections.abc import Iterator, Sequence

from hub.extraction.corrections import (
    ALTERNATIVELY,
    is_refused,
    is_undecided,
    reopening_positions,
)
from hub.extraction.numeric.bounds import is_limit
from hub.extraction.numeric.clauses import (
    LONGEST_SENTENCE,
    MOST_TRIED,
    SENTENCE_END,
    clause_value,
    sentence_value,
    statement_value,
)
from hub.extraction.numeric.plain_text import plain
from hub.extraction.numeric.quantities import Quantity, find_numbers
from hub.extraction.numeric.values import CERTAINTIES, NoValue, NumberReading, differs, make_reading
from hub.extraction.statements import statements

_LONGEST_PARAGRAPH = 8000
_LIST_NUMBER = re.compile(
    r"[ \t]*(?:[-*•][ \t]|#{1,6}[ \t])?(?:\*\*)?(?:step[ ](?P<step>\d{1,2})\b[.):]?|(?P<item>\d{1,2})[.)](?=[ \t*]))",
    re.IGNORECASE,
)
# The number of a source after a number or a sentence: "42 [1]", "It is 42.[2]"; and the source itself: "[2] A report".
_REFERENCE = re.compile(
    r"(?:(?<=[\d%.!])|(?<=\*\*))\s?(?:\[\d{1,2}\])+(?=[\s.,;:!]|$)|^\[\d{1,2}\]:?(?=\s[^\W\d])", re.MULTILINE
)
_CONFIDENCE = re.compile(rf"\"(?:{'|'.join(CERTAINTIES)})\"\s{{0,9}}:\s{{0,9}}[\d.]+", re.IGNORECASE)
_SHORT = 200  # characters up to which an unmarked text may give its number in words
_BOLD = re.compile(r"\*\*([^*\n]{1,200})\*\*")
_MODAL = re.compile(
    r"\b(?:could|might|may)(?: also| well| just)* be\b|\bpossibl[ey]\b|\bperhaps\b|\bmaybe\b", re.IGNORECASE
)
_REMARK = re.compile(
    r"\W{0,6}(?:note|nb|explanation|hint|confidence|certainty|disclaimer|check|verification"
    r"|sources?(?=\W{0,2}:)|tokens used|to (?:double[- ])?(?:check|verify)(?=,)"
    r"|let me know|i hope|hope this|"
    r"feel free|p\.s)\b",
    re.IGNORECASE,
)
# "(The median would be 11.)": a separate sentence that is not part of the answer.
_ASIDE_SENTENCE = re.compile(r"(?:^|(?<=[.!?。]))[ \t]*\((?=[A-Z\u3040-\u9fff])[^()\n]{1,400}[.!?。]\)", re.MULTILINE)
_ALTERNATIVE_ASIDE = re.compile(
    r"\s*\(\W{0,3}(?:or|maybe|perhaps|possibly|alternatively|it|this|that|could|might|may)\b", re.I
)
# "Many people say 41, which is wrong.", "A common mistake is to answer 41."
_REJECTED = re.compile(
    r"\b(?:which|but (?:that|this|it)) (?:is|was|would be) (?:wrong|incorrect|false|mistaken|not (?:right|correct))\b"
    r"|\bcommon (?:mistake|error|misconception|wrong|incorrect)\b(?![^.!?\n]{0,160}\b(?:but|actually|correct|right)\b)",
    re.IGNORECASE,
)
# A clause that only denies its number: "42 is not the answer", "16 is right, but 15 is not", "15 is too low".
_DENIED = (
    r"(?:no\W+)?(?:(?:the|your|this|that) (?:answer|value|result|number)\s(?:of )?)?"
    r"(?:\\boxed\{)?[$€£*_]{0,3}[-−]?\d[\d,.]{0,40}[*_%$}]{0,3}"
    r"(?:\s[^\W\d]{1,40})?\s(?:is|was|would be|ist|est|es)\s(?:therefore |thus |clearly |definitely |also )?"
    r"(?:wrong|incorrect|false|a mistake|too (?:low|high|small|large|big)"
    r"|not (?:right|correct|(?:the |my )(?:right |correct |final )?(?:answer|solution|result))"
    r"|not(?=[*_\s]*(?:[.;,!)]|$))|falsch|faux|incorrecto|nicht (?:richtig|korrekt))(?![\w%])"
)
_DENIED_CLAUSE = re.compile(
    rf"(?:^\W*|[;,:(—–]\s*|\s-\s+)(?:(?:and|but|so|while|whereas|though|although)\s)?{_DENIED}"
    r"(?=[*_]*(?:\s*[;,:.!?)—–]|\s-\s|\s*$|\s(?:and|but|so|because|since|as)\b))",
    re.IGNORECASE,
)
# "Is it 42?" before "No."
_ASKED = re.compile(
    r"\W*(?:so |but )?(?:(?:is|could|can|was) (?:it|this|that|the answer)(?: be)? |(?:it(?:['’]s| is)|the answer is) )?"
    r"[^\d?]{0,9}[\d,.]+[^\d?]{0,30}\?\W*",
    re.IGNORECASE,
)
_NO = re.compile(r"\W*no\b(?!\s\w)", re.IGNORECASE)
# Instructions to the reader to calculate with a number: "A day has 1440 minutes, so just double that."
_TASK = (
    r"(?:add|calculate|combine|compute|convert|count|cube|determine|divide|do|double|figure out|find|finish|halve"
    r"|isolate|multiply|plug in|quadruple|raise|round|simplify"
    r"|solve|square|substitute|subtract|sum|take|triple|use|work out)"
)
_ADDRESSED = (
    r"(?:^\W{0,4}|[,;:—–]\s*(?:and\s+|so\s+|then\s+)*|\.\s+|\b(?:you|we)(?:['’]d)? (?:just |only |simply |then )?"
    r"(?:can|could|should|must|need to|have to|would|might|may)\s|\b(?:just|simply"
    r"|now|next|then|please|try to|so|all you (?:need|have) to do is(?: to)?)[,]?\s)"
    r"(?:(?:now|just|then|next|simply|first|please|also|start by)[, ]\s?){0,3}"
)
_INSTRUCTION = re.compile(
    rf"{_ADDRESSED}{_TASK}\b|\b(?:start|begin) (?:by|with) \w+ing\b"
    rf"|\b(?:step|do) is(?: to)? {_TASK}\b|^\W*think about\b",
    re.IGNORECASE,
)
_OPERATIONS = (
    *("add", "cube", "divide", "double", "halve", "multiply", "quadruple", "raise", "square", "subtract", "take"),
    "triple",
)
_OPERATE = re.compile(
    rf"{_ADDRESSED}(?:{'|'.join(_OPERATIONS)})\b[^.!?\n]{{0,40}}"
    r"\b(?:that|this|it|both|the (?:two|result|number|sum|total|figure))\b",
    re.IGNORECASE | re.MULTILINE,
)
_RESULT = re.compile(
    r"=|≈|→|->|:\s*\W{0,4}\d|\b(?:to (?:get|obtain|find that|reach|give|make)|get|gets|gives?|giving|got|yields?"
    r"|obtain|have|has|(?:is|are|was|were)(?!\s(?:to|in)\b)"
    rf"(?!\s{_TASK}\b)"
    r"|makes?|leaves?|leaving|equals?|result(?:s|ing)? in|which|total(?:s|ing)?|becomes?|comes? to|arrive|end up"
    r"|left with)\b(?=[^.!?\n]{0,80}\d)",
    re.IGNORECASE,
)


def read_prose(text: str) -> NumberReading:
    """Return the number in bold in the last paragraph, or else the last number of the text."""
    if is_refused(text) or is_undecided(text) or _ends_with_instruction(text):
        return NumberReading(None)
    text = _CONFIDENCE.sub("", text)
    if len(text) <= _LONGEST_PARAGRAPH:
        text = _without_asides(text)
    bold = _bold_value(text)
    if bold is not None:
        return bold
    rejected = False
    for tried, (before, sentence, following) in enumerate(_sentences_to_read(text)):
        if tried == MOST_TRIED:
            return NumberReading(None)
        read = sentence[-LONGEST_SENTENCE:]
        affirmed = _DENIED_CLAUSE.sub(" ", read)
        if _is_rejected(affirmed, following):
            rejected = True
            continue
        rejected = rejected or affirmed != read
        value = sentence_value(affirmed)
        if value is None or value is NoValue.FORMULA:
            continue
        if isinstance(value, Quantity):
            if _is_instruction(sentence):
                return NumberReading(None)
            if _gives_alternative(before, sentence, value):
                value = NoValue.SEVERAL
        return make_reading(value, sentence)
    if len(text) <= _SHORT and not rejected:
        return make_reading(statement_value(text), text)
    return NumberReading(None)


def _sentences_to_read(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield the sentences of lines with digits in the order of reading, each between its neighbours on the line."""
    lines = _without_list_numbers(_REFERENCE.sub("", text).split("\n"))
    for line in map(lines.__getitem__, _reading_order(lines)):
        if any(character.isdigit() for character in line):
            sentences = SENTENCE_END.split(line)
            surrounded = ["", *sentences, ""]
            for i in _reading_order(sentences):
                yield surrounded[i], surrounded[i + 1], surrounded[i + 2]


def _is_rejected(sentence: str, following: str) -> bool:
    """Return whether *sentence* denies its numbers, or asks for one that the sentence *following* it denies."""
    return _REJECTED.search(sentence) is not None or (
        _ASKED.fullmatch(sentence) is not None and _NO.match(following) is not None
    )


def _without_list_numbers(lines: Sequence[str]) -> list[str]:
    """Return *lines* without "Step 2:", and the numbers of lists: the "2." of a line, if another begins with "1."."""
    numbered = [_LIST_NUMBER.match(line) for line in lines]
    present = {int(match["item"]) for match in numbered if match and match["item"]}
    return [
        line[match.end() :]
        if match and (match["step"] or {int(match["item"]) - 1, int(match["item"]) + 1} & present)
        else line
        for line, match in zip(lines, numbered, strict=True)
    ]


def _reading_order(texts: Sequence[str]) -> list[int]:
    """Return the positions of lines or sentences, from the last on and remarks after all others."""
    is_remark = [_REMARK.match(text) is not None for text in texts]
    return sorted(range(len(texts)), key=lambda i: (is_remark[i], -i))


def _without_asides(text: str) -> str:
    """Return *text* without sentences in parentheses, if it has numbers outside of them; alternatives stay."""
    outside = _ASIDE_SENTENCE.sub(
        lambda match: match[0] if _ALTERNATIVE_ASIDE.match(match[0]) or reopening_positions(match[0]) else " ", text
    )
    return outside if any(map(str.isdigit, outside)) and not statements(text) else text


def _ends_with_instruction(text: str) -> bool:
    """Return whether *text* ends with an instruction to calculate, without the result."""
    end = text[-300:]
    folded = end.casefold()
    if not any(word in folded for word in _OPERATIONS):
        return False
    instructions = list(_OPERATE.finditer(end))
    return (
        bool(instructions)
        and _RESULT.search(rest := end[instructions[-1].start() :]) is None
        and len(find_numbers(plain(rest))) < 3
    )


def _is_instruction(sentence: str) -> bool:
    """Return whether *sentence* instructs the reader to calculate and gives no result."""
    sentence = sentence[-LONGEST_SENTENCE:]
    instruction = _INSTRUCTION.search(sentence)
    return instruction is not None and _RESULT.search(sentence) is None


def _gives_alternative(before: str, last: str, value: Quantity) -> bool:
    """Return whether the sentence *last* gives its value as an alternative to one in the sentence *before* it."""
    doubtful = (_MODAL.search(last) and _MODAL.search(before)) or (before.endswith("?") and last.endswith("?"))
    if not ALTERNATIVELY.match(last) and not doubtful:
        return False
    return differs(sentence_value(before), value)


def _bold_value(text: str) -> NumberReading | None:
    """Return the one value that the last paragraph has in bold, if it is not a step on the way to a later result."""
    paragraph = text[text.rfind("\n\n") + 1 :][-_LONGEST_PARAGRAPH:]
    bold = [match for match in _BOLD.finditer(paragraph) if _is_value(match[1]) and not is_limit(match[1])]
    bold = [match for match in bold if not _DENIED_CLAUSE.match(_rest_of_sentence(paragraph, match.start()))]
    if not bold or "=" in paragraph[bold[-1].end() :] or ALTERNATIVELY.match(paragraph[bold[-1].end() :]):
        return None
    values = [clause_value(match[1]) for match in bold]
    first = values[-1]
    if not isinstance(first, Quantity) or any(differs(value, first) for value in values):
        return None
    return make_reading(first, bold[-1][1])


def _rest_of_sentence(text: str, start: int) -> str:
    return SENTENCE_END.split(text[start : start + LONGEST_SENTENCE].split("\n", 1)[0], maxsplit=1)[0]


def _is_value(text: str) -> bool:
    """Return whether a text in bold consists of a number and, optionally, a unit."""
    return (
        re.match(r"\W*(?:[A-Z]{2,3}\s?)?[$€£¥₹]?\d", text) is not None and len(text) <= 60 and text.strip()[-1] != ":"
    )
