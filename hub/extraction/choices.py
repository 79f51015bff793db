"""Which of several options an answer chooses: by its label, or by its own words."""

import itertools
import re
import unicodedata
from collections.abc import Callable, Sequence

from hub.extraction.final import bare, final_answer
from hub.extraction.reading import spoken

# A label that is a word of its own ("A", "I") counts before other words only if one of these follows.
_AFTER_LABEL = r"because|since|as|for|and|which|due|is|was|it|this|that|given|based|not|with|the"
_VERDICT = (
    r"(?:is|was|must be|would be|should be|seems|looks)\s+(?:clearly\s+|the\s+){0,2}(?:correct|right|best|true|answer)"
)
_DENIAL = re.compile(r"\b(?:not|neither|nor|none|never)\b|n['’]t\b", re.IGNORECASE)
_TELLING = 2  # characters of an option from which its own words can tell it: "a" stands everywhere
_SHORT = 200  # characters up to which an option's words anywhere are the answer, not part of a deliberation
_CHOSEN = (
    r"(?:(?:i|we)(?:'d|\s+would|\s+will|'ll)?\s+(?:choose|chose|pick|select|say|go\s+with|think\s+it(?:'s|\s+is))"
    r"|(?:correct|right|best)\s+(?:answer|option|choice)\s+(?:is|would\s+be)|(?:it(?:'s|\s+is)|must\s+be|choose|select))"
)


def choice(text: str, labels: Sequence[str], choices: Sequence[str] = ()) -> str | None:
    """The label that *text* chooses, or None where it chooses none or more than one.

    In order: a text that is nothing but a label; the marked answer; a sentence such as "B is correct" or "I choose B";
    a marked letter (`**B.**`, `(B)`, `B)`) at the beginning or the end, outside of a list that repeats the options; an
    option's own words, in the last sentence or in a short text.
    """
    text = unicodedata.normalize("NFKC", spoken(text))
    reader = _Reader(labels, choices)
    marked = final_answer(text)
    if reader.alone(text):
        return reader.alone(text)
    if marked is not None and (reader.hedges(marked) or reader.begins(marked)):
        return None if reader.hedges(marked) else reader.begins(marked)
    lines = reader.without_listing([line for line in text.split("\n") if line.strip()])
    found = reader.concluded(text) or reader.lettered(lines)
    if found is not None:
        return found
    last = re.split(r"(?<=[.!?])\s+", lines[-1])[-1] if lines else ""
    places = [marked or "", last, text if len(text) <= _SHORT else ""]
    return next((label for label in map(reader.worded, places) if label), None)


class _Reader:
    """The labels and options of one question, and ways to find them."""

    def __init__(self, labels: Sequence[str], choices: Sequence[str]) -> None:
        self._labels = list(labels)
        self._by_fold = {label.casefold(): label for label in labels}
        self._options = list(zip(labels, choices, strict=False))
        self._any = "|".join(re.escape(label) for label in sorted(labels, key=len, reverse=True))
        self._start = rf"^[ \t]*(?:\*\*|__)?[(\[]?(?P<label>{self._any})(?:[)\].:]|\*\*|__)"
        emphasised = rf"(?:\*\*|__)[(\[]?(?P<label>{self._any})[)\]]?[.:]?(?:\s[^*\n]{{0,200}})?(?:\*\*|__)"
        self._anywhere = rf"{emphasised}|\((?P<round>{self._any})\)"
        self._label = rf"[(\[*_\"'$ \t]{{0,6}}(?P<label>{self._any})"

    def alone(self, text: str) -> str | None:
        """The label that *text* is, with nothing but marks around it."""
        core = bare(text).strip("()[]{}.:*_` \t$")
        return self._by_fold.get(core.casefold())

    def hedges(self, said: str) -> bool:
        """Whether a marked answer names several labels: "A or B", "B and C"."""
        rest = rf"[)\]*_.]*\s*(?:,|/|&|\bor\b|\band\b)\s*(?:option\s+)?[(\[*_]{{0,6}}(?P<other>{self._any})(?![\w'’])"
        match = re.match(self._label + rest, bare(said))
        return match is not None and match["other"] != match["label"]

    def begins(self, said: str) -> str | None:
        """The label that a marked answer begins with or is, or the option that it is in words."""
        said = re.sub(r"^(?:option|choice|answer|letter)\b[ \t:]*", "", bare(said), flags=re.IGNORECASE)
        if said in self._labels:
            return said
        found = self._equal(said, _flat, 1) or self.alone(said) or self._equal(said, _squeezed, 3)
        if found:
            return found
        match = re.match(self._label + r"(?P<mark>[)\]*_\"'$]*(?:[.:,;)\]*_-]|\s[-–—]|\s*\())", said)
        if match:
            return match["label"]
        folded = re.match(self._label + r"[)\]]", said, re.IGNORECASE)
        if folded:
            return self._by_fold.get(folded["label"].casefold())
        worded = re.match(self._label + rf"\s+(?P<next>{_AFTER_LABEL})\b", said)
        return worded["label"] if worded else self.worded(said)

    def concluded(self, text: str) -> str | None:
        """The label of the last sentence that says so: "option B is correct", "I choose B", "it's B because …"."""
        patterns = (
            rf"(?<![\w'’])[(*\"']{{0,6}}(?P<label>{self._any})[)*\"'.:]*\s+{_VERDICT}\b",
            rf"(?i:\b{_CHOSEN}\s*:?\s+(?:the\s+)?(?:option|choice|answer)?\s*)[(\[*\"']{{0,6}}(?P<label>{self._any})"
            rf"(?=[)\]*\"'.,;:!]|\s*$|\s+(?:{_AFTER_LABEL})\b)",
            rf"(?i:\b(?:option|choice)\s+)[(\[*\"']{{0,6}}(?P<label>{self._any})(?=[)\]*\"'.!]*\s*$)",
        )
        found = [match for pattern in patterns for match in re.finditer(pattern, text, re.MULTILINE)]
        return max(found, key=lambda match: match.start())["label"] if found else None

    def lettered(self, lines: Sequence[str]) -> str | None:
        """The label that a short first line begins with, or that one of the last two lines marks."""
        for line in [*lines[:1], *reversed(lines[-2:])]:
            named = {m["label"] or m["round"] for m in re.finditer(self._anywhere, line)}
            match = re.match(self._start, line)
            if match and (line is not lines[0] or len(line) <= _SHORT) and named <= {match["label"]}:
                return match["label"]
            if line is not lines[0] or len(lines) == 1:
                if len(named) == 1:
                    return str(named.pop())
                if named:
                    return None
        return None

    def without_listing(self, lines: Sequence[str]) -> list[str]:
        """*lines* without successive ones that begin with successive labels: they repeat the options."""
        starts = rf"^[ \t*_-]*[(\[]?(?P<label>{self._any})[)\].:]"
        begun = [re.match(starts, line) for line in lines]
        listed: set[int] = set()
        for i, (a, b) in enumerate(itertools.pairwise(begun)):
            if a and b and self._labels.index(b["label"]) == self._labels.index(a["label"]) + 1:
                listed |= {i, i + 1}
        return [line for i, line in enumerate(lines) if i not in listed]

    def _equal(self, said: str, form: Callable[[str], str], least: int) -> str | None:
        """The one option that is *said*, both in the same *form*, of which at least *least* characters are left."""
        said = form(said)
        labels = [label for label, option in self._options if len(said) >= least and form(option) == said]
        return labels[0] if len(labels) == 1 else None

    def worded(self, text: str) -> str | None:
        """The one option whose words stand in *text*, unless it is denied; within a longer option they do not count."""
        if _DENIAL.search(text):
            return None
        flat = _flat(text)
        found = [(label, _flat(option)) for label, option in self._options if _stands(_flat(option), flat)]
        labels = {
            label
            for label, option in found
            if not any(option != other and _stands(option, other) for _, other in found)
        }
        return labels.pop() if len(labels) == 1 else None


def _stands(option: str, text: str) -> bool:
    if len(option) < _TELLING:
        return False
    return re.search(rf"(?<!\w){re.escape(option)}(?!\w)", text) is not None


def _flat(text: str) -> str:
    """Case, emphasis, white space and a closing mark aside."""
    return re.sub(r"\s+", " ", re.sub(r"[*`]", "", text)).casefold().strip(" .,;:!")


def _squeezed(text: str) -> str:
    """Words alone."""
    return re.sub(r"[^\w]+", " ", text.casefold()).strip()
