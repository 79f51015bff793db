"""Budget of an execution: it counts the costs of earlier executions, and is granted to several processes in parts."""

from django.db import transaction

from hub.models import Team
from hub.teams.quotas import lock_team
from runs.execution.session.context import RunContext
from runs.execution.shards import held_by_others
from runs.execution.storage import Reader
from runs.limits.budget import Budget, SharedBudget, return_rest, start_budget
from runs.limits.team_quotas import grant_next, return_team_rest, start_team_spend
from runs.models import ENDED, Run, TeamSpend
from runs.providers.base import ModelSpec
from runs.providers.registry import costs_money
from runs.spending import earlier_costs

_RESTART_PART = 0.02  # of the budget; the parts that working processes do not use are smaller


async def open_budget(context: RunContext, reader: Reader) -> Budget:
    """Return the budget of the run, with the costs of earlier executions counted."""
    run, share, limit = context.run, context.share, context.config.limits.budget_usd
    spent, unknown = await reader.run(earlier_costs, run)
    team = await reader.run(_paying_team, run)
    if team is None and (limit is None or not share.divided):
        return Budget(limit, spent=spent, unknown=unknown)
    if share.leads and not await reader.run(held_by_others, run.pk, context.owner):
        await reader.run(_start_grants, run, spent)
    return SharedBudget(
        limit,
        spent=spent,
        unknown=unknown,
        quota=f"the spending quota of the team {team}" if team and team.spend_usd_per_month is not None else "",
        request=lambda beyond: reader.run(grant_next, run, limit, beyond),
    )


def _paying_team(run: Run) -> Team | None:
    """Return the team whose quota the run uses; None without a team, or if all its models are known to be free."""
    specs = [ModelSpec.model_validate(row.spec) for row in run.models.all()]
    return run.team if any(costs_money(spec) for spec in specs) else None


def _start_grants(run: Run, spent: float) -> None:
    start_budget(run.pk, spent)
    start_team_spend(run, spent)


def return_grants(run: Run, budget: Budget, *, holds_lease: bool) -> None:
    """Give back what this process was granted and has not spent.

    Without a lease there is nothing to give back: the process that took over has made all of it available again.
    """
    if not isinstance(budget, SharedBudget):
        return
    if budget.limit is not None and (holds_lease or budget.unmetered):
        return_rest(run.pk, budget)
    if run.team is None:
        return
    with transaction.atomic():
        lock_team(run.team)  # record_costs takes it, too: the run ends before this or after it
        status = Run.Status(Run.objects.values_list("status", flat=True).get(pk=run.pk))
        if status in ENDED:
            record_costs(run.pk, status)
        elif holds_lease:
            return_team_rest(run, budget.granted - budget.own)


def record_costs(run_id: int, status: Run.Status) -> None:
    """Record what a run that ends has cost, and that it has spent as much of its team's quota and no more.

    Processes that were killed have neither stored what they spent nor returned the rest of their grants. Call it in the
    transaction that ends the run.
    """
    run = Run.objects.select_related("team").get(pk=run_id)
    team = run.team if TeamSpend.objects.filter(run=run).exists() else None
    if team is None and status in (Run.Status.COMPLETED, Run.Status.STOPPED):
        return  # only a process that has executed the run until then stores these, and it knows the costs
    with transaction.atomic():
        if team is not None:
            lock_team(team)
        spent, unknown = earlier_costs(run)
        Run.objects.filter(pk=run_id).update(cost_usd=None if unknown else spent)
        if team is not None:
            start_team_spend(run, spent)


async def restart_budget(context: RunContext, reader: Reader, budget: Budget) -> bool:
    """Make available again what killed processes were granted and did not spend. Return False if that is too little.

    The leading process calls this when the budget is used up and no other process executes shards.
    """
    limit = budget.limit
    share = context.share
    if limit is None or not isinstance(budget, SharedBudget) or not (share.divided and share.leads):
        return False
    if not budget.refused or budget.refusal or budget.unmetered or limit - budget.spent < limit * _RESTART_PART:
        return False
    await reader.run(_start_grants, context.run, budget.spent)
    budget.restart()
    return True
