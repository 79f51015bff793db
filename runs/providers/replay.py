"""The `replay` provider: answers recorded elsewhere or earlier, looked up by what the call is for."""

import asyncio
import hashlib
import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from hub.ports import JSON, AskError, CallKey, Message, Purpose, Reply, Usage
from runs.providers.base import ModelSpec, Provider, ProviderContext, ProviderOptions, Request

if TYPE_CHECKING:
    from runs.config import Source

_Place = tuple[str, ...]


class RecordedUsage(BaseModel):
    model_config = ConfigDict(extra="ignore")
    input: int = 0
    output: int = 0
    cached_input: int = 0
    reasoning: int = 0


class Recorded(BaseModel):
    """One line of a recording. `content` answers one call, `messages` holds the assistant's turns of an episode."""

    model_config = ConfigDict(extra="ignore")
    purpose: Purpose = "answer"
    environment: str = ""
    case: str
    attempt: int = Field(default=1, ge=1)
    model: str = ""
    turn: int = 0
    seat: int = 0
    rule: str = ""
    first: str = ""
    second: str = ""
    content: str | None = None
    messages: list[dict[str, Any]] | None = None
    finish_reason: str = "stop"
    usage: RecordedUsage = Field(default_factory=RecordedUsage)

    @model_validator(mode="after")
    def _answer(self) -> "Recorded":
        if (self.content is None) == (self.messages is None):
            raise ValueError("give either `content` or `messages`")
        if self.messages is not None and self.purpose != "answer":
            raise ValueError("`messages` is for purpose answer; every other call has one `content`")
        return self


def _place(purpose: str, environment: str, case: str, item: Recorded | CallKey) -> _Place:
    """The parts of a call that tell recordings of one purpose apart."""
    if purpose == "pair":
        return (purpose, environment, case, item.first, item.second)
    if purpose == "rubric":
        return (purpose, environment, case, str(item.attempt), item.model, item.rule, str(item.seat))
    if purpose == "user":
        return (purpose, environment, case, str(item.attempt), item.model, str(item.turn))
    return (purpose, environment, case, str(item.attempt))


class Recording:
    """A .jsonl file indexed by call: offsets are kept, lines are read when asked for."""

    def __init__(self, path: Path) -> None:
        """Raises ValueError, naming the line, for a line that is not a recorded answer or answers a call again."""
        self.path = path
        self._offsets: dict[_Place, int] = {}
        hasher = hashlib.sha256()
        offset = 0
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                hasher.update(line)
                if line.strip():
                    recorded = self._parse(line, number)
                    place = _place(recorded.purpose, recorded.environment, recorded.case, recorded)
                    if place in self._offsets:
                        raise ValueError(f"{path}:{number}: a second recording of {' '.join(filter(None, place))}")
                    self._offsets[place] = offset
                offset += len(line)
        self.digest = hasher.hexdigest()

    def _parse(self, line: bytes, number: int) -> Recorded:
        try:
            return Recorded.model_validate_json(line)
        except ValidationError as error:
            first = error.errors()[0]
            at = ".".join(str(part) for part in first["loc"])
            raise ValueError(f"{self.path}:{number}: {at + ': ' if at else ''}{first['msg']}") from None

    def find(self, key: CallKey, only_environment: str) -> Recorded | None:
        """The recording for *key*; one that names no environment counts for the run's only one."""
        names = [key.environment, ""] if key.environment == only_environment else [key.environment]
        for environment in names:
            offset = self._offsets.get(_place(key.purpose, environment, key.case, key))
            if offset is not None:
                with self.path.open("rb") as file:
                    file.seek(offset)
                    return Recorded.model_validate_json(file.readline())
        return None


@cache
def _recording(path: str, size: int, modified_ns: int) -> Recording:
    return Recording(Path(path))


def open_recording(path: Path) -> Recording:
    """The index of *path*, made once for each state of the file. Raises ValueError and OSError."""
    stat = path.stat()
    return _recording(str(path), stat.st_size, stat.st_mtime_ns)


class ReplayOptions(ProviderOptions):
    """`responses`: a .jsonl file of answers, relative to the config. `recorded_from`: whose answers they are."""

    responses: str
    recorded_from: str = ""


class Replay(Provider):
    type = "replay"
    summary = "Answers recorded earlier, from a .jsonl file; needs no key and no network."
    Options = ReplayOptions
    live = False

    def __init__(self, spec: ModelSpec, options: ReplayOptions, context: ProviderContext) -> None:
        super().__init__(spec, options, context)
        self._recording = open_recording(Path(options.responses))

    @classmethod
    def problems(cls, options: ReplayOptions, source: "Source") -> Iterable[tuple[str, str]]:
        if source.base_dir is None:
            yield "responses", "recordings are files; they may be named on the command line only"
            return
        path = (source.base_dir / options.responses).resolve()
        try:
            open_recording(path)
        except FileNotFoundError:
            yield "responses", f"no file {options.responses!r} beside the config ({path})"
        except (ValueError, OSError) as error:
            yield "responses", str(error)

    @classmethod
    def resolved(cls, options: ReplayOptions, source: "Source") -> dict[str, JSON]:
        return {"responses": str(((source.base_dir or Path()) / options.responses).resolve())}

    @classmethod
    def identity(cls, options: ReplayOptions) -> dict[str, JSON]:
        return {"sha256": open_recording(Path(options.responses)).digest}

    async def complete(self, request: Request) -> Reply:
        key = request.key
        recorded = self._recording.find(key, self.context.only_environment)
        if recorded is None:
            what = f"{key.purpose} for case {key.case!r} of {key.environment}, attempt {key.attempt}"
            raise AskError("no_recording", f"{self._recording.path.name} has no {what}.")
        # Hundreds of replies without one real suspension would starve the writer and the progress line.
        await asyncio.sleep(0)
        if recorded.messages is None:
            message: Message = {"role": "assistant", "content": recorded.content}
        elif key.turn < len(recorded.messages):
            message = {"role": "assistant", **recorded.messages[key.turn]}
        else:
            raise AskError(
                "no_recording",
                f"{self._recording.path.name} has {len(recorded.messages)} turns for case {key.case!r} of "
                f"{key.environment}; turn {key.turn + 1} was asked for.",
            )
        return Reply(
            message=message,
            finish_reason="tool_calls" if message.get("tool_calls") else recorded.finish_reason,
            usage=Usage(**recorded.usage.model_dump()),
        )


def recorded_line(key: CallKey, **answer: JSON) -> str:
    """One line of a recording, for exports: the parts of *key* that matter for its purpose, then the answer."""
    parts: dict[str, JSON] = {"purpose": key.purpose, "environment": key.environment, "case": key.case}
    if key.purpose == "pair":
        parts |= {"first": key.first, "second": key.second}
    else:
        parts["attempt"] = key.attempt
        if key.purpose != "answer":
            parts["model"] = key.model
        if key.purpose == "user":
            parts["turn"] = key.turn
        if key.purpose == "rubric":
            parts |= {"rule": key.rule, "seat": key.seat}
    return json.dumps({**parts, **answer}, ensure_ascii=False)
