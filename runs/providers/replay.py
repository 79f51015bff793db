"""Provider `replay`: replies from recordings, found by the purpose, case and attempt of a call."""

import asyncio
import codecs
import hashlib
from collections.abc import Callable, Iterable
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

_NO_MODEL = "`model` is missing: the model under test in whose episode the reply was given"
_MAX_LISTED = 3  # cases in a message
_MAX_PROBLEMS = 5  # invalid lines of a file that are reported one by one
_RecordingKey = tuple[str, ...]
# Keys that identify the replies of a purpose, and that lines of other purposes do not have.
_PURPOSE_OF: dict[str, Purpose] = {"rule": "rubric", "first": "pair", "second": "pair"}
_REMEDY = "Add it to the file and resume the run, or select fewer cases or attempts."


class RecordedUsage(BaseModel):
    model_config = ConfigDict(extra="ignore")
    input: int = 0
    output: int = 0
    cached_input: int = 0
    reasoning: int = 0


class Recorded(BaseModel):
    """Line of a file of recordings.

    `content` is the reply to one call. `messages` are the messages of the model in one episode, in order.
    """

    model_config = ConfigDict(extra="ignore")
    purpose: Purpose = "answer"
    environment: str = ""
    case: str
    attempt: int = Field(default=1, ge=1)
    model: str = ""
    turn: int = Field(default=0, ge=0)
    seat: int = Field(default=0, ge=0)
    rule: str = ""
    first: str = ""
    second: str = ""
    content: str | None = None
    messages: list[dict[str, object]] | None = None
    finish_reason: str = "stop"
    usage: RecordedUsage = Field(default_factory=RecordedUsage)

    @field_validator("messages", mode="before")
    @classmethod
    def _expand_texts(cls, value: object) -> object:
        """Replace texts by messages with that content. A bundle's gold answers allow texts, too."""
        turns = value if isinstance(value, list) else []
        return [{"content": turn} if isinstance(turn, str) else turn for turn in turns] or value

    @model_validator(mode="after")
    def _check_reply(self) -> "Recorded":
        if (self.content is None) == (self.messages is None):
            raise ValueError("give either `content` or `messages`")
        if self.messages is not None and self.purpose != "answer":
            raise ValueError("`messages` requires purpose answer; use `content` for all other purposes")
        return self

    @model_validator(mode="after")
    def _check_purpose(self) -> "Recorded":
        """Raise ValueError if no call could get this reply: a key of its purpose is missing, or it has another's."""
        given = {"rule": self.rule, "first": self.first, "second": self.second}
        for key, purpose in _PURPOSE_OF.items():
            if self.purpose == purpose and not given[key]:
                raise ValueError(f"`{key}` is missing, which identifies a reply of the purpose {purpose}")
            if self.purpose != purpose and given[key]:
                raise ValueError(
                    f"only a line of the purpose {purpose} has `{key}`, and this one has the purpose {self.purpose}"
                )
        return self


def _recording_key(purpose: str, environment: str, case: str, item: Recorded | CallKey) -> _RecordingKey:
    """Return the parts of a call that identify its recording."""
    if purpose == "pair":
        return (purpose, environment, case, item.first, item.second)
    if purpose == "rubric":
        return (purpose, environment, case, str(item.attempt), item.model, item.rule, str(item.seat))
    if purpose == "user":
        return (purpose, environment, case, str(item.attempt), item.model, str(item.turn))
    return (purpose, environment, case, str(item.attempt))


class RecordingError(ValueError):
    """A file of recordings is invalid. `problems` describes its first invalid lines and counts the others."""

    def __init__(self, problems: list[str], invalid: int) -> None:
        more = invalid - len(problems)
        self.problems = [*problems, *([f"and {wording.counted(more, 'more invalid line')}"] if more else [])]
        super().__init__("; ".join(self.problems))


def _describe_problems(error: ValidationError) -> str:
    """Return one text about all problems of a line."""
    problems = []
    for item in error.errors():
        if item["type"] == "json_invalid":
            why = str(item["ctx"]["error"]).replace(" at line 1 column", " at column")
            return f'not a line of JSON such as {{"case": "c", "content": "..."}} ({why})'
        field = ".".join(str(part) for part in item["loc"])
        problems.append(f"{field + ': ' if field else ''}{validation.describe_error(item, Recorded)}")
    return "; ".join(problems)


class Recording:
    """Index of a .jsonl file of recordings. It keeps the offset of each line and reads a line when it is needed."""

    def __init__(self, path: Path) -> None:
        """Index the file. Raises RecordingError if it is empty, has an invalid line, or has two lines for one call."""
        self.path = path
        self._offsets: dict[_RecordingKey, int] = {}
        self._problems: list[str] = []
        self._invalid_lines = 0
        hasher = hashlib.sha256()
        offset = 0
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                hasher.update(line)
                start = len(codecs.BOM_UTF8) if number == 1 and line.startswith(codecs.BOM_UTF8) else 0
                if line[start:].strip():
                    self._index(line[start:], number, offset + start)
                offset += len(line)
        if not self._offsets and not self._invalid_lines:
            self._add_problem(f"{path.name} has no recorded answer")
        if self._invalid_lines:
            raise RecordingError(self._problems, self._invalid_lines)
        self.digest = hasher.hexdigest()

    def _index(self, line: bytes, number: int, offset: int) -> None:
        where = f"{self.path.name}:{number}"
        try:
            recorded = Recorded.model_validate_json(line)
        except ValidationError as error:
            self._add_problem(f"{where}: {_describe_problems(error)}")
            return
        if recorded.purpose in ("user", "rubric") and not recorded.model:
            self._add_problem(f"{where}: {_NO_MODEL}")
            return
        key = _recording_key(recorded.purpose, recorded.environment, recorded.case, recorded)
        if key in self._offsets:
            self._add_problem(f"{where}: a second recording of {' '.join(filter(None, key))}")
        self._offsets[key] = offset

    def _add_problem(self, problem: str) -> None:
        self._invalid_lines += 1
        if len(self._problems) < _MAX_PROBLEMS:
            self._problems.append(problem)

    def cases(self, environment: str, only_environment: str) -> set[str]:
        """Return the ids of the cases of *environment* that have recordings."""
        names = _names_in_recordings(environment, only_environment)
        return {case for _, name, case, *_ in self._offsets if name in names}

    def find(self, key: CallKey, only_environment: str) -> Recorded | None:
        """Return the recording for *key*, or None."""
        for environment in _names_in_recordings(key.environment, only_environment):
            offset = self._offsets.get(_recording_key(key.purpose, environment, key.case, key))
            if offset is not None:
                with self.path.open("rb") as file:
                    file.seek(offset)
                    return Recorded.model_validate_json(file.readline())
        return None


def _names_in_recordings(environment: str, only_environment: str) -> list[str]:
    """Return the names under which recordings for *environment* are stored.

    A recording without an environment belongs to *only_environment*, the environment of a run that has only one.
    """
    return [environment, ""] if environment == only_environment else [environment]


@cache
def _recording(path: str, size: int, modified_ns: int) -> Recording:
    return Recording(Path(path))


def open_recording(path: Path) -> Recording:
    """Return the index of the file at *path*, cached until the file changes. Raises RecordingError and OSError."""
    stat = path.stat()
    return _recording(str(path), stat.st_size, stat.st_mtime_ns)


class ReplayOptions(ProviderOptions):
    """Options of the provider.

    responses: path of a .jsonl file, relative to the config. recorded_from: the model that gave the answers.
    """

    responses: str
    recorded_from: str = ""


class Replay(Provider[ReplayOptions]):
    type = "replay"
    summary = "Answers recorded earlier, read from a .jsonl file. Needs no key and no network."
    Options = ReplayOptions
    live = False

    def __init__(self, spec: ModelSpec, options: ReplayOptions, context: ProviderContext) -> None:
        super().__init__(spec, options, context)
        self._recording = open_recording(Path(options.responses))

    @classmethod
    def problems(cls, options: ReplayOptions, source: ConfigSource) -> Iterable[Problem]:
        if source.base_dir is None:
            yield Problem("recordings are files, which only configs on the command line can use", "responses")
            return
        if "responses" not in options.model_fields_set:
            return
        if "://" in options.responses:
            yield Problem(f"must be a path; download {options.responses} first", "responses")
            return
        given = Path(options.responses)
        path = shown = (source.base_dir / given).resolve()
        if given.is_absolute():  # as in the config of a run: whoever sees the run can read why it failed
            given = shown = Path(path.name)
        try:
            open_recording(path)
        except FileNotFoundError:
            similar = wording.find_similar(path.stem, [p.stem for p in path.parent.glob("*.jsonl")])
            advice = ""
            if similar:
                advice = f"; did you mean {str(given.with_name(f'{similar}.jsonl'))!r}?"
            yield Problem(f"there is no file {str(shown)!r}{advice}", "responses")
        except IsADirectoryError:
            yield Problem(f"{str(shown)!r} is a folder; give the path of a .jsonl file in it", "responses")
        except RecordingError as error:
            yield from (Problem(text, "responses") for text in error.problems)
        except OSError as error:
            yield Problem(f"{str(shown)!r} cannot be read: {error.strerror}", "responses")

    @classmethod
    def describe_unused(
        cls, options: ReplayOptions, slug: str, case_ids: Callable[[], Iterable[str]], *, alone: bool
    ) -> str:
        recording = open_recording(Path(options.responses))
        recorded = recording.cases(slug, slug if alone else "")
        unused = sorted(recorded.difference(case_ids())) if recorded else []
        if not unused:
            return ""
        return (
            f"{recording.path.name} has answers to {wording.counted(len(unused), 'case')} that {slug} does not have: "
            f"{wording.name_some(map(repr, unused), _MAX_LISTED)}. They are not used. "
            f"Was it recorded with another version of {slug}?"
        )

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
            raise ModelError("no_recording", f"{self._recording.path.name} has no {_describe_call(key)}. {_REMEDY}")
        # Without a suspension here, hundreds of replies in a row would delay the writer and the progress line.
        await asyncio.sleep(0)
        if recorded.messages is None:
            message: Message = {"role": "assistant", "content": recorded.content}
        elif key.turn < len(recorded.messages):
            message = cast(Message, {"role": "assistant", **recorded.messages[key.turn]})
        else:
            turns = wording.counted(len(recorded.messages), "turn")
            raise ModelError(
                "no_recording",
                f"{self._recording.path.name} has {turns} for case {key.case!r} of {key.environment}, attempt "
                f"{key.attempt}; turn {key.turn + 1} is missing. {_REMEDY}",
            )
        return Reply(
            message=message,
            finish_reason="tool_calls" if message.get("tool_calls") else recorded.finish_reason,
            usage=Usage(**recorded.usage.model_dump()),
        )


def _describe_call(key: CallKey) -> str:
    """Describe the recording for the call *key*, for an error message."""
    case = f"case {key.case!r} of {key.environment}"
    if key.purpose == "pair":
        return f"verdict of the pair judge on {key.first} and {key.second} on {case}"
    if key.purpose == "user":
        return f"turn {key.turn} of the user for {key.model} on {case}, attempt {key.attempt}"
    if key.purpose == "rubric":
        return f"marks of rule {key.rule!r} (seat {key.seat}) for {key.model} on {case}, attempt {key.attempt}"
    return f"answer for {case}, attempt {key.attempt}"


def recorded_row(key: CallKey, **answer: JSON) -> dict[str, JSON]:
    """Return a line of a recording: the parts of *key* that identify the call, then *answer*."""
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
