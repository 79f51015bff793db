"""Answers in a bundle: gold answers that must pass, wrong answers that must fail, recorded replies of role models."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from hub.common import wording
from hub.common.problems import Problem
from hub.datasets.disk_index import DiskIndex
from hub.datasets.files import read_file
from hub.datasets.row_types import DatasetError, Opener, Row
from hub.harnesses.steps.program import REFERENCE_CALL
from hub.harnesses.steps.workspace_files import WINDOWS_LINE_ENDS, has_windows_line_ends
from hub.manifest.problems import MANIFEST, BundleError
from hub.manifest.schema import Answers
from hub.protocols.calls import CallKey, ModelError, Reply
from hub.protocols.cases import CaseData
from hub.protocols.messages import JSON, Message, Tool
from hub.templating import templates

CALL_KEYS = {"purpose", "environment", "case", "id", "attempt", "model", "turn", "rule", "seat"}
_MESSAGE_KEYS = {"role", "content", "tool_calls"}
_KINDS = {bool: "true or false", type(None): "null", list: "a list", dict: "an object"}
KEYS = CALL_KEYS | {"content", "messages", "script", "why", "usage", "finish_reason"}
_FORMS = ("content", "messages", "script")
_RECORDING_KEYS = KEYS - {"messages", "script"}
_RECORDED_MODELS = ("gold", "wrong", "empty")


@dataclass(frozen=True, slots=True)
class ReferenceAnswer:
    """Assistant messages of one episode; `why` is the reason why a wrong answer is wrong. `line` is that of a file."""

    messages: list[Message]
    why: str = ""
    line: int | None = None


class ReferenceAnswers:
    """Answers of one file or template, by case. Stored on disk, so that a large file does not use memory."""

    def __init__(self, source: str | Answers | None, key: str, open_file: Opener) -> None:
        """*key* is the manifest's key (`gold`, `wrong`). Raises BundleError with every problem of the file."""
        self._template = source if isinstance(source, Answers) else None
        self._open_file = open_file
        self.key = key
        self._index: DiskIndex | None = None
        if isinstance(source, str):
            self._index = DiskIndex()
            problems = list(self._read(source, open_file))
            if problems:
                self.close()
                raise BundleError(problems)

    def __enter__(self) -> "ReferenceAnswers":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._index is not None:
            self._index.close()

    @property
    def empty(self) -> bool:
        return self._index is None and self._template is None

    def cases(self) -> Iterator[str]:
        """Yield the ids of the cases that the file answers."""
        return (key.partition(":")[2] for key in self._index.keys("0:")) if self._index else iter(())

    def line(self, case: str) -> int | None:
        """Return the line of the first answer of the case with the id *case* in the file."""
        text = self._index.get(f"0:{case}") if self._index else None
        return None if text is None else ReferenceAnswer(*json.loads(text)).line

    def of(self, case: CaseData) -> list[ReferenceAnswer]:
        """Return the answers of *case*, in order. Raises BundleError if a template gives no answer."""
        if self._template is not None:
            try:
                return self._rendered(case)
            except ValueError as error:
                raise BundleError(Problem(file=MANIFEST, path=self.key, message=f"case {case.id!r}: {error}")) from None
        found: list[ReferenceAnswer] = []
        while self._index is not None and (text := self._index.get(f"{len(found)}:{case.id}")) is not None:
            found.append(ReferenceAnswer(*json.loads(text)))
        return found

    def problem(self, case: CaseData) -> str:
        """Return the problem of the answer that a template gives for *case*; "" if it is valid."""
        try:
            self._rendered(case)
        except ValueError as error:
            return str(error)
        return ""

    def _rendered(self, case: CaseData) -> list[ReferenceAnswer]:
        """Render the template for *case*. Raises ValueError."""
        if self._template is None:
            return []
        if self._template.content is not None:
            value = templates.render(self._template.content, case.variables())
            return [ReferenceAnswer([assistant_message(value)])] if value not in (None, "") else []
        if self._template.script is not None:
            path = str(templates.render(self._template.script, case.variables()))
            return [ReferenceAnswer(_script_messages(path, self._open_file))]
        value = templates.render(self._template.messages, case.variables())
        return [ReferenceAnswer(assistant_messages(value))] if value not in (None, "", []) else []

    def _read(self, path: str, open_file: Opener) -> Iterator[Problem]:
        """Index the answers of the file *path*, and yield a problem for each wrong line."""
        assert self._index is not None
        try:
            for line, row in read_file(path, open_file):
                try:
                    case, answer = _answer(row, open_file)
                except ValueError as error:
                    problems = error.problems if isinstance(error, BundleError) else None
                    yield from problems or [Problem(file=path, line=line, message=str(error))]
                    continue
                number = 0
                while self._index.add(f"{number}:{case}", json.dumps([answer.messages, answer.why, line])) is not None:
                    number += 1
        except DatasetError as error:
            yield from error.problems


def _answer(row: Row | DatasetError, open_file: Opener) -> tuple[str, ReferenceAnswer]:
    if isinstance(row, DatasetError):
        raise row
    unknown = sorted(row.keys() - KEYS)
    if unknown:
        raise ValueError(f"unknown key {', '.join(unknown)}; {wording.suggest(unknown[0], sorted(KEYS))}")
    case = row.get("case", row.get("id"))
    if isinstance(case, bool) or not isinstance(case, str | int | float):
        raise ValueError("`case` is missing: the id of the case that this answers.")
    if sum(form in row for form in _FORMS) != 1:
        raise ValueError(
            "give either `content` (one turn), `messages` (the assistant's turns) or `script` (a file of the bundle)."
        )
    if "script" in row:
        messages = _script_messages(str(row["script"]), open_file)
    else:
        messages = [assistant_message(row["content"])] if "content" in row else assistant_messages(row["messages"])
    return str(case), ReferenceAnswer(messages, str(row.get("why") or ""))


def _script_messages(path: str, open_file: Opener) -> list[Message]:
    """Return a call of the tool `bash` with the script at *path* as its command. Raises ValueError."""
    try:
        with open_file(path) as file:
            script = file.read()
        command = script.decode("utf-8")
    except (OSError, KeyError, ValueError, BundleError) as error:
        raise ValueError(f"the script {path!r} cannot be read: {error}") from None
    if has_windows_line_ends(script):
        raise ValueError(f"the script {path!r} {WINDOWS_LINE_ENDS}")
    call = {"name": "bash", "arguments": json.dumps({"command": command})}
    return assistant_messages(
        [{"content": None, "tool_calls": [{"id": REFERENCE_CALL, "type": "function", "function": call}]}, "Done."]
    )


def assistant_messages(value: JSON) -> list[Message]:
    """Return assistant messages from a text, a number, a message, or a list of these. Raises ValueError."""
    found = [assistant_message(item) for item in (value if isinstance(value, list) else [value])]
    if not found:
        raise ValueError("the answer has no messages.")
    return found


def assistant_message(value: JSON) -> Message:
    """Return an assistant message from a text, a number or a message. Raises ValueError."""
    message = value if isinstance(value, dict) and _MESSAGE_KEYS & value.keys() else {"content": _text(value)}
    if message.get("role", "assistant") != "assistant":
        raise ValueError("an answer is a text, or messages of the role assistant.")
    content = message.get("content")
    return cast(Message, {"role": "assistant", **message, "content": None if content is None else _text(content)})


def _text(value: JSON) -> str:
    """Return a text, or a number as JSON. Raises ValueError for other values, whose text would be ambiguous."""
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return json.dumps(value)
    raise ValueError(
        f"an answer is text or a number, and this is {_KINDS[type(value)]}. Write the text that is meant, "
        "for example with the filter `tojson`."
    )


@dataclass(slots=True)
class RecordedCalls:
    """CallModel that replies from the `recordings` of a bundle, for judges and simulated users.

    A row is selected by `purpose`, `case`, and `turn` or `rule` and `seat`. Without `model` it applies to every answer
    of the case; `model: gold`, `wrong` or `empty`, and `attempt`, limit it to these answers. `first_lines` has the line
    of the first recording of each case. `replaced` has the lines whose reply differs from that of an earlier line
    for the same call, with the number of the earlier one; the last reply is used.
    """

    rows: dict[tuple[object, ...], str] = field(default_factory=dict)
    first_lines: dict[str, int] = field(default_factory=dict)
    replaced: dict[int, int] = field(default_factory=dict)

    @classmethod
    def read(cls, path: str, open_file: Opener) -> "RecordedCalls":
        """Read a file of recordings. Raises BundleError with every problem of it."""
        found, problems = cls(), []
        lines: dict[tuple[object, ...], int] = {}
        for line, row in read_file(path, open_file):
            if isinstance(row, DatasetError):
                problems += row.problems
            elif message := _recording_problem(row):
                problems.append(Problem(file=path, line=line, message=message))
            else:
                key, content = _recording_key(row), str(row["content"])
                if found.rows.get(key, content) != content:
                    found.replaced[line] = lines[key]
                found.rows[key] = content
                lines[key] = line
                found.first_lines.setdefault(_recorded_case(row), line)
        if problems:
            raise BundleError(problems)
        return found

    async def __call__(
        self,
        key: CallKey,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        parameters: Mapping[str, JSON] | None = None,
    ) -> Reply:
        call = {
            "purpose": key.purpose,
            "case": key.case,
            "turn": key.turn,
            "rule": key.rule,
            "seat": key.seat,
        }
        attempt = {"attempt": key.attempt}
        for owner in ({"model": key.model, **attempt}, {"model": key.model}, attempt, {}):
            content = self.rows.get(_recording_key({**call, **owner}))
            if content is not None:
                return Reply(message={"role": "assistant", "content": content})
        place = f"case {key.case!r}, " + (f"rule {key.rule!r}" if key.rule else f"turn {key.turn}")
        raise ModelError("no_recording", f"the bundle has no recording of {key.purpose} for {place}.")


def _recording_problem(row: Row) -> str:
    """Return why no call could be given the recording *row*; "" if one could."""
    purpose = row.get("purpose")
    if purpose not in ("user", "rubric") or not isinstance(row.get("content"), str):
        return "a recording has `purpose` user or rubric, `case` and `content`."
    if unknown := sorted(row.keys() - _RECORDING_KEYS):
        return f"unknown key {', '.join(unknown)}; {wording.suggest(unknown[0], sorted(_RECORDING_KEYS))}"
    for key in sorted(CALL_KEYS & row.keys()):
        if isinstance(row[key], dict | list):
            return f"`{key}` of a recording must be text or a number."
    for key, least in (("attempt", 1), ("seat", 0), ("turn", 0)):
        number = row.get(key, least)
        if isinstance(number, bool) or not isinstance(number, int) or number < least:
            return f"`{key}` of a recording must be a whole number from {least} (found {json.dumps(number)})."
    if "model" in row and row["model"] not in _RECORDED_MODELS:
        kinds = ", ".join(_RECORDED_MODELS)
        return f"`model` of a recording is the kind of answer: {kinds} (found {json.dumps(row['model'])})."
    if purpose == "rubric" and not row.get("rule"):
        return "a recording of a judge names the `rule` that asks it."
    return ""


def _recording_key(row: Mapping[str, JSON]) -> tuple[object, ...]:
    purpose = row["purpose"]
    number_or_rule = row.get("turn", 0) if purpose == "user" else row.get("rule", "")
    return purpose, _recorded_case(row), row.get("model", ""), row.get("attempt", 0), number_or_rule, row.get("seat", 0)


def _recorded_case(row: Mapping[str, JSON]) -> str:
    return str(row.get("case", row.get("id", "")))
