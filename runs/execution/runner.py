"""Executes a run: takes its lease, opens what it needs, and stores the status in which it ends."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from django.conf import settings

from hub.common.leases import new_owner
from hub.selectors import compile_version
from runs.config.schema import RunConfig
from runs.execution.plan import EvaluatedEnvironment, Listener
from runs.execution.session import RunContext, RunSession
from runs.execution.storage import retry_if_disconnected
from runs.leases import LeaseLost, release_lease, take_lease
from runs.models import ENDED, Run
from runs.providers.masking import mask
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionOptions:
    """How a process executes a run.

    use_cache: take replies from the cache. signals: Ctrl-C and SIGTERM interrupt the run (main thread only). stopping:
    is called every few seconds; if it returns True, as in a worker that shuts down, the run returns to the queue.
    """

    use_cache: bool = True
    signals: bool = False
    stopping: Callable[[], bool] = field(default=lambda: False)


def execute_run(
    *, run: Run, config: RunConfig, listener: Listener, options: ExecutionOptions | None = None, owner: str = ""
) -> Run:
    """Request the missing responses of *run*, then execute its stages. Returns the run in its final status.

    owner: holder of the run's lease; without it the lease is taken here. Raises RunBusy, and LeaseLost if another
    process has taken the run over. Any other failure, such as SandboxUnavailable, is stored in the run and raised.
    """
    if not owner:
        owner = new_owner()
        take_lease(run=run, owner=owner)
    options = options or ExecutionOptions()
    context: RunContext | None = None
    try:
        with _open_context(run, config, owner) as context:
            resumed = run.started_at is not None
            change_status(run, Status.RUNNING, owner=owner)
            session = RunSession(
                context,
                listener,
                use_cache=options.use_cache,
                signals=options.signals,
                stopping=options.stopping,
                resumed=resumed,
            )
            status, message = asyncio.run(session.execute())
            retry_if_disconnected(_store_end, run, status, message, owner, context)
    except LeaseLost:
        raise  # only the new holder of the lease may store a status
    except BaseException as error:
        with suppress(StatusConflict):  # it ended before the error
            if isinstance(error, KeyboardInterrupt):
                _store_end(run, Status.INTERRUPTED, STORED_IS_KEPT, owner, context)
            else:
                message = mask(str(error) or type(error).__name__)
                retry_if_disconnected(_store_end, run, Status.FAILED, message, owner, context)
        raise
    finally:
        release_lease(run=run, owner=owner)
    return run


def run_pool_options(config: RunConfig) -> PoolOptions:
    """Return the options of the sandbox for *config*.

    Tier C is accepted for recordings only, unless the operator allows it for live models too.
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
    return get_pool_options(backend=config.sandbox.backend, accept=accept)


@contextmanager
def _open_context(run: Run, config: RunConfig, owner: str) -> Iterator[RunContext]:
    """Compile the environments, and open the tracker and the sandbox until the block ends."""
    environments = [
        EvaluatedEnvironment(row=row, compiled=compile_version(row.version))
        for row in run.environments.select_related("version__environment").order_by("position")
    ]
    tracking = config.stage_configs.get("tracking")
    assert tracking is None or isinstance(tracking, TrackingConfig)
    tracker = Tracker.start(tracking)
    try:
        if any(environment.compiled.needs_sandbox for environment in environments):
            with Pool.open(run_pool_options(config)) as pool:
                for environment in environments:
                    environment.compiled.pool(pool)  # reports a missing package before a model is called
                yield RunContext(run, config, environments, pool, tracker, owner)
        else:
            yield RunContext(run, config, environments, None, tracker, owner)
    finally:
        tracker.close()


def _store_end(run: Run, status: Run.Status, message: str, owner: str, context: RunContext | None) -> None:
    change_status(
        run,
        status,
        owner=owner,
        message=message,
        seconds=context.seconds() if context else run.seconds,
        cost_usd=run.cost_usd,
        summaries=run.summaries,
    )
    if status in ENDED:
        store_results(run)
