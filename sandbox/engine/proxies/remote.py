"""The judge's view of the code under test: proxies that ask the candidate's process, and decide nothing by its word.

What a test compares is always a built-in value of this process. An object of the code's own class equals no built-in
value, whatever its `__eq__` says, because that would hand the expected value to the code and let it answer. Methods are
called only on objects of a class that the tests name (see `standing`), and two objects are compared by the code's
`__eq__` only if the tests name a class of it. A function that the code returns may always be called.
"""

import builtins
import types
from _thread import allocate_lock, get_ident  # `threading` is not loaded, and few tests need it
from collections.abc import Callable
from typing import Any

from ..protocol import codec, frames, replies
from ..protocol.channel import Channel, Closed
from ..protocol.graph import Builder, Flattener, is_simple
from ..protocol.operations import ASKED, BINARY, IN_PLACE, UNARY
from ..protocol.values import attributes_of, crosses_by_value, known_type, library_name, named_tuple, rebuild
from . import passed_objects, trust_levels
from .consistency import CHANGES, Looks
from .passed_objects import is_lendable

_OPAQUE = b'{"o":'  # what an opaque value begins with; inside a text the quotation mark would be escaped


class CandidateGone(BaseException):
    """The candidate's process ended. Not an Exception, so that no test's `except` takes it for an answer."""


class Tampered(BaseException):
    """The candidate sent what no honest one sends."""


class TooLarge(BaseException):
    """The candidate's answer is larger than allowed."""


class Missing(BaseException):
    """The code does not define a name that the tests use."""


class RemoteError(Exception):
    """An exception of the code for which there is no built-in of the same name."""


class Peer:
    """Asks the candidate, one numbered question after another."""

    def __init__(
        self,
        channel: Channel,
        namespace: dict[str, Any],
        shared: list[str],
        classes: frozenset[str] = frozenset(),
        functions: frozenset[str] = frozenset(),
    ) -> None:
        """`classes`, `functions`: names that the prompt gives to them."""
        self._channel = channel
        self._classes, self._functions = classes, functions
        self._namespace = namespace
        self._shared_names = shared
        self._number = 0
        self._lock = allocate_lock()
        self._asking = 0  # the thread that holds the lock
        self._trusted = False  # whether the reply being read comes from an object of a class that the tests name
        self.named_classes: set[str] = set()  # classes of the code that the tests name
        self.on_lost: Callable[[BaseException], None] = lambda signal: None  # told before anything is raised
        self.too_large: TooLarge | None = None  # the last answer that was
        self._callbacks: list[Any] = []  # objects of the tests that the code was given
        self._lent: dict[int, int] = {}  # id(object) -> its place among them
        self._lent_exceptions: dict[str, type[BaseException]] = {}
        self._exception_handles: dict[type[BaseException], int] = {}
        self._found_shared: dict[str, Any] | None = None
        self.raise_lines: frozenset[int] = frozenset()  # where the tests raise exceptions themselves
        self.plain: dict[int, Any] = {}  # handle -> value of the built-in type that the object extends
        self.broken: AssertionError | None = None  # an assert that failed while the code had called the tests
        self._objects: dict[int, Remote] = {}
        self._exceptions: dict[str, type[BaseException]] = {}
        self.unsupported = ""  # the first thing in the tests that has another result here than beside the code
        self.looks = Looks()
        self.inconsistent = ""  # how an object replied differently to the same question
        self.answered = 0  # questions answered so far
        self.found = 0  # of these, those that only gave a proxy for a name

    @property
    def shared(self) -> dict[str, Any]:
        """Classes that this process and the candidate's both define."""
        if self._found_shared is None:
            found = {name: self._namespace.get(name) for name in self._shared_names}
            self._found_shared = {name: kind for name, kind in found.items() if crosses_by_value(kind)}
        return self._found_shared

    def find(self, name: str) -> Any:
        """What the code defines as "name" or "module:name". Raises Missing."""
        value = self.ask("get", name=name)
        if isinstance(value, Remote):
            self.found += 1
            value = self.named(name, value)
        return value

    def named(self, name: str, value: "Remote") -> "Remote":
        """What stands for something that the tests have by this name.

        Another object than the one that stands for it where the code returns it: that one the tests do not name.
        """
        is_class = self._is_class(name, value)
        if is_class:
            self.named_classes.add(value._llm_names[0])
        level = trust_levels.CLASS if is_class else trust_levels.NAMED
        fields = value._llm_handle, value._llm_kind, value._llm_names, value._llm_specials, value._llm_base
        return remote(self, *fields, level=level)

    def _is_class(self, name: str, value: "Remote") -> bool:
        """Whether the tests take it for a class. The code's word is not enough: it may make a function one."""
        last = name.rpartition(":")[2].rpartition(".")[2]
        if value._llm_kind != "class" or last in self._functions:
            return False
        return last in self._classes or last.lstrip("_")[:1].isupper()

    @property
    def influenced(self) -> bool:
        """Whether anything that the code decides has reached this process."""
        return self.answered > self.found

    def note(self, what: str) -> None:
        """Remember what cannot be done apart from the code."""
        self.unsupported = self.unsupported or what

    def _compare(self, operation: str, request: dict[str, Any], kind: str, content: Any, watched: bool) -> None:
        """Compare a reply with an earlier one to the same question."""
        if operation == "call":
            self.looks.forget()
            return
        name = request["name"]
        if operation == "get":
            on, args, name = -1, [name], "get"
        else:
            on, args = request["on"], request["args"]
        if not watched:
            if name == "next" or name in CHANGES or name in BINARY:
                self.looks.forget()
        elif not self.looks.agree(on, name, args, kind, content):
            asked = f"getattr {args[0]}" if name == "getattr" else name
            self.inconsistent = (
                f"an object of the code replies differently to the same question ({asked}), and the tests did not call "
                "the code in between"
            )
            self.note(self.inconsistent)

    def ask(
        self,
        operation: str,
        changing: tuple[Any, ...] = (),
        *,
        trusted: bool = False,
        grants: str = trust_levels.GIVEN,
        watched: bool = True,
        **request: Any,
    ) -> Any:
        """The decoded answer; arguments in `changing` that the call changed are changed here too.

        trusted  whether an object of a class that the tests name is asked
        watched  whether the same question must get the same reply, see `looks`
        grants   the standing of an object that comes back as the answer for the first time

        Raises Tampered for every reply that the table in `replies` does not allow. Tests may catch everything that is
        raised here, so `on_lost` and `too_large` make sure that a loss of the candidate is not taken for an answer.
        """
        thread = get_ident()
        is_nested = self._asking == thread  # by a function that the code has called back
        if not is_nested:
            self._lock.acquire()  # one question at a time, whichever thread of the tests asks
            self._asking = thread
        try:
            return self._ask(operation, changing, trusted, grants, watched, request)
        except (CandidateGone, Tampered, Missing) as signal:
            self.on_lost(signal)
            raise
        except TooLarge as signal:
            self.too_large = signal
            raise
        finally:
            if not is_nested:
                self._asking = 0
                self._lock.release()

    def _ask(
        self,
        operation: str,
        changing: tuple[Any, ...],
        trusted: bool,
        grants: str,
        watched: bool,
        request: dict[str, Any],
    ) -> Any:
        if self._channel.has_input():
            self._receive()
            raise Tampered("an answer came before its question")
        self._number += 1
        number = self._number
        self._send({"op": operation, "n": number, **request})
        asked = request["name"] if operation == "apply" else operation
        sent = request["nodes"] if operation == "call" else ()
        while True:
            payload = self._receive()
            try:
                reply = codec.loads(payload)
                kind = replies.check(reply, asked, number, sent, len(self._callbacks))
                if kind != "callback":
                    self._trusted = trusted
                    value, error = self._read(reply, kind, changing, grants)
            except (codec.CodecError, KeyError, IndexError, TypeError, AttributeError, ValueError) as problem:
                why = str(problem) if isinstance(problem, codec.CodecError) else type(problem).__name__
                raise Tampered(f"an answer that cannot be read ({why})") from None
            if kind == "callback":
                self._call_back(reply)
                continue
            self.answered += 1
            self._compare(operation, request, kind, reply[kind], watched)
            if self.broken is not None:  # whatever the code made of it
                broken, self.broken = self.broken, None
                raise broken
            if error is not None:
                raise error
            return value

    def _read(
        self, reply: dict[str, Any], kind: str, changing: tuple[Any, ...], grants: str
    ) -> tuple[Any, BaseException | None]:
        """The value of a checked reply, or the exception that it stands for."""
        content = reply[kind]
        builder = Builder(self.restore, self.shared, changing, self._restore_part)
        if kind == "value" and type(content) is dict and "z" in content:
            nodes, content = content["z"]
            builder.add(nodes)
        for index, node in reply.get("changed", {}).items():
            builder.fill(int(index), node)
        if kind == "value":
            is_new = replies.is_handle(content) and content["h"][0] not in self._objects
            value = builder.child(content)
            if is_new and grants != trust_levels.GIVEN and isinstance(value, Remote):
                value.__dict__["_llm_standing"] = grants
            return value, None
        if kind == "same":
            value = changing[content]
            if isinstance(value, Remote):
                self._returned(value)
            return value, None
        if kind == "stop":
            return None, StopIteration() if content is True else StopIteration(
                codec.decode(content["value"], self.restore)
            )
        if kind == "large":
            return None, TooLarge(content)
        if kind == "missing":
            return None, Missing(content)
        return None, self._exception(content)

    def _send(self, message: dict[str, Any]) -> None:
        payload = codec.dumps(message)
        if _OPAQUE in payload:
            self.note("the code was given an object that cannot cross to its process")
        try:
            self._channel.send(frames.PEER, payload)
        except OSError:
            raise CandidateGone from None

    def _receive(self) -> bytes:
        try:
            kind, payload = self._channel.receive()
        except (Closed, OSError):
            raise CandidateGone from None
        except frames.FrameTooLarge as error:
            raise Tampered(str(error)) from None
        if kind == frames.PEER_GONE:
            raise CandidateGone
        if kind != frames.PEER:
            raise Tampered("a frame of a kind that it may not send")
        if _OPAQUE in payload:
            self.note("the code returned an object that cannot cross to the tests' process")
        return payload

    # ---- values -----------------------------------------------------------------------------------------------------

    def encode(self, value: Any) -> Any:
        """The encoding of one value, nested or as a graph."""
        shared = self.shared
        if is_simple(value, shared):
            return codec.encode(value, self._export)
        flat = Flattener(self._export, shared)
        root = flat.child(value)
        return {"z": [flat.nodes(), root]}

    def call(
        self,
        handle: int,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        trusted: bool = False,
        grants: str = trust_levels.GIVEN,
    ) -> Any:
        """Call an object of the code. Containers cross as numbered nodes, so that each keeps its identity."""
        flat = Flattener(self._export, self.shared)
        positional = [flat.child(arg) for arg in args]
        named = {name: flat.child(arg) for name, arg in kwargs.items()}
        nodes = flat.nodes()
        return self.ask(
            "call",
            tuple(flat.objects),
            trusted=trusted,
            grants=grants,
            on=handle,
            args=positional,
            kwargs=named,
            nodes=nodes,
        )

    def _export(self, value: Any) -> dict[str, Any] | None:
        if isinstance(value, Remote):
            return {"r": value._llm_handle}
        shared = attributes_of(value, self.shared)
        if shared is not None:
            name, attributes = shared
            return {"v": [name, self.encode(attributes)]}
        library = library_name(value)
        if library:
            return {"g": library}
        if isinstance(value, type) and issubclass(value, BaseException):
            return self._export_exception_class(value)
        if isinstance(value, BaseException):
            kind = self._export_exception_class(type(value))
            return {"e": [kind, codec.encode(tuple(value.args), self._export)]}
        if is_lendable(value):
            of: type = value if isinstance(value, type) else type(value)
            names = [base.__name__ for base in of.__mro__]
            return {"j": [self._lend(value), names, passed_objects.specials_of(value)]}
        if isinstance(value, (*_FLATTENED, types.ModuleType)):
            self.note(f"the code is given a {type(value).__name__} of the tests")
            return None
        if callable(value):
            about = [getattr(value, name, None) for name in ("__name__", "__qualname__", "__doc__")]
            return {"k": [self._lend(value), *(text if type(text) is str else None for text in about)]}
        return None

    def _lend(self, value: Any) -> int:
        """The number under which the code may use an object of the tests."""
        number = self._lent.get(id(value))
        if number is None:
            number = self._lent[id(value)] = len(self._callbacks)
            self._callbacks.append(value)
        return number

    def _export_exception_class(self, kind: type[BaseException]) -> dict[str, Any]:
        if kind in self._exception_handles:
            return {"r": self._exception_handles[kind]}
        bases = [base.__name__ for base in kind.__mro__ if base is not object]
        if kind.__module__ != "builtins":
            self._lent_exceptions.setdefault(kind.__name__, kind)
        return {"E": [self._lend(kind), bases]}

    def restore(self, tag: str, content: Any) -> Any:
        """What the candidate's tags stand for here."""
        if tag == "h":
            if not replies.is_handle_content(content):
                raise codec.CodecError("a handle of the wrong shape")
            handle, kind, names, specials, base = content
            if kind == "exception":
                made = self._exception_class(names)
                if made.__module__ != "builtins":
                    self._exception_handles.setdefault(made, handle)
                return made
            found = self._objects.get(handle)
            if found is None:
                found = self._objects[handle] = remote(self, handle, kind, names, frozenset(specials), base)
            else:
                self._returned(found)
            return _awaiting(found) if kind == "coroutine" else found
        if tag == "k":
            if not (replies.is_count(content) and content < len(self._callbacks)):
                raise codec.CodecError("a function that it was not given")
            return self._callbacks[content]
        if tag == "g":
            return known_type(content)
        if tag == "e":
            if not replies.is_raised(content):
                raise codec.CodecError("an exception of the wrong shape")
            return self._exception(content)
        if tag == "n+":
            return named_tuple(content, lambda data: codec.decode(data, self.restore))
        if tag == "z":
            nodes, root = content
            builder = Builder(self.restore, self.shared, part=self._restore_part)
            builder.add(nodes)
            return builder.child(root)
        if tag == "v":
            return rebuild(content, self.shared, lambda data: codec.decode(data, self._restore_part))
        raise codec.CodecError(f"unknown tag {tag!r}")

    def _restore_part(self, tag: str, content: Any) -> Any:
        """What tags stand for inside an instance of a class that this process defines too."""
        if tag == "h" and replies.is_handle_content(content) and content[0] not in self._objects:
            handle, kind, names, specials, base = content
            if kind not in ("exception", "coroutine"):
                return remote(self, handle, kind, names, frozenset(specials), base, trust_levels.PART)
        return self.restore(tag, content)

    def _returned(self, remote: "Remote") -> None:
        """Note that the code returned an object that is known here: in the place of a value it is not asked as one of
        the tests' own.
        """
        if not self._trusted and remote._llm_standing in trust_levels.COMPUTES:
            remote.__dict__["_llm_standing"] = trust_levels.GIVEN

    # ---- exceptions -------------------------------------------------------------------------------------------------

    def _exception_class(self, names: list[str]) -> type[BaseException]:
        """A class of this process that stands for an exception class of the code, with the same ancestry by name."""
        name = names[0]
        if name not in self._exceptions:
            known = getattr(builtins, name, None)
            own: Any = self._lent_exceptions.get(name) or self._namespace.get(name)
            if isinstance(known, type) and issubclass(known, BaseException):
                self._exceptions[name] = known if _may_be_raised(known) else RemoteError
            elif self._is_own(name, own):
                self._exceptions[name] = own if _may_be_raised(own) else RemoteError
            else:
                self._exceptions[name] = type(name, self._bases(names[1:]), {"__str__": _text_of})
        return self._exceptions[name]

    def _is_own(self, name: str, kind: Any) -> bool:
        """Whether this process has the exception class itself: the prompt's, or one of the tests that it lent."""
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):
            return False
        return name in self._shared_names or self._lent_exceptions.get(name) is kind

    def _bases(self, names: list[str]) -> tuple[type[BaseException], ...]:
        """Of the classes that a class extends, those that no other of them extends already."""
        found: list[type[BaseException]] = []
        for i, name in enumerate(names):
            if name not in ("BaseException", "object"):
                kind = self._exception_class(names[i:])
                if not any(issubclass(other, kind) for other in found):
                    found = [*(other for other in found if not issubclass(kind, other)), kind]
        return tuple(found) or (RemoteError,)

    def _exception(self, error: dict[str, Any], depth: int = 0) -> BaseException:
        origin = error["origin"]
        if origin is not None and origin < len(self._callbacks) and isinstance(self._callbacks[origin], BaseException):
            return self._callbacks[origin]
        kind = self._exception_class(error["bases"])
        args = codec.decode(error["args"], self.restore)
        try:
            made = kind(*args) if kind.__module__ == "builtins" else kind.__new__(kind, *args)
            made.args = made.args if kind.__module__ == "builtins" else args
        except Exception:
            made = RemoteError(error["message"])
        attributes = codec.decode(error["attributes"], self.restore)
        if type(attributes) is dict:
            for name, value in attributes.items():
                if not name.startswith("_") and not hasattr(BaseException, name):
                    _set_attribute(made, name, value)
        made.__dict__["_llm_remote"] = {key: error[key] for key in ("type", "builtin", "message", "line")}
        if error["cause"] is not None and depth < _MAX_CAUSES:
            made.__cause__ = self._exception(error["cause"], depth + 1)
        return made

    # ---- callbacks --------------------------------------------------------------------------------------------------

    def _call_back(self, request: dict[str, Any]) -> None:
        self._trusted = False
        try:
            target = self._callbacks[request["callback"]]
            args = [codec.decode(arg, self.restore) for arg in request["args"]]
            kwargs = {str(name): codec.decode(arg, self.restore) for name, arg in request["kwargs"].items()}
        except (codec.CodecError, KeyError, IndexError, TypeError, AttributeError, ValueError) as problem:
            raise Tampered(f"a call of what it was not given ({type(problem).__name__})") from None
        self.answered += 1
        name = request.get("name", "call")
        try:
            result = target(*args, **kwargs) if name == "call" else passed_objects.apply(target, name, args)
            reply = {"returned": self.encode(result)}
        except passed_objects.Refused as error:
            self.note(f"the code asks an object of the tests for {error}")
            reply = {"raised": {"g": "AttributeError"}, "args": {"t": [str(error)]}, "origin": None}
        except StopIteration as stop:
            reply = {"stopped": self.encode(stop.value)}
        except Exception as error:
            reply = self._raised(error)
        self._send(reply)

    def _raised(self, error: Exception) -> dict[str, Any]:
        """A reply for an exception of the tests. The text of an assert that failed shows what was expected."""
        if isinstance(error, AssertionError):
            self.broken = self.broken or error
            args = codec.encode(())
        else:
            args = codec.encode(tuple(error.args), self._export)
        kind = {"g": type(error).__name__} if type(error).__module__ == "builtins" else None
        return {"raised": kind or self._export_exception_class(type(error)), "args": args, "origin": self._lend(error)}


def _set_attribute(error: BaseException, name: str, value: Any) -> None:
    try:
        object.__setattr__(error, name, value)
    except (AttributeError, TypeError):
        pass  # of the prompt's own class, which computes it


_FLATTENED = (list, dict, tuple, set, frozenset, str, int, float, complex, bytes, bytearray)
_MAX_CAUSES = 5


def _text_of(error: BaseException) -> str:
    """What `str` gives for an exception of the code, whose class may have a `__str__` of its own."""
    remote = error.__dict__.get("_llm_remote")
    return str(remote["message"]) if remote else BaseException.__str__(error)


def _may_be_raised(kind: type[BaseException]) -> bool:
    """Whether raising it in tests says no more than that the code failed. StopIteration would end loops of theirs."""
    return issubclass(kind, Exception) and not issubclass(kind, StopIteration | StopAsyncIteration)


def _asks(name: str) -> Callable[..., Any]:
    def method(self: "Remote", *args: Any) -> Any:
        return self._llm_apply(name, *args)

    return method


def _compares(name: str, apart: Any) -> Callable[..., Any]:
    """A comparison, by the code's word only between its own objects in tests that name one of its classes.

    An order is also that of objects that the tests made: else what a function returns would always be in order.
    """

    def method(self: "Remote", other: Any) -> Any:
        peer = self._llm_peer
        by_own_word = not self._llm_specials.isdisjoint((name, _MIRRORED[name]))
        if not isinstance(other, Remote) or (self._llm_base and other._llm_base and not by_own_word):
            if by_own_word:
                peer.note(f"a {self._llm_names[0]} of the code is compared with a built-in value by its own __{name}__")
            return _compared(name, self, other, apart) if self._llm_base else apart
        same = self._llm_handle == other._llm_handle
        if name in ("eq", "ne"):
            if same:
                return name == "eq"
            if peer.named_classes:
                return self._llm_apply(name, other)
        elif {self._llm_standing, other._llm_standing} & trust_levels.COMPUTES:
            return self._llm_apply(name, other)
        if by_own_word:
            peer.note(f"objects of the code are compared by their own __{name}__, and the tests did not make them")
        return name == "ne" if name in ("eq", "ne") else apart

    return method


def _compared(name: str, left: "Remote", right: Any, apart: Any) -> Any:
    """A comparison of the values of objects that extend built-in types, made here."""
    if isinstance(right, Remote):
        right = right._llm_plain()
    if left is right:
        return name == "eq"
    result = getattr(left._llm_plain(), f"__{name}__")(right)
    return apart if result is NotImplemented and name in ("eq", "ne") else result


_MIRRORED = {"eq": "eq", "ne": "eq", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def _computes(name: str) -> Callable[..., Any]:
    """Arithmetic on the code's objects. With a built-in operand the result must be such an object again: a number would
    be the code's word about a number that it was told.
    """

    def method(self: "Remote", *others: Any) -> Any:
        made = self._llm_standing in trust_levels.COMPUTES
        is_told = not all(isinstance(other, Remote) for other in others)
        if not (made if is_told else made or self._llm_peer.named_classes):
            self._llm_peer.note(
                f"a {self._llm_names[0]} of the code, which the tests did not make, takes part in {name}"
            )
            if others:
                return NotImplemented
            raise TypeError(f"bad operand type for {name}: '{self._llm_names[0]}'")
        result = self._llm_apply(name, *others, grants=trust_levels.DERIVED if made else trust_levels.GIVEN)
        if isinstance(result, Remote):
            return self if result._llm_handle == self._llm_handle else result
        of_made = not others and self._llm_standing == trust_levels.MADE
        if of_made or (others and not is_told):
            return result
        problem = f"{name} of an object of the code and a built-in value gave a built-in value"
        self._llm_peer.note(problem)
        raise TypeError(problem)

    return method


def _call(self: "Remote", *args: Any, **kwargs: Any) -> Any:
    if self._llm_kind not in ("function", "class"):
        raise TypeError(f"'{self._llm_names[0]}' object is not callable")
    trusted = self._llm_standing in trust_levels.TRUSTED
    grants = trust_levels.MADE if self._llm_standing == trust_levels.CLASS else trust_levels.GIVEN
    return self._llm_peer.call(self._llm_handle, args, kwargs, trusted=trusted, grants=grants)


def _iterates(name: str) -> Callable[..., Any]:
    """`__iter__` or `__reversed__`: the iterator of the code, or the object itself where that is its own iterator."""

    def method(self: "Remote") -> Any:
        iterator = self._llm_apply(name)
        return self if isinstance(iterator, Remote) and iterator._llm_handle == self._llm_handle else iterator

    return method


def _contains(self: Any, wanted: Any) -> bool:
    """By looking: its own `__contains__` would be told what is expected. Objects that the tests made are asked."""
    if self._llm_standing == trust_levels.MADE:
        return bool(self._llm_apply("contains", wanted))
    self._llm_peer.note(
        f"a {self._llm_names[0]} of the code is asked what it contains, and the tests name no class of it"
    )
    return "iter" in self._llm_specials and any(item is wanted or item == wanted for item in self)


def _enter(self: "Remote") -> Any:
    entered = self._llm_apply("enter")
    return self if isinstance(entered, Remote) and entered._llm_handle == self._llm_handle else entered


def _exit(self: "Remote", kind: Any, error: Any, trace: Any) -> bool:
    """The code may swallow an exception that the tests raise by intention, no other: asserts would not be reached."""
    if kind is None:
        self._llm_apply("exit")
        return False
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    in_tests = trace is not None and trace.tb_frame.f_code.co_filename == "<tests>"
    intended = in_tests and self._llm_standing == trust_levels.MADE
    intended = intended and trace.tb_lineno in self._llm_peer.raise_lines
    if not intended or not isinstance(error, Exception) or isinstance(error, AssertionError):
        kind, error, intended = Exception, Exception(), False  # its text may show what is expected
    swallowed = self._llm_apply("exit", kind, error)
    if swallowed and intended:
        return True
    if swallowed:
        self._llm_peer.note("a context manager of the code swallows an exception of the tests")
    return False


def _awaits(name: str) -> Callable[..., Any]:
    async def method(self: "Remote", *_: Any) -> Any:
        try:
            result = self._llm_apply(name)
        except StopIteration:
            raise StopAsyncIteration from None
        if name == "aexit":
            return False
        return self if isinstance(result, Remote) and result._llm_handle == self._llm_handle else result

    return method


def _await(self: "Remote") -> Any:
    return _awaiting(self).__await__()


class Remote:
    """An object, function or class of the code. `level`: how far the tests rely on its word.

    specials  its special methods, without underscores; of an object that extends a built-in type those of its own class
    base      that built-in type
    """

    def __init__(
        self,
        peer: Peer,
        handle: int,
        kind: str,
        names: list[str],
        specials: frozenset[str],
        base: str = "",
        level: str = trust_levels.GIVEN,
    ) -> None:
        fields = {
            "peer": peer,
            "handle": handle,
            "kind": kind,
            "names": names,
            "specials": specials,
            "base": base,
            "standing": level,
        }
        self.__dict__.update({f"_llm_{name}": value for name, value in fields.items()})

    def _llm_apply(self, name: str, *args: Any, grants: str = trust_levels.GIVEN) -> Any:
        peer = self._llm_peer
        trusted = self._llm_standing in trust_levels.TRUSTED
        encoded = [peer.encode(arg) for arg in args]
        request = {"name": name, "on": self._llm_handle, "args": encoded}
        watched = self._llm_standing != trust_levels.MADE  # tests of a class ask its objects as they please
        return peer.ask("apply", trusted=trusted, grants=grants, watched=watched, **request)

    def _llm_plain(self) -> Any:
        """The value of the built-in type that the object extends. It is read by that type's own methods."""
        peer = self._llm_peer
        if self._llm_handle in peer.plain:
            return peer.plain[self._llm_handle]
        value = self._llm_apply("plain")
        if type(value).__name__ != self._llm_base:
            raise Tampered(f"a {type(value).__name__} as the value of a {self._llm_base}")
        if (
            self._llm_standing != trust_levels.MADE or self._llm_base not in _MUTABLE
        ):  # else it could be another each time it is looked at
            peer.plain[self._llm_handle] = value
        return value

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__") and name not in _METADATA:
            raise AttributeError(name)
        if self._llm_base and name not in self._llm_specials and name not in _CHANGING:
            if hasattr(getattr(builtins, self._llm_base), name):
                return getattr(self._llm_plain(), name)
        value = self._llm_apply("getattr", name)
        if not isinstance(value, Remote) or name in _OF_GENERATORS:
            return value
        if value._llm_kind != "object" and not trust_levels.may_call(
            self._llm_standing, self._llm_is_of_named_class, name
        ):
            self._llm_peer.note(f"{name} of a {self._llm_names[0]} is called, and the tests do not name its class")
            # It would be told what is expected, in its arguments or by its name.
            raise AttributeError(
                f"{name} of a {self._llm_names[0]} is not called: tests may do so only on objects of a class that they "
                "name, or if they share a process with the code (trust: in_process)"
            )
        if self._llm_standing == trust_levels.CLASS and value._llm_kind == "class":
            return self._llm_peer.named(name, value)
        if self._llm_standing in trust_levels.TRUSTED and value._llm_kind == "function":
            value.__dict__["_llm_standing"] = trust_levels.METHOD
        return value

    @property
    def _llm_is_of_named_class(self) -> bool:
        """Whether it says so."""
        of_class = self._llm_kind in ("object", "function")
        return of_class and not self._llm_peer.named_classes.isdisjoint(self._llm_names)

    def __setattr__(self, name: str, value: Any) -> None:
        self._llm_apply("setattr", name, value)

    def __delattr__(self, name: str) -> None:
        self._llm_apply("delattr", name)

    def __instancecheck__(self, instance: Any) -> bool:
        return isinstance(instance, Remote) and self._llm_names[0] in instance._llm_names

    def __subclasscheck__(self, kind: Any) -> bool:
        return isinstance(kind, Remote) and self._llm_names[0] in kind._llm_names

    @property
    def __bases__(self) -> tuple[Any, ...]:
        if self._llm_kind != "class":
            raise AttributeError("__bases__")
        return ()

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        self._llm_peer.note(f"the tests extend {self._llm_names[0]} of the code")
        raise TypeError("a class of the code cannot be extended here")

    def __reduce_ex__(self, protocol: Any) -> Any:
        self._llm_peer.note(f"a {self._llm_names[0]} of the code is pickled")
        raise TypeError("an object of the code cannot be pickled here")

    def __copy__(self) -> Any:
        return self._llm_apply("copy")

    def __deepcopy__(self, memo: Any) -> Any:
        return self._llm_apply("deepcopy")

    __eq__ = _compares("eq", False)
    __ne__ = _compares("ne", True)
    __lt__ = _compares("lt", NotImplemented)
    __le__ = _compares("le", NotImplemented)
    __gt__ = _compares("gt", NotImplemented)
    __ge__ = _compares("ge", NotImplemented)
    __str__, __repr__ = _asks("str"), _asks("repr")

    def __hash__(self) -> int:
        return hash(self._llm_handle)


_MUTABLE = frozenset({"list", "dict", "set", "bytearray"})
_METADATA = frozenset(
    "__name__ __qualname__ __doc__ __module__ __annotations__ __defaults__ __kwdefaults__ __wrapped__ __dict__".split()
)
_OF_GENERATORS = frozenset({"send", "close", "throw"})
_CHANGING = frozenset(
    "append extend insert pop remove clear sort reverse update setdefault popitem add discard difference_update "
    "intersection_update symmetric_difference_update".split()
)
_METHODS: dict[str, Callable[..., Any]] = {
    **{name: _asks(name) for name in ASKED},
    **{name: _computes(name) for name in (*BINARY, *(f"r{name}" for name in BINARY), *UNARY, *IN_PLACE)},
    "iter": _iterates("iter"),
    "reversed": _iterates("reversed"),
    "contains": _contains,
    "enter": _enter,
    "exit": _exit,
    **{name: _awaits(name) for name in ("anext", "aenter", "aexit")},
    "await": _await,
    "aiter": _iterates("aiter"),
}
_ALWAYS = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "str", "repr", "call", "copy", "deepcopy"})
_classes: dict[tuple[Any, ...], type[Remote]] = {}


def remote(
    peer: Peer,
    handle: int,
    kind: str,
    names: list[str],
    specials: frozenset[str],
    base: str = "",
    level: str = trust_levels.GIVEN,
) -> Remote:
    """A proxy whose class has just the special methods that the object has."""
    key = names[0], specials, base
    made = _classes.get(key)
    if made is None:
        made = _classes[key] = type(names[0], (Remote,), _namespace(specials, base))
    return made(peer, handle, kind, names, specials, base, level)


def _namespace(specials: frozenset[str], base: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {
        f"__{n}__": _METHODS[n] for n in sorted(specials) if n in _METHODS and n not in _ALWAYS
    }
    if "call" in specials:
        namespace["__call__"] = _call
    namespace["__doc__"] = property(lambda self: self._llm_apply("getattr", "__doc__"))
    if "class_getitem" in specials:
        namespace["__getitem__"] = _asks("getitem")
    if "no_hash" in specials:
        namespace["__hash__"] = None
    if base:
        builtin = getattr(builtins, base)
        for name in _METHODS:
            if name not in specials and hasattr(builtin, f"__{name}__") and name not in _ALWAYS:
                changes = name in ("setitem", "delitem") or (name in IN_PLACE and builtin in (list, dict, set))
                namespace[f"__{name}__"] = _asks(name) if changes else _of_plain(name)
        namespace["__class__"] = property(lambda self: builtin)
        if builtin.__hash__ is None:
            namespace["__hash__"] = None
        elif "hash" not in specials:
            namespace["__hash__"] = _of_plain("hash")
        if "str" not in specials and "repr" not in specials:
            namespace["__str__"] = _of_plain("str")
    return namespace


def _of_plain(name: str) -> Callable[..., Any]:
    """A special method of the built-in type that an object extends, on its value here."""

    def method(self: Remote, *args: Any) -> Any:
        args = tuple(arg._llm_plain() if isinstance(arg, Remote) and arg._llm_base else arg for arg in args)
        return getattr(self._llm_plain(), f"__{name}__")(*args)

    return method


async def _awaiting(remote: Remote) -> Any:
    """A coroutine of this process whose result is the candidate's coroutine's."""
    return remote._llm_apply("await")
