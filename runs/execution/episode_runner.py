"""Runs the episode of one missing response, and turns its result into rows for the database."""

import asyncio
import logging
import platform
from contextlib import suppress

from hub.common.digests import attempt_seed
from hub.common.fields import ContentUnreachable
from hub.common.masking import mask
from hub.common.storable import storable
from hub.common.tracing import Attribute, span
from hub.environments.compiled import CaseError
from hub.environments.episodes import Episode, Step
from hub.environments.scoring import EpisodeScore, cut_reason
from hub.harnesses.base import HarnessError, Services
from hub.protocols.calls import CallKey, ModelError, Reply
from hub.protocols.cases import CaseData
from hub.protocols.messages import text_of
from hub.scorers.base import ScoringFailed
from runs.execution.checkpoints import Checkpoints, restore_totals, snapshot_folder
from runs.execution.faults import DATABASE_ERRORS
from runs.execution.model_client import CallsStopped, CaseTimeExceeded, ModelClient, ResponseTotals
from runs.execution.plan import MissingResponse, Plan
from runs.execution.storage import FinishedResponse
from runs.leases import LeaseLost
from runs.models import Response, Score
from sandbox.client.pool import Pool
from sandbox.errors import SandboxUnavailable

logger = logging.getLogger(__name__)

_SAVE_WITHIN_S = 10.0  # a run that is stopped waits for this
_HOST = platform.node()[:64]
Status = Response.Status


class EpisodeRunner:
    """Runs one episode and turns its result into a response."""

    def __init__(
        self,
        missing: MissingResponse,
        plan: Plan,
        model_client: ModelClient,
        pool: Pool | None,
        checkpoints: Checkpoints,
    ) -> None:
        self._missing = missing
        self._checkpoints = checkpoints
        self._plan = plan
        self._environment = missing.environment.compiled
        self._totals = ResponseTotals(seconds_left=plan.case_seconds)
        self._call_model = model_client.for_response(self._totals)
        self._services = Services(
            call_model=self._call_model,
            pool=self._environment.pool(pool),
            models_per_role=plan.models_per_role,
            isolated=False,
            snapshots=snapshot_folder(missing),
            record_call_ms=self._totals.took,
        )
        self._episode: Episode | None = None
        self._seed = attempt_seed(plan.seed, self._environment.slug, missing.case.external_id, missing.attempt)

    async def run(self) -> FinishedResponse:
        """Run the episode. Raises ModelError, CallsStopped, LeaseLost, and errors of the database or of the storage.

        Every other failure becomes an errored response.
        """
        missing = self._missing
        attributes: dict[str, Attribute] = {
            "llmeval.run": missing.environment.row.run_id,
            "llmeval.environment": self._environment.slug,
            "llmeval.case": missing.case.external_id,
            "llmeval.model": missing.model.row.label,
            "llmeval.attempt": missing.attempt,
        }
        with span("response", attributes, own_trace=True) as trace:
            finished = await self._run()
            trace.set({"llmeval.status": str(finished.response.status)})
            if finished.response.score is not None:
                trace.set({"llmeval.score": finished.response.score})
        return finished

    async def _run(self) -> FinishedResponse:
        try:
            return self._scored(await self._run_episode())
        except (ModelError, CallsStopped, LeaseLost, ContentUnreachable, *DATABASE_ERRORS):
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
            # An error of one case must not end the run. The log has the traceback, the response has the message.
            logger.exception(
                "case %s of %s",
                self._missing.case.external_id,
                self._environment.slug,
                extra={"run_id": self._missing.environment.row.run_id, "case_id": self._missing.case.pk},
            )
            return self.errored("internal", mask(f"{type(error).__name__}: {error}"))

    def _key(self, turn: int) -> CallKey:
        return CallKey(
            purpose="answer",
            environment=self._environment.slug,
            case=self._missing.case.external_id,
            attempt=self._missing.attempt,
            model=self._missing.model.row.label,
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
        try:
            await self._begin(episode)
            while True:
                try:
                    reply = await self._next_reply(episode)
                    step = await episode.step(reply.message, reply)
                except CaseTimeExceeded:
                    return await episode.stop("time")
                if step.done:
                    return step
                await self._store_turn(episode)
        finally:
            await episode.close()

    async def _begin(self, episode: Episode) -> None:
        """Reset the episode, or continue with the turns that an earlier process has stored."""
        stored = await self._checkpoints.load(self._missing) if episode.can_reopen else None
        if stored is None:
            await episode.reset()
            await self._store_turn(episode)
            return
        episode.restore(stored.state)
        restore_totals(self._totals, stored.totals)
        logger.info(
            "continue case %s of %s after turn %d",
            self._missing.case.external_id,
            self._environment.slug,
            episode.turns,
            extra={"run_id": self._missing.environment.row.run_id, "case_id": self._missing.case.pk},
        )
        await episode.reopen()
        await self._store_turn(episode)

    async def _next_reply(self, episode: Episode) -> Reply:
        """Call the model. If the run is stopped meanwhile, save the episode first: another process may continue it."""
        try:
            reply: Reply = await self._call_model(
                self._key(episode.turns), episode.conversation, episode.tools, requested=episode.parameters
            )
        except (CallsStopped, asyncio.CancelledError):
            if episode.can_reopen:
                with suppress(TimeoutError, LeaseLost, *DATABASE_ERRORS):
                    async with asyncio.timeout(_SAVE_WITHIN_S):
                        await episode.save()
                        await self._store_turn(episode)
            raise
        return reply

    async def _store_turn(self, episode: Episode) -> None:
        if episode.can_reopen:
            await self._checkpoints.store(self._missing, episode, self._totals)

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
        return FinishedResponse(response, _score_rows(score, response), snapshots=self._snapshots)

    def errored(self, kind: str, reason: str) -> FinishedResponse:
        """Return an errored response: the network, the provider or the sandbox failed."""
        response = self._response(Status.ERRORED, reason)
        response.error_kind = kind
        return FinishedResponse(response, snapshots=self._snapshots)

    @property
    def _snapshots(self) -> str:
        """Return the folder of the episode if it may have checkpoints."""
        episode = self._episode
        return self._services.snapshots if episode is not None and episode.can_reopen else ""

    def _response(self, status: Status, reason: str) -> Response:
        usage, last = self._totals.usage, self._totals.last
        episode = self._episode
        messages = episode.messages if episode else []
        turns = episode.turns if episode else 0
        answers = [message for message in messages if message["role"] == "assistant"]
        return Response(
            run_environment_id=self._missing.environment.row.pk,
            run_model_id=self._missing.model.row.pk,
            case_id=self._missing.case.pk,
            attempt=self._missing.attempt,
            seed=self._seed,
            status=status,
            reason=storable(cut_reason(reason)),
            messages=storable(messages),
            text=storable(text_of(answers[-1]) if turns else ""),
            served_model=last.served_model if last else "",
            request_id=last.request_id if last else "",
            turns=turns,
            prompt_messages=episode.prompt_messages if episode else None,
            step_rewards=(episode.step_rewards if episode else None) or None,
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
        if rule.detail.get("trust") == "in_process":  # of a script in a workspace, which has no outcome
            response.execution_trust = "in_process"
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
