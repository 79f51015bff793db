"""The judge's view of the code under test: proxies that ask the candidate's process, and decide nothing by its word.

What a test compares is always a built-in value of this process. An object of the code's own class equals no built-in
value, whatever its `__eq__` says, because that would hand the expected value to the code and let it answer. Methods are
called only on objects of a class that the tests name (see `standing`), and two objects are compared by the code's
`__eq__` only if the tests name a class of it. A function that the code returns may always be called.
"""

import builtins
from _thread import allocate_lock, get_ident  # `threading` is not loaded, and few tests need it
from collections.abc import Callable, Iterator
from typing import Any

from . import codec, frames, replies, standing
from .channel import Channel, Closed
from .values import attributes_of, rebuild

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
        self._callbacks: list[Callable[..., Any]] = []
        self._objects: dict[int, Remote] = {}
        self._exceptions: dict[str, type[BaseException]] = {}
        self.unsupported = ""  # the first thing that tests did whose result here is not the one beside the code
        self._trusted = False  # whether the reply being read comes from an object of a class that the tests name
        self.named_classes: set[str] = set()  # classes of the code that the tests name
        self.on_lost: Callable[[BaseException], None] = lambda signal: None  # told before anything is raised
        self.too_large: TooLarge | None = None  # the last answer that was
        self.answered = 0  # questions answered so far
        self.found = 0  # of these, those that only gave a proxy for a name

    @property
    def shared(self) -> dict[str, Any]:
        """Classes that this process and the candidate's both define."""
        return {name: self._namespace.get(name) for name in self._shared_names}

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
        level = standing.CLASS if is_class else standing.NAMED
        return Remote(self, value._llm_handle, value._llm_kind, value._llm_names, value._llm_specials, level)

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

    def ask(
        self,
        operation: str,
        changing: tuple[Any, ...] = (),
        *,
        trusted: bool = False,
        grants: str = standing.GIVEN,
        **request: Any,
    ) -> Any:
        """The decoded answer; arguments in `changing` that the call changed are changed here too.

        trusted  whether an object of a class that the tests name is asked
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
            return self._ask(operation, changing, trusted, grants, request)
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
        self, operation: str, changing: tuple[Any, ...], trusted: bool, grants: str, request: dict[str, Any]
    ) -> Any:
        if self._channel.has_input():
            self._receive()
            raise Tampered("an answer came before its question")
        self._number += 1
        number = self._number
        self._send({"op": operation, "n": number, **request})
        asked = request["name"] if operation == "apply" else operation
        sent = request["args"] if operation == "call" else ()
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
            if error is not None:
                raise error
            return value

    def _read(
        self, reply: dict[str, Any], kind: str, changing: tuple[Any, ...], grants: str
    ) -> tuple[Any, BaseException | None]:
        """The value of a checked reply, or the exception that it stands for."""
        for index, data in reply.get("changed", {}).items():
            write_back(changing[int(index)], codec.decode(data, self.restore), self.shared)
        content = reply[kind]
        if kind == "value":
            if grants != standing.GIVEN and replies.is_handle(content) and content["h"][0] not in self._objects:
                value = codec.decode(content, self.restore)
                if isinstance(value, Remote):
                    value.__dict__["_llm_standing"] = grants
                return value, None
            return codec.decode(content, self.restore), None
        if kind == "same":
            value = changing[content]
            if isinstance(value, Remote):
                self._returned(value)
            return value, None
        if kind == "stop":
            return None, StopIteration()
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
        return codec.encode(value, self._export)

    def _export(self, value: Any) -> dict[str, Any] | None:
        if isinstance(value, Remote):
            return {"r": value._llm_handle}
        shared = attributes_of(value, self.shared)
        if shared is not None:
            name, attributes = shared
            return {"v": [name, self.encode(attributes)]}
        own_name = getattr(value, "__name__", None)
        if isinstance(own_name, str) and getattr(builtins, own_name, None) is value:
            return {"g": own_name}
        if callable(value):
            self._callbacks.append(value)
            return {"k": len(self._callbacks) - 1}
        return None

    def restore(self, tag: str, content: Any) -> Any:
        """What the candidate's tags stand for here."""
        if tag == "h":
            if not replies.is_handle_content(content):
                raise codec.CodecError("a handle of the wrong shape")
            handle, kind, names, specials = content
            if kind == "exception":
                return self._exception_class(names)
            remote = self._objects.get(handle)
            if remote is None:
                remote = self._objects[handle] = Remote(self, handle, kind, names, frozenset(specials))
            else:
                self._returned(remote)
            return _awaiting(remote) if kind == "coroutine" else remote
        if tag == "k":
            if not (replies.is_count(content) and content < len(self._callbacks)):
                raise codec.CodecError("a function that it was not given")
            return self._callbacks[content]
        if tag == "v":
            return rebuild(content, self.shared, lambda data: codec.decode(data, self._restore_part))
        raise codec.CodecError(f"unknown tag {tag!r}")

    def _restore_part(self, tag: str, content: Any) -> Any:
        """What tags stand for inside an instance of a class that this process defines too."""
        if tag == "h" and replies.is_handle_content(content) and content[0] not in self._objects:
            handle, kind, names, specials = content
            if kind not in ("exception", "coroutine"):
                return Remote(self, handle, kind, names, frozenset(specials), standing.PART)
        return self.restore(tag, content)

    def _returned(self, remote: "Remote") -> None:
        """Note that the code returned an object that is known here: in the place of a value it is not asked as one of
        the tests' own.
        """
        if not self._trusted and remote._llm_standing in standing.COMPUTES:
            remote.__dict__["_llm_standing"] = standing.GIVEN

    # ---- exceptions -------------------------------------------------------------------------------------------------

    def _exception_class(self, names: list[str]) -> type[BaseException]:
        """A class of this process that stands for an exception class of the code, with the same ancestry by name."""
        name = names[0]
        if name not in self._exceptions:
            known = getattr(builtins, name, None)
            own = self._namespace.get(name)
            if isinstance(known, type) and issubclass(known, BaseException):
                self._exceptions[name] = known if _may_be_raised(known) else RemoteError
            elif name in self._shared_names and isinstance(own, type) and issubclass(own, BaseException):
                self._exceptions[name] = own if _may_be_raised(own) else RemoteError
            else:
                base = self._exception_class(names[1:]) if len(names) > 1 else RemoteError
                self._exceptions[name] = type(name, (base,), {})
        return self._exceptions[name]

    def _exception(self, error: dict[str, Any]) -> BaseException:
        kind = self._exception_class(error["bases"])
        args = codec.decode(error["args"])
        try:
            made = kind(*args)
        except Exception:
            made = RemoteError(error["message"])
        made.__dict__["_llm_remote"] = {key: error[key] for key in ("type", "builtin", "message", "line")}
        return made

    # ---- callbacks --------------------------------------------------------------------------------------------------

    def _call_back(self, request: dict[str, Any]) -> None:
        self._trusted = False
        try:
            function = self._callbacks[request["callback"]]
            args = [codec.decode(arg, self.restore) for arg in request["args"]]
            kwargs = {str(name): codec.decode(arg, self.restore) for name, arg in request["kwargs"].items()}
        except (codec.CodecError, KeyError, IndexError, TypeError, AttributeError) as problem:
            raise Tampered(f"a call of what it was not given ({type(problem).__name__})") from None
        self.answered += 1
        try:
            reply = {"returned": self.encode(function(*args, **kwargs))}
        except Exception as error:
            reply = {"raised": type(error).__name__, "message": str(error)[:500]}
        self._send(reply)


def _may_be_raised(kind: type[BaseException]) -> bool:
    """Whether raising it in tests says no more than that the code failed. StopIteration would end loops of theirs."""
    return issubclass(kind, Exception) and not issubclass(kind, StopIteration | StopAsyncIteration)


def write_back(old: Any, new: Any, shared: dict[str, Any]) -> None:
    """Make a container of this process look like its changed copy, keeping inner containers that are still there.

    shared  classes whose instances are containers too: of any other object the code can have changed nothing
    """
    if isinstance(old, list) and isinstance(new, list):
        old[:] = [_merged(a, b, shared) for a, b in zip(old, new, strict=False)] + new[len(old) :]
    elif isinstance(old, dict) and isinstance(new, dict):
        merged = {key: _merged(old.get(key), value, shared) for key, value in new.items()}
        old.clear()
        old.update(merged)
    elif isinstance(old, set) and isinstance(new, set):
        old.clear()
        old.update(new)
    elif isinstance(old, bytearray) and isinstance(new, bytearray):
        old[:] = new
    elif type(old) is type(new) and _is_instance_of(old, shared) and hasattr(old, "__dict__"):
        old.__dict__.update(new.__dict__)


def _merged(old: Any, new: Any, shared: dict[str, Any]) -> Any:
    keeps_identity = isinstance(old, list | dict | set | bytearray) or _is_instance_of(old, shared)
    if type(old) is not type(new) or not keeps_identity:
        return new
    write_back(old, new, shared)
    return old


def _is_instance_of(value: Any, classes: dict[str, Any]) -> bool:
    return classes.get(type(value).__name__) is type(value)


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
        if not isinstance(other, Remote):
            if not self._llm_specials.isdisjoint((name, _MIRRORED[name])):
                peer.note(f"a {self._llm_names[0]} of the code is compared with a built-in value by its own __{name}__")
            return apart
        same = self._llm_handle == other._llm_handle
        if name in ("eq", "ne"):
            if same:
                return name == "eq"
            if peer.named_classes:
                return self._llm_apply(name, other)
        elif {self._llm_standing, other._llm_standing} & standing.COMPUTES:
            return self._llm_apply(name, other)
        if not self._llm_specials.isdisjoint((name, _MIRRORED[name])):
            peer.note(f"objects of the code are compared by their own __{name}__, and the tests did not make them")
        return name == "ne" if name in ("eq", "ne") else apart

    return method


_MIRRORED = {"eq": "eq", "ne": "eq", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def _computes(name: str) -> Callable[..., Any]:
    """Arithmetic on the code's objects. With a built-in operand the result must be such an object again: a number would
    be the code's word about a number that it was told.
    """

    def method(self: "Remote", *others: Any) -> Any:
        made = self._llm_standing in standing.COMPUTES
        is_told = not all(isinstance(other, Remote) for other in others)
        if not (made if is_told else made or self._llm_peer.named_classes):
            self._llm_peer.note(
                f"a {self._llm_names[0]} of the code, which the tests did not make, takes part in {name}"
            )
            if others:
                return NotImplemented
            raise TypeError(f"bad operand type for {name}: '{self._llm_names[0]}'")
        result = self._llm_apply(name, *others, grants=standing.DERIVED if made else standing.GIVEN)
        of_made = not others and self._llm_standing == standing.MADE
        if isinstance(result, Remote) or of_made or (others and not is_told):
            return result
        problem = f"{name} of an object of the code and a built-in value gave a built-in value"
        self._llm_peer.note(problem)
        raise TypeError(problem)

    return method


class Remote:
    """An object, function or class of the code. `level`: how far the tests rely on its word."""

    def __init__(
        self,
        peer: Peer,
        handle: int,
        kind: str,
        names: list[str],
        specials: frozenset[str],
        level: str = standing.GIVEN,
    ) -> None:
        fields = {
            "peer": peer,
            "handle": handle,
            "kind": kind,
            "names": names,
            "specials": specials,
            "standing": level,
        }
        self.__dict__.update({f"_llm_{name}": value for name, value in fields.items()})

    def _llm_apply(self, name: str, *args: Any, grants: str = standing.GIVEN) -> Any:
        peer = self._llm_peer
        trusted = self._llm_standing in standing.TRUSTED
        encoded = [peer.encode(arg) for arg in args]
        return peer.ask("apply", trusted=trusted, grants=grants, name=name, on=self._llm_handle, args=encoded)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._llm_kind not in ("function", "class"):
            raise TypeError(f"'{self._llm_names[0]}' object is not callable")
        encode = self._llm_peer.encode
        return self._llm_peer.ask(
            "call",
            args,
            trusted=self._llm_standing in standing.TRUSTED,
            grants=standing.MADE if self._llm_standing == standing.CLASS else standing.GIVEN,
            on=self._llm_handle,
            args=[encode(arg) for arg in args],
            kwargs={name: encode(arg) for name, arg in kwargs.items()},
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__") and name not in ("__name__", "__doc__"):
            raise AttributeError(name)
        value = self._llm_apply("getattr", name)
        if not isinstance(value, Remote):
            return value
        if value._llm_kind != "object" and not standing.may_call(self._llm_standing, self._llm_is_of_named_class, name):
            self._llm_peer.note(f"{name} of a {self._llm_names[0]} is called, and the tests do not name its class")
            # It would be told what is expected, in its arguments or by its name.
            raise AttributeError(
                f"{name} of a {self._llm_names[0]} is not called: tests may do so only on objects of a class that they "
                "name, or if they share a process with the code (trust: in_process)"
            )
        if self._llm_standing == standing.CLASS and value._llm_kind == "class":
            return self._llm_peer.named(name, value)
        if self._llm_standing in standing.TRUSTED and value._llm_kind == "function":
            value.__dict__["_llm_standing"] = standing.METHOD
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

    __eq__ = _compares("eq", False)
    __ne__ = _compares("ne", True)
    __lt__ = _compares("lt", NotImplemented)
    __le__ = _compares("le", NotImplemented)
    __gt__ = _compares("gt", NotImplemented)
    __ge__ = _compares("ge", NotImplemented)
    __hash__ = object.__hash__

    __add__, __sub__, __mul__ = _computes("add"), _computes("sub"), _computes("mul")
    __radd__, __rsub__, __rmul__ = _computes("radd"), _computes("rsub"), _computes("rmul")
    __truediv__, __floordiv__, __mod__ = _computes("truediv"), _computes("floordiv"), _computes("mod")
    __pow__, __matmul__, __neg__ = _computes("pow"), _computes("matmul"), _computes("neg")
    __and__, __or__, __xor__ = _computes("and_"), _computes("or_"), _computes("xor")
    __abs__, __pos__, __invert__ = _computes("abs"), _computes("pos"), _computes("invert")

    __len__, __str__, __repr__ = _asks("len"), _asks("str"), _asks("repr")
    __int__, __float__, __bool__ = _asks("int"), _asks("float"), _asks("bool")
    __getitem__, __setitem__, __delitem__ = _asks("getitem"), _asks("setitem"), _asks("delitem")
    __enter__ = _asks("enter")

    def __exit__(self, *_: object) -> bool:
        return bool(self._llm_apply("exit")) and False

    def __iter__(self) -> Iterator[Any]:
        iterator = self._llm_apply("iter")
        while True:
            try:
                item = iterator._llm_apply("next")
            except StopIteration:
                return
            yield item

    def __next__(self) -> Any:
        return self._llm_apply("next")

    def __contains__(self, wanted: Any) -> bool:
        # By looking, not by asking: the code's own `__contains__` would be told what is expected.
        return any(item is wanted or item == wanted for item in self)


async def _awaiting(remote: Remote) -> Any:
    """A coroutine of this process whose result is the candidate's coroutine's."""
    return remote._llm_apply("await")
