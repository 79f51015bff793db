"""What a run has cost and may cost: its known costs, its budget, and changes of the budget."""

import logging
from math import isfinite

from django.contrib.auth.models import User
from django.db.models import Count, Q, Sum
from django.utils import timezone

from hub.common.errors import UserError
from hub.common.wording import dollars
from hub.protocols.calls import total_cost
from hub.protocols.messages import JSON
from runs.limits.budget import start_budget
from runs.models import ModelCall, Response, Run
from runs.selectors import KNOWN_COST, UNKNOWN_COSTS
from runs.stages import stages

logger = logging.getLogger(__name__)


class BudgetError(UserError):
    """The new budget of a run cannot be used."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "budget_usd")


def earlier_costs(run: Run) -> tuple[float, bool]:
    """Return the known cost of *run* so far in USD, and whether some costs are unknown.

    Stored calls include those of a process that was killed before it stored their responses. Without the cache, the
    stored responses are all that is known.
    """
    sums = Response.objects.filter(run_environment__run=run).aggregate(cost=KNOWN_COST, unknown=UNKNOWN_COSTS)
    calls = ModelCall.objects.filter(paid_by__run=run).aggregate(
        cost=Sum("cost_usd"), unknown=Count("key", filter=Q(cost_usd=None))
    )
    of_stages = costs_of_stages(run)
    stored = (sums["cost"] or 0.0) + sum(cost for cost in of_stages if cost is not None)
    unknown = run.cost_usd is None or sums["unknown"] > 0 or calls["unknown"] > 0 or None in of_stages
    return max(run.cost_usd or 0.0, stored, calls["cost"] or 0.0), unknown


def costs_of_stages(run: Run) -> list[float | None]:
    """Return the stored cost of each stage of *run* in USD, such as the judge's; None if a part of it is unknown."""
    return [stage.spent(run) for stage in stages()]


def cost_so_far(run: Run, of_responses: float | None) -> float | None:
    """Return the cost in USD of *run*, which has not ended, judges included; None if a part of it is unknown.

    of_responses: the cost of the stored responses. `Run.cost_usd` is the cost of earlier executions, which may include
    responses that were replaced since.
    """
    if run.cost_usd is None:
        return None
    stored = total_cost([of_responses, *costs_of_stages(run)])
    return None if stored is None else max(stored, run.cost_usd)


def budget_of(run: Run) -> float | None:
    """Return the budget of *run* in USD, or None."""
    limits = run.config.get("limits")
    budget = limits.get("budget_usd") if isinstance(limits, dict) else None
    return float(budget) if isinstance(budget, int | float) else None


def is_budget_spent(run: Run) -> bool:
    """Return whether *run* was stopped because its budget is spent, so that it needs a larger one to continue."""
    budget = budget_of(run)
    return run.status == Run.Status.STOPPED and budget is not None and earlier_costs(run)[0] >= budget


def check_amount(budget: float) -> None:
    """Raise BudgetError if *budget* is the budget of no run: it is a number greater than zero."""
    if not isfinite(budget) or budget <= 0:
        raise BudgetError(f"A budget is an amount of US dollars greater than zero, not {budget:g}.")


def check_budget(run: Run, budget: float | None) -> None:
    """Raise BudgetError if *run* cannot be resumed with the new *budget*: it has to exceed what the run has spent.

    budget: None if the run keeps its budget, which must not be spent.
    """
    if budget is None:
        if is_budget_spent(run):
            raise BudgetError(
                f"Run {run.pk} has spent {dollars(earlier_costs(run)[0])} of its budget of "
                f"{dollars(budget_of(run) or 0.0)}, so it would stop at once. Resume it with a larger budget: "
                "`--budget USD` of the command `eval`, `budget_usd` over REST, or the field on the page of the run."
            )
        return
    if budget_of(run) is None:
        raise BudgetError(f"Run {run.pk} has no budget, so none can be raised. Resume it without one.")
    check_amount(budget)
    spent, _ = earlier_costs(run)
    if budget <= spent:
        raise BudgetError(
            f"Run {run.pk} has spent {dollars(spent)}, so a budget of {dollars(budget)} leaves nothing. "
            "Give a larger one."
        )


def change_budget(run: Run, budget: float, user: User | None) -> None:
    """Store *budget* in the config of *run*, and who changed it from what; nothing if it is the present one.

    All that is not spent is available to the processes that execute the run next. user: who changes it; None on the
    command line. Call it in the transaction that resumes the run.
    """
    stored = Run.objects.select_for_update(of=("self",)).get(pk=run.pk)  # another resume may have changed it
    run.config, run.budget_changes = stored.config, stored.budget_changes
    before = budget_of(run)
    if budget == before:
        return
    change: dict[str, JSON] = {
        "from": before,
        "to": budget,
        "by": user.get_username() if user else "",
        "at": timezone.now().isoformat(timespec="seconds"),
    }
    run.config = {**run.config, "limits": {**run.config["limits"], "budget_usd": budget}}
    run.budget_changes = [*run.budget_changes, change]
    run.save(update_fields=["config", "budget_changes"])
    start_budget(run.pk, earlier_costs(run)[0])
    logger.info(
        "run %s: budget changed from $%g to $%g",
        run.pk,
        before,
        budget,
        extra={"run_id": run.pk, "user_id": user.pk if user else None},
    )
