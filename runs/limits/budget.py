"""Budget of a run. In a divided run each process is granted a part, and asks for more when it has spent it."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from math import inf

from django.db.models import F

from hub.common.wording import dollars
from runs.models import Run

_LARGER_BUDGET = "To continue, resume the run with a larger budget."
_PART = 4  # a grant is a quarter of what is left ...
_SMALLEST = 200  # ... but at least this part of the budget or quota


@dataclass(slots=True)
class Budget:
    """Limit and spending of a run, in USD. Calls in flight are completed, so their cost may exceed the limit.

    spent: the known costs. unknown: some calls have an unknown cost. unmetered: label of the model that sent the first
    reply without token counts; a run with a limit then stops. quota: name of the team's quota for messages; "" if no
    quota limits the run. refusal: why the team may spend no more.
    """

    limit: float | None = None
    spent: float = 0.0
    unknown: bool = False
    unmetered: str = ""
    quota: str = ""
    refusal: str = ""

    def add(self, label: str, cost: float | None) -> None:
        """Count a call of the model *label*."""
        if cost is None:
            self.unknown = True
            self.unmetered = self.unmetered or label
        else:
            self.spent += cost

    @property
    def total(self) -> float | None:
        """Return the cost of the run in USD, or None if it is unknown."""
        return None if self.unknown else self.spent

    @property
    def exhausted(self) -> bool:
        """Whether the budget does not allow another call."""
        return self.limit is not None and (self.unmetered != "" or self.spent >= self.limit)

    async def may_spend(self) -> bool:
        """Return whether a call may be started."""
        return not self.exhausted

    @property
    def limit_in_words(self) -> str:
        """The limit that a reply of unknown cost would break, in words; "" without a limit."""
        return self.quota if self.limit is None else f"the budget of {dollars(self.limit)}"

    @property
    def reason(self) -> str:
        """Return the reason why the budget stopped the run."""
        if self.unmetered:
            without = "" if self.limit is None else ", or start a run without limits.budget_usd"
            return (
                f"Stopped: a reply of {self.unmetered} carried no token counts (`usage`), so what it cost is unknown "
                f"and {self.limit_in_words} cannot be kept. Have the endpoint report usage and resume{without}."
            )
        if self.refusal:
            return f"Stopped: {self.refusal}"
        spent = f"Stopped: {dollars(self.spent)} of {self.limit_in_words} is spent."
        if self.limit is None or self.spent < self.limit:
            return spent
        return f"{spent} {_LARGER_BUDGET}"


@dataclass(frozen=True, slots=True)
class Part:
    """Part of a budget in USD; 0 if nothing is left.

    refusal: why nothing is left; "" if the run's own budget is spent.
    """

    usd: float
    refusal: str = ""


@dataclass(slots=True, kw_only=True)
class SharedBudget(Budget):
    """Budget that several processes share. The parts that they are granted together never exceed the limit.

    request: receives what this process has spent beyond its part, and returns its next part. own: spent by this
    process.
    """

    request: Callable[[float], Awaitable[Part]]
    own: float = 0.0
    granted: float = 0.0
    refused: bool = False
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def add(self, label: str, cost: float | None) -> None:
        """Count a call of the model *label*, also in what this process has spent."""
        Budget.add(self, label, cost)
        self.own += cost or 0.0

    @property
    def exhausted(self) -> bool:
        return self.refused or (self.unmetered != "" and self.limit_in_words != "")

    def restart(self) -> None:
        """Ask for further parts again, because the budget was not used up."""
        self.granted, self.refused, self.refusal = self.own, False, ""

    async def may_spend(self) -> bool:
        """Return whether a call may be started; request another part first if this one is spent."""
        if self.exhausted or self.own < self.granted:
            return not self.exhausted
        async with self._lock:
            if self.own >= self.granted and not self.refused:
                own = self.own
                part = await self.request(own - self.granted)
                self.granted = own + part.usd
                self.refused, self.refusal = part.usd <= 0, part.refusal
        return not self.exhausted


def start_budget(run_id: int, spent: float) -> None:
    """Record that *spent* USD of the budget are spent and no process is granted more."""
    Run.objects.filter(pk=run_id).update(budget_granted=spent)


def part_of(left: float, limit: float) -> float:
    """Return how much of *left* is granted at a time, for a budget or quota of *limit*; 0.0 if nothing is left."""
    return min(left, max(left / _PART, limit / _SMALLEST)) if left > 0 else 0.0


def grant_part(run_id: int, limit: float, beyond: float, wanted: float = inf) -> float:
    """Return the next part of the budget for a process that has spent *beyond* USD more than it was granted.

    wanted: the most that the process may use.
    """
    while True:
        before = Run.objects.values_list("budget_granted", flat=True).get(pk=run_id)
        left = limit - before - beyond
        part = min(part_of(left, limit), wanted)
        if Run.objects.filter(pk=run_id, budget_granted=before).update(budget_granted=before + beyond + part):
            return part


def return_rest(run_id: int, budget: SharedBudget) -> None:
    """Return what this process was granted and has not spent. After a reply of unknown cost nobody is granted more."""
    granted = F("budget_granted") + (budget.own - budget.granted)
    if budget.unmetered and budget.limit is not None:
        Run.objects.filter(pk=run_id).update(budget_granted=budget.limit)
    else:
        Run.objects.filter(pk=run_id).update(budget_granted=granted)
