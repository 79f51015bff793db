"""Responses that did not pass, as reports list them."""

from collections.abc import Iterable
from dataclasses import dataclass

from runs.models import Response
from runs.results.figures import CellResult


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedResponse:
    """Response that did not pass. `text` is the last answer in full; `flags` are marks such as "truncated"."""

    response: int
    case: str
    attempt: int
    status: str
    error_kind: str
    reason: str
    text: str
    flags: tuple[str, ...]


def failed_responses(cell: CellResult, *, statuses: Iterable[str], limit: int) -> list[FailedResponse]:
    """Return the first *limit* responses of the cell with one of *statuses*, in the order of cases."""
    wanted = (
        Response.objects.filter(
            run_environment=cell.run_environment, run_model=cell.run_model, status__in=list(statuses)
        )
        .exclude(case_id__in=cell.figures.quarantined_cases)
        .order_by("case__position", "attempt")
        .values_list("pk", flat=True)[:limit]
    )
    # Ids first: a database that sorts rows with their texts has all texts in memory at once.
    rows = Response.objects.filter(pk__in=list(wanted)).select_related("case").order_by("case__position", "attempt")
    return [
        FailedResponse(
            response=row.pk,
            case=row.case.external_id,
            attempt=row.attempt,
            status=row.status,
            error_kind=row.error_kind,
            reason=row.reason,
            text=row.text,
            flags=_flags(row),
        )
        for row in rows.only(
            "attempt", "status", "reason", "error_kind", "text", "stop", "truncated", "refused", "case__external_id"
        )
    ]


def _flags(row: Response) -> tuple[str, ...]:
    flags = [name for name, is_set in (("truncated", row.truncated), ("refused", row.refused)) if is_set]
    if row.stop not in ("", "done"):
        flags.append(f"limit of {row.stop}")
    if row.error_kind:
        flags.append(row.error_kind)
    return tuple(flags)
