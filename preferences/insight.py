"""What the agreement and ranking pages show, read from the preferences in force."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import QuerySet
from django.db.models.functions import Length

from preferences.agreement import (
    Bin,
    Figure,
    Rated,
    calibration,
    cohen_kappa,
    correlation,
    figure,
    krippendorff_alpha,
    raw_agreement,
)
from preferences.models import Preference
from preferences.ranking import Match, Standing, standings

HUMAN, LLM, EXECUTION = Preference.Source.HUMAN, Preference.Source.LLM, Preference.Source.EXECUTION
MAX_ROWS = 50_000  # of the newest preferences; older ones would make the page slow and change it little


@dataclass(frozen=True, slots=True)
class Verdict:
    """One preference in short."""

    pair: tuple[int, int]
    source: str
    who: str
    verdict: str
    confidence: float | None
    order_sensitive: bool
    taken: bool | None
    first_verdict: str
    check: str
    suggested: str
    seconds: float | None
    passes: str  # the side that execution decides for, where it does
    length_difference: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewerRow:
    """One reviewer: how much, how fast, how often with the judge, and how attention checks were met."""

    name: str
    decided: int
    median_seconds: float | None
    accepted: int
    suggested: int
    checks: int
    checks_failed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """All figures of the agreement page, by name, with the calibration's bins and a row for each reviewer."""

    figures: list[tuple[str, str, Figure]] = field(default_factory=list)  # name, what it says, value
    bins: list[Bin] = field(default_factory=list)
    calibration_error: float | None = None
    reviewers: list[ReviewerRow] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """`{"figures": {name: {"value", "n", "ci95", "note"}}, "calibration", "calibration_error", "reviewers"}`"""
        return {
            "figures": {
                name: {
                    "value": item.value,
                    "n": item.n,
                    "ci95": None if item.low is None else [item.low, item.high],
                    "note": item.note,
                }
                for name, _, item in self.figures
            },
            "calibration": [{"confidence": b.confidence, "right": b.right, "n": b.n} for b in self.bins],
            "calibration_error": self.calibration_error,
            "reviewers": [
                {name: getattr(row, name) for name in ReviewerRow.__dataclass_fields__} for row in self.reviewers
            ],
        }


def verdicts_of(rows: QuerySet[Preference]) -> list[Verdict]:
    """The newest of *rows*, in short."""
    columns = (
        "first_id",
        "second_id",
        "source",
        "reviewer__username",
        "judge",
        "verdict",
        "confidence",
        "order_sensitive",
        "suggestion_taken",
        "first_verdict",
        "check_result",
        "suggestion__verdict",
        "seconds",
        "evidence__winner",
        "first_length",
        "second_length",
    )
    found = (
        rows.annotate(first_length=Length("first__text"), second_length=Length("second__text"))
        .order_by("-id")
        .values_list(*columns)[:MAX_ROWS]
    )
    return [
        Verdict(
            pair=(row[0], row[1]),
            source=row[2],
            who=row[3] or row[4] or row[2],
            verdict=row[5],
            confidence=row[6],
            order_sensitive=row[7],
            taken=row[8],
            first_verdict=row[9],
            check=row[10],
            suggested=row[11] or "",
            seconds=row[12],
            passes=row[13] or "",
            length_difference=(row[14] or 0) - (row[15] or 0),
        )
        for row in found
    ]


def agreement_of(rows: QuerySet[Preference]) -> Agreement:
    """Every figure about *rows*."""
    verdicts = verdicts_of(rows)
    judge = {v.pair: v for v in verdicts if v.source == LLM}
    humans: dict[tuple[int, int], list[Verdict]] = defaultdict(list)
    for v in verdicts:
        if v.source == HUMAN:
            humans[v.pair].append(v)
    with_people: list[Rated] = [
        (judge[pair].verdict, v.verdict) for pair, found in humans.items() if pair in judge for v in found
    ]
    with_tests: list[Rated] = [(v.verdict, v.passes) for v in judge.values() if v.passes]
    people_tests: list[Rated] = [(v.verdict, v.passes) for found in humans.values() for v in found if v.passes]
    units: list[Sequence[Hashable]] = [tuple(v.verdict for v in found) for found in humans.values() if len(found) > 1]
    shown = [v.verdict == v.suggested for f in humans.values() for v in f if v.suggested and not v.first_verdict]
    hidden = [v.first_verdict == v.suggested for f in humans.values() for v in f if v.suggested and v.first_verdict]
    decisive = [v for v in judge.values() if v.verdict in ("first", "second")]
    lengths = [(float(v.length_difference), 1.0 if v.verdict == "first" else 0.0) for v in decisive]
    points = [
        (v.confidence, v.verdict == reference)
        for v in judge.values()
        if v.confidence is not None and (reference := _reference(v, humans.get(v.pair, [])))
    ]
    bins, error = calibration(points)
    figures = [
        ("judge_people", "The judge and people say the same", figure(with_people, raw_agreement)),
        ("judge_people_kappa", "The same beyond chance (Cohen's kappa)", figure(with_people, cohen_kappa)),
        ("people_alpha", "People among each other (Krippendorff's alpha)", figure(units, krippendorff_alpha)),
        ("judge_execution", "The judge, blind, says what the tests say", figure(with_tests, raw_agreement)),
        ("people_execution", "People say what the tests say", figure(people_tests, raw_agreement)),
        ("order_sensitive", "The judge's two orders disagree", _share([v.order_sensitive for v in judge.values()])),
        (
            "first_position",
            "The judge prefers the pair's first response",
            _share([v.verdict == "first" for v in decisive]),
        ),
        ("length", "Correlation of being longer with winning, judge", figure(lengths, correlation)),
        ("accept_shown", "People follow a suggestion they saw at once", _share(shown)),
        ("accept_hidden", "People say the same before they see it", _share(hidden)),
    ]
    return Agreement(figures=figures, bins=bins, calibration_error=error, reviewers=_reviewers(humans.values()))


def _reference(judged: Verdict, people: list[Verdict]) -> str:
    """What counts as right: execution, else what people unanimously say."""
    if judged.passes:
        return judged.passes
    said = {v.verdict for v in people}
    return said.pop() if len(said) == 1 else ""


def _share(values: list[bool]) -> Figure:
    rated: list[Rated] = [(value, True) for value in values]
    return figure(rated, raw_agreement)


def _reviewers(found: Iterable[list[Verdict]]) -> list[ReviewerRow]:
    by_name: dict[str, list[Verdict]] = defaultdict(list)
    for verdicts in found:
        for v in verdicts:
            by_name[v.who].append(v)
    rows = []
    for name, mine in sorted(by_name.items()):
        times = sorted(v.seconds for v in mine if v.seconds is not None)
        rows.append(
            ReviewerRow(
                name=name,
                decided=len(mine),
                median_seconds=times[len(times) // 2] if times else None,
                accepted=sum(v.taken is True for v in mine),
                suggested=sum(v.taken is not None for v in mine),
                checks=sum(bool(v.check) for v in mine),
                checks_failed=sum(v.check == Preference.Check.FAILED for v in mine),
            )
        )
    return rows


def ranking_of(rows: QuerySet[Preference]) -> dict[str, list[Standing]]:
    """Standings by environment, from *rows*. Both bad counts as a tie: neither is better."""
    columns = (
        "version__environment__slug",
        "first__run_model__label",
        "second__run_model__label",
        "verdict",
        "case_id",
    )
    matches: dict[str, list[Match]] = defaultdict(list)
    for slug, a, b, verdict, case in rows.order_by("-id").values_list(*columns)[:MAX_ROWS]:
        if a != b:
            matches[slug].append(Match(a, b, {"first": 1.0, "second": 0.0}.get(verdict, 0.5), case))
    return {slug: standings(found) for slug, found in sorted(matches.items())}
