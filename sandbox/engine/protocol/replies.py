"""The replies that a judge accepts from a candidate, for each operation. Any other reply is tampering.

A reply is a JSON object with the number `n` of its question and one kind of content:

    value    the encoded result                     same     the index of the argument that is the result
    stop     true: the iterator has no more items   missing  the name that the code does not define
    error    the exception that the code raised     large    the size of a result over the limit

The arguments of a call are numbered nodes (see `graph`). With `value`, `same` or `error` a call may also send
`changed`: number of a node -> its new encoding. So may operations that continue the code of a call (`RESUMES`), also
with `stop`. Instead of a reply the candidate may send {"callback", "name", "args",
"kwargs"}, to use an object or function that was passed to it; the reply follows later.

The conformance rows and the fuzz tests are generated from `OPERATIONS`. A new operation needs a row here.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypedDict, TypeGuard

from . import codec
from .operations import BINARY, COMPARISONS, ENDING, FUNCTIONS, IN_PLACE, UNARY
from .values import BASES as _BASES

BASES = frozenset(base.__name__ for base in _BASES)
HANDLE_KINDS = frozenset({"object", "function", "class", "module", "coroutine", "exception"})
MAX_NAMES = 20  # of a class and its bases
MAX_SPECIALS = 200  # methods such as `__len__`
_MAX_COUNT = 2**53  # that JSON readers agree on
_MAX_LENGTH = 2**63  # of anything that has a `__len__`


# ---- encoded values -------------------------------------------------------------------------------------------------


def is_text(value: object) -> TypeGuard[str]:
    """Return whether this is a text, of exactly that type."""
    return type(value) is str


def is_count(value: object) -> TypeGuard[int]:
    """Return whether this is an integer from 0 to below _MAX_COUNT."""
    return type(value) is int and 0 <= value < _MAX_COUNT


def is_length(value: object) -> bool:
    """Return whether this is an integer from 0 to below _MAX_LENGTH."""
    return type(value) is int and 0 <= value < _MAX_LENGTH


def is_line(value: object) -> bool:
    """Return whether this is the number of a line, or None if no line is known."""
    return value is None or is_count(value)


def is_anything(value: object) -> bool:
    """Return True: each encoded value is accepted."""
    return True


def is_null(value: object) -> bool:
    return value is None


def is_truth(value: object) -> bool:
    return type(value) is bool


def is_integer(value: object) -> bool:
    return type(value) is int or _tag(value) == "i"


def is_float(value: object) -> bool:
    return type(value) is float or _tag(value) == "n"


def is_handle(value: object) -> TypeGuard[dict[str, list[int]]]:
    return _tag(value) == "h"


def _tag(value: object) -> str | None:
    """Return the tag of an encoded value; None for one that is encoded as itself."""
    return str(next(iter(value))) if type(value) is dict and len(value) == 1 else None


# ---- shapes ---------------------------------------------------------------------------------------------------------


class RaisedError(TypedDict):
    """An exception of the code, see `error_reports.ErrorReport`, with what else tests may use of it.

    args, attributes  encoded
    bases             names of its class and the bases
    origin            number of the tests' own exception that the code passed on
    """

    type: str
    builtin: str
    message: str
    line: int | None
    args: object
    bases: list[str]
    attributes: object
    cause: "RaisedError | None"
    origin: int | None


HandleContent = tuple[int, str, list[str], list[str], str]
"""Number, kind, names of the class and its bases, special methods, built-in type that it extends."""


def is_error(value: object) -> bool:
    """Return whether this describes an exception, with the line of the code that raised it."""
    if type(value) is not dict or not is_line(value.get("line")):
        return False
    return is_text(value.get("type")) and is_text(value.get("builtin")) and is_text(value.get("message"))


_ERROR_KEYS = frozenset({"type", "builtin", "message", "line", "args", "bases", "attributes", "cause", "origin"})
_MAX_CAUSES = 10


def is_raised(value: object, depth: int = 0) -> TypeGuard[RaisedError]:
    """Return whether this is an exception of the code, with its arguments, attributes and cause."""
    if not isinstance(value, dict) or not is_error(value) or value.keys() != _ERROR_KEYS or depth > _MAX_CAUSES:
        return False
    if not is_names(value["bases"]) or _tag(value["args"]) != "t" or _tag(value["attributes"]) != "m":
        return False
    if not (value["origin"] is None or is_count(value["origin"])):
        return False
    return value["cause"] is None or is_raised(value["cause"], depth + 1)


def is_names(value: object) -> bool:
    """Return whether these are names of a class and its bases."""
    return type(value) is list and 0 < len(value) <= MAX_NAMES and all(type(name) is str for name in value)


def is_handle_content(content: object) -> TypeGuard[HandleContent]:
    """Return whether this is the content of a handle, the tag `h`."""
    if type(content) is not list or len(content) != 5:
        return False
    number, kind, names, specials, base = content
    if not is_count(number) or type(kind) is not str or kind not in HANDLE_KINDS or not is_names(names):
        return False
    if type(specials) is not list or len(specials) > MAX_SPECIALS or not all(type(name) is str for name in specials):
        return False
    return type(base) is str and (not base or base in BASES)


def _is_end(value: object) -> bool:
    """Return whether this ends an iteration: true, or the value that a generator returned."""
    return value is True or (type(value) is dict and value.keys() == {"value"})


_CONTENT: dict[str, Callable[[object], bool]] = {
    "value": is_anything,  # refined by the operation
    "same": is_count,
    "stop": _is_end,
    "missing": is_text,
    "error": is_raised,
    "large": is_count,
}
_CALLBACK_KEYS = frozenset({"callback", "args", "kwargs"})
_ON_PASSED_OBJECTS = FUNCTIONS.keys() | {"call", "leave"}  # operations on an object of the tests


# ---- the table ------------------------------------------------------------------------------------------------------

_USUAL = frozenset({"value", "error", "large"})


class Operation(NamedTuple):
    """The replies that one operation allows.

    value       checks that an encoded value is of the type that the operation returns
    kinds       kinds of reply
    changes     whether arguments may come back changed
    calls_back  whether the candidate may call functions that were passed to it before it replies
    """

    value: Callable[[object], bool] = is_anything
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
    **dict.fromkeys(ENDING, Operation(kinds=_USUAL | {"stop"}, changes=True)),
    "close": Operation(changes=True),
    "enter": Operation(kinds=_USUAL | {"same"}, changes=True),
    "exit": Operation(is_truth, changes=True),
    "contains": Operation(is_truth),
    "hash": Operation(is_integer),
    "format": Operation(is_text),
    "index": Operation(is_integer),
    "complex": Operation(),
    "copy": Operation(),
    "deepcopy": Operation(),
    "plain": Operation(),
    **dict.fromkeys(("round", "trunc", "floor", "ceil"), Operation()),
    **dict.fromkeys(("await", "aenter"), Operation(kinds=_USUAL | {"same"}, changes=True)),
    "aexit": Operation(is_truth, changes=True),
    # Comparisons and arithmetic: a class may return anything.
    **dict.fromkeys((*COMPARISONS, *BINARY, *(f"r{name}" for name in BINARY), *UNARY, *IN_PLACE), Operation()),
}


def check(
    reply: dict[str, object], operation: str, number: int, sent: Sequence[object] = (), callbacks: int = 0
) -> str:
    """Return the kind of a reply to question `number`, "callback" included.

    Raises CodecError for a reply that is not allowed.

    sent       the encoded arguments of the question
    callbacks  number of objects that were passed to the candidate
    """
    rule = OPERATIONS[operation]
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
    if kind == "same" and (not is_count(content) or content >= len(sent)):
        raise codec.CodecError("an argument that it was not given")
    changes = rule.changes and kind in ("value", "same", "error", "stop")
    if "changed" in reply and not (changes and _is_changed(reply["changed"], sent)):
        raise codec.CodecError("changes of what it was not given")
    return kind


def allows(operation: str, reply: dict[str, object], number: int = 1) -> bool:
    """Return whether the table allows a reply to a question without arguments, if no object was passed."""
    try:
        check(reply, operation, number)
    except codec.CodecError:
        return False
    return True


def _is_callback(reply: dict[str, object], callbacks: int) -> bool:
    if reply.keys() not in (_CALLBACK_KEYS, _CALLBACK_KEYS | {"name"}):
        return False
    if (
        type(reply["args"]) is not list
        or type(reply["kwargs"]) is not dict
        or reply.get("name", "call") not in _ON_PASSED_OBJECTS
    ):
        return False
    number = reply["callback"]
    return is_count(number) and number < callbacks


# ---- arguments that a call changed ----------------------------------------------------------------------------------

_CONTAINERS = frozenset("tmdsyvx")


def may_change(encoded: object) -> bool:
    """Return whether a call can change this argument: a container, or an instance of a class of both processes."""
    return type(encoded) is list or _tag(encoded) in _CONTAINERS


def _is_changed(changed: object, sent: Sequence[object]) -> bool:
    """Return whether each change is of an argument that was sent and can change, into a value of the same type."""
    if type(changed) is not dict:
        return False
    for index, now in changed.items():
        if not (index.isdecimal() and index.isascii() and int(index) < len(sent)):
            return False
        before = sent[int(index)]
        if not may_change(before) or _form(now) not in (_form(before), "o"):
            return False
    return True


def _form(encoded: object) -> object:
    """Return the part of an object's encoding that no change affects."""
    if type(encoded) is list:
        return list
    tag = _tag(encoded)
    if type(encoded) is dict and tag in ("v", "x"):
        content = encoded[tag]
        return (tag, content[0]) if type(content) is list and content and type(content[0]) is str else None
    return "m" if tag == "d" else tag
