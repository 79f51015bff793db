"""What can be done with an object of the other process: one plain function for each operation."""

import builtins
import copy
import math
import operator
from collections.abc import Callable
from typing import Any

_loop: Any = None


def run_coroutine(awaitable: Any) -> Any:
    """Run to its end, on one event loop for all: an asynchronous generator lives on between its items."""
    import asyncio  # heavy, and few tests need it

    global _loop

    async def wait() -> Any:
        return await awaitable

    if _loop is None:
        _loop = asyncio.new_event_loop()
    return _loop.run_until_complete(wait())


def _reflected(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda right, left: function(left, right)


def _exit(manager: Any, kind: Any = None, error: Any = None, trace: Any = None) -> bool:
    return bool(type(manager).__exit__(manager, kind, error, None))


BINARY = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift divmod".split()
UNARY = "neg pos abs invert".split()
COMPARISONS = "eq ne lt le gt ge".split()
IN_PLACE = "iadd isub imul itruediv ifloordiv imod ipow imatmul iand ior ixor ilshift irshift".split()
ASKED = (
    "len str repr bool int float complex index getitem setitem delitem iter next enter hash format round trunc floor "
    "ceil reversed copy deepcopy aiter"
).split()
AWAITED = "anext aenter aexit await".split()

FUNCTIONS: dict[str, Callable[..., Any]] = {
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
    "enter": lambda manager: type(manager).__enter__(manager),
    "exit": _exit,
    "await": run_coroutine,
    "anext": lambda iterator: run_coroutine(type(iterator).__anext__(iterator)),
    "aenter": lambda manager: run_coroutine(type(manager).__aenter__(manager)),
    "aexit": lambda manager: run_coroutine(type(manager).__aexit__(manager, None, None, None)),
}

SPECIALS = frozenset((*FUNCTIONS, "call", "class_getitem")) - {"getattr", "setattr", "delattr", "isinstance"}
"""Special methods, without underscores, of which the other process is told that a class has them."""


def specials_in(namespaces: list[Any]) -> list[str]:
    """The special methods that any of these class namespaces has; "no_hash" where hashing is ruled out."""
    found = {name[2:-2] for names in namespaces for name in names if name[:2] == "__" == name[-2:]} & SPECIALS
    hashing = next((names["__hash__"] for names in namespaces if "__hash__" in names), True)
    if hashing is None:
        found = found - {"hash"} | {"no_hash"}
    return sorted(found)
