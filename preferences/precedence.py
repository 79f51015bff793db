"""Which of several verdicts on one pair count: a person's before execution's, execution's before a judge's."""

from collections.abc import Sequence
from typing import Protocol, TypeVar

from preferences.models import Preference

PRECEDENCE = (Preference.Source.HUMAN, Preference.Source.EXECUTION, Preference.Source.LLM)


class HasSource(Protocol):
    """Something said of a pair, by a person, execution or a judge."""

    @property
    def source(self) -> str: ...


Said = TypeVar("Said", bound=HasSource)


def from_first_source(verdicts: Sequence[Said]) -> list[Said]:
    """Return the verdicts of the source that comes first."""
    first = min((PRECEDENCE.index(Preference.Source(verdict.source)) for verdict in verdicts), default=0)
    return [verdict for verdict in verdicts if verdict.source == PRECEDENCE[first]]
