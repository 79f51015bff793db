"""Special methods of proxies, and classes of proxies with exactly the special methods of their object."""

import builtins
import types
from collections.abc import Callable, Generator, Iterable
from typing import cast

from ..protocol.operations import ASKED, BINARY, IN_PLACE, OF_GENERATORS, UNARY, specials_in
from . import trust_levels
from .proxy import Proxy, ProxyState, apply, itself_if_same, plain_value, state_of

Method = Callable[..., object]


def asks(name: str) -> Method:
    """Return a method that asks the candidate to apply an operation."""

    def method(self: Proxy, *args: object) -> object:
        return apply(self, name, *args)

    return method


# ---- comparisons ----------------------------------------------------------------------------------------------------

_MIRRORED = {"eq": "eq", "ne": "eq", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def compares(name: str, if_unequal: object) -> Method:
    """Return a comparison. The code decides it only between its own objects in tests that name one of its classes.

    The code also orders objects that the tests created. It does not order others, or every result would be sorted.
    """

    def method(self: Proxy, other: object) -> object:
        state = state_of(self)
        peer = state.peer
        has_method = not state.specials.isdisjoint((name, _MIRRORED[name]))
        if not isinstance(other, Proxy) or (state.base and state_of(other).base and not has_method):
            if has_method:
                peer.note(f"a {state.class_name} of the code is compared with a built-in value by its own __{name}__")
            return _compare_values(name, self, other, if_unequal) if state.base else if_unequal
        other_state = state_of(other)
        if name in ("eq", "ne"):
            if state.handle == other_state.handle:
                return name == "eq"
            if peer.named_classes:
                return apply(self, name, other)
        elif {state.trust, other_state.trust} & trust_levels.COMPUTES:
            return apply(self, name, other)
        if has_method:
            peer.note(f"objects of the code are compared by their own __{name}__, and the tests did not make them")
        return name == "ne" if name in ("eq", "ne") else if_unequal

    return method


def _compare_values(name: str, left: Proxy, right: object, if_unequal: object) -> object:
    """Compare objects that extend built-in types by their values, in this process."""
    if isinstance(right, Proxy):
        right = plain_value(right)
    result = getattr(plain_value(left), f"__{name}__")(right)
    return if_unequal if result is NotImplemented and name in ("eq", "ne") else result


# ---- arithmetic -----------------------------------------------------------------------------------------------------


def computes(name: str) -> Method:
    """Return an arithmetic operator.

    With a built-in operand the result must be an object of the code again. If it were a number, the code could have
    chosen it after it received the expected one.
    """

    def method(self: Proxy, *others: object) -> object:
        state = state_of(self)
        is_made = state.trust in trust_levels.COMPUTES
        has_built_in_operand = not all(isinstance(other, Proxy) for other in others)
        if not (is_made if has_built_in_operand else is_made or state.peer.named_classes):
            state.peer.note(f"a {state.class_name} of the code, which the tests did not make, takes part in {name}")
            if others:
                return NotImplemented
            raise TypeError(f"bad operand type for {name}: '{state.class_name}'")
        result = apply(self, name, *others, grants=trust_levels.DERIVED if is_made else trust_levels.GIVEN)
        if isinstance(result, Proxy):
            return itself_if_same(self, result)
        if (not others and state.trust == trust_levels.MADE) or (others and not has_built_in_operand):
            return result
        problem = f"{name} of an object of the code and a built-in value gave a built-in value"
        state.peer.note(problem)
        raise TypeError(problem)

    return method


# ---- calls, iteration, context managers, coroutines -----------------------------------------------------------------


def _call(self: Proxy, *args: object, **kwargs: object) -> object:
    state = state_of(self)
    if state.kind not in ("function", "class"):
        raise TypeError(f"'{state.class_name}' object is not callable")
    grants = trust_levels.MADE if state.trust == trust_levels.CLASS else trust_levels.GIVEN
    return state.peer.call(state.handle, args, kwargs, trusted=state.trust in trust_levels.TRUSTED, grants=grants)


def _returns_object(name: str) -> Method:
    """Return a method whose result may be the object itself, such as `__iter__` of an iterator."""

    def method(self: Proxy) -> object:
        return itself_if_same(self, apply(self, name))

    return method


def _contains(self: Proxy, wanted: object) -> bool:
    """Search the items in this process: the object's own `__contains__` would receive the expected value.

    The `__contains__` of objects that the tests created is called.
    """
    state = state_of(self)
    if state.trust == trust_levels.MADE:
        return bool(apply(self, "contains", wanted))
    state.peer.note(f"a {state.class_name} of the code is asked what it contains, and the tests name no class of it")
    if "iter" not in state.specials:
        return False
    return any(item is wanted or item == wanted for item in cast(Iterable[object], self))


def _exit(self: Proxy, kind: object, error: object, trace: types.TracebackType | None) -> bool:
    """Let the code suppress only exceptions that statements of the block itself raise, so that no assert is skipped.

    Only objects that the tests made may do that. Others see these exceptions.
    """
    if kind is None:
        apply(self, "exit")
        return False
    shown = _shown_exception(self, kind, error, trace)
    return _may_suppress(self, shown[1] is error) if apply(self, "exit", *shown) else False


async def _aexit(self: Proxy, kind: object, error: object, trace: types.TracebackType | None) -> bool:
    if kind is None:
        apply(self, "aexit")
        return False
    shown = _shown_exception(self, kind, error, trace)
    return _may_suppress(self, shown[1] is error) if apply(self, "aexit", *shown) else False


def _shown_exception(
    self: Proxy, kind: object, error: object, trace: types.TracebackType | None
) -> tuple[object, object]:
    """Return the exception that leaves a block if a statement of the block itself raises it, else another one."""
    peer = state_of(self).peer
    if not isinstance(error, Exception) or isinstance(error, AssertionError):
        return Exception, Exception()  # the text of the real one may show the expected value
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is not None and trace.tb_frame.f_code.co_filename == "<tests>" and trace.tb_lineno in peer.raise_lines:
        return kind, error
    peer.note("a context manager of the code does not see which exception leaves its block")
    return Exception, Exception()


def _may_suppress(self: Proxy, is_of_block: bool) -> bool:
    """Return whether the code may suppress an exception, as it wants to."""
    state = state_of(self)
    is_intended = is_of_block and state.trust == trust_levels.MADE
    if not is_intended:  # tests could pass because the exception is raised all the same
        state.peer.forbid("a context manager of the code swallows an exception of the tests")
    return is_intended


def _awaits(name: str) -> Method:
    async def method(self: Proxy, *_: object) -> object:
        try:
            result = apply(self, name)
        except StopIteration:
            raise StopAsyncIteration from None
        return itself_if_same(self, result)

    return method


async def as_coroutine(proxy: Proxy) -> object:
    """Run the candidate's coroutine when this one is awaited."""
    return apply(proxy, "await")


def _await(self: Proxy) -> Generator[object, None, object]:
    return as_coroutine(self).__await__()


def _hash(self: Proxy) -> int:
    return hash(state_of(self).handle)


# ---- classes of proxies ---------------------------------------------------------------------------------------------

METHODS: dict[str, Method] = {
    **{name: asks(name) for name in ASKED},
    **{name: computes(name) for name in (*BINARY, *(f"r{name}" for name in BINARY), *UNARY, *IN_PLACE)},
    **{name: _returns_object(name) for name in ("iter", "reversed", "aiter", "enter")},
    "contains": _contains,
    "exit": _exit,
    **{name: _awaits(name) for name in ("anext", "aenter")},
    "aexit": _aexit,
    "await": _await,
}
_COMPARISONS: dict[str, Method] = {
    "eq": compares("eq", False),
    "ne": compares("ne", True),
    **{name: compares(name, NotImplemented) for name in ("lt", "le", "gt", "ge")},
}
_IN_EVERY_PROXY = frozenset({*_COMPARISONS, "str", "repr", "call", "copy", "deepcopy"})
_GENERATORS: dict[str, type] = {kind.__name__: kind for kind in (types.GeneratorType, types.AsyncGeneratorType)}
_classes: dict[tuple[str, frozenset[str], str], type[Proxy]] = {}


def make_proxy(state: ProxyState) -> Proxy:
    """Return a proxy whose class has exactly the special methods of the object."""
    key = state.class_name, state.specials, state.base
    made = _classes.get(key)
    if made is None:
        made = _classes[key] = type(state.class_name, (Proxy,), _namespace(*key))
    return made(state)


def _namespace(class_name: str, specials: frozenset[str], base: str) -> dict[str, object]:
    namespace: dict[str, object] = {f"__{name}__": method for name, method in _COMPARISONS.items()}
    namespace |= {"__str__": asks("str"), "__repr__": asks("repr"), "__hash__": _hash}
    namespace |= {f"__{n}__": METHODS[n] for n in sorted(specials) if n in METHODS and n not in _IN_EVERY_PROXY}
    if "call" in specials:
        namespace["__call__"] = _call
    namespace["__doc__"] = property(lambda self: apply(self, "getattr", "__doc__"))
    if "class_getitem" in specials:
        namespace["__getitem__"] = asks("getitem")
    if "no_hash" in specials:
        namespace["__hash__"] = None
    if base:
        namespace |= _methods_of_base(specials, base)
    generator = _GENERATORS.get(class_name)
    if generator is not None and specials == frozenset(specials_in([vars(generator)])):
        # For `isinstance`. The code chooses the name, but an object with only these methods does what a generator does.
        namespace["__class__"] = property(lambda self: generator)
        if generator is types.GeneratorType:
            namespace |= {name: asks(name) for name in OF_GENERATORS}
    return namespace


def _methods_of_base(specials: frozenset[str], base: str) -> dict[str, object]:
    """Return the special methods that an object inherits from the built-in type that it extends."""
    builtin: type = getattr(builtins, base)
    namespace: dict[str, object] = {"__class__": property(lambda self: builtin)}
    for name in METHODS:
        if name not in specials and hasattr(builtin, f"__{name}__") and name not in _IN_EVERY_PROXY:
            changes = name in ("setitem", "delitem") or (name in IN_PLACE and builtin in (list, dict, set))
            namespace[f"__{name}__"] = asks(name) if changes else _of_plain_value(name)
    if builtin.__hash__ is None:
        namespace["__hash__"] = None
    elif "hash" not in specials:
        namespace["__hash__"] = _of_plain_value("hash")
    if "str" not in specials and "repr" not in specials:
        namespace["__str__"] = _of_plain_value("str")
    return namespace


def _of_plain_value(name: str) -> Method:
    """Return a special method of the built-in type that an object extends, applied to its value in this process."""

    def method(self: Proxy, *args: object) -> object:
        args = tuple(plain_value(arg) if isinstance(arg, Proxy) and state_of(arg).base else arg for arg in args)
        return getattr(plain_value(self), f"__{name}__")(*args)

    return method
