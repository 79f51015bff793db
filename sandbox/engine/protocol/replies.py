"""The replies that a judge accepts from a candidate, operation by operation. Any other reply is tampering.

A reply is a JSON object with the number `n` of its question and one kind of content:

    value    the encoded result                     same     the index of the argument that is the result
    stop     true: the iterator has no more items   missing  the name that the code does not define
    error    the exception that the code raised     large    the size of a result over the limit

The arguments of a call are numbered nodes (see `graph`). With `value`, `same` or `error` a call may also send
`changed`: number of a node -> its new encoding. Instead of a reply the candidate may send {"callback", "name", "args",
"kwargs"}, to use an object or function that it was given; the reply follows later.

`OPERATIONS` is what the conformance rows and the fuzz tests are generated from. A new operation needs a row here.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from . import codec
from .operations import AWAITED, BINARY, COMPARISONS, FUNCTIONS, IN_PLACE, UNARY
from .values import BASES as _BASES

BASES = frozenset(base.__name__ for base in _BASES)
HANDLE_KINDS = frozenset({"object", "function", "class", "module", "coroutine", "exception"})
MAX_NAMES = 20  # of a class and its bases
MAX_SPECIALS = 200  # methods such as `__len__`
_MAX_COUNT = 2**53  # that JSON readers agree on
_MAX_LENGTH = 2**63  # of anything that has a `__len__`


# ---- encoded values -------------------------------------------------------------------------------------------------


def is_text(value: Any) -> bool:
    return type(value) is str


def is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < _MAX_COUNT


def is_length(value: Any) -> bool:
    return type(value) is int and 0 <= value < _MAX_LENGTH


def is_line(value: Any) -> bool:
    return value is None or is_count(value)


def is_anything(value: Any) -> bool:
    return True


def is_null(value: Any) -> bool:
    return value is None


def is_truth(value: Any) -> bool:
    return type(value) is bool


def is_integer(value: Any) -> bool:
    return type(value) is int or _tag(value) == "i"


def is_float(value: Any) -> bool:
    return type(value) is float or _tag(value) == "n"


def is_handle(value: Any) -> bool:
    return _tag(value) == "h"


def _tag(value: Any) -> str | None:
    """The tag of an encoded value; None for one that JSON holds as it is."""
    return next(iter(value)) if type(value) is dict and len(value) == 1 else None


# ---- shapes ---------------------------------------------------------------------------------------------------------


def is_error(value: Any) -> bool:
    """Whether this describes an exception, with the code's line."""
    if type(value) is not dict or not is_line(value.get("line")):
        return False
    return is_text(value.get("type")) and is_text(value.get("builtin")) and is_text(value.get("message"))


_ERROR_KEYS = frozenset({"type", "builtin", "message", "line", "args", "bases", "attributes", "cause", "origin"})
_MAX_CAUSES = 10


def is_raised(value: Any, depth: int = 0) -> bool:
    """Whether this is an exception of the code, with its arguments, attributes and cause."""
    if not is_error(value) or value.keys() != _ERROR_KEYS or depth > _MAX_CAUSES:
        return False
    if not is_names(value["bases"]) or _tag(value["args"]) != "t" or _tag(value["attributes"]) != "m":
        return False
    if not (value["origin"] is None or is_count(value["origin"])):
        return False
    return value["cause"] is None or is_raised(value["cause"], depth + 1)


def is_names(value: Any) -> bool:
    """Whether these are names of a class and its bases."""
    return type(value) is list and 0 < len(value) <= MAX_NAMES and all(type(name) is str for name in value)


def is_handle_content(content: Any) -> bool:
    """Whether this is [number, kind, names, special methods, built-in type that it extends], the content of `h`."""
    if type(content) is not list or len(content) != 5:
        return False
    number, kind, names, specials, base = content
    if not is_count(number) or type(kind) is not str or kind not in HANDLE_KINDS or not is_names(names):
        return False
    if type(specials) is not list or len(specials) > MAX_SPECIALS or not all(type(name) is str for name in specials):
        return False
    return type(base) is str and (not base or base in BASES)


def _is_end(value: Any) -> bool:
    """Whether this ends an iteration: true, or with the value that a generator returned."""
    return value is True or (type(value) is dict and value.keys() == {"value"})


_CONTENT: dict[str, Callable[[Any], bool]] = {
    "value": is_anything,  # refined by the operation
    "same": is_count,
    "stop": _is_end,
    "missing": is_text,
    "error": is_raised,
    "large": is_count,
}
_CALLBACK_KEYS = frozenset({"callback", "args", "kwargs"})
_LENT = FUNCTIONS.keys() | {"call", "leave"}  # what the code may ask to be done with an object of the tests


# ---- the table ------------------------------------------------------------------------------------------------------

_USUAL = frozenset({"value", "error", "large"})


class Operation(NamedTuple):
    """What may come back from one operation.

    value       whether an encoded value is of the type that the operation returns
    kinds       kinds of reply
    changes     whether arguments may come back changed
    calls_back  whether functions that the candidate was given may be called before the reply
    """

    value: Callable[[Any], bool] = is_anything
    kinds: frozenset[str] = _USUAL
    changes: bool = False
    calls_back: bool = True


OPERATIONS: dict[str, Operation] = {
    "get": Operation(kinds=_USUAL | {"missing"}, calls_back=False),
    "call": Operation(kinds=_USUAL | {"same"}, changes=True),
    "getattr": Operation(),
    "setattr": Operation(is_null),
    "delattr": Operation(is_null),
    "getitem": Operation(),
    "setitem": Operation(is_null),
    "delitem": Operation(is_null),
    "len": Operation(is_length),
    "bool": Operation(is_truth),
    "int": Operation(is_integer),
    "float": Operation(is_float),
    "str": Operation(is_text),
    "repr": Operation(is_text),
    "iter": Operation(is_handle),
    "reversed": Operation(is_handle),
    "aiter": Operation(is_handle),
    "next": Operation(kinds=_USUAL | {"stop"}),
    "enter": Operation(),
    "exit": Operation(is_truth),
    "contains": Operation(is_truth),
    "hash": Operation(is_integer),
    "format": Operation(is_text),
    "index": Operation(is_integer),
    "complex": Operation(),
    "copy": Operation(),
    "deepcopy": Operation(),
    "plain": Operation(),
    **dict.fromkeys(("round", "trunc", "floor", "ceil"), Operation()),
    **dict.fromkeys(AWAITED, Operation()),
    "anext": Operation(kinds=_USUAL | {"stop"}),
    # Comparisons and arithmetic: a class may return anything.
    **dict.fromkeys((*COMPARISONS, *BINARY, *(f"r{name}" for name in BINARY), *UNARY, *IN_PLACE), Operation()),
}


def check(reply: Any, operation: str, number: int, sent: Sequence[Any] = (), callbacks: int = 0) -> str:
    """Return the kind of a reply to question `number`, "callback" included.

    Raises CodecError for a reply that is not allowed.

    sent       the encoded arguments of the question
    callbacks  how many functions the candidate was given
    """
    rule = OPERATIONS[operation]
    if type(reply) is not dict:
        raise codec.CodecError("a reply that is no object")
    if "callback" in reply:
        if not (rule.calls_back and _is_callback(reply, callbacks)):
            raise codec.CodecError("a call of what it was not given")
        return "callback"
    kinds = [key for key in reply if key != "n" and key != "changed"]
    if len(kinds) != 1 or type(reply.get("n")) is not int:
        raise codec.CodecError("a reply of the wrong shape")
    if reply["n"] != number:
        raise codec.CodecError("an answer to another question")
    kind = kinds[0]
    if kind not in rule.kinds:
        raise codec.CodecError(f"a reply of kind {kind[:20]!r} to {operation!r}")
    content = reply[kind]
    if not (rule.value if kind == "value" else _CONTENT[kind])(content):
        raise codec.CodecError(f"a {kind} of the wrong type from {operation!r}")
    if kind == "same" and content >= len(sent):
        raise codec.CodecError("an argument that it was not given")
    changes = rule.changes and kind in ("value", "same", "error")
    if "changed" in reply and not (changes and _is_changed(reply["changed"], sent)):
        raise codec.CodecError("changes of what it was not given")
    return kind


def allows(operation: str, reply: Any, number: int = 1) -> bool:
    """Whether the table allows a reply to a question without arguments, to a candidate that was given no function."""
    try:
        check(reply, operation, number)
    except codec.CodecError:
        return False
    return True


def _is_callback(reply: dict[str, Any], callbacks: int) -> bool:
    if reply.keys() not in (_CALLBACK_KEYS, _CALLBACK_KEYS | {"name"}):
        return False
    if type(reply["args"]) is not list or type(reply["kwargs"]) is not dict or reply.get("name", "call") not in _LENT:
        return False
    return is_count(reply["callback"]) and reply["callback"] < callbacks


# ---- arguments that a call changed ----------------------------------------------------------------------------------

_CONTAINERS = frozenset("tmdsyvx")


def may_change(encoded: Any) -> bool:
    """Whether a call can change this argument: it is a container, or an instance of a class that both sides have."""
    return type(encoded) is list or _tag(encoded) in _CONTAINERS


def _is_changed(changed: Any, sent: Sequence[Any]) -> bool:
    """Whether each change is of an argument that was sent and can change, into a value of the same type."""
    if type(changed) is not dict:
        return False
    for index, now in changed.items():
        if not (index.isdecimal() and index.isascii() and int(index) < len(sent)):
            return False
        before = sent[int(index)]
        if not may_change(before) or _form(now) not in (_form(before), "o"):
            return False
    return True


def _form(encoded: Any) -> Any:
    """What an object keeps of its encoding however it changes."""
    if type(encoded) is list:
        return list
    tag = _tag(encoded)
    if tag in ("v", "x"):
        content = encoded[tag]
        return (tag, content[0]) if type(content) is list and content and type(content[0]) is str else None
    return "m" if tag == "d" else tag
