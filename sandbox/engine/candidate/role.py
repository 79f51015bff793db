"""The role that holds the code under test: defines it, answers calls, knows no test and no expected value.

Nothing here is trusted once the code has run: it may have replaced any of it. It can make answers wrong, never right.
"""

from typing import Any

from ..protocol import codec, frames
from ..protocol.channel import LINK, Channel
from ..protocol.error_reports import describe, encode_safely
from .definitions import define, find, report_of_definition
from .service import Service


def run(job: dict[str, Any], channel: Channel) -> None:
    """Define the code, then make the calls of the job (literal tests) or answer those of a judge.

    Reports {"defined": true} or the reason why not, then for literal tests {"n", "value"} or {"n", "error"} each.
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


def answer(number: int, target: Any, args: Any, kwargs: Any, max_result: int) -> bytes:
    """Make one call of a literal test; its result or exception as bytes."""
    try:
        value = target(*map(codec.decode, args), **{name: codec.decode(v) for name, v in kwargs.items()})
        data = codec.dumps({"n": number, "value": encode_safely(value)})
    except BaseException as error:
        return codec.dumps({"n": number, "error": describe(error)})
    return data if len(data) <= max_result else codec.dumps({"n": number, "large": len(data)})
