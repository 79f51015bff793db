"""References to the two responses of a pair in free text, independent of the order in which the writer saw them.

Judges and reviewers see a pair as A and B, and which response is A differs between them. What they write is stored with
the tokens ⟦first⟧ and ⟦second⟧ instead of letters. `Sides` translates in both directions for one order, and
`tokens_to_phrases` replaces tokens by phrases on pages without letters. Pure functions.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from hub.protocols.messages import Message, text_of

Side = Literal["first", "second"]
Item = TypeVar("Item")

_TOKEN = re.compile(r"⟦(first|second)⟧")


@dataclass(frozen=True, slots=True)
class Sides:
    """Order in which a pair is shown. If `swapped`, the second response is A."""

    swapped: bool

    def ordered(self, first: Item, second: Item) -> tuple[Item, Item]:
        """Return the items of A and B, given those of the first and the second response."""
        return (second, first) if self.swapped else (first, second)

    def side(self, letter: str) -> Side:
        """Return the side for the letter A or B. Raises KeyError for others."""
        sides: tuple[Side, Side] = ("first", "second")
        a, b = self.ordered(*sides)
        return {"a": a, "b": b}[letter.lower()]

    def verdict(self, text: str) -> str:
        """Return `first` or `second` for the letter A or B, and other verdicts unchanged."""
        return self.side(text) if text.lower() in ("a", "b") else text

    def letter(self, side: str) -> str:
        """Return `A` or `B` for `first` or `second`, and other verdicts unchanged."""
        first, second = self.ordered("A", "B")
        return {"first": first, "second": second}.get(side, side)

    def letters_to_tokens(self, text: str, *, choices: bool = False) -> str:
        """Return *text* with each reference to A or B replaced by a token.

        Only clear references to a side are replaced, not code, quoted text or the article "A". *choices* says that the
        task lists choices named by letters, so that a lone letter is not a reference.
        """
        plain = _TOKEN.sub(r"[[\1]]", text)
        found = _references(plain, choices)
        for start, end, written, letter in reversed(found):
            plain = f"{plain[:start]}{written}⟦{self.side(letter)}⟧{plain[end:]}"
        return plain

    def shown(self, text: str) -> str:
        """Return *text* with each token replaced by A or B."""
        return _TOKEN.sub(lambda match: self.letter(match[1]), text)


def other_side(side: Side) -> Side:
    """Return `second` for `first`, and `first` for `second`."""
    return "second" if side == "first" else "first"


def exchange_tokens(text: str) -> str:
    """Return *text* with the two tokens exchanged."""
    return _TOKEN.sub(lambda match: "⟦second⟧" if match[1] == "first" else "⟦first⟧", text)


def tokens_to_phrases(text: str, *, first: str = "the first response", second: str = "the second response") -> str:
    """Return *text* with each token replaced by a phrase, which also replaces a noun before it ("response ⟦first⟧")."""
    names = {"first": first, "second": second}

    def phrase(match: re.Match[str]) -> str:
        name, leading = names[match["side"]], match["leading"] or ""
        starts = leading[:1].isupper() or (not leading and _CAPITAL_AFTER.search(text[: match.start()]) is not None)
        return name[:1].upper() + name[1:] if starts else name

    return _WITH_NOUN.sub(phrase, text)


def lists_choices(prompt: Sequence[Message]) -> bool:
    """Return whether a prompt lists choices named A and B, so that a letter in a critique may mean a choice."""
    return any({"A", "B"} <= {match[1] for match in _CHOICE.finditer(text_of(message))} for message in prompt)


# ---- finding references ----------------------------------------------------------------------------------------------

_NOUNS = (
    "response|answer|assistant|model|candidate|completion|solution|submission|side|output|agent|implementation|"
    "version|reply|text|code"
)
_WITH_NOUN = re.compile(
    rf"(?P<leading>\b(?:the\s+)?(?:{_NOUNS}|replie)s?\s+)?⟦(?P<side>first|second)⟧",
    re.IGNORECASE,
)
_CAPITAL_AFTER = re.compile(r"(?:^|[.!?\n]|\n[ \t]*[-*•]|\n[ \t]*\d+[.)])[ \t*_]*$")
_CHOICE = re.compile(r"^[ \t>*(\[]{0,4}([A-B])[).:\]][*]*[ \t]+\S", re.M)
_CHOICE_LIST = re.compile(r"\b[AB]\b\s*(?:,|/|and|or)\s*(?:[AB]\b\s*,?\s*)?(?:and\s+|or\s+)?[C-E]\b(?![+#'’])")
_OPAQUE = re.compile(  # code and quoted text, in which letters are not references
    r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|`[^`\n]*`|\"[^\"\n]*\"|“[^”\n]*”|«[^»\n]*»|(?<!\w)'[^'\n]*'(?!\w)", re.S
)
_LETTER = re.compile(r"(?<![\w])[AB](?![\w])")
_LOWER = re.compile(rf"(?<!\w)(?:{_NOUNS})\s+([ab])(?![\w(.\-=/])", re.IGNORECASE)
_ORDINAL = re.compile(
    r"(?P<the>\bthe\s+)?\b(?P<place>first|second|1st|2nd|left|left-hand|right-hand)\s+"
    r"(?P<noun>response|assistant|candidate|completion|submission|answer|reply)\b"
    r"|\b(?:the\s+)?(?P<before>response|answer)\s+on\s+the\s+(?P<hand>left|right)\b",
    re.IGNORECASE,
)
# Nouns that are often followed by a letter of their own: "matrix A", "option B", "set A and set B".
_OTHERS = (
    "option|choice|letter|matrix|vector|set|array|list|node|vertex|point|class|variable|plan|type|column|row|table|"
    "figure|fig|step|part|section|group|grade|vitamin|team|player|person|station|event|string|tier|appendix|hepatitis|"
    "object|module|user|item|box|city|train|worker|machine|phase|case|scenario|key|field|value|state|level|category|"
    "statement|premise|question|parameter|argument|constant|schedule|exhibit|factor|product|company|bucket"
)
_OTHERS_BEFORE = re.compile(
    rf"\b(?:(?:{_OTHERS})(?:s|es)?|an?)\s+(?:[A-Z]\s*(?:,|/|&|\band\b|\bor\b|\bto\b|\bfrom\b)\s*(?:[a-z]+\s+)?)*$",
    re.IGNORECASE,
)
_ANSWER_IS = re.compile(
    r"(?P<which>\b\w+\s+)?\b(?:answers?|answered|answering|key|target|chose|chooses|selects?|selected|picks?|picked)\s+"
    r"(?:(?:is|was|are|as|should\s+be|must\s+be|would\s+be|to\s+be|with|letter)\s+)?$",
    re.IGNORECASE,
)
_PREFERRED = {"better", "best", "preferred", "stronger", "superior", "winning"}
_PREVIOUS_WORD = re.compile(r"([^\W\d_]+)[ \t\n]+[*_]*$")
_NOUN_BEFORE = re.compile(rf"(?:{_NOUNS})s?|replies", re.IGNORECASE)
_ABOUT_CHOICES = {"answer", "answers", "solution", "solutions", "text", "code", "output", "outputs"}

_AUXILIARY = (
    r"(?:is|was|has|had|does|did|could|would|should|might|may|needs?|isn|wasn|hasn|hadn|doesn|didn|couldn|wouldn|"
    r"shouldn|won|can)['’]t\b|(?:is|was|has|had|does|did|could|would|should|might|may|cannot)\b(?!-)|"
    r"can\b(?!\s+of|-)|will\b(?!\s+to|-)|must\b(?!\s+(?:for|read)|-)|(?:but|because|since|although|though|whereas)\b|"
    r"(?:better|worse|more\s+\w+|less\s+\w+)\s+than\b"
)
_NO_VERBS = (  # words that end like a verb and can follow the article "A"
    "series|means|news|species|sales|savings|always|sometimes|perhaps|besides|lens|sports|graphics|maths|mathematics|"
    "systems|bounds|args|kwargs|units|types|options|results|params|parameters|operations|settings|headers|brackets|"
    "columns|rows|days|weeks|months|years|hours|minutes|seconds|times|ones|others|this|numbers|words|values|keys|s"
)
_VERB = rf"(?!(?:{_NO_VERBS})\b)[a-z]+(?<!s)(?<!u)(?<!i)(?<!a)s\b(?![-’'])"
_PAST = (
    r"(?:[a-z]+ed\s+(?:to|the|a|an|it|its|because|this|that|every|each|no|nothing|all)\b|"
    r"(?:got|gave|made|took|forgot|wrote|chose|went|kept|left|did)\b(?!-))"
)
_ADVERB = r"(?:(?:[a-z]+ly|also|only|just|never|always|sometimes|even|still|not|then|too)\s+)"
_AFTER_SIDE = re.compile(
    r"['’]s\b|\s*$|\s*[,;:!?)\]…]|\.(?!\s*[A-Z]\.)(?:\s|$)|\s+[-–—]+\s|[ \t]*\n|\s*[/&<>]\s*[*_]*B\b|"
    r"\s+(?:and|or|vs\.?|versus|over|than|nor|with|to|for)\s+(?:[a-z]+\s+)?[*_]*B\b|"
    rf"\s+{_ADVERB}{{0,2}}(?:{_AUXILIARY}|{_VERB}|{_PAST})"
)
_GLUED_AFTER = tuple("+#=<>@$%^~|\\{([-")
_GLUED_BEFORE = tuple(".-#@\\$=<>_'’")
_IN_FORMULA = re.compile(r"(?:[=+^|]|[*×·])\s+$")
_BEFORE_BULLET = re.compile(r"(?:^|\n)\s*[*+]\s+$")
_BEFORE_OPERATOR = re.compile(r"\s+(?:[=+^|×·]|\*\s)")
_COMPOUND = re.compile(r"[ -](?:trees?|cells?|vitamins?|movies?|flat|sharp|tests?|testing)\b|\s+to\s+Z\b|\s+[A-Z][a-z]")


def _references(text: str, choices: bool) -> list[tuple[int, int, str, str]]:
    """Return (start, end, words to keep before the token, letter) of each reference in *text*, in order."""
    opaque = [match.span() for match in _OPAQUE.finditer(text)]
    choices = choices or bool(_CHOICE_LIST.search(text))

    def open_at(start: int) -> bool:
        return not any(begin <= start < end for begin, end in opaque)

    found = [
        (match.start(), match.end(), "", match[0])
        for match in _LETTER.finditer(text)
        if open_at(match.start()) and _is_side(text, match.start(), choices)
    ]
    for match in _LOWER.finditer(text):
        of_choice = choices and match[0].split()[0].lower() in _ABOUT_CHOICES
        sure = match[1] == "b" or (match[1] == "a" and _AFTER_SIDE.match(text, match.end()))
        if sure and not of_choice and open_at(match.start()):
            found.append((match.start(1), match.end(1), "", match[1]))
    for match in _ORDINAL.finditer(text):
        if open_at(match.start()) and (place := _place(text, match)):
            noun = (match["noun"] or match["before"]).lower()
            written = noun.capitalize() if match[0][0].isupper() else noun
            found.append((match.start(), match.end(), f"{written} ", place))
    return sorted(found)


def _place(text: str, match: re.Match[str]) -> str:
    """Return A or B for "the first response" or "the response on the left", "" if it may mean something else."""
    if match["hand"]:
        return "A" if match["hand"].lower() == "left" else "B"
    if not match["the"] and not (match[0][0].isupper() and _starts_sentence(text[: match.start()])):
        return ""  # "its first response" may be a turn of a conversation
    return "A" if match["place"].lower() in ("first", "1st", "left", "left-hand") else "B"


def _is_side(text: str, start: int, choices: bool) -> bool:
    """Return whether the capital letter at *start*, a word on its own, refers to a side."""
    before, after = text[max(0, start - 200) : start], text[start + 1 : start + 200]
    while before[-1:] in ("*", "_") and after[:1] == before[-1:]:  # emphasis
        before, after = before[:-1], after[1:]
    previous = _PREVIOUS_WORD.search(before)
    word = previous[1] if previous else ""
    if _part_of_other(before, after):
        return False
    if _NOUN_BEFORE.fullmatch(word):
        if choices and word.lower() in _ABOUT_CHOICES:
            return False
        wins = _ANSWER_IS.search(before)
        return wins is None or word.lower() in ("answer", "answers")
    if choices or _OTHERS_BEFORE.search(before) or _COMPOUND.match(after) or _shouted(word, after):
        return False
    named = _ANSWER_IS.search(before)
    if named is not None and (named["which"] or "").strip().lower() not in _PREFERRED:
        return False
    return text[start] == "B" or not _starts_sentence(before) or bool(_AFTER_SIDE.match(after))


def _part_of_other(before: str, after: str) -> bool:
    """Return whether the letter between *before* and *after* is part of a formula, a name, a grade or a quotation."""
    if after.startswith("/") or before.endswith("/"):
        beside = re.match(r"/[*_]*[AB]\b(?!/)", after) or re.search(r"\b[AB][*_]*/$", before)
        return not beside or bool(re.match(r"(?:/[AB])?[ -]test", after))
    if after.startswith((*_GLUED_AFTER, "*")) or before.endswith(_GLUED_BEFORE):
        return True
    if re.match(r"\.\w|['’](?!s\b)", after) or _BEFORE_OPERATOR.match(after):
        return True
    return bool(_IN_FORMULA.search(before)) and not _BEFORE_BULLET.search(before)


def _shouted(word: str, after: str) -> bool:
    """Return whether the letter is surrounded by words in capitals."""
    following = re.match(r"\s+([A-Z]{2,})\b", after)
    return len(word) > 1 and word.isupper() and following is not None


def _starts_sentence(before: str) -> bool:
    """Return whether a word after *before* would be capitalized anyway."""
    stripped = before.rstrip(" \t*_")
    return not stripped or stripped[-1] in '.!?:;([{–—-•>\n"“'
