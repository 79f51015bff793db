"""Limits on how the code may use objects of the tests that were passed to it.

No operation may lead to an expected value: attributes with a leading underscore are refused, and so are those of
functions, frames, generators and modules, and those in which a mock keeps its expectations.
"""

import types

from ..protocol.operations import FUNCTIONS, OF_GENERATORS, specials_in

TESTS = "tests"  # the module of classes that the tests define

_FUNCTIONS = (
    types.FunctionType,
    types.MethodType,
    types.BuiltinFunctionType,
    types.MethodWrapperType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
)
_METADATA = frozenset({"__name__", "__qualname__", "__doc__", "__module__"})
_MOCK_EXPECTATIONS = (
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
_ITERATOR_METHODS = frozenset({"send", "close", "throw"})


class Refused(Exception):
    """The code may not do this with an object of the tests."""


def may_pass_object(value: object) -> bool:
    """Return whether the code may use this object of the tests by reference."""
    kind = value if isinstance(value, type) else type(value)
    if kind.__module__ == TESTS:
        return not _is_test_case(kind)
    if isinstance(value, type):
        return False
    return _is_mock(value) or _is_iterator(value) or _is_file(value)


def specials_of(value: object) -> list[str]:
    """Return the special methods of a passed object; for a class, only that it can be called."""
    if isinstance(value, type):
        return ["call"]
    return specials_in([vars(base) for base in type(value).__mro__ if base is not object])


def apply_operation(target: object, name: str, args: list[object]) -> object:
    """Apply an operation for the code. Raises Refused, and any exception of the object."""
    if isinstance(target, _FUNCTIONS) or isinstance(target, type):
        if name == "getattr" and args[0] in _METADATA:
            return getattr(target, str(args[0]))
        raise Refused(f"{name} of a function")
    if name in ("getattr", "setattr", "delattr"):
        _check_attribute(target, args[0], reading=name == "getattr")
    elif name == "leave":
        return type(target).__exit__(target, None, None, None)  # type: ignore[attr-defined]
    elif name not in FUNCTIONS or name in ("isinstance", "exit", *OF_GENERATORS):
        raise Refused(name)
    return FUNCTIONS[name](target, *args)


def _check_attribute(target: object, name: object, reading: bool) -> None:
    if type(name) is not str or name.startswith("_"):
        raise Refused(f"attribute {name!r}")
    kind = type(target)
    if _is_mock(target):
        refused = name.startswith(_MOCK_EXPECTATIONS)
    elif _is_iterator(target):
        refused = not reading or name not in _ITERATOR_METHODS
    elif _is_file(target):
        refused = not reading
    else:
        is_computed = any(hasattr(vars(base).get(name), "__get__") for base in kind.__mro__)
        refused = kind.__module__ != TESTS or (not reading and is_computed)
    if refused:
        raise Refused(f"attribute {name}")


def _is_mock(value: object) -> bool:
    return any(base.__module__ == "unittest.mock" for base in type(value).__mro__)


def _is_iterator(value: object) -> bool:
    return hasattr(type(value), "__next__") and type(value).__module__ in ("builtins", "itertools")


def _is_file(value: object) -> bool:
    return type(value).__module__ == "_io" and type(value).__name__ in ("StringIO", "BytesIO")


def _is_test_case(kind: type) -> bool:
    return any(base.__module__ == "unittest.case" for base in kind.__mro__)
