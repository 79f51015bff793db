"""The role that calls a function of a bundle: JSON in, JSON out."""

import importlib.util
import json
import os
import sys
import types
from typing import TypedDict

from ..protocol import codec, frames
from ..protocol.channel import Channel
from ..protocol.error_reports import describe
from .definitions import DefinitionReport, EntryPointMissing, as_callable, find


class FunctionInput(TypedDict):
    """The job of a call; `max_result`: bytes of its JSON result."""

    module: str
    function: str
    args: list[object]
    kwargs: dict[str, object]
    max_result: int


class FunctionReport(DefinitionReport, total=False):
    """The result of a call as JSON text, or the reason why there is none."""

    value: str
    not_json: str
    large: int


def run(job: FunctionInput, channel: Channel) -> None:
    """Import `module` from the working directory and call `function`.

    Reports {"value": JSON text}, or missing, syntax, raised, not_json or large.
    """
    channel.send(frames.REPORT, codec.dumps(_call(job)))


def _call(job: FunctionInput) -> FunctionReport:
    path = job["module"]
    filename = os.path.abspath(path)  # as in tracebacks: importlib makes the path of a module absolute
    try:
        target = find(_load(path), job["function"])
    except EntryPointMissing as error:
        return {"missing": str(error)}
    except SyntaxError as error:
        return {"syntax": describe(error, filename)}
    except BaseException as error:
        return {"raised": describe(error, filename)}
    try:
        value = as_callable(target)(*job["args"], **job["kwargs"])
    except BaseException as error:
        return {"raised": describe(error, filename)}
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        return {"not_json": describe(error)["message"]}
    except BaseException as error:
        return {"raised": describe(error, filename)}
    size = len(text.encode())
    return {"value": text} if size <= job["max_result"] else {"large": size}


def _load(path: str) -> types.ModuleType:
    name = path.removesuffix(".py").replace("/", ".")
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
