"""Reading runs: chunks of cases to play, what is stored already, runs by id."""

from collections.abc import Sequence
from typing import Any

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Sum
from django.db.models.functions import Coalesce

from hub.common.errors import NotFound
from hub.models import Case, Environment
from hub.selectors import environments_withheld, is_curator, may_see_content
from runs.models import Response, Run, RunEnvironment, RunModel

# Keys of a configured model that say where and with which key it is asked: for staff alone.
ENDPOINT_KEYS = frozenset({"base_url", "api_key_env"})


class RunNotFound(NotFound):
    """No run has that id."""


def get_run(run_id: int | str) -> Run:
    """Raises RunNotFound, with a sentence."""
    try:
        return Run.objects.get(pk=int(run_id))
    except (ValueError, OverflowError, Run.DoesNotExist):
        latest = Run.objects.values_list("pk", flat=True).first()
        known = f"the latest is {latest}" if latest else "none is stored yet"
        raise RunNotFound(f"There is no run {run_id}; {known}.") from None


def visible_runs(user: User | AnonymousUser) -> QuerySet[Run]:
    """Runs whose environments *user* may see: a run shows its cases."""
    runs = Run.objects.select_related("created_by").defer("host")
    if is_curator(user):
        return runs
    foreign = RunEnvironment.objects.filter(
        run=OuterRef("pk"), version__environment__visibility=Environment.Visibility.PRIVATE
    )
    if user.pk:
        foreign = foreign.exclude(version__environment__owner_id=user.pk)
    return runs.filter(~Exists(foreign))


def shown_config(run: Run, user: User | AnonymousUser) -> Any:
    """The config of *run*, for all but staff without what it says of endpoints."""
    return run.config if user.is_staff else _without_endpoints(run.config)


def _without_endpoints(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_endpoints(item) for item in value]
    if not isinstance(value, dict):
        return value
    hidden = ENDPOINT_KEYS | ({"model"} if "provider" in value else set())
    return {key: _without_endpoints(item) for key, item in value.items() if key not in hidden}


def case_chunk(part: RunEnvironment, after: int, size: int) -> list[Case]:
    """The next *size* chosen cases behind position *after*, in order."""
    cases = Case.objects.filter(version_id=part.version_id).order_by("position")
    if part.case_positions is not None:
        wanted = [position for position in part.case_positions if position > after][:size]
        return list(cases.filter(position__in=wanted))
    return list(cases.filter(position__gt=after, position__lt=part.case_count)[:size])


def stored_attempts(model: RunModel, case_ids: Sequence[int]) -> set[tuple[int, int]]:
    """(case id, attempt) of responses that need not be asked again: all but errored ones."""
    rows = Response.objects.filter(run_model=model, case_id__in=case_ids).exclude(status=Response.Status.ERRORED)
    return set(rows.values_list("case_id", "attempt"))


# Aggregates over responses: what is known of their cost, and how many have a part that is not known.
KNOWN_COST = Sum(Coalesce("cost_usd", 0.0) + Coalesce("role_cost_usd", 0.0))
UNKNOWN_COSTS = Count("id", filter=Q(cost_usd=None) | Q(role_cost_usd=None))


def stored_counts(run: Run) -> tuple[dict[str, int], float, bool]:
    """How many responses of each status are stored, their known cost in USD, and whether more of it is unknown."""
    rows = (
        Response.objects.filter(run_environment__run=run)
        .order_by()
        .values("status")
        .annotate(count=Count("id"), cost=KNOWN_COST, unknown=UNKNOWN_COSTS)
    )
    counts = {row["status"]: row["count"] for row in rows}
    return counts, sum(row["cost"] or 0.0 for row in rows), any(row["unknown"] for row in rows)


def models_under_test(run: Run) -> list[RunModel]:
    return list(run.models.filter(role="").order_by("position"))


def role_models(run: Run) -> dict[str, list[RunModel]]:
    """Models that fill a role, by role, in seat order."""
    roles: dict[str, list[RunModel]] = {}
    for model in run.models.exclude(role="").order_by("role", "position"):
        roles.setdefault(model.role, []).append(model)
    return roles


REASON_WITHHELD = "Held out: reasons are for the owner of the environment and curators."


def reasons_withheld(user: User | AnonymousUser, response: Response) -> bool:
    """Whether *user* may not read why *response* scored as it did, since that tells the target. Errors tell nothing."""
    environment = response.run_environment.version.environment
    return response.status != Response.Status.ERRORED and not may_see_content(user, environment)


def withheld_environments(user: User | AnonymousUser, run: Run) -> QuerySet[RunEnvironment]:
    """The parts of *run* on environments whose content is withheld from *user*."""
    return run.environments.filter(version__environment__in=environments_withheld(user).values("pk"))


def responses_matching(
    rows: QuerySet[Response], *, q: str = "", flag: str = "", withheld: QuerySet[RunEnvironment] | None = None
) -> QuerySet[Response]:
    """Those of *rows* that match. *flag*: truncated, refused or limit. *q* is part of a case's id or of a reason.

    Reasons of the parts *withheld* are not searched: a search in them would tell them letter by letter.
    """
    if flag in ("truncated", "refused"):
        rows = rows.filter(**{flag: True})
    elif flag == "limit":
        rows = rows.exclude(stop__in=["", "done"])
    if q:
        reason = Q(reason__icontains=q)
        if withheld is not None:
            reason &= ~Q(run_environment__in=withheld.values("pk"))
        rows = rows.filter(Q(case__external_id__icontains=q) | reason)
    return rows
