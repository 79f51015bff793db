"""Replies of role models in a trainer's episode: from registered models, or recorded in an earlier episode."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pydantic import ValidationError

from hub.common.documents import validation
from hub.common.errors import UserError
from hub.environments.compiled import CompiledEnvironment
from hub.protocols.calls import CallKey, ModelError, Reply
from hub.protocols.messages import JSON, Message, Tool
from runs.config.endpoints import endpoint_spec
from runs.execution.connections import close_all, connect
from runs.execution.model_client import Budget, ModelClient
from runs.models import EpisodeSession, ModelEndpoint
from runs.providers.replay import Recorded, recorded_row

TRAINER = "trainer"  # the answering model's label in calls, where the trainer gave it none
_STEP_SECONDS = 300.0  # that one call of a role model may take, retries included
_AT_ONCE = 4  # calls to one role model


class InvalidRecordings(UserError):
    """Recordings that cannot be replayed; the message names the first invalid one."""


class MissingRecording(ModelError):
    """The episode asks its role model for something that the recordings do not hold."""

    def __init__(self, key: CallKey) -> None:
        what = f"the user's turn {key.turn}" if key.purpose == "user" else f"judge {key.seat} of rule {key.rule!r}"
        super().__init__(
            "no_recording",
            f"The recordings do not contain {what}: the episode took another course. Name models that reply then: "
            f"roles.{key.role}.",
        )


def validate_recordings(rows: Sequence[Any], *, environment: str, case: str, attempt: int) -> list[dict[str, JSON]]:
    """Return the recorded lines of one episode as they are stored. Raises InvalidRecordings.

    The model that a line names is ignored: it is the model under test of the earlier episode.
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
                f"{environment}, case {case!r}, attempt {attempt}."
            )
        place = _place(line.purpose, line.turn, line.rule, line.seat)
        if place in kept:
            raise InvalidRecordings(f"recordings[{number}] answers the same call as an earlier line; keep one of them.")
        kept[place] = line.model_dump(include={"purpose", "turn", "rule", "seat", "content"})
    return list(kept.values())


def session_recordings(session: EpisodeSession) -> list[dict[str, JSON]]:
    """Return the replies of role models in *session*, as lines for the provider `replay` or another episode."""
    rows: dict[tuple[str, int, str, int], dict[str, JSON]] = {}
    for call in session.calls:
        key = CallKey(**{**call["key"], "model": session.model or TRAINER})
        # Of a judge that was asked again, because its first answer had no marks, the second is kept.
        content = call["message"].get("content") or ""
        rows[_place(key.purpose, key.turn, key.rule, key.seat)] = recorded_row(key, content=content)
    return list(rows.values())


def session_endpoints(session: EpisodeSession) -> dict[str, list[ModelEndpoint]]:
    """Return the registered models of each role, in the order in which they were named."""
    wanted = {name for names in session.roles.values() for name in names}
    rows = {row.name: row for row in ModelEndpoint.objects.filter(name__in=wanted, enabled=True)} if wanted else {}
    return {role: [rows[name] for name in names if name in rows] for role, names in session.roles.items()}


class RoleModels:
    """The port for role models of one step. `calls` holds what was asked and answered.

    What is recorded is answered from the recordings; the rest goes to registered models, where the episode has them.
    Made in the event loop that uses it, to which the models' clients belong.
    """

    def __init__(
        self,
        session: EpisodeSession,
        compiled: CompiledEnvironment,
        endpoints: Mapping[str, Sequence[ModelEndpoint]],
    ) -> None:
        self.calls: list[dict[str, Any]] = []
        self._recorded = {_place(**row): row["content"] for row in session.recordings}
        self._models = {
            role: [connect(endpoint_spec(endpoint), concurrency=_AT_ONCE) for endpoint in rows]
            for role, rows in endpoints.items()
        }
        self._client = ModelClient(
            models={}, roles=self._models, cache=None, budget=Budget(), seed_of=lambda _: session.seed
        )
        self._compiled = compiled

    @property
    def seats(self) -> dict[str, int]:
        """How many models fill each role that the environment asks: one at least, be it a recorded one."""
        seats = {role: max(1, len(self._models.get(role, ()))) for role in self._compiled.roles}
        judges = {rule.spec.name: rule.scorer.roles(rule.spec.options) for rule in self._compiled.rules}
        for purpose, _, rule, seat in self._recorded:
            for role in judges.get(rule, ()) if purpose == "rubric" else ():
                seats[role] = max(seats[role], seat + 1)
        return seats

    async def __call__(
        self,
        key: CallKey,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        parameters: Mapping[str, JSON] | None = None,
    ) -> Reply:
        content = self._recorded.get(_place(key.purpose, key.turn, key.rule, key.seat))
        if content is not None:
            reply = Reply(message={"role": "assistant", "content": content})
        elif self._models.get(key.role):
            reply = await self._ask(key, messages, tools, parameters)
        else:
            raise MissingRecording(key)
        self.calls.append({"key": asdict(key), "message": reply.message})
        return reply

    async def _ask(
        self,
        key: CallKey,
        messages: Sequence[Message],
        tools: Sequence[Tool],
        parameters: Mapping[str, JSON] | None,
    ) -> Reply:
        try:
            async with asyncio.timeout(_STEP_SECONDS):
                return await self._client.call(key, messages, tools, parameters)
        except TimeoutError:
            raise ModelError("timeout", f"The role model did not answer within {_STEP_SECONDS:g} s.") from None

    async def aclose(self) -> None:
        await close_all(connection for connections in self._models.values() for connection in connections)


def _place(purpose: str, turn: int, rule: str, seat: int, **_: Any) -> tuple[str, int, str, int]:
    """What tells the recorded calls of one episode apart; a judge that is asked again says the same again."""
    return (purpose, turn, "", 0) if purpose == "user" else (purpose, 0, rule, seat)
