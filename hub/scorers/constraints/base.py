"""Base class of constraints: keyword arguments validated as fields, and a check that describes the problem."""

import re
from abc import abstractmethod
from typing import Annotated, ClassVar, Literal

import regex
from pydantic import ConfigDict, Field

from hub.common.documents.validation import StrictNumbers

Relation = Literal["at least", "at most", "exactly", "less than", "more than"]
Count = Annotated[int, Field(ge=0)]
Text = Annotated[str, Field(min_length=1)]
Texts = Annotated[list[Text], Field(min_length=1)]

_HOLDS = {
    "at least": lambda count, bound: count >= bound,
    "at most": lambda count, bound: count <= bound,
    "exactly": lambda count, bound: count == bound,
    "less than": lambda count, bound: count < bound,
    "more than": lambda count, bound: count > bound,
}


class Constraint(StrictNumbers):
    """One kind of instruction. `id` is its name in bundles; the fields are its keyword arguments.

    Kinds whose names are those of IFEval (Zhou et al. 2023, arXiv:2311.07911) mean what that paper means by them.
    """

    model_config = ConfigDict(extra="forbid")
    id: ClassVar[str]
    summary: ClassVar[str]
    in_ifeval: ClassVar[bool] = True

    @abstractmethod
    def problem(self, text: str) -> str:
        """Return the problem of *text* as a clause such as "it has 2 bullets, not exactly 3"; "" if there is none."""


def counted(noun: str, count: int, relation: Relation, bound: int) -> str:
    """Return the problem of a wrong count; "" if it is right. *noun* is the plural."""
    return "" if _HOLDS[relation](count, bound) else f"it has {count} {noun}, not {relation} {bound}"


# Patterns of `regex`, for use in brackets. Combining marks and joiners belong to a word: the vowel signs of Hindi, the
# points of Hebrew, é as two code points. They do not begin one, because emoji have marks as well. `\w` of `regex`
# would not do: it lacks the digit of H₂O.
LETTERS = r"\p{L}\p{N}"
IN_WORD = r"\p{L}\p{N}\p{M}\u200c\u200d"
_WORD = regex.compile(rf"[{LETTERS}_][{IN_WORD}_]*")


def words(text: str) -> list[str]:
    """Return words: runs of letters, digits and underscores, so "don't" is two."""
    return [str(word) for word in _WORD.findall(text)]


# These never end a sentence. The numbers and letters of a list do not end one either.
_TITLE = re.compile(
    r"(?:\b(?:Mr|Mrs|Ms|Mx|Messrs|Mme|Dr|Prof|Rev|Hon|Gen|Col|Maj|Capt|Lt|Sgt|Cpl|Sen|Rep|Gov|Pres|Supt|Mt|Ft|vs"
    r"|[Ee]\.g|[Ii]\.e|[Cc]f|Figs?|[Aa]pprox|[Bb]zw|[Vv]gl|[Zz]\.\s?B|[Dd]\.\s?h)|^\W*(?:\d{1,3}|[A-Z]))\.$",
    re.MULTILINE,
)
# After these, a sentence goes on if the next word has a small letter: "Stop!" he said. Well... maybe.
_PAUSE = re.compile(r"\.{2,}|…")
_QUOTED = re.compile(r"[\"”]")
# An initial ("J. Smith", "U.S. Army") or "St." does not end a sentence, unless a word follows that begins one: "option
# A. It", "Main St. It".
_INITIAL = re.compile(r"\b(?:[A-Z]|St)\.$")
_BEGINNING = re.compile(
    r"\s+(?:The|This|That|These|Those|It|He|She|We|They|You|I|There|Then|But|And|So|If|In|On|At|As|When|While|However"
    r"|My|Our|Your|His|Her|Their|What|Why|How|Who|Is|Are|Not|Now|Here|Because|Therefore|Thus|For|After|Before)\b"
)
_MONTH = r"Jan|Feb|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec"
# These end a sentence if the next word begins with a capital. Of other languages, those that consist of single letters
# and short syllables are recognised: d.h., z. B., p.ej.
_ABBREVIATION = re.compile(
    rf"\b(?:etc|Inc|Ltd|Co|Corp|Dept|Jr|Sr|Ave|Blvd|Rd|ca|est|eds?|lbs?|ft|et\sal|{_MONTH})\.$"
    r"|(?<![^\W_])[^\W\d_]{1,2}\.[^\W\d_]{1,2}\.$|(?<![^\W_])[^\W\d_]\.\s[^\W\d_]\.$"
)
# These end no sentence before a number: "No. 5", "Jan. 2020", "pp. 3-4".
_BEFORE_NUMBER = re.compile(
    rf"\b(?:Nos?|Nr|Refs?|Arts?|Ex|Op|Tel|Mar|{_MONTH}|[Vv]ol|[Cc]h|[Ss]ec|[Ee]qs?|pp?|[Cc]a|[Ee]st|max|min|et\sal)\.$"
)
_LETTER = re.compile(r"(?<![^\W_])[^\W\d_]\.$")
_NEXT_LETTER = re.compile(r"\s[^\W\d_]\.(?!\w)")  # of an abbreviation with spaces: z. B.
_SOURCE = r"(?:[ \t]*\[\^?\d{1,3}\]|[¹²³⁰⁴-⁹])"  # of the sentence before it: "It grew.[1] Then", "It grew. [1]"
_END = re.compile(
    rf"(?<![.!?…])(?P<mark>[.!?…]++)(?P<closing>[\"'”’)\]*_]*+){_SOURCE}*(?=\s|$)|[。！？।॥؟۔]+[”’」』）]*{_SOURCE}*"
)


def sentences(text: str) -> list[str]:
    """Return the sentences: text up to `.`, `!`, `?` or `…` before white space, or up to a mark of another script.

    Abbreviations, initials and the numbers of a list do not end a sentence. The numbers of sources belong to the
    sentence before them.
    """
    found: list[str] = []
    start = 0
    has_capitals = not text.islower()
    for end in _END.finditer(text):
        stop = end.end("mark")
        is_pause = _PAUSE.search(end["mark"] or "") or _QUOTED.search(end["closing"] or "")
        if is_pause and has_capitals and text[end.end() : end.end() + 20].lstrip()[:1].islower():
            continue
        if (end["mark"], end["closing"]) == (".", "") and _sentence_continues(
            text[max(end.start() - 12, start) : stop], text[stop : stop + 20]
        ):
            continue
        if re.search(r"\w", text[start : end.end()]):
            found.append(text[start : end.end()].strip())
            start = end.end()
    if re.search(r"\w", text[start:]):
        found.append(text[start:].strip())
    return found


def _sentence_continues(before: str, after: str) -> bool:
    """Return whether the full stop at the end of *before* belongs to an abbreviation, given the text *after* it."""
    following = after.strip()[:1]
    if not following:
        return False
    if _TITLE.search(before) or (following.islower() and _ABBREVIATION.search(before)):
        return True
    if (following.isdigit() or re.match(r"\s+[(\[]\d", after)) and _BEFORE_NUMBER.search(before):
        return True
    if before[-2:-1].islower() and _LETTER.search(before) and _NEXT_LETTER.match(after):
        return True
    return bool(_INITIAL.search(before)) and not _BEGINNING.match(after)
