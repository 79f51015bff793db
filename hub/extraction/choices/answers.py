"""Extraction of the option that an answer chooses, by its label or by its text."""

import re
import unicodedata
from collections.abc import Sequence

from hub.extraction.choices.comments import commented_label, ticked_label
from hub.extraction.choices.conclusions import concluded_label
from hub.extraction.choices.exclusions import remaining_label
from hub.extraction.choices.initials import Initials
from hub.extraction.choices.labels import SEVERAL, LabelReader
from hub.extraction.choices.options import SHORT_TEXT, flatten
from hub.extraction.choices.phrases import ASIDE, OPTION, TICKS
from hub.extraction.choices.positions import (
    closing_option,
    marked_label,
    opening_option,
    opening_word,
    trailing_label,
    without_listing,
)
from hub.extraction.choices.several import is_uncertain
from hub.extraction.choices.stated import stated_label
from hub.extraction.corrections import reopening_positions, statement_versions
from hub.extraction.final_answers import final_answer
from hub.extraction.normalization import answer_text, without_struck

_ALSO_REOPENING = re.compile(r"^(?:(?:actually|no|sorry)[ ,:;.!—–-]+)+", re.IGNORECASE)  # "Wait, actually B."
_OPTION = re.compile(rf"^{OPTION}\s+(?=\S+$)", re.IGNORECASE)  # before a label that ends the text
_POINTERS = f"{TICKS}👉➡→=>\ufe0f "  # around a label that is the entire answer
_MOST_REOPENINGS = 3  # corrections that are tried, from the last one


def choice(text: str, labels: Sequence[str], choices: Sequence[str] = ()) -> str | None:
    """Return the label that *text* chooses, or None if it chooses none or more than one.

    The first of these that applies decides: a text that consists of a label, or of an option; the text after the last
    correction ("Wait, it's B"); the stated answer (see `statements`); a sentence such as "B is correct" or "I choose
    B"; the only option with a tick; comments on the options ("A – wrong", "B – correct"); a marked letter (`**B.**`,
    `(B)`) at the beginning or the end, outside of a list of the options; a last sentence that consists of an option;
    the words of an option, in the last sentence or in a short text; the only option that is not ruled out.

    The initial of a name is no label: "F. Scott Fitzgerald wrote it" does not choose F.
    """
    if not choices and all(len(label) > 1 and label.isalpha() for label in labels):
        choices = labels  # words such as yes and no
    initials = Initials(labels, choices)
    text = initials.join(unicodedata.normalize("NFKC", without_struck(answer_text(text)).strip()))
    reader = LabelReader(labels, [initials.join(option) for option in choices])
    text = ASIDE.sub("", reader.without_question(text))
    only = _OPTION.sub("", text.strip(_POINTERS))
    if exact := reader.exact_label(only) or reader.options.label_of_equal_option(text, flatten, 1):
        return exact
    if len(text) <= SHORT_TEXT and len(reader.all_labels(text)) > 1:
        return ticked_label(reader, text)
    if reader.contradicts_itself(text):
        return None
    text = reader.options.without_texts(text)
    if reader.options.lists_several_options(text):
        return None
    if len(text) <= SHORT_TEXT and reader.consists_of_several(text):
        return None
    label = _corrected_label(reader, text) or _label_of_text(reader, text)
    return None if label == SEVERAL else label


def _corrected_label(reader: LabelReader, text: str) -> str | None:
    """Return the label that follows the last correction with one ("Wait, it's B"), or SEVERAL."""
    for position in reversed(reopening_positions(text)[-_MOST_REOPENINGS:]):
        rest = _ALSO_REOPENING.sub("", text[position:].strip(" ,.:;!—–-"))
        label = (
            reader.exact_label(rest.split("\n")[0])
            or reader.exact_label(rest)
            or stated_label(reader, rest)
            or concluded_label(reader, rest)
            or reader.exact_label(reader.options.with_labels(rest))
            or concluded_label(reader, reader.options.with_labels(rest))
        )
        if label:
            return label
    return None


def _label_of_text(reader: LabelReader, text: str) -> str | None:
    """Return the label that *text* states, concludes, ticks, marks or leaves after its comments, or SEVERAL."""
    label = stated_label(reader, text)
    if not label and is_uncertain(reader, re.split(r"(?<=[.!?])\s+", text)[-1]):
        return None
    if label := label or opening_word(reader, text) or concluded_label(reader, text):
        return label
    if is_uncertain(reader, text):
        return None
    if label := ticked_label(reader, text):
        return label
    label, wrong = commented_label(reader, text)
    if label:
        return label
    label = _unstated_label(reader, text)
    return None if label in wrong else label


def _unstated_label(reader: LabelReader, text: str) -> str | None:
    """Return the label that is marked in *text*, or that of the option that its words name."""
    lines = without_listing(reader, [line for line in text.split("\n") if line.strip()])
    last_sentences = list(reader.options.sentences(lines[-1] if lines else ""))
    last = last_sentences[-1]
    versions = statement_versions(lines[-1]) if lines else []
    corrected = reader.exact_label(versions[0]) if len(versions) > 1 else None
    label = corrected or marked_label(reader, lines) or trailing_label(reader, last)
    if label := label or closing_option(reader, last_sentences):
        return label
    if not reader.options.are_comments and (label := concluded_label(reader, reader.options.with_labels(text))):
        return label
    if label := opening_option(reader, text):
        return label
    short = len(text) <= SHORT_TEXT
    sentences = list(reader.options.sentences(text)) if short else last_sentences
    worded = reader.options.label_by_words(final_answer(text) or "") or reader.options.label_by_sentences(
        sentences, all_of_them=short
    )
    return worded or remaining_label(reader, text) or reader.options.label_by_number(last)
