"""Executes the stages of a run after its last response, and stores their progress."""

import logging
from collections.abc import Callable
from functools import partial

from hub.common.tracing import span
from hub.protocols.messages import JSON
from runs.execution.executor import FINISH_WITHIN_S
from runs.execution.model_client import CallsStopped, ModelClient
from runs.execution.session.context import RunContext
from runs.execution.storage import Reader
from runs.models import Run
from runs.selectors import describe_failure
from runs.stages import StageContext, stages

logger = logging.getLogger(__name__)
Status = Run.Status


class StageRunner:
    """Stages of one execution of a run."""

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self._stage: dict[str, JSON] = {}  # the stage that is executed, and how far it is
        self._stored_stage: dict[str, JSON] = {}

    def store_progress(self) -> None:
        """Store which stage is executed and the summaries of those before it, if that has changed."""
        stage, run = self._stage, self._context.run
        if stage != self._stored_stage:
            rows = Run.objects.filter(pk=run.pk, lease_owner=self._context.owner)
            rows.update(stage_progress=stage, summaries=run.summaries)
            self._stored_stage = stage

    async def execute(
        self, model_client: ModelClient, reader: Reader, stopping: Callable[[], bool]
    ) -> tuple[Run.Status, str]:
        """Execute the stages of the config in order, and return the status and message of the run after them.

        The summary of a stage that fails has its error. A stage that is stopped by the budget stops the run: of the
        later stages only the implicit ones follow.
        """
        run, run_config, (status, message) = self._context.run, self._context.config, (Status.COMPLETED, "")
        for stage in stages():
            config = run_config.stage_configs.get(stage.key)
            if config is None or stopping() or (status == Status.STOPPED and not stage.implicit):
                continue
            context = StageContext(
                run=run,
                call_model=model_client,
                concurrency=run_config.concurrency,
                stopping=stopping,
                tracker=self._context.tracker,
                progress=partial(self._count, stage.key),
            )
            self._count(stage.key, 0, 0)
            await reader.run(self.store_progress)
            # A stage may use the run's figures and the status in which it ends, as tracking does.
            run.status, run.message = status, message
            run.seconds, run.cost_usd = self._context.seconds(), model_client.budget.total
            try:
                with span("stage", {"llmeval.stage": stage.key}):
                    summary = await stage.execute(context, config)
            except CallsStopped:
                await model_client.finish_calls(FINISH_WITHIN_S)
                break
            except Exception as error:
                logger.exception("stage %s of run %s", stage.key, run.pk, extra={"run_id": run.pk})
                summary = {"error": await reader.run(describe_failure, run, error)}
            run.summaries = {**run.summaries, stage.key: summary}
            if summary.get("stopped"):
                status, message = Status.STOPPED, str(summary["stopped"])
        return status, message

    def _count(self, key: str, done: int, total: int) -> None:
        self._stage = {"key": key, "done": done, "total": total}
