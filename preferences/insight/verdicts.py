"""Verdicts as the agreement figures read them: one light row for each preference, without the texts of responses."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import QuerySet

from preferences.models import Preference
from preferences.selectors import case_has_accepted_defect
from runs.models import RunModel

MAX_ROWS = 50_000  # newest preferences used; older ones would slow down the page and hardly change it
_SCORES = {"first": 1.0, "second": 0.0}
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
    "longer",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictRow:
    """Columns of one preference that the figures need.

    `execution_winner` is the side that execution decides for, and `own_family` the side of the judge's model family if
    exactly one side is of that family; both are "" otherwise. `suggestion_seen` is whether a suggestion was shown
    before the verdict. `check_result` is "" also for attention checks that rest on tests found wrong.
    """

    pair: tuple[int, int]
    source: str
    decider: str
    verdict: str
    confidence: float | None
    order_sensitive: bool
    orders: Sequence[str]
    saw_evidence: bool
    suggestion_taken: bool | None
    suggestion_seen: bool
    suggested_verdict: str
    first_verdict: str
    check_result: str
    seconds: float | None
    execution_winner: str
    length_difference: int
    own_family: str

    @property
    def blind_verdict(self) -> str:
        """The verdict given before a suggestion was seen, or "" if there is none."""
        return self.first_verdict or ("" if self.suggestion_seen else self.verdict)


def is_decisive(verdict: str) -> bool:
    """Return whether *verdict* prefers one of the two responses."""
    return verdict in _SCORES


def score_of_first(verdict: str) -> float:
    """Return the score of the first response: 1 if it is preferred, 0 if the other is, else 0.5."""
    return _SCORES.get(verdict, 0.5)


def load_verdicts(rows: QuerySet[Preference]) -> list[VerdictRow]:
    """Load the newest of *rows*."""
    found = rows.annotate(case_found_wrong=case_has_accepted_defect()).order_by("-id").values(*_COLUMNS)[:MAX_ROWS]
    own_family = _own_family_sides(rows)
    return [
        VerdictRow(
            pair=(row["first_id"], row["second_id"]),
            source=row["source"],
            decider=row["reviewer__username"] or row["judge"] or row["source"],
            verdict=row["verdict"],
            confidence=row["confidence"],
            order_sensitive=row["order_sensitive"],
            orders=row["orders"],
            saw_evidence=row["saw_evidence"],
            suggestion_taken=row["suggestion_taken"],
            suggestion_seen=row["suggestion_seen_at"] is not None,
            suggested_verdict=row["suggestion__verdict"] or "",
            first_verdict=row["first_verdict"],
            check_result="" if row["case_found_wrong"] else row["check_result"],
            seconds=row["seconds"],
            execution_winner="" if row["case_found_wrong"] else row["evidence__winner"] or "",
            length_difference=row["longer"],
            own_family=own_family.get(row["pk"], ""),
        )
        for row in found
    ]


def _own_family_sides(rows: QuerySet[Preference]) -> dict[int, str]:
    """Return preference id -> side of the judge's model family, for preferences with exactly one such side."""
    flagged = rows.filter(self_preference=True).order_by("-id")
    columns = ("pk", "run_id", "judge_fingerprint", "first__run_model_id", "second__run_model_id")
    found = list(flagged.values_list(*columns)[:MAX_ROWS])
    families: dict[object, str] = {}  # by RunModel id, judges also by run and fingerprint
    for model in RunModel.objects.filter(run__in={row[1] for row in found}):
        families[model.pk] = model.spec.get("family", "")
        if model.role == "judge":  # the same model may have other roles, with another family or none
            families[model.run_id, model.fingerprint] = families[model.pk]
    sides = {}
    for pk, run, judge, first, second in found:
        same = [families[run, judge] == families[model] for model in (first, second)]
        if any(same) and not all(same):
            sides[pk] = "first" if same[0] else "second"
    return sides
