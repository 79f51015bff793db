"""Conversion between values of the tests' process and their encodings in messages to and from the candidate."""

import builtins
import types

from ..protocol import codec, replies
from ..protocol.graph import Builder, Flattener, is_simple
from ..protocol.values import attributes_of, crosses_by_value, known_type, library_name, named_tuple, rebuild
from . import passed_objects, trust_levels
from .errors import RemoteError
from .proxy import CandidateConnection, Proxy, ProxyState, state_of
from .special_methods import as_coroutine, make_proxy

_BUILT_IN_VALUES = (list, dict, tuple, set, frozenset, str, int, float, complex, bytes, bytearray)
_MAX_CAUSES = 5
ORIGIN = "_llm_remote"
"""Attribute of an exception that the code raised: its type, message and line there."""


class ValueConverter:
    """Encodes values for the candidate and restores its replies; keeps what each side refers to by number."""

    def __init__(self, peer: CandidateConnection, namespace: dict[str, object], shared_names: list[str]) -> None:
        """
        namespace     the names of the tests and of the prompt
        shared_names  classes of the prompt, which both processes define
        """
        self._peer = peer
        self._namespace = namespace
        self._shared_names = shared_names
        self._found_shared: dict[str, type] | None = None
        self._proxies: dict[int, Proxy] = {}  # by handle
        self._exception_classes: dict[str, type[BaseException]] = {}  # of the code, by name
        self._exception_handles: dict[type[BaseException], int] = {}
        self._passed_exceptions: dict[str, type[BaseException]] = {}  # of the tests, by name
        self._numbers: dict[int, int] = {}  # id(object of the tests) -> its index in `passed`
        self.passed: list[object] = []  # objects of the tests that were passed to the code
        self.is_reply_trusted = (
            False  # whether the reply being read comes from an object of a class that the tests name
        )

    @property
    def shared(self) -> dict[str, type]:
        """Classes that this process and the candidate's both define."""
        if self._found_shared is None:
            found = {name: self._namespace.get(name) for name in self._shared_names}
            self._found_shared = {
                name: kind for name, kind in found.items() if isinstance(kind, type) and crosses_by_value(kind)
            }
        return self._found_shared

    def has_proxy(self, handle: int) -> bool:
        return handle in self._proxies

    # ---- encoding ---------------------------------------------------------------------------------------------------

    def encode(self, value: object) -> object:
        """Return the encoding of one value, nested or as a graph."""
        if is_simple(value, self.shared):
            return codec.encode(value, self.export)
        flat = Flattener(self.export, self.shared)
        root = flat.child(value)
        return {"z": [flat.nodes(), root]}

    def export(self, value: object) -> dict[str, object] | None:
        """Return the encoding of a value that the codec has no tag for; None if there is none."""
        if isinstance(value, Proxy):
            return {"r": state_of(value).handle}
        shared = attributes_of(value, self.shared)
        if shared is not None:
            name, attributes = shared
            return {"v": [name, self.encode(attributes)]}
        library = library_name(value)
        if library:
            return {"g": library}
        if isinstance(value, type) and issubclass(value, BaseException):
            return self.export_exception_class(value)
        if isinstance(value, BaseException):
            kind = self.export_exception_class(type(value))
            return {"e": [kind, codec.encode(tuple(value.args), self.export)]}
        if passed_objects.may_pass_object(value):
            of = value if isinstance(value, type) else type(value)
            names = [base.__name__ for base in of.__mro__]
            return {"j": [self.number_of(value), names, passed_objects.specials_of(value)]}
        if isinstance(value, (*_BUILT_IN_VALUES, types.ModuleType)):
            self._peer.note(f"the code is given a {type(value).__name__} of the tests")
            return None
        if callable(value):
            about = [getattr(value, name, None) for name in ("__name__", "__qualname__", "__doc__")]
            return {"k": [self.number_of(value), *(text if type(text) is str else None for text in about)]}
        return None

    def export_exception_class(self, kind: type[BaseException]) -> dict[str, object]:
        if kind in self._exception_handles:
            return {"r": self._exception_handles[kind]}
        bases = [base.__name__ for base in kind.__mro__ if base is not object]
        if kind.__module__ != "builtins":
            self._passed_exceptions.setdefault(kind.__name__, kind)
        return {"E": [self.number_of(kind), bases]}

    def number_of(self, value: object) -> int:
        """Return the number under which the code may use an object of the tests."""
        number = self._numbers.get(id(value))
        if number is None:
            number = self._numbers[id(value)] = len(self.passed)
            self.passed.append(value)
        return number

    # ---- decoding ---------------------------------------------------------------------------------------------------

    def decode(self, data: object) -> object:
        return codec.decode(data, self.restore)

    def builder(self, known: tuple[object, ...] = ()) -> Builder:
        """Return a builder of the objects that numbered nodes describe; `known`: those that exist already."""
        return Builder(self.restore, self.shared, known, self._restore_part)

    def restore(self, tag: str, content: object) -> object:
        """Return the value of a tag that only the candidate writes. Raises CodecError."""
        if tag == "h":
            return self._restore_handle(content)
        if tag == "k":
            if not (type(content) is int and 0 <= content < len(self.passed)):
                raise codec.CodecError("a function that it was not given")
            return self.passed[content]
        if tag == "g":
            return known_type(content)
        if tag == "e":
            if not replies.is_raised(content):
                raise codec.CodecError("an exception of the wrong shape")
            return self.exception(content)
        if tag == "n+":
            return named_tuple(content, self.decode)
        if tag == "z":
            nodes, root = codec.of_type(list, content)
            builder = self.builder()
            builder.add(nodes)
            return builder.child(root)
        if tag == "v":
            return rebuild(content, self.shared, lambda data: codec.decode(data, self._restore_part))
        raise codec.CodecError(f"unknown tag {tag!r}")

    def _restore_handle(self, content: object) -> object:
        if not replies.is_handle_content(content):
            raise codec.CodecError("a handle of the wrong shape")
        state = self._state(content)
        if state.kind == "exception":
            made = self._exception_class(state.names)
            if made.__module__ != "builtins":
                self._exception_handles.setdefault(made, state.handle)
            return made
        found = self._proxies.get(state.handle)
        if found is None:
            found = self._proxies[state.handle] = make_proxy(state)
        else:
            self.note_returned(found)
        return as_coroutine(found) if state.kind == "coroutine" else found

    def _state(self, content: replies.HandleContent, trust: str = trust_levels.GIVEN) -> ProxyState:
        handle, kind, names, specials, base = content
        return ProxyState(self._peer, handle, kind, names, frozenset(specials), base, trust)

    def _restore_part(self, tag: str, content: object) -> object:
        """Return the value of a tag inside an instance of a class that both processes define."""
        if tag == "h" and replies.is_handle_content(content) and not self.has_proxy(content[0]):
            state = self._state(content, trust_levels.PART)
            if state.kind not in ("exception", "coroutine"):
                return make_proxy(state)
        return self.restore(tag, content)

    def note_returned(self, proxy: Proxy) -> None:
        """Lower the trust in an object that the code returned in the place of a value."""
        state = state_of(proxy)
        if not self.is_reply_trusted and state.trust in trust_levels.COMPUTES:
            state.trust = trust_levels.GIVEN

    # ---- exceptions of the code -------------------------------------------------------------------------------------

    def exception(self, error: replies.RaisedError, depth: int = 0) -> BaseException:
        """Return the exception that a checked description stands for."""
        origin = error["origin"]
        if origin is not None and origin < len(self.passed):
            raised_by_tests = self.passed[origin]
            if isinstance(raised_by_tests, BaseException):
                return raised_by_tests
        kind = self._exception_class(error["bases"])
        args = codec.of_type(tuple, self.decode(error["args"]))
        is_built_in = kind.__module__ == "builtins"
        try:
            made = kind(*args) if is_built_in else kind.__new__(kind, *args)
            made.args = made.args if is_built_in else args
        except Exception:
            made = RemoteError(error["message"])
        attributes = self.decode(error["attributes"])
        if type(attributes) is dict:
            for name, value in attributes.items():
                if not name.startswith("_") and not hasattr(BaseException, name):
                    _set_attribute(made, name, value)
        made.__dict__[ORIGIN] = {key: error[key] for key in ("type", "builtin", "message", "line")}
        if error["cause"] is not None and depth < _MAX_CAUSES:
            made.__cause__ = self.exception(error["cause"], depth + 1)
        return made

    def _exception_class(self, names: list[str]) -> type[BaseException]:
        """Return a class for an exception class of the code, with the same ancestry by name."""
        name = names[0]
        if name not in self._exception_classes:
            self._exception_classes[name] = self._new_exception_class(names)
        return self._exception_classes[name]

    def _new_exception_class(self, names: list[str]) -> type[BaseException]:
        name = names[0]
        built_in = getattr(builtins, name, None)
        if isinstance(built_in, type) and issubclass(built_in, BaseException):
            return built_in if _may_be_raised(built_in) else RemoteError
        own = self._passed_exceptions.get(name) or self._namespace.get(name)
        if isinstance(own, type) and issubclass(own, BaseException):
            if name in self._shared_names or self._passed_exceptions.get(name) is own:
                return own if _may_be_raised(own) else RemoteError
        return type(name, self._bases(names[1:]), {"__str__": _text_of})

    def _bases(self, names: list[str]) -> tuple[type[BaseException], ...]:
        """Return the classes that a class extends, without those that another of them extends already."""
        found: list[type[BaseException]] = []
        for i, name in enumerate(names):
            if name not in ("BaseException", "object"):
                kind = self._exception_class(names[i:])
                if not any(issubclass(other, kind) for other in found):
                    found = [*(other for other in found if not issubclass(kind, other)), kind]
        return tuple(found) or (RemoteError,)


def _set_attribute(error: BaseException, name: str, value: object) -> None:
    try:
        object.__setattr__(error, name, value)
    except (AttributeError, TypeError):
        pass  # the prompt's own class computes it


def _text_of(error: BaseException) -> str:
    """Return the text of an exception of the code, whose class may have its own `__str__`."""
    origin = error.__dict__.get(ORIGIN)
    return str(origin["message"]) if origin else BaseException.__str__(error)


def _may_be_raised(kind: type[BaseException]) -> bool:
    """Return whether tests may see this exception. StopIteration would end their loops."""
    return issubclass(kind, Exception) and not issubclass(kind, StopIteration | StopAsyncIteration)
