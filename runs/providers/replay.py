"""The `replay` provider: answers recorded elsewhere or earlier, looked up by what the call is for."""

import asyncio
import hashlib
from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from hub.common import wording
from hub.common.documents import validation
from hub.common.problems import Problem
from hub.protocols.calls import CallKey, ModelError, Purpose, Reply, Usage
from hub.protocols.messages import JSON, Message
from runs.config_source import ConfigSource
from runs.providers.base import ModelRequest, ModelSpec, Provider, ProviderContext, ProviderOptions

_MAX_WRONG = 5  # lines of a recording that are named
_Place = tuple[str, ...]
_REMEDY = "Add it to the file and resume the run, or play fewer cases or attempts."


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
    messages: list[dict[str, object]] | None = None
    finish_reason: str = "stop"
    usage: RecordedUsage = Field(default_factory=RecordedUsage)

    @field_validator("messages", mode="before")
    @classmethod
    def _texts(cls, value: object) -> object:
        """A turn that only says something may be its text, as in a bundle's gold answers."""
        turns = value if isinstance(value, list) else []
        return [{"content": turn} if isinstance(turn, str) else turn for turn in turns] or value

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


class RecordingError(ValueError):
    """A file of recordings that cannot be used. `problems` names some of its wrong lines, and counts the others."""

    def __init__(self, problems: list[str], wrong: int) -> None:
        more = wrong - len(problems)
        self.problems = [*problems, *([f"and {wording.counted(more, 'more wrong line')}"] if more else [])]
        super().__init__("; ".join(self.problems))


def _line_mistakes(error: ValidationError) -> str:
    said = []
    for item in error.errors():
        if item["type"] == "json_invalid":
            return 'not a line of JSON such as {"case": "c", "content": "..."}'
        at = ".".join(str(part) for part in item["loc"])
        said.append(f"{at + ': ' if at else ''}{validation.describe_error(item, Recorded)}")
    return "; ".join(said)


class Recording:
    """A .jsonl file indexed by call: offsets are kept, lines are read when asked for."""

    def __init__(self, path: Path) -> None:
        """Raises RecordingError for lines that are no recorded answers or answer a call again, and for none at all."""
        self.path = path
        self._offsets: dict[_Place, int] = {}
        self._problems: list[str] = []
        self._wrong = 0
        hasher = hashlib.sha256()
        offset = 0
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                hasher.update(line)
                if line.strip():
                    self._index(line, number, offset)
                offset += len(line)
        if not self._offsets and not self._wrong:
            self._refuse(f"{path} holds no recorded answer")
        if self._wrong:
            raise RecordingError(self._problems, self._wrong)
        self.digest = hasher.hexdigest()

    def _index(self, line: bytes, number: int, offset: int) -> None:
        where = f"{self.path}:{number}"
        try:
            recorded = Recorded.model_validate_json(line)
        except ValidationError as error:
            self._refuse(f"{where}: {_line_mistakes(error)}")
            return
        place = _place(recorded.purpose, recorded.environment, recorded.case, recorded)
        if place in self._offsets:
            self._refuse(f"{where}: a second recording of {' '.join(filter(None, place))}")
        self._offsets[place] = offset

    def _refuse(self, problem: str) -> None:
        self._wrong += 1
        if len(self._problems) < _MAX_WRONG:
            self._problems.append(problem)

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
    """The index of *path*, made once for each state of the file. Raises RecordingError and OSError."""
    stat = path.stat()
    return _recording(str(path), stat.st_size, stat.st_mtime_ns)


class ReplayOptions(ProviderOptions):
    """`responses`: a .jsonl file of answers, relative to the config. `recorded_from`: whose answers they are."""

    responses: str
    recorded_from: str = ""


class Replay(Provider[ReplayOptions]):
    type = "replay"
    summary = "Answers recorded earlier, from a .jsonl file; needs no key and no network."
    Options = ReplayOptions
    live = False

    def __init__(self, spec: ModelSpec, options: ReplayOptions, context: ProviderContext) -> None:
        super().__init__(spec, options, context)
        self._recording = open_recording(Path(options.responses))

    @classmethod
    def problems(cls, options: ReplayOptions, source: ConfigSource) -> Iterable[Problem]:
        if source.base_dir is None:
            yield Problem("recordings are files; they may be named on the command line only", "responses")
            return
        if "responses" not in options.model_fields_set:
            return
        if "://" in options.responses:
            yield Problem(f"recordings are files; download {options.responses} first", "responses")
            return
        path = (source.base_dir / options.responses).resolve()
        try:
            open_recording(path)
        except FileNotFoundError:
            near = get_close_matches(path.stem, [p.stem for p in path.parent.glob("*.jsonl")], n=1)
            advice = f"; did you mean {str(Path(options.responses).with_name(near[0] + '.jsonl'))!r}?" if near else ""
            yield Problem(f"there is no file {str(path)!r}{advice}", "responses")
        except IsADirectoryError:
            yield Problem(f"{str(path)!r} is a folder; name a .jsonl file in it", "responses")
        except RecordingError as error:
            yield from (Problem(text, "responses") for text in error.problems)
        except OSError as error:
            yield Problem(f"{str(path)!r} cannot be read: {error.strerror}", "responses")

    @classmethod
    def resolved(cls, options: ReplayOptions, source: ConfigSource) -> dict[str, JSON]:
        return {"responses": str(((source.base_dir or Path()) / options.responses).resolve())}

    @classmethod
    def identity(cls, options: ReplayOptions) -> dict[str, JSON]:
        return {"sha256": open_recording(Path(options.responses)).digest}

    async def complete(self, request: ModelRequest) -> Reply:
        key = request.key
        recorded = self._recording.find(key, self.context.only_environment)
        if recorded is None:
            raise ModelError("no_recording", f"{self._recording.path.name} has no {_wanted(key)}. {_REMEDY}")
        # Hundreds of replies without one real suspension would starve the writer and the progress line.
        await asyncio.sleep(0)
        if recorded.messages is None:
            message: Message = {"role": "assistant", "content": recorded.content}
        elif key.turn < len(recorded.messages):
            message = cast(Message, {"role": "assistant", **recorded.messages[key.turn]})
        else:
            has = wording.counted(len(recorded.messages), "turn")
            raise ModelError(
                "no_recording",
                f"{self._recording.path.name} has {has} for case {key.case!r} of {key.environment}, attempt "
                f"{key.attempt}; turn {key.turn + 1} was asked for. {_REMEDY}",
            )
        return Reply(
            message=message,
            finish_reason="tool_calls" if message.get("tool_calls") else recorded.finish_reason,
            usage=Usage(**recorded.usage.model_dump()),
        )


def _wanted(key: CallKey) -> str:
    """The line that is missing, in words."""
    case = f"case {key.case!r} of {key.environment}"
    if key.purpose == "pair":
        return f"judgement of {key.first} and {key.second} on {case}"
    if key.purpose == "user":
        return f"turn {key.turn} of the user for {key.model} on {case}, attempt {key.attempt}"
    if key.purpose == "rubric":
        return f"marks of rule {key.rule!r} (seat {key.seat}) for {key.model} on {case}, attempt {key.attempt}"
    return f"answer for {case}, attempt {key.attempt}"


def recorded_row(key: CallKey, **answer: JSON) -> dict[str, JSON]:
    """One recorded answer: the parts of *key* that matter for its purpose, then the answer."""
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
    return {**parts, **answer}
