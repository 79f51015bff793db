"""What the code may do with objects of the tests that it was given: use them, not look behind them.

Nothing here may lead to an expected value: no attribute with an underscore in front, none of functions, frames,
generators or modules, none that a mock keeps its expectations in.
"""

import types
from typing import Any

from ..protocol.operations import FUNCTIONS, specials_in

TESTS = "tests"  # what a class of the tests has as its module

_FUNCTIONS = (
    types.FunctionType,
    types.MethodType,
    types.BuiltinFunctionType,
    types.MethodWrapperType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
)
_METADATA = frozenset({"__name__", "__qualname__", "__doc__", "__module__"})
_KEPT_BY_MOCKS = (
    "assert",
    "call",
    "mock",
    "return_value",
    "side_effect",
    "method_calls",
    "configure",
    "reset",
    "attach",
)
_OF_ITERATORS = frozenset({"send", "close", "throw"})


class Refused(Exception):
    """The code may not do this with an object of the tests."""


def is_lendable(value: Any) -> bool:
    """Whether the code may be given this object to use."""
    kind: Any = value if isinstance(value, type) else type(value)
    if kind.__module__ == TESTS:
        return not _is_test_case(kind)
    if isinstance(value, type):
        return False
    return _is_mock(value) or _is_iterator(value) or _is_file(value)


def specials_of(value: Any) -> list[str]:
    """The special methods of a lent object, of a class those of the class itself."""
    if isinstance(value, type):
        return ["call"]
    return specials_in([vars(base) for base in type(value).__mro__ if base is not object])


def apply(target: Any, name: str, args: list[Any]) -> Any:
    """Do what the code asks for. Raises Refused, and whatever the object raises."""
    if isinstance(target, _FUNCTIONS) or isinstance(target, type):
        if name == "getattr" and args[0] in _METADATA:
            return getattr(target, args[0])
        raise Refused(f"{name} of a function")
    if name in ("getattr", "setattr", "delattr"):
        _check_attribute(target, args[0], reading=name == "getattr")
    elif name == "leave":
        return type(target).__exit__(target, None, None, None)
    elif name not in FUNCTIONS or name in ("isinstance", "exit"):
        raise Refused(name)
    return FUNCTIONS[name](target, *args)


def _check_attribute(target: Any, name: Any, reading: bool) -> None:
    if type(name) is not str or name.startswith("_"):
        raise Refused(f"attribute {name!r}")
    kind: Any = type(target)
    if _is_mock(target):
        refused = name.startswith(_KEPT_BY_MOCKS)
    elif _is_iterator(target):
        refused = not reading or name not in _OF_ITERATORS
    elif _is_file(target):
        refused = not reading
    else:
        behaviour = any(hasattr(vars(base).get(name), "__get__") for base in kind.__mro__)
        refused = kind.__module__ != TESTS or (not reading and behaviour)
    if refused:
        raise Refused(f"attribute {name}")


def _is_mock(value: Any) -> bool:
    return any(base.__module__ == "unittest.mock" for base in type(value).__mro__)


def _is_iterator(value: Any) -> bool:
    return hasattr(type(value), "__next__") and type(value).__module__ in ("builtins", "itertools")


def _is_file(value: Any) -> bool:
    return type(value).__module__ == "_io" and type(value).__name__ in ("StringIO", "BytesIO")


def _is_test_case(kind: type) -> bool:
    return any(base.__module__ == "unittest.case" for base in kind.__mro__)
