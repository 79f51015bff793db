"""The only loop over cases and models: plays episodes, several at once, and hands the results to the writer."""

import asyncio
import logging
import platform
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from hub.common.digests import attempt_seed, storable
from hub.common.masking import mask
from hub.environments.compiled import CaseError, CompiledEnvironment
from hub.environments.episodes import Episode, Step, text_of
from hub.environments.scoring import EpisodeScore
from hub.harnesses.base import HarnessError, Services
from hub.models import Case
from hub.protocols.calls import AskError, CallKey, Reply
from hub.protocols.cases import CaseData
from hub.scorers.base import ScoringFailed
from runs.execution.model_client import Asker, Connection, Tally, TimeUp
from runs.execution.storage import Played, Reader, Writer
from runs.models import Response, RunEnvironment, RunModel, Score
from runs.selectors import case_chunk, stored_attempts
from sandbox.errors import SandboxUnavailable
from sandbox.pool import Pool

logger = logging.getLogger(__name__)

_CHUNK = 200  # cases read at a time
_HOST = platform.node()[:64]
Status = Response.Status


class Listener(Protocol):
    """Somebody who watches: told of every response as it is put in for storing."""

    def played(self, response: Response) -> None: ...

    def model_stopped(self, label: str, reason: str) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """An environment of the run, ready to play."""

    row: RunEnvironment
    compiled: CompiledEnvironment


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatedModel:
    """A model of the run that answers, with its connection."""

    row: RunModel
    connection: Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """One response to bring about."""

    part: Part
    evaluated_model: EvaluatedModel
    case: Case
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What there is to do and within which limits. `resumed`: some responses may be stored already."""

    parts: Sequence[Part]
    evaluated_models: Sequence[EvaluatedModel]
    attempts: int
    concurrency: int
    case_seconds: float
    max_turns: int
    seed: int
    resumed: bool
    seats: dict[str, int] = field(default_factory=dict)


class Executor:
    """Plays a plan to its end, or until it is stopped. Every response that was played is handed to the writer."""

    def __init__(
        self,
        plan: Plan,
        *,
        asker: Asker,
        pool: Pool | None,
        reader: Reader,
        writer: Writer,
        listener: Listener,
    ) -> None:
        self._plan = plan
        self._asker = asker
        self._pool = pool
        self._reader = reader
        self._writer = writer
        self._listener = listener
        self._stopping = asyncio.Event()
        self._told: set[int] = set()  # RunModel ids of the models that are reported as stopped
        # Twice the requests in flight: while half of the episodes are asked, the others are read, scored or stored.
        self._window = 2 * plan.concurrency

    def stop(self) -> None:
        """Begin nothing new and give up what is in flight. Safe to call from a signal handler of the loop."""
        self._stopping.set()

    @property
    def stopping(self) -> bool:
        return self._stopping.is_set()

    async def execute(self) -> None:
        """Raises what the writer raises; nothing that a model, a case or the sandbox does."""
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
            async for assignment in self._assignments(evaluated_model):
                await room.acquire()
                if evaluated_model.connection.stopped is not None or self._asker.budget.exhausted:
                    break
                if any(model.stopped for model in self._role_models(assignment.part)):
                    room.release()
                    continue  # an answer that nobody can score would be paid for all the same
                task = group.create_task(self._evaluate(assignment))
                task.add_done_callback(lambda _: room.release())

    async def _assignments(self, evaluated_model: EvaluatedModel) -> AsyncIterator[Assignment]:
        """What this model still owes, in order, read chunk by chunk."""
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
                            yield Assignment(part=part, evaluated_model=evaluated_model, case=case, attempt=attempt)

    async def _evaluate(self, assignment: Assignment) -> None:
        """Play one assignment and put its response in; nothing where the run or its model was stopped first."""
        player = _Player(assignment, self._plan, self._asker, self._pool)
        try:
            played = await player.play()
        except AskError as error:
            own = assignment.evaluated_model.connection
            if error.kind == "budget":
                return
            if own.stopped is not None and (error is not own.stopped or own.run_model_id in self._told):
                return  # one response tells why; the rest of this model's cases stay open for a resume
            played = player.errored(error.kind, str(error))
        await self._report_stopped(assignment)
        self._listener.played(played.response)
        await self._writer.put(played)

    async def _report_stopped(self, assignment: Assignment) -> None:
        """Store and show, once, why the model or one that fills a role of its environment is asked no further."""
        for connection in (assignment.evaluated_model.connection, *self._role_models(assignment.part)):
            if connection.stopped is None or connection.run_model_id in self._told:
                continue
            self._told.add(connection.run_model_id)
            await self._writer.put_stopped(connection.run_model_id, str(connection.stopped))
            self._listener.model_stopped(connection.label, str(connection.stopped))

    def _role_models(self, part: Part) -> list[Connection]:
        """The models that fill the roles of *part*'s environment."""
        return [seat for role in part.compiled.roles for seat in self._asker.roles.get(role, ())]


class _Player:
    """One play of one case: the episode, its calls and what is stored of both."""

    def __init__(self, assignment: Assignment, plan: Plan, asker: Asker, pool: Pool | None) -> None:
        self._assignment = assignment
        self._plan = plan
        self._environment = assignment.part.compiled
        self._tally = Tally(seconds_left=plan.case_seconds)
        self._ask = asker.for_response(self._tally)
        offering = self._environment.pool(pool)
        self._services = Services(ask=self._ask, pool=offering, seats=plan.seats, isolated=False, took=self._tally.took)
        self._episode: Episode | None = None
        self._seed = attempt_seed(plan.seed, self._environment.slug, assignment.case.external_id, assignment.attempt)

    async def play(self) -> Played:
        """Raises AskError; every other failure becomes an errored response."""
        try:
            return self._scored(await self._run())
        except AskError:
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
            # One case must not end a run of thousands; the log has the trace, the response the sentence.
            logger.exception("case %s of %s", self._assignment.case.external_id, self._environment.slug)
            return self.errored("internal", mask(f"{type(error).__name__}: {error}"))

    def _key(self, turn: int) -> CallKey:
        return CallKey(
            purpose="answer",
            environment=self._environment.slug,
            case=self._assignment.case.external_id,
            attempt=self._assignment.attempt,
            model=self._assignment.evaluated_model.row.label,
            turn=turn,
        )

    async def _run(self) -> Step:
        episode = self._episode = Episode(
            self._environment,
            CaseData.from_json(self._assignment.case.data),
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
            except TimeUp:
                return await episode.stop("time")
            if step.done:
                return step

    def _scored(self, step: Step) -> Played:
        assert step.score is not None and self._episode is not None
        score = step.score
        last = self._tally.last
        finish = last.finish_reason if last else ""
        response = self._response(Status(score.status), "" if score.status == "passed" else score.reason)
        response.score = score.value
        response.stop = self._episode.state.get("stop", "done")
        response.finish_reason = finish
        response.truncated = finish == "length"
        response.refused = finish in ("refusal", "content_filter")
        return Played(response, _score_rows(score, response))

    def errored(self, kind: str, reason: str) -> Played:
        """The response of a play that the world ended."""
        response = self._response(Status.ERRORED, reason)
        response.error_kind = kind
        return Played(response)

    def _response(self, status: Status, reason: str) -> Response:
        usage = self._tally.usage
        episode = self._episode
        messages = episode.messages if episode else []
        answers = [message for message in messages if message["role"] == "assistant"]
        return Response(
            run_environment_id=self._assignment.part.row.pk,
            run_model_id=self._assignment.evaluated_model.row.pk,
            case_id=self._assignment.case.pk,
            attempt=self._assignment.attempt,
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
            latency_ms=self._tally.latency_ms,
            cost_usd=self._tally.cost_usd,
            role_cost_usd=self._tally.role_cost_usd,
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
