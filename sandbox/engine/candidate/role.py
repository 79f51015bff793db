"""The role that runs the code under test: defines it and answers calls, without any test or expected value.

Nothing in this process is trusted once the code has run, since the code may have replaced any of it.
"""

from collections.abc import Mapping
from typing import NotRequired, TypedDict

from ..protocol import codec, frames
from ..protocol.channel import LINK, Channel
from ..protocol.error_reports import describe, encode_safely
from .definitions import as_callable, define, find, report_of_definition
from .service import Service


class CandidateInput(TypedDict):
    """The job of a candidate.

    calls       of literal tests: name, encoded arguments, encoded keyword arguments; None if a judge makes the calls
    required    names that the code must define
    prelude     classes of the prompt
    shared      names of classes of the prompt whose instances are encoded by their attributes
    linked      whether there is a pipe to the judge
    max_result  bytes of an encoded result
    """

    code: str
    calls: list[tuple[str, list[object], dict[str, object]]] | None
    required: list[str]
    prelude: NotRequired[str]
    shared: list[str]
    linked: bool
    max_result: int


def run(job: CandidateInput, channel: Channel) -> None:
    """Define the code, then make the calls of the job (literal tests) or answer those of a judge.

    Reports {"defined": true} or the reason why not, then for each call its number "n" with "value", "error" or "large".
    """
    calls = job["calls"]
    try:
        namespace = define(job["code"], prelude=job.get("prelude", ""))
        names = [name for name, _, _ in calls] if calls is not None else job["required"]
        targets = {name: find(namespace, name) for name in dict.fromkeys(names)}
    except BaseException as error:
        channel.send(frames.REPORT, codec.dumps(report_of_definition(error)))
        return
    channel.send(frames.REPORT, b'{"defined":true}')
    if calls is None:
        Service(namespace, Channel(LINK) if job["linked"] else channel, job["shared"], job["max_result"]).serve()
        return
    for number, (name, args, kwargs) in enumerate(calls, start=1):
        channel.send(frames.REPORT, answer(number, targets[name], args, kwargs, job["max_result"]))


def answer(number: int, target: object, args: list[object], kwargs: Mapping[str, object], max_result: int) -> bytes:
    """Make one call of a literal test, and return its encoded result or exception."""
    try:
        value = as_callable(target)(*map(codec.decode, args), **{name: codec.decode(v) for name, v in kwargs.items()})
        data = codec.dumps({"n": number, "value": encode_safely(value)})
    except BaseException as error:
        return codec.dumps({"n": number, "error": describe(error)})
    return data if len(data) <= max_result else codec.dumps({"n": number, "large": len(data)})
