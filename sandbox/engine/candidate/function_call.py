"""The role that calls a function of a bundle: JSON in, JSON out."""

import importlib.util
import json
import sys
from typing import Any

from ..protocol import codec, frames
from ..protocol.channel import Channel
from ..protocol.error_reports import describe
from .definitions import EntryPointMissing, find, report_of_definition


def run(job: dict[str, Any], channel: Channel) -> None:
    """Import `module` from the working directory and call `function`.

    Reports {"value": JSON text}, or missing, syntax, raised, not_json or large.
    """
    channel.send(frames.REPORT, codec.dumps(_call(job)))


def _call(job: dict[str, Any]) -> dict[str, Any]:
    path = job["module"]
    filename = f"<{path}>"
    try:
        target = find(_load(path), job["function"])
    except EntryPointMissing as error:
        return report_of_definition(error)
    except BaseException as error:
        return {"syntax" if isinstance(error, SyntaxError) else "raised": describe(error, path)}
    try:
        value = target(*job["args"], **job["kwargs"])
    except BaseException as error:
        return {"raised": describe(error, path)}
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        return {"not_json": describe(error, filename)["message"]}
    except BaseException as error:
        return {"raised": describe(error, path)}
    size = len(text.encode())
    return {"value": text} if size <= job["max_result"] else {"large": size}


def _load(path: str) -> Any:
    name = path.removesuffix(".py").replace("/", ".")
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
