"""Figures of the agreement page: how judge, reviewers and execution agree, and the biases of the judge."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from typing import NamedTuple

from django.db.models import QuerySet

from preferences.insight.agreement_statistics import (
    Figure,
    LabelPair,
    agreement_figure,
    cohen_kappa,
    correlation_figure,
    figure,
    krippendorff_alpha,
    mean,
    note_if_only_final,
    share_figure,
)
from preferences.insight.calibration import Bin, calibration, calibration_error
from preferences.insight.reviewers import ReviewerPair, ReviewerRow, reviewer_pairs, reviewer_rows
from preferences.insight.verdicts import VerdictRow, is_decisive, load_verdicts, score_of_first
from preferences.models import Preference

HUMAN, LLM = Preference.Source.HUMAN, Preference.Source.LLM
Pair = tuple[int, int]  # ids of the two responses
JudgeVerdicts = dict[Pair, VerdictRow]  # the judge's verdict on each pair
ReviewerVerdicts = dict[Pair, list[VerdictRow]]  # the reviewers' verdicts on each pair


class NamedFigure(NamedTuple):
    """Figure with its key in REST and MLflow, and its title on the page."""

    name: str
    title: str
    figure: Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Figures of the agreement page, with calibration bins and rows for reviewers."""

    verdicts: int = 0  # number of verdicts used
    figures: list[NamedFigure] = field(default_factory=list)
    bins: list[Bin] = field(default_factory=list)
    reviewers: list[ReviewerRow] = field(default_factory=list)
    reviewer_pairs: list[ReviewerPair] = field(default_factory=list)

    def to_json(self) -> dict[str, object]:
        """Return `{"verdicts", "figures", "calibration", "reviewers", "two_reviewers"}`.

        Figures are keyed by name; each is `{"value", "n", "ci95", "note"}`.
        """
        return {
            "verdicts": self.verdicts,
            "figures": {item.name: item.figure.to_json() for item in self.figures},
            "calibration": [{"confidence": b.confidence, "right": b.correct, "n": b.n} for b in self.bins],
            "reviewers": [asdict(row) for row in self.reviewers],
            "two_reviewers": [row.to_json() for row in self.reviewer_pairs],
        }


def compute_agreement(rows: QuerySet[Preference]) -> Agreement:
    """Return all figures about *rows*."""
    verdicts = load_verdicts(rows)
    judge_verdicts = {v.pair: v for v in reversed(verdicts) if v.source == LLM}
    reviewer_verdicts: ReviewerVerdicts = defaultdict(list)
    for v in verdicts:
        if v.source == HUMAN:
            reviewer_verdicts[v.pair].append(v)
    # The judge stated no confidence in the tie of two orders that disagree, only in the verdicts of the orders.
    points = [
        (v.confidence, v.verdict == reference)
        for v in judge_verdicts.values()
        if v.confidence is not None
        and not v.order_sensitive
        and (reference := _reference_verdict(v, reviewer_verdicts.get(v.pair, [])))
    ]
    return Agreement(
        verdicts=len(verdicts),
        figures=[
            *_agreement_figures(judge_verdicts, reviewer_verdicts),
            *_bias_figures(judge_verdicts, reviewer_verdicts),
            NamedFigure("calibration_error", "Expected calibration error of the judge's confidence",
                        figure([[point] for point in points], calibration_error)),
            *_suggestion_figures(reviewer_verdicts),
        ],
        bins=calibration(points),
        reviewers=reviewer_rows(reviewer_verdicts.values()),
        reviewer_pairs=reviewer_pairs(reviewer_verdicts.values()),
    )  # fmt: skip


# ---- agreement -------------------------------------------------------------------------------------------------------


def _agreement_figures(judge_verdicts: JudgeVerdicts, reviewer_verdicts: ReviewerVerdicts) -> list[NamedFigure]:
    """Return the agreement of judge, reviewers and execution; for reviewers by blind verdicts and by those in force."""
    judge_final = _with_judge(judge_verdicts, reviewer_verdicts, _verdict_in_force)
    judge_blind = _with_judge(judge_verdicts, reviewer_verdicts, _blind_verdict)
    final, blind = _by_several(reviewer_verdicts, _verdict_in_force), _by_several(reviewer_verdicts, _blind_verdict)
    judge_execution = [
        [(v.verdict, v.execution_winner)] for v in judge_verdicts.values() if v.execution_winner and not v.saw_evidence
    ]
    reviewers_execution = [
        [(v.verdict, v.execution_winner) for v in verdicts if v.execution_winner]
        for verdicts in reviewer_verdicts.values()
    ]
    return [
        NamedFigure("judge_people", "Agreement of judge and reviewers, before reviewers see a suggestion",
                    note_if_only_final(agreement_figure(judge_blind), judge_final)),
        NamedFigure("judge_people_kappa", "Cohen's kappa of judge and reviewers, before reviewers see a suggestion",
                    note_if_only_final(figure(judge_blind, cohen_kappa), judge_final)),
        NamedFigure("judge_people_final", "Agreement of judge and reviewers, final verdicts",
                    agreement_figure(judge_final)),
        NamedFigure("judge_people_final_kappa", "Cohen's kappa of judge and reviewers, final verdicts",
                    figure(judge_final, cohen_kappa)),
        NamedFigure("people", "Agreement of two reviewers, before they see a suggestion",
                    note_if_only_final(agreement_figure(_label_pairs(blind)), final)),
        NamedFigure("people_alpha", "Krippendorff's alpha of all reviewers, before they see a suggestion",
                    note_if_only_final(figure([[labels] for labels in blind], krippendorff_alpha), final)),
        NamedFigure("people_final", "Agreement of two reviewers, final verdicts",
                    agreement_figure(_label_pairs(final))),
        NamedFigure("people_final_alpha", "Krippendorff's alpha of all reviewers, final verdicts",
                    figure([[labels] for labels in final], krippendorff_alpha)),
        NamedFigure("judge_execution", "Agreement of the judge with the tests, judged blind",
                    agreement_figure(judge_execution)),
        NamedFigure("people_execution", "Agreement of reviewers with the tests",
                    agreement_figure([group for group in reviewers_execution if group])),
    ]  # fmt: skip


def _blind_verdict(row: VerdictRow) -> str:
    return row.blind_verdict


def _verdict_in_force(row: VerdictRow) -> str:
    return row.verdict


def _with_judge(
    judge_verdicts: JudgeVerdicts, reviewer_verdicts: ReviewerVerdicts, label: Callable[[VerdictRow], str]
) -> list[list[LabelPair]]:
    """Return, for each pair decided by both, the judge's verdict with that of each reviewer, read by *label*."""
    groups: list[list[LabelPair]] = [
        [(judge_verdicts[pair].verdict, label(v)) for v in verdicts if label(v)]
        for pair, verdicts in reviewer_verdicts.items()
        if pair in judge_verdicts
    ]
    return [group for group in groups if group]


def _by_several(reviewer_verdicts: ReviewerVerdicts, label: Callable[[VerdictRow], str]) -> list[tuple[str, ...]]:
    """Return the verdicts, read by *label*, on each pair that two or more reviewers decided."""
    groups = [tuple(label(v) for v in verdicts if label(v)) for verdicts in reviewer_verdicts.values()]
    return [group for group in groups if len(group) > 1]


def _label_pairs(groups: list[tuple[str, ...]]) -> list[list[LabelPair]]:
    return [list(combinations(labels, 2)) for labels in groups]


# ---- biases ----------------------------------------------------------------------------------------------------------


def _bias_figures(judge_verdicts: JudgeVerdicts, reviewer_verdicts: ReviewerVerdicts) -> list[NamedFigure]:
    """Return the biases of the judge: order, model family and length."""
    prefers_first_shown = [
        [answer == shown_first for answer, shown_first in zip(v.orders, ("first", "second"), strict=False)
         if is_decisive(answer)]
        for v in judge_verdicts.values()
    ]  # fmt: skip
    own_family = [v for v in judge_verdicts.values() if v.own_family]
    excess = [
        _score_of_own_family(v, v.verdict) - _score_of_own_family(v, reference)
        for v in own_family
        if (reference := _reference_verdict(v, reviewer_verdicts.get(v.pair, [])))
    ]
    lengths = [
        (float(v.length_difference), score_of_first(v.verdict))
        for v in judge_verdicts.values()
        if is_decisive(v.verdict)
    ]
    return [
        NamedFigure("order_sensitive", "The judge's two orders disagree",
                    share_figure([[v.order_sensitive] for v in judge_verdicts.values()])),
        NamedFigure("first_position",
                    "Share of the judge's decisive answers that prefer the response shown first (0.5: no bias)",
                    share_figure([group for group in prefers_first_shown if group])),
        NamedFigure("own_family", "Share of the judge's decisive verdicts that prefer its own model family",
                    share_figure([[v.verdict == v.own_family] for v in own_family if is_decisive(v.verdict)])),
        NamedFigure("own_family_excess",
                    "Preference of the judge for its own model family beyond that of tests or reviewers",
                    figure([[value] for value in excess], mean)),
        NamedFigure("length", "Correlation of length difference and winning, judge", correlation_figure(lengths)),
    ]  # fmt: skip


def _score_of_own_family(judge_verdict: VerdictRow, verdict: str) -> float:
    """Return 1 if *verdict* prefers the side of the judge's family, 0 if it prefers the other, else 0.5."""
    score = score_of_first(verdict)
    return score if judge_verdict.own_family == "first" else 1 - score


def _suggestion_figures(reviewer_verdicts: ReviewerVerdicts) -> list[NamedFigure]:
    """Return how often reviewers agree with a suggestion that they saw, and with one that was hidden."""
    suggested = [
        [v for v in verdicts if v.suggested_verdict and v.suggestion_taken is not None]
        for verdicts in reviewer_verdicts.values()
    ]
    shown = [[v.verdict == v.suggested_verdict for v in group if not v.first_verdict] for group in suggested]
    hidden = [[v.first_verdict == v.suggested_verdict for v in group if v.first_verdict] for group in suggested]
    return [
        NamedFigure("accept_shown", "Reviewers agree with a suggestion shown at once",
                    share_figure([group for group in shown if group])),
        NamedFigure("accept_hidden", "Reviewers agree with a hidden suggestion before it is shown",
                    share_figure([group for group in hidden if group])),
    ]  # fmt: skip


def _reference_verdict(judge_verdict: VerdictRow, verdicts: Sequence[VerdictRow]) -> str:
    """Return the verdict of execution, else the unanimous blind verdict of reviewers, else ""."""
    if judge_verdict.execution_winner:
        return judge_verdict.execution_winner
    blind = {v.blind_verdict for v in verdicts if v.blind_verdict}
    return blind.pop() if len(blind) == 1 else ""
