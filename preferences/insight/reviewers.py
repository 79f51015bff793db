"""Figures about reviewers: one row for each, and the agreement of each two."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from statistics import median

from preferences.insight.agreement_statistics import (
    Figure,
    LabelPair,
    agreement_figure,
    cohen_kappa,
    figure,
    note_if_only_final,
)
from preferences.insight.verdicts import VerdictRow
from preferences.models import Preference

MAX_REVIEWER_PAIRS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewerRow:
    """Figures of one reviewer: decisions, median time, accepted suggestions and attention checks."""

    name: str
    decided: int
    median_seconds: float | None
    accepted: int
    suggested: int
    checks: int
    checks_failed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewerPair:
    """Two reviewers who decided the same pairs: the share on which they agree, and kappa.

    `blind` and `blind_kappa` are of blind verdicts, `final` and `final_kappa` of the verdicts in force.
    """

    names: tuple[str, str]
    blind: Figure
    blind_kappa: Figure
    final: Figure
    final_kappa: Figure

    def to_json(self) -> dict[str, object]:
        return {
            "names": list(self.names),
            "agreement": self.blind.to_json(),
            "kappa": self.blind_kappa.to_json(),
            "agreement_final": self.final.to_json(),
            "kappa_final": self.final_kappa.to_json(),
        }


def reviewer_rows(reviewer_verdicts: Iterable[list[VerdictRow]]) -> list[ReviewerRow]:
    """Return a row for each reviewer, by name. *reviewer_verdicts* holds the reviewers' verdicts on each pair."""
    by_name: dict[str, list[VerdictRow]] = defaultdict(list)
    for verdicts in reviewer_verdicts:
        for v in verdicts:
            by_name[v.decider].append(v)
    return [_reviewer_row(name, verdicts) for name, verdicts in sorted(by_name.items())]


def _reviewer_row(name: str, verdicts: list[VerdictRow]) -> ReviewerRow:
    times = [v.seconds for v in verdicts if v.seconds is not None]
    return ReviewerRow(
        name=name,
        decided=len(verdicts),
        median_seconds=median(times) if times else None,
        accepted=sum(v.suggestion_taken is True for v in verdicts),
        suggested=sum(v.suggestion_taken is not None for v in verdicts),
        checks=sum(bool(v.check_result) for v in verdicts),
        checks_failed=sum(v.check_result == Preference.Check.FAILED for v in verdicts),
    )


def reviewer_pairs(reviewer_verdicts: Iterable[list[VerdictRow]]) -> list[ReviewerPair]:
    """Return the figures of each two reviewers, those with the most shared pairs first."""
    shared: dict[tuple[str, str], list[tuple[VerdictRow, VerdictRow]]] = defaultdict(list)
    for verdicts in reviewer_verdicts:
        for a, b in combinations(sorted(verdicts, key=lambda v: v.decider), 2):
            shared[a.decider, b.decider].append((a, b))
    most = sorted(shared.items(), key=lambda item: (-len(item[1]), item[0]))[:MAX_REVIEWER_PAIRS]
    return [_reviewer_pair(names, verdicts) for names, verdicts in most]


def _reviewer_pair(names: tuple[str, str], verdicts: list[tuple[VerdictRow, VerdictRow]]) -> ReviewerPair:
    final: list[list[LabelPair]] = [[(a.verdict, b.verdict)] for a, b in verdicts]
    blind: list[list[LabelPair]] = [
        [(a.blind_verdict, b.blind_verdict)] for a, b in verdicts if a.blind_verdict and b.blind_verdict
    ]
    return ReviewerPair(
        names=names,
        blind=note_if_only_final(agreement_figure(blind), final),
        blind_kappa=note_if_only_final(figure(blind, cohen_kappa), final),
        final=agreement_figure(final),
        final_kappa=figure(final, cohen_kappa),
    )
