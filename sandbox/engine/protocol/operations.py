"""Operations on objects of the other process: one function for each."""

import builtins
import copy
import math
import operator
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol


class _EventLoop(Protocol):
    def run_until_complete(self, future: Awaitable[object]) -> object: ...


_loop: _EventLoop | None = None


def run_coroutine(awaitable: Awaitable[object]) -> object:
    """Run an awaitable to its end. All share one event loop, which an asynchronous generator needs between items."""
    import asyncio  # takes long to import, and few tests need it

    global _loop

    async def wait() -> object:
        return await awaitable

    if _loop is None:
        _loop = asyncio.new_event_loop()
    return _loop.run_until_complete(wait())


def _reflected(function: Callable[[object, object], object]) -> Callable[[object, object], object]:
    return lambda right, left: function(left, right)


def _exit(manager: object, kind: object = None, error: object = None, trace: object = None) -> bool:
    leave = getattr(type(manager), "__exit__")  # noqa: B009
    return bool(leave(manager, kind, error, None))


def _aexit(manager: object, kind: object = None, error: object = None) -> bool:
    leave = getattr(type(manager), "__aexit__")  # noqa: B009
    return bool(run_coroutine(leave(manager, kind, error, None)))


BINARY = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift divmod".split()
UNARY = "neg pos abs invert".split()
COMPARISONS = "eq ne lt le gt ge".split()
IN_PLACE = "iadd isub imul itruediv ifloordiv imod ipow imatmul iand ior ixor ilshift irshift".split()
ASKED = (
    "len str repr bool int float complex index getitem setitem delitem iter next enter hash format round trunc floor "
    "ceil reversed copy deepcopy aiter"
).split()
AWAITED = "anext aenter aexit await".split()
OF_GENERATORS = "send throw close".split()

FUNCTIONS: dict[str, Callable[..., object]] = {
    **{name: getattr(operator, name) for name in (*COMPARISONS, *UNARY, *IN_PLACE)},
    **{name: getattr(operator, f"__{name}__") for name in BINARY if name != "divmod"},
    "divmod": divmod,
    **{f"r{name}": _reflected(getattr(operator, f"__{name}__")) for name in BINARY if name != "divmod"},
    "rdivmod": _reflected(divmod),
    **{name: getattr(builtins, name) for name in "len str repr bool int float complex iter next hash format".split()},
    **{name: getattr(builtins, name) for name in "round reversed getattr setattr delattr isinstance aiter".split()},
    **{name: getattr(operator, name) for name in "index getitem setitem delitem contains".split()},
    **{name: getattr(math, name) for name in ("trunc", "floor", "ceil")},
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "send": lambda generator, value: generator.send(value),
    "throw": lambda generator, *error: generator.throw(*error),
    "close": lambda generator: generator.close(),
    "enter": lambda manager: type(manager).__enter__(manager),
    "exit": _exit,
    "await": run_coroutine,
    "anext": lambda iterator: run_coroutine(type(iterator).__anext__(iterator)),
    "aenter": lambda manager: run_coroutine(type(manager).__aenter__(manager)),
    "aexit": _aexit,
}

RESUMES = frozenset({"enter", "exit", "next", *AWAITED, *OF_GENERATORS})
"""Operations that continue the code of an earlier call, which may change the arguments of that call."""

ENDING = frozenset({"next", "send", "throw", "anext"})
"""Operations of an iterator that may end it."""

SPECIALS = frozenset((*FUNCTIONS, "call", "class_getitem")) - {
    *("getattr", "setattr", "delattr", "isinstance"),
    *OF_GENERATORS,
}
"""Special methods, without underscores, that are reported to the other process if a class has them."""


def specials_in(namespaces: Sequence[Mapping[str, object]]) -> list[str]:
    """Return the special methods that any of these class namespaces has; "no_hash" for a class without a hash."""
    found = {name[2:-2] for names in namespaces for name in names if name[:2] == "__" == name[-2:]} & SPECIALS
    hashing = next((names["__hash__"] for names in namespaces if "__hash__" in names), True)
    if hashing is None:
        found = found - {"hash"} | {"no_hash"}
    return sorted(found)
