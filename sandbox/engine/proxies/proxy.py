"""Proxies for objects of the code.

They request each operation from the candidate's process, and trust no verdict of it.
Tests compare built-in values of their own process. An object of the code's own class never equals a built-in value.
Its `__eq__` is not called for that, because the call would send the expected value to the code. Methods are called only
on objects of a class that the tests name (see `trust_levels`), and two objects are compared by the code's `__eq__` only
if the tests name a class of the code. A function that the code returned may always be called.

The special methods of a proxy are in `special_methods`, which also creates proxies.
"""

import builtins
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from . import trust_levels
from .errors import Tampered


class CandidateConnection(Protocol):
    """The methods of the connection to the candidate (`Peer`) that proxies use."""

    @property
    def named_classes(self) -> Mapping[str, "Proxy"]: ...

    plain_values: dict[int, object]
    raise_lines: frozenset[int]

    def apply(
        self, handle: int, name: str, args: tuple[object, ...], *, trusted: bool, grants: str, watched: bool
    ) -> object: ...

    def call(
        self,
        handle: int,
        args: tuple[object, ...],
        kwargs: dict[str, object],
        *,
        trusted: bool = ...,
        grants: str = ...,
    ) -> object: ...

    def named(self, name: str, value: "Proxy") -> "Proxy": ...

    def note(self, reason: str) -> None: ...

    def forbid(self, reason: str) -> None: ...


@dataclass(slots=True)
class ProxyState:
    """The fields of a proxy, apart from the attributes of the object that it stands for.

    handle    the number of the object in the candidate's process
    kind      object, function, class, module, coroutine or exception
    names     names of its class and the bases, or of the class itself and its bases
    base      the built-in type that its class extends, or ""
    specials  its special methods, without underscores; if there is a base, only those of its own class
    trust     see `trust_levels`
    """

    peer: CandidateConnection
    handle: int
    kind: str
    names: list[str]
    specials: frozenset[str]
    base: str = ""
    trust: str = trust_levels.GIVEN

    @property
    def class_name(self) -> str:
        return self.names[0]

    @property
    def is_of_named_class(self) -> bool:
        """Whether the object reports a class that the tests name."""
        return self.kind in ("object", "function") and any(name in self.peer.named_classes for name in self.names)


_STATE = "_llm_state"


def state_of(proxy: "Proxy") -> ProxyState:
    """Return the fields of a proxy."""
    state: ProxyState = proxy.__dict__[_STATE]
    return state


def apply(proxy: "Proxy", name: str, *args: object, grants: str = trust_levels.GIVEN) -> object:
    """Ask the candidate to apply an operation to the object, and return the result."""
    state = state_of(proxy)
    return state.peer.apply(
        state.handle,
        name,
        args,
        trusted=state.trust in trust_levels.TRUSTED,
        grants=grants,
        watched=state.trust != trust_levels.MADE,  # tests of a class may change its objects in any way
    )


def plain_value(proxy: "Proxy") -> object:
    """Return the value of the built-in type that the object extends, read by that type's own methods."""
    state = state_of(proxy)
    values = state.peer.plain_values
    if state.handle in values:
        return values[state.handle]
    value = apply(proxy, "plain")
    if type(value).__name__ != state.base:
        raise Tampered(f"a {type(value).__name__} as the value of a {state.base}")
    # An object that the tests created may change; any other could return a different value each time, so it is kept.
    if state.trust != trust_levels.MADE or state.base not in _MUTABLE:
        values[state.handle] = value
    return value


def class_of(value: object, read: Callable[[object], object]) -> object:
    """Return `read(value)`; for an object of the code, the proxy for its class if the tests name that class.

    read  `type`, or the attribute `__class__`, which differs from it for mocks
    """
    if not isinstance(value, Proxy):
        return read(value)
    state = state_of(value)
    named = state.peer.named_classes.get(state.class_name) if state.kind in ("object", "function") else None
    if named is not None:
        return named
    return type(value) if state.base else value.__class__  # a generator's is the type of generators


def itself_if_same(proxy: "Proxy", result: object) -> object:
    """Return the proxy itself if the result is the same object of the code, else the result."""
    return proxy if isinstance(result, Proxy) and state_of(result).handle == state_of(proxy).handle else result


class Proxy:
    """Proxy for an object, function or class of the code. `special_methods.make_proxy` adds special methods."""

    def __init__(self, state: ProxyState) -> None:
        self.__dict__[_STATE] = state

    def __getattr__(self, name: str) -> object:
        if name.startswith("__") and name.endswith("__") and name not in _METADATA:
            raise AttributeError(name)
        state = state_of(self)
        if state.base and name not in state.specials and name not in _MUTATING:
            if hasattr(getattr(builtins, state.base), name):
                return getattr(plain_value(self), name)
        value = apply(self, "getattr", name)
        if not isinstance(value, Proxy) or name in _GENERATOR_METHODS:
            return value
        found = state_of(value)
        if found.kind != "object" and not trust_levels.may_call(state.trust, state.is_of_named_class, name):
            state.peer.note(f"{name} of a {state.class_name} is called, and the tests do not name its class")
            # The method would receive the expected value, or its name alone would show what is expected.
            raise AttributeError(
                f"{name} of a {state.class_name} is not called: tests may do so only on objects of a class that they "
                "name, or if they share a process with the code (trust: in_process)"
            )
        if state.trust == trust_levels.CLASS and found.kind == "class":
            return state.peer.named(name, value)
        if state.trust in trust_levels.TRUSTED and found.kind == "function":
            found.trust = trust_levels.METHOD
        return value

    def __setattr__(self, name: str, value: object) -> None:
        apply(self, "setattr", name, value)

    def __delattr__(self, name: str) -> None:
        apply(self, "delattr", name)

    def __instancecheck__(self, instance: object) -> bool:
        return isinstance(instance, Proxy) and state_of(self).class_name in state_of(instance).names

    def __subclasscheck__(self, kind: object) -> bool:
        return isinstance(kind, Proxy) and state_of(self).class_name in state_of(kind).names

    @property
    def __bases__(self) -> tuple[type, ...]:
        if state_of(self).kind != "class":
            raise AttributeError("__bases__")
        return ()

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        state = state_of(self)
        state.peer.note(f"the tests extend {state.class_name} of the code")
        raise TypeError("a class of the code cannot be extended here")

    def __reduce_ex__(self, protocol: object) -> str:
        state = state_of(self)
        state.peer.note(f"a {state.class_name} of the code is pickled")
        raise TypeError("an object of the code cannot be pickled here")

    def __copy__(self) -> object:
        return apply(self, "copy")

    def __deepcopy__(self, memo: object) -> object:
        return apply(self, "deepcopy")


_MUTABLE = frozenset({"list", "dict", "set", "bytearray"})
_METADATA = frozenset(
    "__name__ __qualname__ __doc__ __module__ __annotations__ __defaults__ __kwdefaults__ __wrapped__ __dict__".split()
)
_GENERATOR_METHODS = frozenset({"send", "close", "throw"})
_MUTATING = frozenset(
    "append extend insert pop remove clear sort reverse update setdefault popitem add discard difference_update "
    "intersection_update symmetric_difference_update".split()
)
