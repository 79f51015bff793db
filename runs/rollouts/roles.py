"""Replies of role models in a trainer's episode: from registered models, or recorded in an earlier episode."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import TypedDict

from pydantic import ValidationError

from hub.common.documents import validation
from hub.common.errors import UserError
from hub.environments.compiled import CompiledEnvironment
from hub.models import Team
from hub.protocols.calls import CallKey, ModelError, Reply
from hub.protocols.messages import JSON, Message, Tool, text_of
from hub.teams.quotas import QuotaExceeded
from runs.config.endpoints import endpoint_spec
from runs.execution.connections import close_all, connect
from runs.execution.model_client import ModelClient
from runs.limits.budget import Budget
from runs.limits.team_quotas import EpisodeBudget
from runs.models import EpisodeSession, ModelEndpoint
from runs.providers.registry import costs_money
from runs.providers.replay import Recorded, recorded_row
from runs.rollouts.errors import RolloutError
from runs.selectors import list_usable_models

TRAINER = "trainer"  # label of the model under test if the trainer gives none
_CALL_SECONDS = 300.0  # limit of one call of a role model, retries included
_CONCURRENCY = 4  # calls to one role model at a time


class RecordedCall(TypedDict):
    """Call of a role model in an episode: the fields of its `CallKey`, and the reply."""

    key: dict[str, JSON]
    message: Message


class InvalidRecordings(UserError):
    """A recording that cannot be replayed. The message names the first invalid line."""


class RecordingNotFound(ModelError):
    """The recordings have no reply for a call to a role model."""

    def __init__(self, key: CallKey) -> None:
        call = f"the user's turn {key.turn}" if key.purpose == "user" else f"judge {key.seat} of rule {key.rule!r}"
        super().__init__(
            "no_recording",
            f"The recordings do not contain {call}, because the messages of this episode differ. "
            f"Name models that reply instead in roles.{key.role}.",
        )


def validate_recordings(rows: Sequence[object], *, environment: str, case: str, attempt: int) -> list[dict[str, JSON]]:
    """Return the recorded lines of one episode as they are stored. Raises InvalidRecordings.

    The field `model` of a line is ignored, because it names the model under test of the earlier episode.
    """
    kept: dict[tuple[str, int, str, int], dict[str, JSON]] = {}
    for number, row in enumerate(rows):
        try:
            line = Recorded.model_validate(row)
        except ValidationError as error:
            first = error.errors()[0]
            at = ".".join([f"recordings[{number}]", *(str(part) for part in first["loc"])])
            raise InvalidRecordings(f"{at}: {validation.describe_error(first, Recorded)}.") from None
        if line.purpose not in ("user", "rubric"):
            raise InvalidRecordings(
                f"recordings[{number}] has the purpose {line.purpose}; only user and rubric can be replayed."
            )
        origin = (line.environment or environment, line.case, line.attempt)
        if origin != (environment, case, attempt):
            raise InvalidRecordings(
                f"recordings[{number}] is of {origin[0]}, case {origin[1]!r}, attempt {origin[2]}; the episode is of "
                f"{environment}, case {case!r}, attempt {attempt}. Send only the lines of the case and attempt."
            )
        slot = _call_slot(line.purpose, line.turn, line.rule, line.seat)
        if slot in kept:
            raise InvalidRecordings(
                f"recordings[{number}] replies to the same call as an earlier line. Keep one of them; if they "
                "belong to different models under test (`model` of the lines), keep those of one model."
            )
        kept[slot] = line.model_dump(include={"purpose", "turn", "rule", "seat", "content"})
    return list(kept.values())


def session_recordings(session: EpisodeSession) -> list[dict[str, JSON]]:
    """Return the replies of role models in *session*, as lines for the provider `replay` or another episode."""
    rows: dict[tuple[str, int, str, int], dict[str, JSON]] = {}
    for call in session.calls:
        key = CallKey(**{**call["key"], "model": session.model or TRAINER})
        # If a judge model was called twice because its first reply had no marks, the second reply is kept.
        slot = _call_slot(key.purpose, key.turn, key.rule, key.seat)
        rows[slot] = recorded_row(key, content=text_of(call["message"]))
    return list(rows.values())


def list_role_endpoints(session: EpisodeSession, roles: Collection[str]) -> dict[str, list[ModelEndpoint]]:
    """Return the registered models of those of *roles* that the session names models for, in its order.

    Raises RolloutError if one can no longer be used: the others alone would give another reward.
    """
    chosen = {role: names for role, names in session.roles.items() if role in roles}
    rows = {row.name: row for row in list_usable_models(session.user)} if chosen else {}
    for role, names in chosen.items():
        for name in names:
            if name not in rows:
                raise RolloutError(
                    f"The model {name!r} of the role {role!r} can no longer be used. Start another episode, or have "
                    "the model enabled again and send the step again.",
                    f"roles.{role}",
                )
    return {role: [rows[name] for name in names] for role, names in chosen.items()}


class RoleModels:
    """Client for the role models of one step. `calls` lists the calls and their replies.

    A recorded call is replayed; any other call goes to the registered models of its role. Create an instance in the
    event loop that uses it, because the clients of the models belong to that loop.
    """

    def __init__(
        self,
        session: EpisodeSession,
        compiled: CompiledEnvironment,
        endpoints: Mapping[str, Sequence[ModelEndpoint]],
        payer: Team | None,
    ) -> None:
        """payer: the team of the session, whose spending quota pays for the calls."""
        self.calls: list[RecordedCall] = []
        self._recorded = {
            _call_slot(row["purpose"], row["turn"], row["rule"], row["seat"]): row["content"]
            for row in session.recordings
        }
        self._models = {
            role: [connect(endpoint_spec(endpoint), concurrency=_CONCURRENCY) for endpoint in rows]
            for role, rows in endpoints.items()
        }
        self._free = self._client(session, Budget())
        self._budget = None if payer is None else EpisodeBudget(team=payer)
        self._paid = self._free if self._budget is None else self._client(session, self._budget)
        self._compiled = compiled

    def _client(self, session: EpisodeSession, budget: Budget) -> ModelClient:
        return ModelClient(models={}, roles=self._models, cache=None, budget=budget, seed_of=lambda _: session.seed)

    @property
    def exceeded(self) -> QuotaExceeded | None:
        """Return the error that the team of the episode has spent its quota, if that refused a call."""
        return self._budget.exceeded if self._budget is not None else None

    @property
    def models_per_role(self) -> dict[str, int]:
        """Number of registered or recorded models for each role of the environment, at least 1."""
        counts = {role: max(1, len(self._models.get(role, ()))) for role in self._compiled.roles}
        judges = {rule.spec.name: rule.scorer.roles(rule.spec.options) for rule in self._compiled.rules}
        for purpose, _, rule, seat in self._recorded:
            for role in judges.get(rule, ()) if purpose == "rubric" else ():
                counts[role] = max(counts[role], seat + 1)
        return counts

    async def __call__(
        self,
        key: CallKey,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        parameters: Mapping[str, JSON] | None = None,
    ) -> Reply:
        content = self._recorded.get(_call_slot(key.purpose, key.turn, key.rule, key.seat))
        if content is not None:
            reply = Reply(message={"role": "assistant", "content": content})
        elif self._models.get(key.role):
            reply = await self._call_model(key, messages, tools, parameters)
        else:
            raise RecordingNotFound(key)
        self.calls.append({"key": asdict(key), "message": reply.message})
        return reply

    async def _call_model(
        self,
        key: CallKey,
        messages: Sequence[Message],
        tools: Sequence[Tool],
        parameters: Mapping[str, JSON] | None,
    ) -> Reply:
        connections = self._models[key.role]
        paid = key.seat < len(connections) and costs_money(connections[key.seat].spec)
        client = self._paid if paid else self._free
        try:
            async with asyncio.timeout(_CALL_SECONDS):
                reply = await client.call(key, messages, tools, parameters)
        except TimeoutError:
            raise ModelError("timeout", f"The role model did not reply within {_CALL_SECONDS:g} s.") from None
        if self._budget is not None and paid:
            await self._budget.settle()
            if not await self._budget.keeps_quota():
                raise ModelError(
                    "budget",
                    f"A reply of {self._budget.unmetered} carried no token counts (`usage`), so what it cost is "
                    f"unknown and the spending quota of the team {self._budget.team} cannot be kept. Have the endpoint "
                    "report usage.",
                )
        return reply

    async def aclose(self) -> None:
        if self._budget is not None:
            await self._budget.settle()  # of calls whose caller was cancelled
        await close_all(connection for connections in self._models.values() for connection in connections)


def _call_slot(purpose: str, turn: int, rule: str, seat: int) -> tuple[str, int, str, int]:
    """Return the key of a call in the recordings of an episode. Repeated calls of a judge model have the same key."""
    return (purpose, turn, "", 0) if purpose == "user" else (purpose, 0, rule, seat)
