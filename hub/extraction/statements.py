"""Statements of a final answer in a text: in a format, after "Answer:", in "the answer is 42" or "I choose 42"."""

import re
from collections.abc import Iterator
from functools import lru_cache

from hub.extraction.corrections import reopening_positions
from hub.extraction.formats import formatted_answers
from hub.extraction.marks import Marker, Statement
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
_WORDS = ("answer", "ans:", "ans.:", "choice", "option", *_FOREIGN_WORDS, *_CJK_WORDS)
_NOT = r"(?:no|non|não|nicht|niet|inte|ikke|не)\b"
_FOREIGN = rf"(?:{'|'.join(_FOREIGN_WORDS)})(?:[ ](?!{_NOT})\w{{1,14}}){{0,3}}?"
_CJK = rf"(?:{'|'.join(_CJK_WORDS)})"
_SUBJECT = rf"(?:{_ADJECTIVES}(?:answer|choice)|{_FOREIGN}|{_CJK})"
_COLON = r"(?:=>|[-–]>|→|[:：=])"
_IS = (
    r"(?:\s+(?:is|was|would\s+be|should\s+be|must\s+be|will\s+be|has\s+to\s+be|ist|lautet|es|est|é|è|är|er|jest|je|"
    rf"adalah|هي|هو|है|là|είναι)\b|\s*{_COLON}|\s+[—–-]\s|\s*(?:应该|應該)?(?:是|为|為|は|은|는|應為|应为))"
)
_TITLE = rf"(?:the\s+)?(?:{_SUBJECT}|ans\.?|(?:selected\s+|chosen\s+)?{_ADJECTIVES}option)"
# "Answer: 42", "**Final answer (in km):** 42", "Selected option: B", "【答案】B", at the beginning of a line.
_LABELLED = re.compile(
    rf"^{_EDGE}【?{_TITLE}(?:[ \t]*\([^()\n]{{0,60}}\))?{_EDGE}(?:is[ \t]*)?(?:{_COLON}|】){_OPENING}(?P<rest>.*)$",
    re.IGNORECASE,
)
_BELOW = r"(?:as\s+follows|the\s+following|below)"
_HERE = r"here(?:['’]s|\s+is)"
# "### Answer", "So the answer is:", "The final answer is as follows:", as a line: the statement is the next line.
_CONCLUDING = (
    rf"(?:(?:{_HERE}|so|thus|therefore|hence|then|and|finally|consequently|overall|to\s+conclude"
    r"|in\s+(?:conclusion|summary|short)|as\s+a\s+result|(?:this|that|which)\s+means(?:\s+that)?),?\s+){0,2}"
)
_HEADING = re.compile(
    rf"^{_EDGE}{_CONCLUDING}{_TITLE}(?:\s+(?:is|would\s+be)(?:\s+{_BELOW})?)?"
    rf"{_EDGE}[:：.]?{_EDGE}$",
    re.IGNORECASE,
)
# Such a heading may introduce an explanation, so its statement is the next line only if that ends the text.
_VAGUE_HEADING = re.compile(rf"\b(?:{_HERE}|{_BELOW})\b", re.IGNORECASE)
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
    rf"(?!\s+(?:{_BELOW}|(?:given|shown)\s+below)\b)"
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
_RULES_AND_MARKS = " *_`$\\[\t-="  # a line of these between a heading and the answer is no answer: "---", "$$", "\\["
_LONGEST_CONDITION = 160  # characters beside a statement that are searched for its condition
_LONGEST_LINE = 4000  # characters; a longer line is a paragraph, not a line with a label


@lru_cache(maxsize=64)
def statements(text: str) -> tuple[Statement, ...]:
    """Return the statements of the final answer in *text*, the decisive one first."""
    text = answer_text(text)
    found = list(formatted_answers(text))
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


def _labelled(text: str) -> Iterator[Statement]:
    start = 0
    heading = ""
    last_end = len(text.rstrip())
    for line in text.split("\n"):
        end = start + len(line)
        if heading and line.strip(_RULES_AND_MARKS):
            is_clear = not (_VAGUE_HEADING.search(heading) and end < last_end)
            heading = ""
            if is_clear and not _LABELLED.match(line):
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
                heading = line
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
