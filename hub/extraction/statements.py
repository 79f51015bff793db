"""Extraction of final answers: boxed, tagged, in JSON, after "Answer:", "the answer is" or ####."""

import json
import re
from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

from hub.extraction.corrections import reopening_positions
from hub.extraction.normalization import answer_text

_EDGE = r"[*_`# \t>]*"  # Markdown around words
_OPENING = r"[*_`# \t]*"  # Markdown before a statement, where > is a comparison
_ADJECTIVES = r"(?:(?:final|correct|corrected|revised|updated|right|best|my|short)\s+){0,2}"
# The word for "answer" in other languages, with up to three adjectives behind it. The patterns below are slow, so they
# are tried only on texts that contain one of these words.
_FOREIGN_WORDS = (
    "antwort",
    "lösung",
    "respuesta",
    "réponse",
    "reponse",
    "resposta",
    "risposta",
    "antwoord",
    "svar",
    "svaret",
    "odpowiedź",
    "odpověď",
    "cevap",
    "ответ",
    "відповідь",
    "उत्तर",
    "الإجابة",
    "الجواب",
    "jawaban",
    "đáp án",
    "απάντηση",
    "תשובה",
)
_CJK_WORDS = ("正确答案", "答案", "正确选项", "正解", "答え", "解答", "정답", "답")
_WORDS = ("answer", "choice", "option", *_FOREIGN_WORDS, *_CJK_WORDS)
_NOT = r"(?:no|non|não|nicht|niet|inte|ikke|не)\b"
_FOREIGN = rf"(?:{'|'.join(_FOREIGN_WORDS)})(?:[ ](?!{_NOT})\w{{1,14}}){{0,3}}?"
_CJK = rf"(?:{'|'.join(_CJK_WORDS)})"
_SUBJECT = rf"(?:{_ADJECTIVES}(?:answer|choice)|{_FOREIGN}|{_CJK})"
_IS = (
    r"(?:\s+(?:is|was|would\s+be|should\s+be|must\s+be|will\s+be|has\s+to\s+be|ist|lautet|es|est|é|è|är|er|jest|je|"
    r"adalah|هي|هو|है|là|είναι)\b|\s*[:：=]|\s+[—–-]\s|\s*(?:应该|應該)?(?:是|为|為|は|은|는|應為|应为))"
)
# "Answer: 42", "**Final answer (in km):** 42", "Selected option: B", "【答案】B", at the beginning of a line.
_LABELLED = re.compile(
    rf"^{_EDGE}【?(?:the\s+)?(?:{_SUBJECT}|(?:selected\s+|chosen\s+)?{_ADJECTIVES}option)"
    rf"(?:[ \t]*\([^()\n]{{0,60}}\))?{_EDGE}(?:is[ \t]*)?[:=：】]{_OPENING}(?P<rest>.*)$",
    re.IGNORECASE,
)
# The heading "### Answer": the statement is the next line.
_HEADING = re.compile(rf"^{_EDGE}(?:the\s+)?{_SUBJECT}{_EDGE}$", re.IGNORECASE)
# "I hope this answer is helpful" says something about an answer, and "a common wrong answer is 41" or "another valid
# answer is 41" about another one.
_OTHER_ANSWER = "".join(
    f"(?<!{word} )"
    for word in (
        *("this", "that", "your", "other", "an", "wrong", "incorrect", "tempting", "mistaken", "second", "alternative"),
        *("other valid", "other possible", "other acceptable", "other plausible"),
    )
)
# "so the answer to this is 42", anywhere: the statement is the text after it.
_STATED = re.compile(
    rf"(?:{_OTHER_ANSWER}\b{_SUBJECT}|{_CJK})(?:\s+to\s+[^\n.:?!]{{0,60}}?)?(?:\s+i\s+(?:get|got|found)\b"
    rf"|,[^,\n]{{1,40}},)?{_IS}"
    rf"(?!\s+(?:definitely\s+|clearly\s+|certainly\s+)?not\b(?![^.\n]{{0,40}}\bbut\b))[ \t]*[:：]?{_OPENING}",
    re.IGNORECASE,
)
# "I'll go with 42": a decision, read for numbers and choices only.
_DECIDED = re.compile(
    r"\b(?:i(?:['’]?d|\s+would|['’]?ll|\s+will|['’]m)?\s+(?:go(?:ing)?\s+with|choose|pick|select"
    r"|settle\s+(?:on|for)|conclude)"
    rf"|my\s+(?:best\s+|final\s+)?(?:guess|pick|estimate|result)\s*(?:is\b|:))\s*:?{_EDGE}",
    re.IGNORECASE,
)
# "42 is the answer": the statement is the text before it.
_CONFIRMED = re.compile(
    r"\b(?:is|are)\s+(?:therefore\s+|thus\s+|then\s+)?(?:the|my|your)\s+(?:(?:final|correct|right|best)\s+)?answer\b",
    re.IGNORECASE,
)
_TAG = re.compile(r"<answer>(.*?)(?:</answer>|\Z)", re.IGNORECASE | re.DOTALL)
_KEY = re.compile(
    r"[\"'](?P<key>(?:(?:final|correct|selected|chosen|best|my|your)[_ -]?)?(?:answer|choice|option|letter"
    r"|response|result))[\"']\s{0,9}:\s{0,9}"
    r"(?P<value>\"(?:[^\"\\\n]|\\.){0,4000}\"|'[^'\n]{0,4000}'"
    r"|\[[^\]]{0,400}\]|\{[^{}]{0,400}\}|[^\s,}\]\"'][^,}\]\n]{0,200})",
    re.IGNORECASE,
)
_LONGEST_OBJECT = 4000  # characters between two keys of an object
_KEYS = ("answer", "choice", "option", "letter", "response", "result")
_HASHES = re.compile(r"^####[ \t]*(?P<rest>[^\n#]+)$", re.MULTILINE)
_HASHED_NUMBER = re.compile(r"[-−$€£]*\d[\d,.]*\s*%?\s*")
# A full stop after a title does not end the sentence: "Dr. Seuss", "St. Petersburg".
_SENTENCE_END = re.compile(
    r"(?<=[.!?])(?<!\b(?:Dr|Mr|Ms|St|Mt)\.)(?<!\bMrs\.)(?<!\bProf\.)[*_]*\s+(?=[A-Z*])|(?<=[。！？])"
)
# The full stop after an initial ends no sentence if a name surrounds it: "George W. Bush", "J. R. R. Tolkien", "U.S.
# Steel". After a single letter that begins the answer, or after "option", a sentence begins: "The answer is B. Paris."
_INITIAL = re.compile(r"(?:\b(?!(?:Option|Choice|Answer)\b)[A-Z][\w'’-]*[.,]?\s|\b[A-Z]\.\s?)[A-Z]\.$")
_ANOTHER_INITIAL = re.compile(r"(?<!\w)[A-Z]\.$")
_NEXT_INITIAL = re.compile(r"[A-Z]\.")
_SURNAME = re.compile(
    r"(?!(?:it|this|that|these|those|the|an?|he|she|they|we|you|i|however|therefore|thus|hence|so|then|also|here|there"
    r"|otherwise|instead|yes|no|note|furthermore|moreover|overall|correct|done|\w+ly)\b)"
    r"(?-i:[A-Z])[\w'’-]+(?:\s(?-i:[A-Z])[\w'’-]+){0,3}(?:\W*$|[*_\"”)]*[.,;:!?](?:\s|$)|[*_\"”]*\s(?:\(|who\b|because\b|since\b))",
    re.IGNORECASE,
)
_LONGEST_NAME = 60  # characters before an initial that are searched for the name that it belongs to
# The condition of a counterfactual: "if it were larger, the answer would be A".
_UNREAL = re.compile(
    r"\bif\b[^.!?\n]{0,80}\b(?:were|was|had|did|instead|\w{2,}ed|(?:were|was|had|did)n['’]t)\b"
    r"|\bhad (?:it|he|she|they|we|the)\b",
    re.IGNORECASE,
)
# Before "the answer is 41": an opinion that the text does not share.
_SUPPOSED = re.compile(
    r"\b(?:(?:you|one|someone|people|students|he|she|they)\s(?:might|may|would)\s(?:\w+ly\s)?(?:be\stempted\sto\s)?"
    r"(?:think|assume|believe|guess|suppose|expect|say)"
    r"|(?:some|many|most)(?:\s\w+)?\s(?:(?:might|may|would)\s)?(?:think|assume|believe|guess|suppose|say)"
    r"|it\s(?:might|may|would)\s(?:\w+ly\s)?(?:seem|appear|look(?:\slike)?))"
    r"(?:\sthat)?,?\s(?:the\s|its\s)?$",
    re.IGNORECASE,
)
# After a statement: "\\boxed{42} is not right". Only if another statement follows, "is wrong" denies it as well: alone,
# "\\boxed{B} is false" may answer a question for the false statement.
_DENIED = re.compile(
    r"[ \t$*_)\]\"'’”]{0,6}(?:is|was)\s+(?:\w+ly\s+)?(?:(?P<wrong>wrong|incorrect|false|a\s+mistake)"
    r"|not\s+(?:right|correct|the\s+(?:right\s+|correct\s+|final\s+)?answer))\b",
    re.IGNORECASE,
)
_DENIED_QUESTION = re.compile(r"\W{0,9}no\b(?!\s\w)", re.IGNORECASE)  # "The answer is 42? No, it's 41."
_LONGEST_CONDITION = 160  # characters beside a statement that are searched for its condition
_LONGEST_LINE = 4000  # characters; a longer line is a paragraph, not a line with a label


class Marker(IntEnum):
    """How strongly an answer is marked as final."""

    DECISION = 0  # "I'll go with …", "… is the answer"
    HEADING_HASHES = 1  # a text after #### on the last line: a heading looks the same
    SENTENCE = 2  # "the answer is …"
    LABEL = 3  # "Answer: …"
    FORMAT = 4  # \boxed{…}, <answer>…</answer>, {"answer": …}, "#### 42"


@dataclass(frozen=True, slots=True)
class Statement:
    """Statement of the final answer. `start` and `end` are its position in the source; `text` is what it states."""

    mark: Marker
    start: int
    end: int
    text: str


# The verb at the end of "答えは東京です", which is no part of the answer.
_COPULA = re.compile(r"(?<=\S)\s?(?:です|でした|である|になります|입니다|이다)$")


@lru_cache(maxsize=64)
def final_answer(text: str) -> str | None:
    """Return the text marked as the answer, without the marks; None if no text is marked.

    The strongest mark decides; of equal marks, the last. If the text corrects itself ("Wait, …") and states an answer
    after that, earlier statements do not count.
    """
    found = _decisive(text)
    return _COPULA.sub("", strip_markup(found.text)) if found else None


_OR = re.compile(r"[\s$*_.,]{0,9}(?:or|oder|ou|或|или)[\s$*_]{0,9}", re.IGNORECASE)


def _decisive(text: str) -> Statement | None:
    """Return the statement that decides, with one before it that it offers an alternative to.

    So \\boxed{41} or \\boxed{42} states "41 or 42".
    """
    stated = [s for s in statements(text) if s.mark != Marker.DECISION and strip_markup(s.text)]
    if not stated:
        return None
    found, source = _without_remark(stated[0]), answer_text(text)
    before = next((s for s in stated if _OR.fullmatch(source, s.end, found.start)), None)
    if before is None or strip_markup(before.text) == strip_markup(found.text):
        return found
    return Statement(found.mark, before.start, found.end, f"{before.text} or {found.text}")


# "Answer: **Paris**. It is in France.": the emphasis, which began before the statement, ends with the answer.
_EMPHASIZED = re.compile(r"([^*\n]+)\*\*[.!]\s+(?=\S)")


def _without_remark(statement: Statement) -> Statement:
    """Return *statement* without the sentences that follow its text in bold."""
    bold = _EMPHASIZED.match(statement.text)
    if bold is None or statement.mark == Marker.FORMAT:
        return statement
    return Statement(statement.mark, statement.start, statement.start + bold.end(1), bold[1])


_MARKS_BEFORE = re.compile(r"(?:(?<!#)#{1,6}[ \t]+)?[*_`#>]*$")  # also the sign of a comment: "Answer: # comment"
_LONGEST_MARKS = 80  # characters


def final_answer_as_written(text: str) -> str:
    """Return the text marked as the answer with marks around it that may be a part of it, as in `__init__`.

    Without a marked answer, that is the whole text. Backticks and a final full stop are removed.
    """
    source = answer_text(text)
    found = _decisive(text)
    if found and found.mark == Marker.FORMAT:
        source = found.text
    elif found:
        before = _MARKS_BEFORE.search(source, max(found.start - _LONGEST_MARKS, 0), found.start)
        source = source[before.start() if before else found.start : found.end]
    return _without_full_stop(source.strip()).strip("`").strip()


@lru_cache(maxsize=64)
def statements(text: str) -> tuple[Statement, ...]:
    """Return the statements of the final answer in *text*, the decisive one first."""
    text = answer_text(text)
    found = [*_boxed(text), *_tagged(text), *_keyed(text), *_hashed(text)]
    folded = text.casefold()
    if any(word in folded for word in _WORDS):
        found += [*_labelled(text), *_sentences(_STATED, Marker.SENTENCE, text), *_confirmed(text)]
    if "i" in folded:
        found += _sentences(_DECIDED, Marker.DECISION, text)
    last = max((s.start for s in found), default=0)
    found = [s for s in found if not _is_denied(text, s, last)]
    if not found:
        return ()
    last = max(s.start for s in found)
    reopened = max((position for position in reopening_positions(text) if position <= last), default=0)
    return tuple(sorted(found, key=lambda s: (s.start >= reopened, s.mark, s.start), reverse=True))


def _is_denied(text: str, statement: Statement, last: int) -> bool:
    """Return whether *text* denies *statement* right after it. *last* is where the last statement begins."""
    if statement.text.rstrip(" *_").endswith("?") and _DENIED_QUESTION.match(text, statement.end):
        return True
    denial = _DENIED.match(text, statement.end)
    return denial is not None and (denial["wrong"] is None or statement.start < last)


def _boxed(text: str) -> Iterator[Statement]:
    end = len(text)
    for _ in range(2):  # the last one, and one before it that may be an alternative
        start = max(text.rfind("\\boxed", 0, end), text.rfind("\\fbox", 0, end))
        if start < 0:
            return
        opened = re.compile(r"\\(?:boxed|fbox)\s*(?:(\{)|([^\s{}$\\]+))").match(text, start)
        if opened and opened[1]:
            close = _closing_brace(text, opened.start(1))
            content = re.sub(r"^\s*([-−])\s+(?=[\d.$\\])", r"\1", text[opened.end() : close])  # a sign, not a bullet
            yield Statement(Marker.FORMAT, start, close + 1, content)
        elif opened:
            yield Statement(Marker.FORMAT, start, opened.end(), opened[2])
        end = start


def _closing_brace(text: str, open_at: int) -> int:
    depth = 0
    for match in re.compile(r"[{}]").finditer(text, open_at):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return match.start()
    return len(text)


def _tagged(text: str) -> Iterator[Statement]:
    start = text.lower().rfind("<answer>")
    match = _TAG.match(text, start) if start >= 0 else None
    if match:
        yield Statement(Marker.FORMAT, match.start(1), match.end(), match[1])


def _keyed(text: str) -> Iterator[Statement]:
    """Yield the values of keys such as "answer" in JSON, complete or not, and in Python literals.

    A null is no answer if another key has a value, and neither is an object that has such a key itself. A key such as
    "option" or "result" marks its value less strongly if the same object has an answer.
    """
    if ":" not in text or not any(key in text.casefold() for key in _KEYS):
        return
    found: list[re.Match[str]] = []
    for match in _KEY.finditer(text):
        inner = list(_KEY.finditer(text, *match.span("value"))) if match["value"].startswith("{") else []
        found += inner or [match]
    given = [match for match in found if match["value"].strip() != "null"]
    given = given or found
    answers = [match for match in given if "answer" in match["key"].casefold()]
    starts = [match.start() for match in answers]
    for match in given:
        nearest = bisect(starts, match.start())
        around = answers[max(nearest - 1, 0) : nearest + 1]
        beside = match not in around and any(_same_object(text, match, answer) for answer in around)
        mark = Marker.LABEL if beside else Marker.FORMAT
        yield Statement(mark, match.start("value"), match.end(), _value(match["value"].strip()))


def _same_object(text: str, a: re.Match[str], b: re.Match[str]) -> bool:
    """Return whether no bracket between two keys ends or begins an object."""
    first, second = sorted((a, b), key=lambda match: match.start())
    if second.start() - first.end() > _LONGEST_OBJECT:
        return False
    return not re.search(r"[{}]", text[first.end() : second.start()])


def _value(written: str) -> str:
    if written[0] == "'":
        return written[1:-1]
    try:
        value = json.loads(written)
    except ValueError:
        return written
    if isinstance(value, list):
        return ", ".join(item if isinstance(item, str) else json.dumps(item) for item in value)
    return value if isinstance(value, str) else written


def _labelled(text: str) -> Iterator[Statement]:
    start = 0
    after_heading = False
    for line in text.split("\n"):
        end = start + len(line)
        if after_heading and line.strip(" *_`$\t"):
            after_heading = False
            if not _LABELLED.match(line):
                yield Statement(Marker.LABEL, start, end, line)
        if len(line) <= _LONGEST_LINE:
            match = _LABELLED.match(line)
            if match and match["rest"].strip():
                sentence = next(_sentences(_STATED, Marker.LABEL, match["rest"]), None)
                if sentence:
                    yield Statement(Marker.LABEL, start + match.start("rest") + sentence.start, end, sentence.text)
                else:
                    yield Statement(Marker.LABEL, start + match.start("rest"), end, match["rest"])
            elif match or _HEADING.match(line):
                after_heading = True
        start = end + 1


def _sentences(pattern: re.Pattern[str], mark: Marker, text: str) -> Iterator[Statement]:
    """Yield the text after each match of *pattern*, up to the end of its sentence."""
    heads = list(pattern.finditer(text))
    for i, head in enumerate(heads):
        limit = heads[i + 1].start() if i + 1 < len(heads) else len(text)
        line_end = text.find("\n", head.end(), limit)
        limit = line_end if line_end >= 0 else limit
        end = _sentence_end(text, head.end(), limit)
        if text[head.end() : end].strip() and not is_supposed(text, head.start()) and not is_counterfactual(text, head):
            yield Statement(mark, head.end(), end, text[head.end() : end])


def _sentence_end(text: str, start: int, limit: int) -> int:
    """Return the end of the sentence that goes on at *start*, at most *limit*."""
    for cut in _SENTENCE_END.finditer(text, start, limit):
        before = (max(start, cut.start() - _LONGEST_NAME), cut.start())
        goes_on = _NEXT_INITIAL.match(text, cut.end(), limit)
        named = _INITIAL.search(text, *before) and (goes_on or _SURNAME.match(text, cut.end(), limit))
        if not named and not (goes_on and _ANOTHER_INITIAL.search(text, *before)):
            return cut.start()
    return limit


def is_supposed(text: str, start: int) -> bool:
    """Return whether the statement at *start* is an opinion that *text* does not share: "Many say it is A"."""
    return _SUPPOSED.search(text, max(start - _LONGEST_CONDITION, 0), start) is not None


def is_counterfactual(text: str, head: re.Match[str]) -> bool:
    """Return whether a statement depends on a condition that is not met: "if it were larger, the answer would be A".

    *head* is what introduces the statement: "the answer would be".
    """
    if "would" not in head[0].casefold():
        return False
    before = re.split(r"[.!?]\s|\n", text[max(head.start() - _LONGEST_CONDITION, 0) : head.start()])[-1]
    after = re.split(r"[.!?]\s|\n|\b(?:because|since|as)\b", text[head.end() : head.end() + _LONGEST_CONDITION])[0]
    return _UNREAL.search(before) is not None or _UNREAL.search(after) is not None


def _confirmed(text: str) -> Iterator[Statement]:
    for match in _CONFIRMED.finditer(text):
        before = text[max(match.start() - 120, 0) : match.start()]
        sentence = re.split(r"(?:[.!?。]\s|\n)", before)[-1]
        if sentence.strip():
            yield Statement(Marker.DECISION, match.start() - len(sentence), match.end(), sentence)


def _hashed(text: str) -> Iterator[Statement]:
    """Yield answers after GSM8K's ####. As it is also a heading, a text counts only on the last line."""
    for match in _HASHES.finditer(text):
        if _HASHED_NUMBER.fullmatch(match["rest"]):
            yield Statement(Marker.FORMAT, match.start("rest"), match.end(), match["rest"])
        elif not text[match.end() : match.end() + 1000].strip():
            yield Statement(Marker.HEADING_HASHES, match.start("rest"), match.end(), match["rest"])


_MATHS = re.compile(
    r"(?:\\\((?P<round>.*)\\\)|\\\[(?P<square>.*)\\\]|(?P<mark>\${1,2})(?P<dollars>[^$]+)(?P=mark))\.?", re.DOTALL
)


def strip_markup(text: str) -> str:
    """Return *text* without emphasis, quotation marks, TeX markup and a final full stop."""
    text = text.strip()
    if maths := _MATHS.fullmatch(text):
        text = (maths["round"] or maths["square"] or maths["dollars"] or "").strip()
    text = re.sub(r"\\(?:text|mathrm|textbf|mathbf|boldsymbol)\{([^{}]*)\}", r"\1", text)
    text = text.strip("*_` ").strip()
    text = _without_full_stop(text).strip("*_` ")
    quoted = re.fullmatch(r"([\"'`“‘„«「『])(.*)([\"'`”’“»」』])", text, re.DOTALL)
    return _without_full_stop(quoted[2].strip()) if quoted else text


_ABBREVIATION_END = re.compile(r"\b(?:\w\.\w|Jr|Sr|Inc|Ltd|Corp)\.$")  # "U.S.", "Martin Luther King Jr."


def _without_full_stop(text: str) -> str:
    if text.endswith("。"):
        return text[:-1]
    if not text.endswith(".") or text.endswith("..") or _ABBREVIATION_END.search(text):
        return text  # an ellipsis, or an abbreviation
    return text[:-1]
