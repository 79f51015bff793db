"""The label in the statement of the answer: "Answer: B"."""

import re

from hub.extraction.choices.labels import SEVERAL, LabelReader
from hub.extraction.choices.phrases import SENTENCE_END
from hub.extraction.choices.several import calls_right_too, names_several, other_follows
from hub.extraction.corrections import statement_versions
from hub.extraction.marks import Marker, Statement
from hub.extraction.statements import statements

_MOST_STATEMENTS = 20  # number of statements that are tried


def stated_label(reader: LabelReader, text: str) -> str | None:
    """Return the label in the statement of the answer; SEVERAL if it names several."""
    for statement in statements(text)[:_MOST_STATEMENTS]:
        if statement.mark == Marker.DECISION:
            continue  # handled by `concluded_label`
        version = next(
            (part for part in statement_versions(statement.text) if reader.leading_label(part)), statement.text
        )
        following = SENTENCE_END.split(version, maxsplit=1)[1:]
        if (
            names_several(reader, version)
            or any(other_follows(reader, sentence, version) for sentence in following)
            or reader.contradicts_itself(version)
            or _is_joined(reader, text, statement)
            or other_follows(reader, text[statement.end : statement.end + 100], version)
        ):
            return SEVERAL
        label = reader.leading_label(version)
        if label and calls_right_too(reader, text[statement.start :], label):
            return SEVERAL
        if label:
            return label
    return None


def _is_joined(reader: LabelReader, text: str, last: Statement) -> bool:
    r"""Return whether "or" or a comma joins a statement to one before it: "\boxed{A} or \boxed{B}"."""
    return any(
        re.fullmatch(r"[\s$)*.]{0,6}(?:,|/|\bor\b|\band\b)[\s$(*]{0,6}", text[other.end : last.start][:30]) is not None
        and reader.leading_label(other.text) != reader.leading_label(last.text)
        for other in statements(text)[:_MOST_STATEMENTS]
        if 0 <= last.start - other.end <= 20
    )
