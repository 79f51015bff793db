"""The loop over cases and models: runs episodes concurrently and passes finished responses to the writer."""

import asyncio
import logging
import platform
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from hub.common.digests import attempt_seed
from hub.common.storable import storable
from hub.environments.compiled import CaseError, CompiledEnvironment
from hub.environments.episodes import Episode, Step
from hub.environments.scoring import EpisodeScore
from hub.harnesses.base import HarnessError, Services
from hub.models import Case
from hub.protocols.calls import CallKey, ModelError, Reply
from hub.protocols.cases import CaseData
from hub.protocols.messages import text_of
from hub.scorers.base import ScoringFailed
from runs.execution.model_client import CaseTimeExceeded, Connection, ModelClient, ResponseTotals
from runs.execution.storage import FinishedResponse, Reader, Writer
from runs.models import Response, RunEnvironment, RunModel, Score
from runs.providers.masking import mask
from runs.selectors import case_chunk, stored_attempts
from sandbox.client.pool import Pool
from sandbox.errors import SandboxUnavailable

logger = logging.getLogger(__name__)

_CHUNK = 200  # cases read at a time
_HOST = platform.node()[:64]
Status = Response.Status


class Listener(Protocol):
    """Receives every finished response and every model that is stopped, for example to show progress."""

    def response_finished(self, response: Response) -> None: ...

    def model_stopped(self, label: str, reason: str) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatedEnvironment:
    """Environment of the run, compiled."""

    row: RunEnvironment
    compiled: CompiledEnvironment


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatedModel:
    """Model under test, with its connection."""

    row: RunModel
    connection: Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingResponse:
    """One response that the run still lacks."""

    part: EvaluatedEnvironment
    evaluated_model: EvaluatedModel
    case: Case
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a run evaluates, and its limits.

    resumed: some responses may be stored already. seats: how many models fill each role.
    """

    parts: Sequence[EvaluatedEnvironment]
    evaluated_models: Sequence[EvaluatedModel]
    attempts: int
    concurrency: int
    case_seconds: float
    max_turns: int
    seed: int
    resumed: bool
    seats: dict[str, int] = field(default_factory=dict)


class Executor:
    """Executes a plan until it is complete or stopped. Every finished response is passed to the writer."""

    def __init__(
        self,
        plan: Plan,
        *,
        model_client: ModelClient,
        pool: Pool | None,
        reader: Reader,
        writer: Writer,
        listener: Listener,
    ) -> None:
        self._plan = plan
        self._model_client = model_client
        self._pool = pool
        self._reader = reader
        self._writer = writer
        self._listener = listener
        self._stopping = asyncio.Event()
        self._reported_as_stopped: set[int] = set()  # RunModel ids of the models that are reported as stopped
        # Twice the requests in flight: while half of the episodes wait for a model, the others are scored or stored.
        self._window = 2 * plan.concurrency

    def stop(self) -> None:
        """Start nothing new and cancel what is in flight. Safe to call from a signal handler of the loop."""
        self._stopping.set()

    @property
    def stopping(self) -> bool:
        return self._stopping.is_set()

    async def execute(self) -> None:
        """Execute the plan. Raises errors of the writer; those of models, cases and the sandbox become responses."""
        feeders = [asyncio.create_task(self._feed(evaluated_model)) for evaluated_model in self._plan.evaluated_models]
        watch = asyncio.create_task(self._stopping.wait())
        try:
            pending = {*feeders}
            while pending and not self.stopping:
                done, rest = await asyncio.wait({*pending, watch}, return_when=asyncio.FIRST_COMPLETED)
                pending = {task for task in pending if task in rest}
                for task in done - {watch}:
                    task.result()
        finally:
            for task in [*feeders, watch]:
                task.cancel()
            await asyncio.gather(*feeders, watch, return_exceptions=True)

    async def _feed(self, evaluated_model: EvaluatedModel) -> None:
        room = asyncio.Semaphore(self._window)
        async with asyncio.TaskGroup() as group:
            async for missing in self._missing_responses(evaluated_model):
                await room.acquire()
                if evaluated_model.connection.stopped is not None or self._model_client.budget.exhausted:
                    break
                if any(model.stopped for model in self._role_models(missing.part)):
                    room.release()
                    continue  # do not pay for an answer that cannot be scored
                task = group.create_task(self._evaluate(missing))
                task.add_done_callback(lambda _: room.release())

    async def _missing_responses(self, evaluated_model: EvaluatedModel) -> AsyncIterator[MissingResponse]:
        """Yield the responses that this model still lacks, in order of cases, reading cases in chunks."""
        attempts = range(1, self._plan.attempts + 1)
        for part in self._plan.parts:
            after = -1
            while True:
                cases = await self._reader.run(case_chunk, part.row, after, _CHUNK)
                if not cases:
                    break
                after = cases[-1].position
                stored: set[tuple[int, int]] = set()
                if self._plan.resumed:
                    stored = await self._reader.run(stored_attempts, evaluated_model.row, [case.pk for case in cases])
                for case in cases:
                    for attempt in attempts:
                        if (case.pk, attempt) not in stored:
                            yield MissingResponse(
                                part=part, evaluated_model=evaluated_model, case=case, attempt=attempt
                            )

    async def _evaluate(self, missing: MissingResponse) -> None:
        """Run one episode and store its response, unless the run or its model is stopped first."""
        episode_runner = _EpisodeRunner(missing, self._plan, self._model_client, self._pool)
        try:
            finished = await episode_runner.run()
        except ModelError as error:
            own = missing.evaluated_model.connection
            if error.kind == "budget":
                return
            if own.stopped is not None and (error is not own.stopped or own.run_model_id in self._reported_as_stopped):
                return  # one response says why; the model's other cases stay missing for a resume
            finished = episode_runner.errored(error.kind, str(error))
        await self._report_stopped(missing)
        self._listener.response_finished(finished.response)
        await self._writer.put(finished)

    async def _report_stopped(self, missing: MissingResponse) -> None:
        """Store and show, once, why the model or a role model of its environment was stopped."""
        for connection in (missing.evaluated_model.connection, *self._role_models(missing.part)):
            if connection.stopped is None or connection.run_model_id in self._reported_as_stopped:
                continue
            self._reported_as_stopped.add(connection.run_model_id)
            await self._writer.put_stopped(connection.run_model_id, str(connection.stopped))
            self._listener.model_stopped(connection.label, str(connection.stopped))

    def _role_models(self, part: EvaluatedEnvironment) -> list[Connection]:
        """Return the models that fill the roles of this environment."""
        return [seat for role in part.compiled.roles for seat in self._model_client.roles.get(role, ())]


class _EpisodeRunner:
    """Runs one episode and turns its result into a response."""

    def __init__(self, missing: MissingResponse, plan: Plan, model_client: ModelClient, pool: Pool | None) -> None:
        self._missing = missing
        self._plan = plan
        self._environment = missing.part.compiled
        self._totals = ResponseTotals(seconds_left=plan.case_seconds)
        self._ask = model_client.for_response(self._totals)
        offering = self._environment.pool(pool)
        self._services = Services(
            call_model=self._ask,
            pool=offering,
            models_per_role=plan.seats,
            isolated=False,
            record_call_ms=self._totals.took,
        )
        self._episode: Episode | None = None
        self._seed = attempt_seed(plan.seed, self._environment.slug, missing.case.external_id, missing.attempt)

    async def run(self) -> FinishedResponse:
        """Run the episode. Raises ModelError; every other failure becomes an errored response."""
        try:
            return self._scored(await self._run_episode())
        except ModelError:
            raise
        except HarnessError as error:
            return self.errored("environment", str(error))
        except CaseError as error:
            return self.errored("case", str(error))
        except ScoringFailed as error:
            return self.errored(error.kind, str(error))
        except SandboxUnavailable as error:
            return self.errored("sandbox", str(error))
        except Exception as error:
            # An error of one case must not end the run. The log has the traceback, the response its message.
            logger.exception("case %s of %s", self._missing.case.external_id, self._environment.slug)
            return self.errored("internal", mask(f"{type(error).__name__}: {error}"))

    def _key(self, turn: int) -> CallKey:
        return CallKey(
            purpose="answer",
            environment=self._environment.slug,
            case=self._missing.case.external_id,
            attempt=self._missing.attempt,
            model=self._missing.evaluated_model.row.label,
            turn=turn,
        )

    async def _run_episode(self) -> Step:
        episode = self._episode = Episode(
            self._environment,
            CaseData.from_json(self._missing.case.data),
            key=self._key(0),
            seed=self._seed,
            services=self._services,
            max_turns=self._plan.max_turns,
        )
        await episode.reset()
        while True:
            try:
                reply: Reply = await self._ask(self._key(episode.turns), episode.messages, episode.tools)
                step = await episode.step(reply.message)
            except CaseTimeExceeded:
                return await episode.stop("time")
            if step.done:
                return step

    def _scored(self, step: Step) -> FinishedResponse:
        assert step.score is not None and self._episode is not None
        score = step.score
        last = self._totals.last
        finish = last.finish_reason if last else ""
        response = self._response(Status(score.status), "" if score.status == "passed" else score.reason)
        response.score = score.value
        response.stop = self._episode.state.get("stop", "done")
        response.finish_reason = finish
        response.truncated = finish == "length"
        response.refused = finish in ("refusal", "content_filter")
        return FinishedResponse(response, _score_rows(score, response))

    def errored(self, kind: str, reason: str) -> FinishedResponse:
        """Return an errored response: the network, the provider or the sandbox failed."""
        response = self._response(Status.ERRORED, reason)
        response.error_kind = kind
        return FinishedResponse(response)

    def _response(self, status: Status, reason: str) -> Response:
        usage = self._totals.usage
        episode = self._episode
        messages = episode.messages if episode else []
        answers = [message for message in messages if message["role"] == "assistant"]
        return Response(
            run_environment_id=self._missing.part.row.pk,
            run_model_id=self._missing.evaluated_model.row.pk,
            case_id=self._missing.case.pk,
            attempt=self._missing.attempt,
            seed=self._seed,
            status=status,
            reason=storable(reason),
            messages=storable(messages),
            text=storable(text_of(answers[-1]) if answers else ""),
            turns=len(answers),
            input_tokens=usage.input,
            cached_input_tokens=usage.cached_input,
            output_tokens=usage.output,
            reasoning_tokens=usage.reasoning,
            latency_ms=self._totals.latency_ms,
            cost_usd=self._totals.cost_usd,
            role_cost_usd=self._totals.role_cost_usd,
            host=_HOST,
        )


def _score_rows(score: EpisodeScore, response: Response) -> list[Score]:
    rows = []
    for position, rule in enumerate(score.rules):
        outcome = rule.outcome
        if outcome is not None and response.execution_trust != "in_process":
            response.execution_trust = outcome.trust
        if outcome is not None and not response.execution_status:
            response.execution_status = outcome.status.value
            response.execution_ms = outcome.wall_ms
            response.sandbox_tier = outcome.tier
        rows.append(
            Score(
                position=position,
                rule=rule.rule,
                type=rule.type,
                value=rule.value,
                weight=rule.weight,
                required=rule.required,
                reason=storable(rule.reason),
                detail=storable(rule.detail),
                execution=storable(outcome.to_json()) if outcome else None,
            )
        )
    return rows
