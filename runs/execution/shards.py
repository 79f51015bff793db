"""Shards of a large run: dividing it, and the leases with which processes take its shards."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from dataclasses import dataclass, field

from django.conf import settings
from django.db.models import Q, QuerySet

from hub.common import leases
from runs.execution.plan import Block, EvaluatedEnvironment, EvaluatedModel
from runs.execution.storage import Reader
from runs.leases import LEASE
from runs.limits.team_quotas import has_quota_left
from runs.missing import count_missing
from runs.models import Run, RunEnvironment, Shard
from runs.queue import by_fewest_workers, should_help_another_user
from runs.selectors import models_under_test
from runs.spending import budget_of

logger = logging.getLogger(__name__)

_LOOK_EVERY_S = 0.3  # whether another process has finished its shards, or ended without
_CANDIDATES = 20


def divide_run(run: Run, *, reserved_for: str, resumed: bool) -> bool:
    """Divide *run* into shards if it is large. Return whether it has shards.

    The caller holds the lease of the run. Shards of an execution that was handed back or killed are kept.
    reserved_for: as in Shard. resumed: responses may be stored already.
    """
    unfinished = run.shards.filter(done=False)
    if unfinished.exists():
        unfinished.update(reserved_for=reserved_for)
        return True
    run.shards.all().delete()
    size = settings.SHARD_RESPONSES
    if count_missing(run) < 2 * size:
        return False
    cases = max(1, size // run.attempts)
    models = models_under_test(run)
    rows = [
        Shard(
            run=run,
            run_environment=environment,
            run_model=model,
            first=first,
            last=last,
            reserved_for=reserved_for,
            fresh=not resumed,
        )
        for environment in run.environments.order_by("position")
        for first, last in _blocks(environment, cases)
        for model in models
    ]
    Shard.objects.bulk_create(rows, batch_size=500)
    logger.info("run %s divided into %s shards", run.pk, len(rows), extra={"run_id": run.pk})
    return True


def _blocks(environment: RunEnvironment, size: int) -> list[tuple[int, int]]:
    """Return the first and last position of each block of *size* selected cases."""
    positions = environment.case_positions
    selected = range(environment.case_count) if positions is None else sorted(positions)
    blocks = (selected[start : start + size] for start in range(0, len(selected), size))
    return [(block[0], block[-1]) for block in blocks]


def take_shard(run_id: int, run_model_id: int, *, owner: str, reserved_for: str) -> Shard | None:
    """Take the lease of the next shard of a model; None if all are done or held."""
    shards = _waiting(reserved_for).filter(run_id=run_id, run_model_id=run_model_id)
    for shard in shards.filter(leases.free())[:_CANDIDATES]:
        if _take_lease(shard, owner):
            return shard
    return _take_abandoned(shards, owner)


def take_any_shard(*, owner: str, without: Collection[int] = ()) -> Shard | None:
    """Take a shard of a run that another worker executes, in the order of the queue; None if there is none.

    without: ids of runs that this worker cannot execute at the moment.
    """
    shards = _of_other_workers().exclude(run_id__in=without).order_by("run__remaining", "id")
    for part in by_fewest_workers(shards.filter(leases.free()), "run__created_by"):
        for shard in part.select_related("run__team")[:_CANDIDATES]:
            if _has_budget(shard.run) and _take_lease(shard, owner):
                return shard
    return _take_abandoned(shards, owner)


def should_leave(run: Run) -> bool:
    """Return whether a process that helps with *run* should help with a run of another user instead."""
    return should_help_another_user(run, _of_other_workers().filter(leases.free()))


def _of_other_workers() -> QuerySet[Shard]:
    return _waiting("").filter(run__status=Run.Status.RUNNING, run__cancel_requested=False)


def _waiting(reserved_for: str) -> QuerySet[Shard]:
    return Shard.objects.filter(done=False, reserved_for=reserved_for, run_model__stopped="")


def _take_abandoned(shards: QuerySet[Shard], owner: str) -> Shard | None:
    held = shards.filter(leases.held()).select_related("run")
    for shard in held[:_CANDIDATES]:
        # Its process may have been killed on this machine; then nobody has to wait until the lease lapses.
        if leases.has_ended(shard.lease_owner) and _take_lease(shard, owner):
            return shard
    return None


def _take_lease(shard: Shard, owner: str) -> bool:
    """Take the lease, and leave in *shard* whether it was fresh before."""
    fresh = shard.fresh
    if not leases.take(shard, owner, LEASE, condition=Q(done=False, fresh=fresh), fresh=False):
        return False
    shard.fresh = fresh
    return True


def _has_budget(run: Run) -> bool:
    budget = budget_of(run)
    return (budget is None or run.budget_granted < budget) and has_quota_left(run)


def renew_shards(run_id: int, owner: str) -> None:
    """Extend the leases of *owner* on shards of the run. Those that it has lost are noticed when it stores."""
    held = Shard.objects.filter(run_id=run_id, lease_owner=owner, done=False)
    held.update(lease_until=leases.end_after(LEASE))


def release_shards(run_id: int, owner: str) -> None:
    """Give back all shards that *owner* has not finished."""
    Shard.objects.filter(run_id=run_id, lease_owner=owner, done=False).update(lease_owner="", lease_until=None)


def held_by_others(run_id: int, owner: str) -> bool:
    """Return whether another process executes shards of the run."""
    held = Shard.objects.filter(leases.held(), run_id=run_id, done=False)
    holders = held.exclude(lease_owner=owner).values_list("lease_owner", flat=True).distinct()
    return any(not leases.has_ended(holder) for holder in holders.order_by())


@dataclass(slots=True)
class WholeRun:
    """Source of a run that is not divided: each environment is one block. resumed: responses may be stored."""

    environments: Sequence[EvaluatedEnvironment]
    resumed: bool

    async def blocks(self, model: EvaluatedModel) -> AsyncIterator[Block]:
        for environment in self.environments:
            yield Block(environment=environment, fresh=not self.resumed)


@dataclass(slots=True)
class ShardSource:
    """Source of a divided run: takes one shard after the other.

    reserved_for  as in Shard
    waits         wait, after the last shard, for those that other processes hold, since they may be given back
    ended         returns whether to take no more shards of a model
    taken         a shard that the process holds already
    """

    run_id: int
    environments: Sequence[EvaluatedEnvironment]
    reader: Reader
    owner: str
    reserved_for: str
    waits: bool
    ended: Callable[[EvaluatedModel], bool]
    taken: Shard | None = None
    _by_id: dict[int, EvaluatedEnvironment] = field(init=False)

    def __post_init__(self) -> None:
        self._by_id = {environment.row.pk: environment for environment in self.environments}

    async def blocks(self, model: EvaluatedModel) -> AsyncIterator[Block]:
        begun: set[int] = set()  # ids of shards
        while True:
            if self.ended(model):
                return
            shard = await self._next(model, begun)
            if shard is not None:
                begun.add(shard.pk)
                yield Block(
                    environment=self._by_id[shard.run_environment_id],
                    fresh=shard.fresh,
                    first=shard.first,
                    last=shard.last,
                    shard_id=shard.pk,
                )
            elif not self.waits or not await self.reader.run(self._others_work, model):
                return
            else:
                await asyncio.sleep(_LOOK_EVERY_S)

    async def _next(self, model: EvaluatedModel, begun: Collection[int]) -> Shard | None:
        if self.taken is not None and self.taken.run_model_id == model.row.pk:
            shard, self.taken = self.taken, None
            return shard
        return await self.reader.run(self._take, model, begun)

    def _take(self, model: EvaluatedModel, begun: Collection[int]) -> Shard | None:
        """Take a shard of *model*, or return one that is held but not *begun*.

        If the connection is lost while a lease is stored, the reader calls this again and cannot know that it is held.
        """
        held = Shard.objects.filter(run_id=self.run_id, run_model_id=model.row.pk, lease_owner=self.owner, done=False)
        for shard in held:
            if shard.pk not in begun:
                return shard
        return take_shard(self.run_id, model.row.pk, owner=self.owner, reserved_for=self.reserved_for)

    def _others_work(self, model: EvaluatedModel) -> bool:
        shards = Shard.objects.filter(run_id=self.run_id, run_model_id=model.row.pk, done=False)
        return shards.exclude(lease_owner=self.owner).filter(run_model__stopped="").exists()
