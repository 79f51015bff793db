"""The candidate's end of a judged run: answers what the judge asks about the code under test.

Requests are numbered; each has one answer of the same number. Objects that cannot cross stay here and are known to the
judge by a handle. In between, the code may call back a function that the judge passed in.
"""

import builtins
import operator
import types
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from . import codec, frames, replies
from .channel import Channel
from .describing import describe, encode_safely
from .source import EntryPointMissing, find
from .values import attributes_of, rebuild


class Service:
    """Owns the handles of one run."""

    def __init__(self, namespace: types.ModuleType, channel: Channel, shared: list[str], max_result: int) -> None:
        self._namespace = namespace
        self._channel = channel
        self._shared = {name: vars(namespace).get(name) for name in shared}
        self._max_result = max_result
        self._objects: dict[int, Any] = {}
        self._handles: dict[int, int] = {}  # id(object) -> handle; the object is kept alive above
        self._callbacks: dict[int, Any] = {}

    def serve(self) -> None:
        """Answer until the engine closes the pipe."""
        while True:
            kind, payload = self._channel.receive()
            if kind == frames.PEER:
                self.answer(codec.loads(payload))

    def answer(self, request: dict[str, Any]) -> None:
        """Carry out one request, and send what came of it."""
        try:
            answer = _OPERATIONS[request["op"]](self, request)
        except BaseException as error:
            answer = {"error": self._describe(error)}
        answer["n"] = request["n"]
        data = codec.dumps(answer)
        if len(data) > self._max_result:
            data = codec.dumps({"n": request["n"], "large": len(data)})
        self._channel.send(frames.PEER, data)

    def _describe(self, error: BaseException) -> dict[str, Any]:
        args = encode_safely(error.args) if type(error.args) is tuple else {"t": []}
        return describe(error) | {"args": args, "bases": _class_name(error)}

    # ---- values -----------------------------------------------------------------------------------------------------

    def export(self, value: Any) -> dict[str, Any] | None:
        """What stands for an object that is not a built-in value."""
        if isinstance(value, _Callback):
            return {"k": value.number}
        if isinstance(value, codec.Opaque):
            return {"o": value.name}
        shared = attributes_of(value, self._shared)
        if shared is not None:
            name, attributes = shared
            return {"v": [name, codec.encode(attributes, self.export)]}
        return self._as_handle(value)

    def _as_handle(self, value: Any) -> dict[str, Any]:
        kind: Any = type(value)
        return {"h": [self._handle(value), _kind(value), _class_name(value), specials_of(kind)]}

    def restore(self, tag: str, content: Any) -> Any:
        """The object that the judge means."""
        if tag == "r":
            return self._objects[content]
        if tag == "k":
            return self._callbacks.setdefault(content, _Callback(self, content))
        if tag == "g":
            return getattr(builtins, content)
        if tag == "v":
            return rebuild(content, self._shared, lambda data: codec.decode(data, self.restore))
        raise codec.CodecError(f"unknown tag {tag!r}")

    def _handle(self, value: Any) -> int:
        handle = self._handles.get(id(value))
        if handle is None:
            handle = self._handles[id(value)] = len(self._objects) + 1
            self._objects[handle] = value
        return handle

    def _encode(self, value: Any) -> dict[str, Any]:
        return {"value": encode_safely(value, self.export)}

    def _target(self, request: dict[str, Any]) -> Any:
        return self._objects[request["on"]]

    # ---- operations -------------------------------------------------------------------------------------------------

    def get(self, request: dict[str, Any]) -> dict[str, Any]:
        """A name of the code, or of a module of its project."""
        try:
            return self._encode(find(self._namespace, request["name"]))
        except EntryPointMissing as error:
            return {"missing": str(error)}

    def call(self, request: dict[str, Any]) -> dict[str, Any]:
        """Call; the answer also has the arguments that the call changed."""
        args = [codec.decode(arg, self.restore) for arg in request["args"]]
        kwargs = {name: codec.decode(arg, self.restore) for name, arg in request["kwargs"].items()}
        result = self._target(request)(*args, **kwargs)
        answer = self._encode(result)
        changed = {}
        for i, before in enumerate(request["args"]):
            if result is args[i] and isinstance(before, dict | list):
                answer = {"same": i}
            if replies.may_change(before):
                now = encode_safely(args[i], self.export)
                if now != before:
                    changed[i] = now
        return answer | ({"changed": changed} if changed else {})

    def apply(self, request: dict[str, Any]) -> dict[str, Any]:
        """One of the plain functions on an object, such as len or getattr."""
        args = [codec.decode(arg, self.restore) for arg in request["args"]]
        name = request["name"]
        try:
            result = _FUNCTIONS[name](self._target(request), *args)
        except StopIteration:
            if name == "next":
                return {"stop": True}
            raise
        if name == "iter":  # an iterator is used where it is, also one that would cross as a built-in value
            return {"value": self._as_handle(result)}
        return self._encode(result)

    def call_back(self, number: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Have the judge call one of its functions."""
        request = {
            "callback": number,
            "args": [encode_safely(arg, self.export) for arg in args],
            "kwargs": {name: encode_safely(arg, self.export) for name, arg in kwargs.items()},
        }
        self._channel.send(frames.PEER, codec.dumps(request))
        while True:
            kind, payload = self._channel.receive()
            reply = codec.loads(payload) if kind == frames.PEER else {}
            if "op" in reply:
                self.answer(reply)  # the judge's function uses the code in turn
            elif "raised" in reply:
                raise getattr(builtins, reply["raised"], Exception)(reply["message"])
            elif "returned" in reply:
                return codec.decode(reply["returned"], self.restore)


class _Callback:
    """A function of the judge."""

    def __init__(self, service: Service, number: int) -> None:
        self._service = service
        self.number = number

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._service.call_back(self.number, args, kwargs)


_OPERATIONS: dict[str, Callable[[Service, dict[str, Any]], dict[str, Any]]] = {
    "get": Service.get,
    "call": Service.call,
    "apply": Service.apply,
}


def _run_coroutine(awaitable: Any) -> Any:
    import asyncio  # heavy, and few tests need it

    async def wait() -> Any:
        return await awaitable

    return asyncio.run(wait())


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: getattr(operator, name)
    for name in (
        *("eq", "ne", "lt", "le", "gt", "ge", "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"),
        *("and_", "or_", "xor", "neg", "pos", "abs", "invert", "getitem", "setitem", "delitem"),
    )
}
_FUNCTIONS |= {
    "getattr": getattr,
    "setattr": setattr,
    "delattr": delattr,
    "len": len,
    "str": str,
    "repr": repr,
    "int": int,
    "float": float,
    "bool": bool,
    "iter": iter,
    "next": next,
    "enter": lambda manager: manager.__enter__(),
    "exit": lambda manager: manager.__exit__(None, None, None),
    "await": _run_coroutine,
    "isinstance": isinstance,
    "radd": lambda right, left: left + right,
    "rsub": lambda right, left: left - right,
    "rmul": lambda right, left: left * right,
}


def _kind(value: Any) -> str:
    if isinstance(value, type):
        return "exception" if issubclass(value, BaseException) else "class"
    if isinstance(value, types.ModuleType):
        return "module"
    if isinstance(value, types.CoroutineType):
        return "coroutine"
    return "function" if callable(value) else "object"


@lru_cache(maxsize=256)
def specials_of(kind: Any) -> list[str]:
    """The special methods that a class has beyond those of every object, without their underscores."""
    found = {name for base in kind.__mro__ if base is not object for name in vars(base)}
    return sorted(name[2:-2] for name in found if name[:2] == "__" == name[-2:] and len(name) > 4)


def _class_name(value: Any) -> list[str]:
    """The names of a class and its bases, or of an object's class and its bases."""
    kind = value if isinstance(value, type) else type(value)
    return [str(base.__name__)[:80] for base in kind.__mro__][: replies.MAX_NAMES]
