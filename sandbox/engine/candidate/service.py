"""The candidate's end of a judged run: answers what the judge asks about the code under test.

Requests are numbered; each has one answer of the same number. Objects that cannot cross stay here and are known to the
judge by a handle. In between, the code may use functions and objects that the judge passed in.
"""

import builtins
import types
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from ..protocol import codec, frames, replies
from ..protocol.channel import Channel
from ..protocol.error_reports import describe
from ..protocol.graph import Builder, Flattener, is_simple
from ..protocol.operations import FUNCTIONS, specials_in
from ..protocol.values import (
    adds_nothing,
    attributes_of,
    base_of,
    crosses_by_value,
    from_library,
    is_named_tuple,
    known_name,
    rebuild,
)
from .definitions import EntryPointMissing, find
from .judge_objects import Borrowed, BorrowedFunction, borrowed_class

_MAX_CAUSES = 5
_OF_BUILT_INS = ("filename", "filename2", "name", "path")  # which built-in exceptions have beside their arguments


class Service:
    """Owns the handles of one run."""

    def __init__(self, namespace: types.ModuleType, channel: Channel, shared: list[str], max_result: int) -> None:
        self._namespace = namespace
        self._channel = channel
        classes = {name: vars(namespace).get(name) for name in shared}
        self._shared = {name: kind for name, kind in classes.items() if crosses_by_value(kind)}
        self._max_result = max_result
        self._objects: dict[int, Any] = {}
        self._handles: dict[int, int] = {}  # id(object) -> handle; the object is kept alive above
        self._borrowed: dict[int, Any] = {}
        self._exception_classes: list[Any] = []  # those of the tests, the latest first

    def serve(self) -> None:
        """Answer until the engine closes the pipe."""
        while True:
            kind, payload = self._channel.receive()
            if kind == frames.PEER:
                self.answer(codec.loads(payload))

    def answer(self, request: dict[str, Any]) -> None:
        """Carry out one request, and send what came of it."""
        objects: list[Any] = []
        try:
            answer = _OPERATIONS[request["op"]](self, request, objects)
        except BaseException as error:
            answer = {"error": self._describe(error)} | self._changed_before_error(request, objects)
        answer["n"] = request["n"]
        data = codec.dumps(answer)
        if len(data) > self._max_result:
            data = codec.dumps({"n": request["n"], "large": len(data)})
        self._channel.send(frames.PEER, data)

    def _describe(self, error: BaseException, depth: int = 0) -> dict[str, Any]:
        args = error.args if type(error.args) is tuple else ()
        cause = error.__cause__
        return describe(error) | {
            "args": {"t": [self._encoded(arg) for arg in args]},
            "bases": _class_name(error),
            "attributes": {"m": {name: self._encoded(value) for name, value in _attributes(error).items()}},
            "cause": None if cause is None or depth >= _MAX_CAUSES else self._describe(cause, depth + 1),
            "origin": error.__dict__.get("_llm_origin"),
        }

    # ---- values -----------------------------------------------------------------------------------------------------

    def export(self, value: Any) -> dict[str, Any] | None:
        """What stands for an object that is not a built-in value; None for one that is its built-in value only."""
        kind: Any = type(value)
        if issubclass(kind, Borrowed):
            return {"k": value._llm_number}
        if kind is codec.Opaque:
            return {"o": value.name}
        shared = attributes_of(value, self._shared)
        if shared is not None:
            name, attributes = shared
            return {"v": [name, codec.encode(attributes, self.export)]}
        if issubclass(kind, type):
            lent = vars(value).get("_llm_number")
            if lent is not None:
                return {"k": lent}
            known = known_name(value)
            return {"g": known} if known else self._as_handle(value)
        if issubclass(kind, BaseException):
            return {"e": self._describe(value)}
        base = base_of(kind)
        if base:
            if is_named_tuple(value):
                items = [codec.encode(item, self.export) for item in tuple.__iter__(value)]
                return {"n+": [kind.__name__[:80], list(kind._fields), items]}
            if adds_nothing(kind) and not getattr(value, "__dict__", None):
                return None
        return self._as_handle(value, base)

    def _as_handle(self, value: Any, base: str = "") -> dict[str, Any]:
        return {"h": [self._handle(value), _kind(value), _class_name(value), specials_of(value, base), base]}

    def restore(self, tag: str, content: Any) -> Any:
        """The object that the judge means."""
        if tag == "r":
            return self._objects[content]
        if tag == "k":
            number, name, qualified, doc = content
            if number not in self._borrowed:
                made = self._borrowed[number] = BorrowedFunction(self.use, number)
                about = {"__name__": name, "__qualname__": qualified, "__doc__": doc}
                made.__dict__.update({key: text for key, text in about.items() if text is not None})
            return self._borrowed[number]
        if tag == "j":
            number, names, specials = content
            if number not in self._borrowed:
                self._borrowed[number] = borrowed_class(tuple(names), tuple(specials))(self.use, number)
            return self._borrowed[number]
        if tag == "E":
            return self._exception_class(*content)
        if tag == "e":
            kind, args = (codec.decode(part, self.restore) for part in content)
            return kind(*args)
        if tag == "g":
            return from_library(content)
        if tag == "z":
            nodes, root = content
            builder = Builder(self.restore, self._shared)
            builder.add(nodes)
            return builder.child(root)
        if tag == "v":
            return rebuild(content, self._shared, lambda data: codec.decode(data, self.restore))
        raise codec.CodecError(f"unknown tag {tag!r}")

    def _exception_class(self, number: int, names: list[str]) -> Any:
        """A class that stands for an exception class of the tests."""
        known = getattr(builtins, names[0], None)
        if isinstance(known, type) and issubclass(known, BaseException):
            return known
        if number not in self._borrowed:
            bases = [getattr(builtins, name, None) for name in names[1:]]
            above = next((kind for kind in bases if isinstance(kind, type)), Exception)
            earlier = next((kind for kind in self._exception_classes if kind.__name__ in names[1:]), above)
            made = type(names[0], (earlier,), {"_llm_number": number})
            self._exception_classes.insert(0, made)
            self._borrowed[number] = made
        return self._borrowed[number]

    def _handle(self, value: Any) -> int:
        handle = self._handles.get(id(value))
        if handle is None:
            handle = self._handles[id(value)] = len(self._objects) + 1
            self._objects[handle] = value
        return handle

    def _encoded(self, value: Any) -> Any:
        """The encoding of one value, nested or as a graph; of one that fights it an opaque value."""
        try:
            if is_simple(value, self._shared):
                return codec.encode(value, self.export)
            flat = Flattener(self.export, self._shared)
            root = flat.child(value)
            return {"z": [flat.nodes(), root]}
        except MemoryError:
            raise
        except Exception:
            return {"o": "object"}

    def _encode(self, value: Any) -> dict[str, Any]:
        return {"value": self._encoded(value)}

    def _target(self, request: dict[str, Any]) -> Any:
        return self._objects[request["on"]]

    # ---- operations -------------------------------------------------------------------------------------------------

    def get(self, request: dict[str, Any], objects: list[Any]) -> dict[str, Any]:
        """A name of the code, or of a module of its project."""
        try:
            return self._encode(find(self._namespace, request["name"]))
        except EntryPointMissing as error:
            return {"missing": str(error)}

    def call(self, request: dict[str, Any], objects: list[Any]) -> dict[str, Any]:
        """Call; the answer also has the arguments that the call changed. `objects` takes what the nodes stand for."""
        before = request["nodes"]
        builder = Builder(self.restore, self._shared, objects)
        builder.add(before)
        objects += builder.objects
        args = [builder.child(arg) for arg in request["args"]]
        kwargs = {name: builder.child(arg) for name, arg in request["kwargs"].items()}
        result = self._target(request)(*args, **kwargs)
        if not before:
            return self._encode(result)
        try:
            return self._answer_of_call(result, before, builder.objects)
        except MemoryError:
            raise
        except Exception:
            return {"value": {"o": "object"}}

    def _answer_of_call(self, result: Any, before: list[Any], objects: list[Any]) -> dict[str, Any]:
        flat = Flattener(self.export, self._shared, objects)
        changed = _changed(flat, before)
        numbers = {id(value): i for i, value in enumerate(objects)}
        if len(flat.objects) == len(objects) and is_simple(result, self._shared, frozenset(numbers)):
            answer = {"value": codec.encode(result, self.export)}
        else:
            root = flat.child(result)
            new = flat.nodes(len(objects))
            answer = {"value": {"z": [new, root]}}
            if not new and type(root) is dict and "#" in root:
                answer = {"same": root["#"]}
        return answer | ({"changed": changed} if changed else {})

    def _changed_before_error(self, request: dict[str, Any], objects: list[Any]) -> dict[str, Any]:
        """What a call changed before it raised."""
        if not objects:
            return {}
        try:
            changed = _changed(Flattener(self.export, self._shared, objects, closed=True), request["nodes"])
        except Exception:
            return {}
        return {"changed": changed} if changed else {}

    def apply(self, request: dict[str, Any], objects: list[Any]) -> dict[str, Any]:
        """One of the plain functions on an object, such as len or getattr."""
        args = [codec.decode(arg, self.restore) for arg in request["args"]]
        name, target = request["name"], self._target(request)
        try:
            if name == "plain":
                return self._encode(_plain(target))
            result = FUNCTIONS[name](target, *args)
        except StopIteration as stop:
            if name == "next":
                return {"stop": True if stop.value is None else self._encode(stop.value)}
            raise
        except StopAsyncIteration:
            if name == "anext":
                return {"stop": True}
            raise
        if name in ("iter", "reversed", "aiter"):  # an iterator is used where it is, also one that could cross
            return {"value": self._as_handle(result)}
        return self._encode(result)

    def use(self, number: int, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Have the judge use one of its objects or functions."""
        request = {
            "callback": number,
            "name": name,
            "args": [self._encoded(arg) for arg in args],
            "kwargs": {key: self._encoded(arg) for key, arg in kwargs.items()},
        }
        self._channel.send(frames.PEER, codec.dumps(request))
        while True:
            kind, payload = self._channel.receive()
            reply = codec.loads(payload) if kind == frames.PEER else {}
            if "op" in reply:
                self.answer(reply)  # the judge's function uses the code in turn
            elif "raised" in reply:
                raise self._error_of_tests(reply)
            elif "stopped" in reply:
                raise StopIteration(codec.decode(reply["stopped"], self.restore))
            elif "returned" in reply:
                return codec.decode(reply["returned"], self.restore)

    def _error_of_tests(self, reply: dict[str, Any]) -> BaseException:
        kind = codec.decode(reply["raised"], self.restore)
        args = codec.decode(reply["args"], self.restore)
        try:
            error: BaseException = kind(*args)
        except Exception:
            error = RuntimeError(*args)
        error.__dict__["_llm_origin"] = reply["origin"]
        return error


def _changed(flat: Flattener, before: list[Any]) -> dict[int, Any]:
    """The new encodings of the nodes that are no longer as they were."""
    numbers = [i for i, node in enumerate(before) if replies.may_change(node)]
    now = [flat.node(flat.objects[i]) for i in numbers]
    # As text, for 1, 1.0 and True are equal.
    if codec.dumps(now) == codec.dumps([before[i] for i in numbers]):
        return {}
    return {i: node for i, node in zip(numbers, now, strict=True) if codec.dumps(node) != codec.dumps(before[i])}


_OPERATIONS: dict[str, Callable[[Service, dict[str, Any], list[Any]], dict[str, Any]]] = {
    "get": Service.get,
    "call": Service.call,
    "apply": Service.apply,
}


def _kind(value: Any) -> str:
    if isinstance(value, type):
        return "exception" if issubclass(value, BaseException) else "class"
    if isinstance(value, types.ModuleType):
        return "module"
    if isinstance(value, types.CoroutineType):
        return "coroutine"
    return "function" if callable(value) else "object"


def specials_of(value: Any, base: str = "") -> list[str]:
    """The special methods of an object; of one that extends a built-in type those of its own classes."""
    kind: Any = type(value)
    if isinstance(value, type):
        found = _specials(kind, "")
        return [*found, *({"class_getitem"} if hasattr(value, "__class_getitem__") else ())]
    return _specials(kind, base)


@lru_cache(maxsize=256)
def _specials(kind: Any, base: str) -> list[str]:
    above = getattr(builtins, base) if base else object
    classes = [c for c in kind.__mro__ if c is not object and (not base or c.__module__ != "builtins")]
    if type in classes:
        classes.remove(type)
        return sorted({*specials_in([vars(c) for c in classes]), "call"})
    found = specials_in([vars(c) for c in classes])
    if base:
        found += [name for c in classes for name in vars(c) if not name.startswith("__") and hasattr(above, name)]
        found += ["getitem"] if any("__missing__" in vars(c) for c in classes) else []
    return found


def _plain(value: Any) -> Any:
    """The value of the built-in type that an object extends, read by that type's own methods."""
    base: Any = getattr(builtins, base_of(type(value)))
    if base is dict:
        return dict(dict.items(value))
    if base in (list, tuple, set, frozenset):
        return base(base.__iter__(value))
    return {int: int.__int__, float: float.__float__, str: str.__str__, complex: complex.__complex__}.get(
        base, lambda value: base(value)
    )(value)


def _attributes(error: BaseException) -> dict[str, Any]:
    """What an exception has beyond those that every one has: attributes, and what its class and properties give."""
    known = next((kind for kind in type(error).__mro__ if kind.__module__ == "builtins"), Exception)
    found = {name: value for name in _OF_BUILT_INS if (value := getattr(error, name, None)) is not None}
    found |= error.__dict__
    for name in dir(type(error)):
        if not name.startswith("_") and name not in found and not hasattr(known, name):
            try:
                value = getattr(error, name)
            except Exception:
                continue
            if not callable(value):
                found[name] = value
    return {name: value for name, value in found.items() if type(name) is str and not name.startswith("_llm_")}


def _class_name(value: Any) -> list[str]:
    """The names of a class and its bases, or of an object's class and its bases."""
    kind = value if isinstance(value, type) else type(value)
    return [str(base.__name__)[:80] for base in kind.__mro__][: replies.MAX_NAMES]
