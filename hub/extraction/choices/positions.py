"""Labels and options chosen by their position: at the beginning or the end of a text, outside of lists of options."""

import itertools
import re
from collections.abc import Sequence

from hub.extraction.choices.exclusions import without_rejected
from hub.extraction.choices.labels import LabelReader
from hub.extraction.choices.options import SHORT_TEXT, flatten, without_articles, without_denials
from hub.extraction.choices.phrases import NEGATIVE_OPTION, RANKED, SENTENCE_END
from hub.extraction.corrections import ALTERNATIVELY
from hub.extraction.markup import strip_markup

_PART_END = re.compile(r"[*_]{0,4}(?:[,;:]|\s[-–—])\s")
# What explains or qualifies the option before it, and may name others: "True, although many think it is false".
_EXPLANATION = re.compile(
    r"(?:although|though|even (?:if|though)|while|whereas|despite|because|since|as (?:it|this|that|there|the|no)"
    r"|(?:but )?(?:some|many|most|others|several|few|people|critics|experts))\s",
    re.IGNORECASE,
)
_MOST_SENTENCES = 20  # sentences before the last one that are compared with it


def opening_word(reader: LabelReader, text: str) -> str | None:
    """Return the label, a word such as "yes", that is the first sentence of *text*: "True. It is false that …"."""
    first = SENTENCE_END.split(text, maxsplit=1)[0]
    label = None if first.rstrip("*_ ").endswith("?") else reader.exact_label(first)
    return label if label and len(label) > 1 and label.isalpha() else None


def opening_option(reader: LabelReader, text: str) -> str | None:
    """Return the label of the option that the text begins with: "Paris.", "Paris, because …", "Yes - it is"."""
    first = next(reader.options.sentences(text))
    named = strip_markup(first)
    without_article = re.sub(r"^(?:the|an?)\s+", "", named, flags=re.IGNORECASE)
    if label := (
        reader.options.label_of_equal_option(named, flatten, 2)
        or reader.options.label_of_equal_option(without_article, flatten, 2)
    ):
        return None if ALTERNATIVELY.match(text[len(first) :].lstrip("*_ \n")) else label
    part, *rest = _PART_END.split(first, maxsplit=1)
    label = reader.options.label_of_equal_option(strip_markup(part), flatten, 2)
    if label and rest and _EXPLANATION.match(rest[0]):
        return label
    return label if label and reader.options.label_by_words(first) == label else None


def closing_option(reader: LabelReader, sentences: Sequence[str]) -> str | None:
    """Return the label that the last of *sentences* consists of: "There is no proof. False."

    None if a sentence before it consists of another label: "Can it fly? No. Can it swim? Yes."
    """
    labels: set[str] = set()
    for sentence in map(strip_markup, reversed(sentences[-_MOST_SENTENCES:])):
        label = (
            reader.exact_label(sentence)
            or reader.options.label_of_equal_option(sentence, flatten, 2)
            or reader.options.label_of_equal_option(sentence, without_articles, 4)
        )
        if label:
            labels.add(label)
        elif not labels:
            return None
    return labels.pop() if len(labels) == 1 else None


def trailing_label(reader: LabelReader, sentence: str) -> str | None:
    """Return the label at the end of a sentence after a colon, dash or adverb: "It speeds up: B.", "Probably B"."""
    adverb = r"(?i:probably|likely|most likely|definitely|clearly|surely|obviously|certainly|i think|i guess|i believe)"
    match = re.search(
        rf"(?:[:—–]|\s-|[-=]>|[→⇒]|^\W*{adverb},?)\s{{0,4}}[(\[*_\"']{{0,4}}(?P<label>{reader.any})[)\]*_\"'.!]{{0,6}}\s*$",
        sentence,
    )
    return match["label"] if match else None


def marked_label(reader: LabelReader, lines: Sequence[str]) -> str | None:
    """Return the label that one of the last two lines or the first one consists of.

    Otherwise, it is the label at the beginning of a short first line, or marked in one of the last two lines.
    """
    start = rf"^[ \t]*(?:\*\*|__)?[(\[]?(?P<label>{reader.any})(?:[)\].:]|\*\*|__|\s\((?=[^()]+\)\W*$))"
    emphasised = rf"(?:\*\*|__)[(\[]?(?P<label>{reader.any})[)\]]?[.:]?(?:\s[^*\n]{{0,200}})?(?:\*\*|__)"
    anywhere = rf"{emphasised}|\((?P<round>{reader.any})\)"
    for line in [*reversed(lines[-2:]), *lines[:1]]:
        if len(line) <= SHORT_TEXT and (label := reader.exact_label(line)):
            return label
    for original in [*lines[:1], *reversed(lines[-2:])]:
        affirmed = without_rejected(reader, re.sub(start + NEGATIVE_OPTION, r"\g<label>)", original))
        first, line = original is lines[0], RANKED.sub("", without_denials(affirmed))
        if RANKED.search(original) and len(line) <= SHORT_TEXT and (label := reader.leading_label(line)):
            return label
        named = {m["label"] or m["round"] for m in re.finditer(anywhere, line)}
        match = re.match(start, line)
        if match and (not first or len(line) <= SHORT_TEXT) and named <= {match["label"]}:
            return match["label"]
        if not first or len(lines) == 1:
            if len(named) == 1:
                return str(named.pop())
            if named:
                return None
    return None


def without_listing(reader: LabelReader, lines: Sequence[str]) -> list[str]:
    """Return *lines* without successive ones that begin with successive labels, since they repeat the options.

    The only line in bold of a list of all options stays.
    """
    starts = rf"^[ \t*_-]*[(\[]?(?P<label>{reader.any})[)\].:]"
    begun = [re.match(starts, line) for line in lines]
    listed: set[int] = set()
    for i, (a, b) in enumerate(itertools.pairwise(begun)):
        if a and b and reader.labels.index(b["label"]) == reader.labels.index(a["label"]) + 1:
            listed |= {i, i + 1}
    if len(listed) == len(reader.labels) > 1:
        bold = [i for i in listed if lines[i].strip(" \t-").startswith("**")]
        listed -= set(bold) if len(bold) == 1 else set()
    return [line for i, line in enumerate(lines) if i not in listed]
