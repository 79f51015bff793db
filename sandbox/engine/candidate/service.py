"""Service of a candidate for its test judge: applies operations to the code under test and returns the results.

Requests are numbered, and each reply has the number of its request. Objects that cannot be encoded stay in this
process; the judge refers to them by a handle. During a request the code may use objects that the judge passed to it.
"""

import builtins
import types
from collections.abc import Callable
from typing import TypedDict, cast

from ..protocol import codec, frames, replies
from ..protocol.channel import Channel
from ..protocol.error_reports import describe
from ..protocol.graph import Builder, Flattener, is_simple, keeps_arguments
from ..protocol.operations import ENDING, FUNCTIONS
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
from .definitions import EntryPointMissing, as_callable, find
from .inspection import attributes_of_error, class_names, kind_of, plain_value, specials_of
from .judge_objects import JudgeFunction, JudgeReference, judge_object_class

_MAX_CAUSES = 5


class JudgeRequest(TypedDict, total=False):
    """A request of the test judge; its keys depend on `op`.

    op            get, call or apply
    n             its number
    name          of what to get, or of the operation to apply
    on            handle of the object
    args, kwargs  encoded arguments
    nodes         of a call: containers that the arguments refer to. Of an operation that continues the code of a call:
                  the arguments of that call, and what its code has given to a `with` block
    known         how many of these nodes this process has already
    written       numbers of the nodes that the tests have changed
    """

    op: str
    n: int
    name: str
    on: int
    args: list[object]
    kwargs: dict[str, object]
    nodes: list[object]
    known: int
    written: list[int]


Reply = dict[str, object]


class Service:
    """Answers the requests of one judge, and keeps the objects that it refers to."""

    def __init__(self, namespace: types.ModuleType, channel: Channel, shared: list[str], max_result: int) -> None:
        self._namespace = namespace
        self._channel = channel
        classes = {name: vars(namespace).get(name) for name in shared}
        self._shared: dict[str, type] = {
            name: kind for name, kind in classes.items() if isinstance(kind, type) and crosses_by_value(kind)
        }
        self._max_result = max_result
        self._objects: dict[int, object] = {}
        self._handles: dict[int, int] = {}  # id(object) -> handle; `_objects` keeps the object alive
        self._kept: dict[int, list[object]] = {}  # handle -> arguments of the call that returned it
        self._judge_objects: dict[int, object] = {}
        self._exception_classes: list[type[BaseException]] = []  # of the tests, the latest first

    def serve(self) -> None:
        """Answer requests until the engine closes the pipe."""
        while True:
            kind, payload = self._channel.receive()
            if kind == frames.PEER:
                self.answer(_request(codec.loads(payload)))

    def answer(self, request: JudgeRequest) -> None:
        """Handle one request and send the reply."""
        objects: list[object] = []
        try:
            answer = OPERATIONS[request["op"]](self, request, objects)
        except BaseException as error:
            answer = {"error": self._describe(error)} | self._changed_arguments(request, objects)
        answer["n"] = request["n"]
        data = codec.dumps(answer)
        if len(data) > self._max_result:
            data = codec.dumps({"n": request["n"], "large": len(data)})
        self._channel.send(frames.PEER, data)

    def _describe(self, error: BaseException, depth: int = 0) -> Reply:
        args = error.args if type(error.args) is tuple else ()
        cause = error.__cause__
        return {
            **describe(error),
            "args": {"t": [self._encoded(arg) for arg in args]},
            "bases": class_names(error),
            "attributes": {"m": {name: self._encoded(value) for name, value in attributes_of_error(error).items()}},
            "cause": None if cause is None or depth >= _MAX_CAUSES else self._describe(cause, depth + 1),
            "origin": error.__dict__.get("_llm_origin"),
        }

    # ---- values -----------------------------------------------------------------------------------------------------

    def export(self, value: object) -> dict[str, object] | None:
        """Return the encoding of an object; None if its built-in value describes it completely."""
        kind: type = type(value)
        if issubclass(kind, JudgeReference):
            return {"k": vars(value)["_llm_number"]}
        if isinstance(value, codec.Opaque) and kind is codec.Opaque:
            return {"o": value.name}
        shared = attributes_of(value, self._shared)
        if shared is not None:
            name, attributes = shared
            return {"v": [name, codec.encode(attributes, self.export)]}
        if issubclass(kind, type):
            number = vars(value).get("_llm_number")
            if number is not None:
                return {"k": number}
            known = known_name(value)
            return {"g": known} if known else self._as_handle(value)
        if isinstance(value, BaseException) and issubclass(kind, BaseException):
            return {"e": self._describe(value)}
        base = base_of(kind)
        if base:
            if isinstance(value, tuple) and is_named_tuple(value):
                items = [codec.encode(item, self.export) for item in tuple.__iter__(value)]
                return {"n+": [kind.__name__[:80], list(vars(kind)["_fields"]), items]}
            if adds_nothing(kind) and not getattr(value, "__dict__", None):
                return None
        return self._as_handle(value, base)

    def _as_handle(self, value: object, base: str = "") -> dict[str, object]:
        return {"h": [self._handle(value), kind_of(value), class_names(value), specials_of(value, base), base]}

    def restore(self, tag: str, content: object) -> object:
        """Return the object of a tag that only the judge writes."""
        if tag == "r":
            return self._objects[codec.of_type(int, content)]
        if tag == "k":
            number, name, qualified, doc = codec.of_type(list, content)
            if number not in self._judge_objects:
                made = self._judge_objects[number] = JudgeFunction(self.use, number)
                about = {"__name__": name, "__qualname__": qualified, "__doc__": doc}
                made.__dict__.update({key: text for key, text in about.items() if text is not None})
            return self._judge_objects[number]
        if tag == "j":
            number, names, specials = codec.of_type(list, content)
            if number not in self._judge_objects:
                self._judge_objects[number] = judge_object_class(tuple(names), tuple(specials))(self.use, number)
            return self._judge_objects[number]
        if tag == "E":
            return self._exception_class(*codec.of_type(list, content))
        if tag == "e":
            kind, args = (codec.decode(part, self.restore) for part in codec.of_type(list, content))
            return as_callable(kind)(*codec.of_type(tuple, args))
        if tag == "g":
            return from_library(codec.of_type(str, content))
        if tag == "z":
            nodes, root = codec.of_type(list, content)
            builder = Builder(self.restore, self._shared)
            builder.add(nodes)
            return builder.child(root)
        if tag == "v":
            return rebuild(content, self._shared, lambda data: codec.decode(data, self.restore))
        raise codec.CodecError(f"unknown tag {tag!r}")

    def _exception_class(self, number: int, names: list[str]) -> object:
        """Return a class of this process for an exception class of the tests."""
        known = getattr(builtins, names[0], None)
        if isinstance(known, type) and issubclass(known, BaseException):
            return known
        if number not in self._judge_objects:
            bases = [getattr(builtins, name, None) for name in names[1:]]
            built_in = next((kind for kind in bases if isinstance(kind, type)), Exception)
            base = next((kind for kind in self._exception_classes if kind.__name__ in names[1:]), built_in)
            made = type(names[0], (base,), {"_llm_number": number})
            self._exception_classes.insert(0, made)
            self._judge_objects[number] = made
        return self._judge_objects[number]

    def _handle(self, value: object) -> int:
        handle = self._handles.get(id(value))
        if handle is None:
            handle = self._handles[id(value)] = len(self._objects) + 1
            self._objects[handle] = value
        return handle

    def _encoded(self, value: object) -> object:
        """Return the encoding of a value, nested or as a graph; opaque for one that raises while it is encoded."""
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

    def _encode(self, value: object) -> Reply:
        return {"value": self._encoded(value)}

    def _target(self, request: JudgeRequest) -> object:
        return self._objects[request["on"]]

    # ---- operations -------------------------------------------------------------------------------------------------

    def get(self, request: JudgeRequest, objects: list[object]) -> Reply:
        """Look up a name of the code, or of a module of its project."""
        try:
            return self._encode(find(self._namespace, request["name"]))
        except EntryPointMissing as error:
            return {"missing": str(error)}

    def call(self, request: JudgeRequest, objects: list[object]) -> Reply:
        """Call an object; the reply also has the arguments that the call changed.

        objects  is filled with the objects of the nodes
        """
        before = request["nodes"]
        builder = Builder(self.restore, self._shared, objects)
        builder.add(before)
        objects += builder.objects
        args = [builder.child(arg) for arg in request["args"]]
        kwargs = {name: builder.child(arg) for name, arg in request["kwargs"].items()}
        result = as_callable(self._target(request))(*args, **kwargs)
        if not before:
            return self._encode(result)
        flat = Flattener(self.export, self._shared, objects)
        answer = self._answer_of_call(result, before, flat)
        handle = self._handles.get(id(result))
        if handle is not None and keeps_arguments(specials_of(result, base_of(type(result))), before):
            self._kept[handle] = flat.objects
        return answer

    def _answer_of_call(self, result: object, before: list[object], flat: Flattener, numbered: bool = False) -> Reply:
        """Return the reply with a result and the arguments that changed.

        numbered  whether each container in the result gets a number, because the tests may change it
        """
        try:
            return self._numbered_answer(result, before, flat, numbered)
        except MemoryError:
            raise
        except Exception:
            return {"value": {"o": "object"}}

    def _numbered_answer(self, result: object, before: list[object], flat: Flattener, numbered: bool) -> Reply:
        objects = list(flat.objects)
        changed = _changed(flat, before)
        numbers = frozenset(map(id, objects))
        if not numbered and len(flat.objects) == len(objects) and is_simple(result, self._shared, numbers):
            answer: Reply = {"value": codec.encode(result, self.export)}
        else:
            root = flat.child(result)
            new = flat.nodes(len(objects))
            answer = {"value": {"z": [new, root]}}
            if not new and type(root) is dict and "#" in root:
                answer = {"same": root["#"]}
        return answer | ({"changed": changed} if changed else {})

    def _changed_arguments(self, request: JudgeRequest, objects: list[object]) -> Reply:
        """Return the arguments that a call changed, if the result of the call gets no numbers."""
        if not objects:
            return {}
        try:
            changed = _changed(Flattener(self.export, self._shared, objects, closed=True), request["nodes"])
        except Exception:
            return {}
        return {"changed": changed} if changed else {}

    def apply(self, request: JudgeRequest, objects: list[object]) -> Reply:
        """Apply an operation to an object, such as len or getattr."""
        if "nodes" in request:
            return self._resume(request, objects)
        args = [codec.decode(arg, self.restore) for arg in request["args"]]
        name, target = request["name"], self._target(request)
        try:
            if name == "plain":
                return self._encode(plain_value(target))
            result = FUNCTIONS[name](target, *args)
        except StopIteration as stop:
            if name in ENDING:
                return {"stop": True if stop.value is None else self._encode(stop.value)}
            raise
        except StopAsyncIteration:
            if name in ENDING:
                return {"stop": True}
            raise
        if name in ("iter", "reversed", "aiter"):  # an iterator stays in this process, even one that could be encoded
            return {"value": self._as_handle(result)}
        return self._encode(result)

    def _resume(self, request: JudgeRequest, objects: list[object]) -> Reply:
        """Apply an operation that may change the arguments of the call that returned the object."""
        name, handle, nodes, target = request["name"], request["on"], request["nodes"], self._target(request)
        builder = Builder(self.restore, self._shared, self._kept.pop(handle, [])[: request["known"]])
        builder.add(nodes[request["known"] :])
        for number in request["written"]:
            builder.fill(number, nodes[number])
        objects += builder.objects
        try:
            result = FUNCTIONS[name](target, *map(builder.child, request["args"]))
        except (StopIteration, StopAsyncIteration) as stop:
            if name not in ENDING:
                raise
            value = stop.value if isinstance(stop, StopIteration) else None
            ended: Reply = {"stop": True if value is None else self._encode(value)}
            return ended | self._changed_arguments(request, objects)
        if name in ("enter", "aenter", "await"):
            flat = Flattener(self.export, self._shared, objects)
            answer = self._answer_of_call(result, nodes, flat, numbered=True)
            objects = flat.objects
        else:
            answer = self._encode(result) | self._changed_arguments(request, objects)
        self._kept[handle] = objects
        return answer

    def use(self, number: int, name: str, args: tuple[object, ...], kwargs: dict[str, object]) -> object:
        """Ask the judge to apply an operation to one of its objects, and return the result."""
        request = {
            "callback": number,
            "name": name,
            "args": [self._encoded(arg) for arg in args],
            "kwargs": {key: self._encoded(arg) for key, arg in kwargs.items()},
        }
        self._channel.send(frames.PEER, codec.dumps(request))
        while True:
            kind, payload = self._channel.receive()
            reply = codec.of_type(dict, codec.loads(payload)) if kind == frames.PEER else {}
            if "op" in reply:
                self.answer(_request(reply))  # the function of the tests calls the code meanwhile
            elif "raised" in reply:
                raise self._error_of_tests(reply)
            elif "stopped" in reply:
                raise StopIteration(codec.decode(reply["stopped"], self.restore))
            elif "returned" in reply:
                return codec.decode(reply["returned"], self.restore)

    def _error_of_tests(self, reply: Reply) -> BaseException:
        kind = codec.decode(reply["raised"], self.restore)
        args = codec.of_type(tuple, codec.decode(reply["args"], self.restore))
        error: object = None
        try:
            error = as_callable(kind)(*args)
        except Exception:
            pass
        if not isinstance(error, BaseException):
            error = RuntimeError(*args)
        error.__dict__["_llm_origin"] = reply["origin"]
        return error


def _request(data: object) -> JudgeRequest:
    return cast(JudgeRequest, data)  # the engine's own code in the judge's process wrote it


def _changed(flat: Flattener, before: list[object]) -> dict[int, object]:
    """Return the new encodings of the nodes that have changed."""
    numbers = [i for i, node in enumerate(before) if replies.may_change(node)]
    now = [flat.node(flat.objects[i]) for i in numbers]
    # Compared as text, because 1, 1.0 and True are equal.
    if codec.dumps(now) == codec.dumps([before[i] for i in numbers]):
        return {}
    return {i: node for i, node in zip(numbers, now, strict=True) if codec.dumps(node) != codec.dumps(before[i])}


OPERATIONS: dict[str, Callable[[Service, JudgeRequest, list[object]], Reply]] = {
    "get": Service.get,
    "call": Service.call,
    "apply": Service.apply,
}
