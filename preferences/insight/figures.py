"""Figures of the agreement and ranking pages, computed from the preferences in force."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from statistics import median
from typing import Any, NamedTuple

from django.db.models import QuerySet
from django.db.models.functions import Length

from preferences.insight.agreement import (
    Bin,
    Figure,
    Rated,
    agreement_figure,
    calibration,
    calibration_error,
    cohen_kappa,
    correlation_figure,
    figure,
    krippendorff_alpha,
    mean,
    share_figure,
)
from preferences.insight.ranking import Match, SeparateGroups, Standing, standings
from preferences.models import Preference
from preferences.precedence import from_first_source
from preferences.selectors import case_has_accepted_defect, standing
from runs.models import RunModel

HUMAN, LLM, EXECUTION = Preference.Source.HUMAN, Preference.Source.LLM, Preference.Source.EXECUTION
MAX_ROWS = 50_000  # newest preferences used; older ones would slow down the page and hardly change it
MAX_REVIEWER_PAIRS = 20


_WORTH = {"first": 1.0, "second": 0.0}  # score of the first response; other verdicts score 0.5


@dataclass(frozen=True, slots=True)
class VerdictRow:
    """Columns of one preference that the figures need."""

    pair: tuple[int, int]
    source: str
    who: str
    verdict: str
    confidence: float | None
    order_sensitive: bool
    orders: Sequence[str]
    saw_evidence: bool
    taken: bool | None
    first_verdict: str
    seen: bool  # whether a suggestion was shown before the verdict
    check: str
    suggested: str
    seconds: float | None
    passes: str  # the side that execution decides for, else empty
    length_difference: int
    own: str  # the side of the judge's model family, if exactly one is, else empty

    @property
    def decisive(self) -> bool:
        return self.verdict in _WORTH

    @property
    def blind(self) -> str:
        """The verdict given before a suggestion was seen, or "" if there is none."""
        return self.first_verdict or ("" if self.seen else self.verdict)


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

    `same` and `kappa` are of blind verdicts, `final` and `final_kappa` of the verdicts in force.
    """

    names: tuple[str, str]
    same: Figure
    kappa: Figure
    final: Figure
    final_kappa: Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Figures of the agreement page, with calibration bins and rows for reviewers."""

    verdicts: int = 0  # number of verdicts used
    figures: list[tuple[str, str, Figure]] = field(default_factory=list)  # name, title, value
    bins: list[Bin] = field(default_factory=list)
    reviewers: list[ReviewerRow] = field(default_factory=list)
    reviewer_pairs: list[ReviewerPair] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return `{"verdicts", "figures", "calibration", "reviewers", "two_reviewers"}`.

        Figures are keyed by name; each is `{"value", "n", "ci95", "note"}`.
        """
        return {
            "verdicts": self.verdicts,
            "figures": {name: _figure_json(item) for name, _, item in self.figures},
            "calibration": [{"confidence": b.confidence, "right": b.right, "n": b.n} for b in self.bins],
            "reviewers": [
                {name: getattr(row, name) for name in ReviewerRow.__dataclass_fields__} for row in self.reviewers
            ],
            "two_reviewers": [
                {
                    "names": list(row.names),
                    "agreement": _figure_json(row.same),
                    "kappa": _figure_json(row.kappa),
                    "agreement_final": _figure_json(row.final),
                    "kappa_final": _figure_json(row.final_kappa),
                }
                for row in self.reviewer_pairs
            ],
        }


def _figure_json(item: Figure) -> dict[str, Any]:
    return {"value": item.value, "n": item.n, "ci95": list(item.ci95) if item.ci95 else None, "note": item.note}


# ---- from the database -----------------------------------------------------------------------------------------------

_COLUMNS = (
    "pk",
    "first_id",
    "second_id",
    "source",
    "reviewer__username",
    "judge",
    "verdict",
    "confidence",
    "order_sensitive",
    "orders",
    "saw_evidence",
    "suggestion_taken",
    "suggestion_seen_at",
    "first_verdict",
    "check_result",
    "suggestion__verdict",
    "seconds",
    "evidence__winner",
    "case_found_wrong",
    "first_length",
    "second_length",
)


def load_verdicts(rows: QuerySet[Preference]) -> list[VerdictRow]:
    """Load the newest of *rows*."""
    lengths = {"first_length": Length("first__text"), "second_length": Length("second__text")}
    found = (
        rows.annotate(**lengths, case_found_wrong=case_has_accepted_defect())
        .order_by("-id")
        .values(*_COLUMNS)[:MAX_ROWS]
    )
    own = _own_sides(rows)
    return [
        VerdictRow(
            pair=(row["first_id"], row["second_id"]),
            source=row["source"],
            who=row["reviewer__username"] or row["judge"] or row["source"],
            verdict=row["verdict"],
            confidence=row["confidence"],
            order_sensitive=row["order_sensitive"],
            orders=row["orders"],
            saw_evidence=row["saw_evidence"],
            taken=row["suggestion_taken"],
            first_verdict=row["first_verdict"],
            seen=row["suggestion_seen_at"] is not None,
            check=row["check_result"],
            suggested=row["suggestion__verdict"] or "",
            seconds=row["seconds"],
            passes="" if row["case_found_wrong"] else row["evidence__winner"] or "",
            length_difference=(row["first_length"] or 0) - (row["second_length"] or 0),
            own=own.get(row["pk"], ""),
        )
        for row in found
    ]


def _own_sides(rows: QuerySet[Preference]) -> dict[int, str]:
    """Return preference id -> side of the judge's model family, for preferences with exactly one such side."""
    flagged = rows.filter(self_preference=True).order_by("-id")
    columns = ("pk", "run_id", "judge_fingerprint", "first__run_model_id", "second__run_model_id")
    found = list(flagged.values_list(*columns)[:MAX_ROWS])
    families: dict[object, str] = {}  # by RunModel id, judges also by run and fingerprint
    for model in RunModel.objects.filter(run__in={row[1] for row in found}):
        families[model.pk] = families[model.run_id, model.fingerprint] = model.spec.get("family", "")
    sides = {}
    for pk, run, judge, first, second in found:
        same = [families[run, judge] == families[model] for model in (first, second)]
        if any(same) and not all(same):
            sides[pk] = "first" if same[0] else "second"
    return sides


# ---- figures ---------------------------------------------------------------------------------------------------------


def compute_agreement(rows: QuerySet[Preference]) -> Agreement:
    """Return all figures about *rows*."""
    verdicts = load_verdicts(rows)
    judged = {v.pair: v for v in reversed(verdicts) if v.source == LLM}
    people: dict[tuple[int, int], list[VerdictRow]] = defaultdict(list)
    for v in verdicts:
        if v.source == HUMAN:
            people[v.pair].append(v)
    points = [
        (v.confidence, v.verdict == right)
        for v in judged.values()
        if v.confidence is not None and (right := _reference(v, people.get(v.pair, [])))
    ]
    return Agreement(
        verdicts=len(verdicts),
        figures=[
            *_between(judged, people),
            *_biases(judged, people),
            ("calibration_error", "Expected calibration error of the judge's confidence",
             figure([[point] for point in points], calibration_error)),
            *_pull(people),
        ],
        bins=calibration(points),
        reviewers=_reviewers(people.values()),
        reviewer_pairs=_reviewer_pairs(people.values()),
    )  # fmt: skip


Named = list[tuple[str, str, Figure]]
People = dict[tuple[int, int], list[VerdictRow]]


def _between(judged: dict[tuple[int, int], VerdictRow], people: People) -> Named:
    """Return the agreement of judge, reviewers and execution; for reviewers by blind verdicts and by those in force."""
    final_with = _beside_judge(judged, people, _final)
    blind_with = _beside_judge(judged, people, _blind)
    final, blind = _together(people, _final), _together(people, _blind)
    blind_judge = [[(v.verdict, v.passes)] for v in judged.values() if v.passes and not v.saw_evidence]
    tested = [[(v.verdict, v.passes) for v in found if v.passes] for found in people.values()]
    return [
        ("judge_people", "Agreement of judge and reviewers, before reviewers see a suggestion",
         _headline(agreement_figure(blind_with), final_with)),
        ("judge_people_kappa", "Cohen's kappa of judge and reviewers, before reviewers see a suggestion",
         _headline(figure(blind_with, cohen_kappa), final_with)),
        ("judge_people_final", "Agreement of judge and reviewers, final verdicts",
         agreement_figure(final_with)),
        ("judge_people_final_kappa", "Cohen's kappa of judge and reviewers, final verdicts",
         figure(final_with, cohen_kappa)),
        ("people", "Agreement of two reviewers, before they see a suggestion",
         _headline(agreement_figure(_verdict_pairs(blind)), final)),
        ("people_alpha", "Krippendorff's alpha of all reviewers, before they see a suggestion",
         _headline(figure([[said] for said in blind], krippendorff_alpha), final)),
        ("people_final", "Agreement of two reviewers, final verdicts",
         agreement_figure(_verdict_pairs(final))),
        ("people_final_alpha", "Krippendorff's alpha of all reviewers, final verdicts",
         figure([[said] for said in final], krippendorff_alpha)),
        ("judge_execution", "Agreement of the judge with the tests, judged blind", agreement_figure(blind_judge)),
        ("people_execution", "Agreement of reviewers with the tests", agreement_figure([g for g in tested if g])),
    ]  # fmt: skip


def _blind(verdict: VerdictRow) -> str:
    return verdict.blind


def _final(verdict: VerdictRow) -> str:
    return verdict.verdict


def _beside_judge(
    judged: dict[tuple[int, int], VerdictRow], people: People, said: Callable[[VerdictRow], str]
) -> list[list[Rated]]:
    """Return, for each pair decided by both, the judge's verdict with that of each reviewer, read by *said*."""
    pairs: list[list[Rated]] = [
        [(judged[pair].verdict, said(v)) for v in found if said(v)] for pair, found in people.items() if pair in judged
    ]
    return [group for group in pairs if group]


def _together(people: People, said: Callable[[VerdictRow], str]) -> list[tuple[str, ...]]:
    """Return the verdicts, read by *said*, on each pair that two or more reviewers decided."""
    groups = [tuple(said(v) for v in found if said(v)) for found in people.values()]
    return [group for group in groups if len(group) > 1]


def _verdict_pairs(groups: list[tuple[str, ...]]) -> list[list[Rated]]:
    return [list(combinations(said, 2)) for said in groups]


def _headline(blind: Figure, final: Sequence[object]) -> Figure:
    """Return the figure of *blind* verdicts, with a note if there are only *final* ones."""
    return replace(blind, note="no verdict was given before a suggestion was seen") if final and not blind.n else blind


def _biases(judged: dict[tuple[int, int], VerdictRow], people: People) -> Named:
    """Return the biases of the judge: order, model family and length."""
    shown_first = [
        [said == place for said, place in zip(v.orders, ("first", "second"), strict=False) if said in _WORTH]
        for v in judged.values()
    ]
    own = [v for v in judged.values() if v.own]
    excess = [
        _for_own(v, v.verdict) - _for_own(v, right) for v in own if (right := _reference(v, people.get(v.pair, [])))
    ]
    lengths = [(float(v.length_difference), _WORTH[v.verdict]) for v in judged.values() if v.decisive]
    return [
        ("order_sensitive", "The judge's two orders disagree",
         share_figure([[v.order_sensitive] for v in judged.values()])),
        ("first_position", "Share of the judge's decisive answers that prefer the response shown first (0.5: no bias)",
         share_figure([group for group in shown_first if group])),
        ("own_family", "Share of the judge's decisive verdicts that prefer its own model family",
         share_figure([[v.verdict == v.own] for v in own if v.decisive])),
        ("own_family_excess", "Preference of the judge for its own model family beyond that of tests or reviewers",
         figure([[value] for value in excess], mean)),
        ("length", "Correlation of length difference and winning, judge", correlation_figure(lengths)),
    ]  # fmt: skip


def _for_own(judged: VerdictRow, verdict: str) -> float:
    """Return 1 if *verdict* prefers the side of the judge's family, 0 if it prefers the other, else 0.5."""
    worth = _WORTH.get(verdict, 0.5)
    return worth if judged.own == "first" else 1 - worth


def _pull(people: People) -> Named:
    """Return how often reviewers agree with a suggestion that they saw, and with one that was hidden."""
    asked = [[v for v in found if v.suggested and v.taken is not None] for found in people.values()]
    shown = [[v.verdict == v.suggested for v in found if not v.first_verdict] for found in asked]
    hidden = [[v.first_verdict == v.suggested for v in found if v.first_verdict] for found in asked]
    return [
        ("accept_shown", "Reviewers agree with a suggestion shown at once", share_figure([g for g in shown if g])),
        (
            "accept_hidden",
            "Reviewers agree with a hidden suggestion before it is shown",
            share_figure([g for g in hidden if g]),
        ),
    ]


def _reference(judged: VerdictRow, people: list[VerdictRow]) -> str:
    """Return the reference verdict: that of execution, else the unanimous blind verdict of reviewers, else ""."""
    if judged.passes:
        return judged.passes
    said = {v.blind for v in people if v.blind}
    return said.pop() if len(said) == 1 else ""


# ---- reviewers -------------------------------------------------------------------------------------------------------


def _reviewers(found: Iterable[list[VerdictRow]]) -> list[ReviewerRow]:
    by_name: dict[str, list[VerdictRow]] = defaultdict(list)
    for verdicts in found:
        for v in verdicts:
            by_name[v.who].append(v)
    return [_reviewer(name, mine) for name, mine in sorted(by_name.items())]


def _reviewer(name: str, mine: list[VerdictRow]) -> ReviewerRow:
    times = [v.seconds for v in mine if v.seconds is not None]
    return ReviewerRow(
        name=name,
        decided=len(mine),
        median_seconds=median(times) if times else None,
        accepted=sum(v.taken is True for v in mine),
        suggested=sum(v.taken is not None for v in mine),
        checks=sum(bool(v.check) for v in mine),
        checks_failed=sum(v.check == Preference.Check.FAILED for v in mine),
    )


def _reviewer_pairs(found: Iterable[list[VerdictRow]]) -> list[ReviewerPair]:
    """Return the figures of each two reviewers, those with the most shared pairs first."""
    shared: dict[tuple[str, str], list[tuple[VerdictRow, VerdictRow]]] = defaultdict(list)
    for verdicts in found:
        for a, b in combinations(sorted(verdicts, key=lambda v: v.who), 2):
            shared[a.who, b.who].append((a, b))
    most = sorted(shared.items(), key=lambda item: (-len(item[1]), item[0]))[:MAX_REVIEWER_PAIRS]
    return [_reviewer_pair(names, both) for names, both in most]


def _reviewer_pair(names: tuple[str, str], both: list[tuple[VerdictRow, VerdictRow]]) -> ReviewerPair:
    final: list[list[Rated]] = [[(a.verdict, b.verdict)] for a, b in both]
    blind: list[list[Rated]] = [[(a.blind, b.blind)] for a, b in both if a.blind and b.blind]
    return ReviewerPair(
        names=names,
        same=_headline(agreement_figure(blind), final),
        kappa=_headline(figure(blind, cohen_kappa), final),
        final=agreement_figure(final),
        final_kappa=figure(final, cohen_kappa),
    )


# ---- ranking ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Standings of one environment, or the `problem` that prevents them."""

    standings: list[Standing] = field(default_factory=list)
    problem: str = ""


class _Said(NamedTuple):
    """Verdict on a pair: its source, and the comparison of the two models."""

    source: str
    match: Match


def compute_rankings(rows: QuerySet[Preference]) -> dict[str, Ranking]:
    """Return the standings by environment, from one verdict for each pair of responses.

    As in exports, a person's verdict counts before execution's, and execution's before a judge's; a pair on which
    verdicts of one source contradict each other does not count. Both bad is a tie: neither is better. Accepted wrong
    suggestions that were seeded as checks do not count.
    """
    pairs: dict[str, dict[tuple[int, int], list[_Said]]] = defaultdict(lambda: defaultdict(list))
    counted = standing(rows).exclude(check_result=Preference.Check.FAILED)
    columns = (
        "version__environment__slug",
        "source",
        "first_id",
        "second_id",
        "first__run_model__label",
        "second__run_model__label",
        "verdict",
        "case_id",
    )
    for slug, source, first, second, a, b, verdict, case in counted.order_by("-id").values_list(*columns)[:MAX_ROWS]:
        if a == b:
            continue
        score = _WORTH.get(verdict, 0.5)
        match = Match(a, b, score, case) if first < second else Match(b, a, 1 - score, case)
        pairs[slug][min(first, second), max(first, second)].append(_Said(source, match))
    return {slug: _ranking(found.values()) for slug, found in sorted(pairs.items())}


def _ranking(pairs: Iterable[Sequence[_Said]]) -> Ranking:
    matches = []
    for said in pairs:
        found = {verdict.match for verdict in from_first_source(said)}
        if len(found) == 1:
            matches.append(found.pop())
    try:
        return Ranking(standings=standings(matches))
    except SeparateGroups as error:
        return Ranking(problem=str(error))
