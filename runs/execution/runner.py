"""Executes a run: takes its lease, opens what it needs, and stores the status in which it ends."""

import asyncio
import json
import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from tempfile import TemporaryDirectory

from django.conf import settings
from django.db import connection

from hub.common.leases import end_owner, new_owner
from hub.common.masking import mask
from hub.selectors import compile_version
from runs.config.schema import RunConfig
from runs.execution.database_threads import retry_if_disconnected
from runs.execution.dispatch import wake_workers
from runs.execution.faults import (
    DATABASE_ERRORS,
    InfrastructureFault,
    find_fault,
    retry_delay,
    return_after_fault,
)
from runs.execution.local_processes import Job, LocalProcesses
from runs.execution.plan import EvaluatedEnvironment, Listener
from runs.execution.session.context import ExecutionOptions, RunContext, Share
from runs.execution.session.session import RunSession
from runs.execution.shards import divide_run, release_shards
from runs.leases import RENEW_EVERY_S, LeaseLost, release_lease, renew_lease, take_lease
from runs.limits.limiter import share_limits_in_file, stop_sharing_in_file
from runs.models import ENDED, Response, Run, Shard
from runs.providers.registry import PROVIDERS
from runs.results.stored import store_results
from runs.services import STORED_IS_KEPT
from runs.tracking.client import Tracker
from runs.tracking.config import TrackingConfig
from runs.transitions import StatusConflict, change_status
from sandbox.client.options import PoolOptions
from sandbox.client.pool import Pool
from sandbox.client.settings import get_pool_options
from sandbox.errors import SandboxUnavailable

logger = logging.getLogger(__name__)
Status = Run.Status
_WAKE_AT_MOST = 64  # workers; the others find the shards at their next sweep
_WORKED_S = 60.0  # after a try that lasted this long, the time for retries starts again


def execute_run(
    *, run: Run, config: RunConfig, listener: Listener, options: ExecutionOptions | None = None, owner: str = ""
) -> Run:
    """Request the missing responses of *run*, then execute its stages. Returns the run in its final status.

    After an infrastructure fault the run returns to the queue, or is retried here (ExecutionOptions.retry_for_s). If
    that has no success, the run is interrupted and InfrastructureFault raised.

    owner: holder of the run's lease; without it the lease is taken here. Raises RunBusy, and LeaseLost if another
    process has taken the run over. Any other failure, such as SandboxUnavailable, is stored in the run and raised.
    """
    if not owner:
        owner = new_owner()
        take_lease(run=run, owner=owner)
    options = options or ExecutionOptions()
    execution = _Execution(run, config, listener, options, owner)
    retries = _Retries(options.retry_for_s)
    try:
        while (fault := execution.execute_once()) is not None:
            if options.retry_for_s is None:
                retry_if_disconnected(return_after_fault, run, fault, owner)
                break
            if execution.wait_for_retry(fault, retries.next_delay(fault)):
                retry_if_disconnected(execution.store_end, Status.CANCELLED, STORED_IS_KEPT)
                break
    except LeaseLost:
        raise  # only the process that now holds the lease may store a status
    except SystemExit:
        raise  # this process was ended by a signal; another one continues the run, as after a kill
    except BaseException as error:
        fault = find_fault(error)
        if fault is not None and options.retry_for_s is None:
            raise  # it could not be returned to the queue; another worker takes it over
        with suppress(StatusConflict, LeaseLost):  # it ended before the error, and gave up its lease
            if isinstance(error, KeyboardInterrupt):
                execution.store_end(Status.INTERRUPTED, STORED_IS_KEPT)
            elif fault is not None:
                retry_if_disconnected(execution.store_end, Status.INTERRUPTED, f"{fault} {STORED_IS_KEPT}")
            else:
                message = mask(str(error) or type(error).__name__)
                retry_if_disconnected(execution.store_end, Status.FAILED, message)
        raise
    finally:
        release_lease(run=run, owner=owner)
    return run


def execute_shards(
    *,
    run: Run,
    config: RunConfig,
    listener: Listener,
    options: ExecutionOptions,
    owner: str,
    reserved_for: str,
    taken: Shard | None = None,
) -> None:
    """Execute shards of *run*, which another process leads, until none is left, or it stops or makes way.

    reserved_for: as in Shard. taken: a shard that *owner* holds already. Raises errors of the infrastructure and of
    the preparation; the leading process and others then execute the shards.
    """
    try:
        share = Share(leads=False, divided=True, reserved_for=reserved_for, taken=taken)
        with _Execution(run, config, listener, options, owner).open_context(share) as context:
            asyncio.run(RunSession(context, listener, options, resumed=True).execute())
    finally:
        try:
            retry_if_disconnected(release_shards, run.pk, owner)
        finally:
            end_owner(owner)


@dataclass(frozen=True, slots=True)
class _Execution:
    """An execution of *run* by this process. owner: the name that holds the lease of the run, or of its shards."""

    run: Run
    config: RunConfig
    listener: Listener
    options: ExecutionOptions
    owner: str

    def execute_once(self) -> InfrastructureFault | None:
        """Execute the run and store the status in which it ends, or return the infrastructure fault that stopped it."""
        run = self.run
        context: RunContext | None = None
        try:
            with self.open_context(Share()) as context:
                resumed = run.started_at is not None
                change_status(run, Status.RUNNING, owner=self.owner)
                with self._divide(resumed=resumed) as share:
                    context = replace(context, share=share)
                    session = RunSession(context, self.listener, self.options, resumed=resumed)
                    status, message = asyncio.run(session.execute())
                run.seconds = context.seconds()
                retry_if_disconnected(self.store_end, status, message)
        except BaseException as error:
            if context is not None:
                run.seconds = context.seconds()
            fault = find_fault(error) if isinstance(error, Exception) else None
            if fault is None:
                raise
            return fault
        return None

    @contextmanager
    def open_context(self, share: Share) -> Iterator[RunContext]:
        """Compile the environments, and open the tracker and the sandbox until the block ends."""
        environments = [
            EvaluatedEnvironment(row=row, compiled=compile_version(row.version))
            for row in self.run.environments.select_related("version__environment").order_by("position")
        ]
        tracking = self.config.stage_configs.get("tracking")
        assert tracking is None or isinstance(tracking, TrackingConfig)
        tracker = Tracker.start(tracking if share.leads else None)
        try:
            for environment in environments:
                environment.compiled.check_available()
            with self._open_pool(environments) as pool:
                yield RunContext(self.run, self.config, environments, pool, tracker, self.owner, share)
        finally:
            tracker.close()

    @contextmanager
    def _open_pool(self, environments: Sequence[EvaluatedEnvironment]) -> Iterator[Pool | None]:
        """Open the sandbox until the block ends, if one of *environments* needs it."""
        if not any(environment.compiled.needs_sandbox for environment in environments):
            yield None
            return
        with Pool.open(run_pool_options(self.config, self.options.processes)) as pool:
            for environment in environments:
                environment.compiled.pool(pool)  # reports a missing package before a model is called
            yield pool

    @contextmanager
    def _divide(self, *, resumed: bool) -> Iterator[Share]:
        """Divide a large run, and start local processes or wake workers for its shards."""
        run, options = self.run, self.options
        reserved_for = "" if options.workers_help else self.owner
        divides = options.workers_help or options.processes > 1 or run.shards.exists()
        if not divides or not divide_run(run, reserved_for=reserved_for, resumed=resumed):
            yield Share()
            return
        if options.workers_help:
            wake_workers(run=run, number=min(run.shards.filter(done=False).count(), _WAKE_AT_MOST))
        if options.processes == 1:
            yield Share(divided=True, reserved_for=reserved_for)
            return
        with self._start_local_processes(reserved_for) as helpers:
            yield Share(divided=True, reserved_for=reserved_for, helpers=helpers)

    @contextmanager
    def _start_local_processes(self, reserved_for: str) -> Iterator[LocalProcesses]:
        """Start the other local processes that execute shards. They share the limits of models until the block ends."""
        helpers = LocalProcesses()
        with TemporaryDirectory(prefix="llmeval-limits-") as folder:
            limits = f"{folder}/limits.json"
            share_limits_in_file(limits)
            try:
                job: Job = {
                    "run": self.run.pk,
                    "reserved_for": reserved_for,
                    "limits": limits,
                    "processes": self.options.processes,
                    "use_cache": self.options.use_cache,
                }
                receive = partial(_receive, self.listener)
                helpers.start(self.options.processes - 1, job, receive, str(settings.BASE_DIR))
                yield helpers
            finally:
                helpers.close()
                stop_sharing_in_file(limits)

    def wait_for_retry(self, fault: InfrastructureFault, seconds: float) -> bool:
        """Wait and keep the lease. Return whether cancelling the run was requested. Raises LeaseLost."""
        self.listener.run_delayed(str(fault), seconds)
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            time.sleep(min(left, RENEW_EVERY_S))
            try:
                if renew_lease(run_id=self.run.pk, owner=self.owner):
                    return True
            except DATABASE_ERRORS:
                connection.close()  # the next use opens a new one
        return False

    def store_end(self, status: Run.Status, message: str) -> None:
        """Store the status in which the run ends, and its results."""
        run = self.run
        try:
            change_status(
                run,
                status,
                owner=self.owner,
                message=message,
                seconds=run.seconds,
                cost_usd=run.cost_usd,
                summaries=run.summaries,
            )
        except LeaseLost:
            # If the connection was lost while this was stored, the status and the lease, which ends with it, are
            # changed.
            if not Run.objects.filter(pk=run.pk, status=status, seconds=run.seconds, lease_owner="").exists():
                raise
            run.refresh_from_db()
        if status in ENDED:
            store_results(run)


def _receive(listener: Listener, line: str) -> None:
    """Pass a line of a local process on to *listener*."""
    match json.loads(line):
        case [str() as status, cost, role_cost]:
            listener.response_finished(Response(status=status, cost_usd=cost, role_cost_usd=role_cost))
        case [str() as label, str() as reason]:
            listener.model_stopped(label, reason)


@dataclass(slots=True)
class _Retries:
    """Retries of this process after infrastructure faults, for at most *for_s* seconds without success."""

    for_s: float | None
    faults: int = 0
    _first_at: float = 0.0
    _next_at: float = 0.0

    def next_delay(self, fault: InfrastructureFault) -> float:
        """Return the seconds until the next try. Raises *fault* if the time is over."""
        now = time.monotonic()
        if not self.faults or now - self._next_at > _WORKED_S:
            self.faults, self._first_at = 0, now
        if now - self._first_at >= (self.for_s or 0.0):
            raise fault
        self.faults += 1
        delay = min(retry_delay(self.faults), self._first_at + (self.for_s or 0.0) - now)
        self._next_at = now + delay
        return delay


def run_pool_options(config: RunConfig, processes: int = 1) -> PoolOptions:
    """Return the options of the sandbox for *config*.

    Tier C is accepted for recordings only, unless the operator allows it for live models too. processes: local
    processes that share the machine.
    """
    accept = set(config.sandbox.accept)
    live = any(PROVIDERS[spec.provider].live for spec in config.models)
    if live and not settings.SANDBOX_WEAK_ISOLATION_FOR_LIVE_MODELS:
        accept.discard("C")
    if not accept:
        raise SandboxUnavailable(
            "Tier C hardly isolates the code of live models, and the config accepts no other tier. Accept A and B "
            "(`sandbox: {accept: [A, B]}`), or have an operator set LLMEVAL_SANDBOX_WEAK_ISOLATION=1."
        )
    options = get_pool_options(backend=config.sandbox.backend, accept=accept)
    return options if processes == 1 else replace(options, workers=max(2, options.size // processes))
