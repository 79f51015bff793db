"""Precedence of several verdicts on one pair: reviewers before execution, execution before judges."""

from collections.abc import Sequence
from typing import Protocol, TypeVar

from preferences.models import Preference

PRECEDENCE = (Preference.Source.HUMAN, Preference.Source.EXECUTION, Preference.Source.LLM)


class HasSource(Protocol):
    """Anything with the source of a verdict."""

    @property
    def source(self) -> str: ...


VerdictT = TypeVar("VerdictT", bound=HasSource)


def precedence_of(verdict: HasSource) -> int:
    """Return the position of the verdict's source in PRECEDENCE; the lowest takes precedence."""
    return PRECEDENCE.index(Preference.Source(verdict.source))


def with_highest_precedence(verdicts: Sequence[VerdictT]) -> list[VerdictT]:
    """Return the verdicts of the source with the highest precedence."""
    first = min(map(precedence_of, verdicts), default=0)
    return [verdict for verdict in verdicts if verdict.source == PRECEDENCE[first]]
