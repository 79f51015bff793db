"""The Jinja2 environment of bundles: its sandbox, and bounds on what a template may build.

Jinja2's sandbox closes the way to Python's internals, but lets `{{ "x" * 10 ** 10 }}` fill the memory. Here a template
has no assignments and no macros, so that its result is bounded by its own text times its data, and the operators,
methods and filters that multiply are checked before they run.
"""

import functools
import json
import re
import threading
import time
from collections.abc import MutableMapping
from typing import Any

import regex
from jinja2 import StrictUndefined, nodes
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment, SecurityError

MAX_BUILT = 4 * 1024 * 1024  # characters or items
MAX_BITS = 4096  # of a number
MAX_LOOPS = 2  # nested
SEARCH_S = 1.0  # of all the searches of one rendering
_REFUSED: tuple[type[nodes.Node], ...] = (
    nodes.Assign,
    nodes.AssignBlock,
    nodes.NSRef,
    nodes.Macro,
    nodes.CallBlock,
    nodes.Block,
    nodes.Extends,
    nodes.Include,
    nodes.Import,
    nodes.FromImport,
)
_GROWING = frozenset({"center", "ljust", "rjust", "zfill", "expandtabs", "indent", "batch", "slice", "wordwrap"})
_WIDTH = re.compile(r"\d{5,}|%[-+ #0]*\*|\.\*")


class GuardedEnvironment(ImmutableSandboxedEnvironment):
    """Raises SecurityError for what would build more than MAX_BUILT."""

    intercepted_binops = frozenset({"*", "**", "%"})

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if operator == "%":
            _check_format(left)
        elif operator == "**":
            bits = left.bit_length() * right if isinstance(left, int) and isinstance(right, int) else 0
            _check(bits <= MAX_BITS)
        else:
            for one, other in ((left, right), (right, left)):
                if isinstance(one, int) and isinstance(other, str | bytes | list | tuple):
                    _check(one * len(other) <= MAX_BUILT)
            if isinstance(left, int) and isinstance(right, int):
                _check(left.bit_length() + right.bit_length() <= MAX_BITS)
        return super().call_binop(context, operator, left, right)

    def call(self, context: Context, obj: Any, /, *args: Any, **kwargs: Any) -> Any:
        method, owner = getattr(obj, "__name__", ""), getattr(obj, "__self__", None)
        if isinstance(owner, str | bytes):
            _check_growth(method, (*args, *kwargs.values()))
            if method == "replace" and len(args) >= 2:
                _check_replace(owner, args[0], args[1])
            if method == "join" and args:
                _check(len(owner) * len(args[0]) <= MAX_BUILT)
        if isinstance(owner, str) and method in ("format", "format_map"):
            _check_format(owner)
        return super().call(context, obj, *args, **kwargs)

    def make_globals(self, d: MutableMapping[str, Any] | None) -> MutableMapping[str, Any]:
        """A plain mapping: every rendering copies it, and Jinja2's chained one took longer to copy than to render."""
        return {**self.globals, **(d or {})}


def _check(fits: bool) -> None:
    if not fits:
        raise SecurityError(f"it would build more than {MAX_BUILT:,} characters or items")


def _check_growth(name: str, values: tuple[Any, ...]) -> None:
    if name in _GROWING:
        _check(not any(isinstance(value, int) and value > 10_000 for value in values))


def _check_format(text: Any) -> None:
    if isinstance(text, str):
        _check(_WIDTH.search(text) is None)


def _check_replace(text: str | bytes, old: Any, new: Any) -> None:
    if isinstance(old, str | bytes) and isinstance(new, str | bytes):
        _check(len(text) + (len(text) // max(1, len(old)) + 1) * len(new) <= MAX_BUILT)


class _Patience(threading.local):
    """The seconds that the rendering of this thread may still search for."""

    left = SEARCH_S


_patience = _Patience()


def rendering_begins() -> None:
    """Patterns come with bundles: the searches of one rendering share SEARCH_S, however many they are."""
    _patience.left = SEARCH_S


def _regex_search(text: str, pattern: str, group: int | str = 0) -> str:
    """The first match of *pattern* in *text*, or the empty string: for columns that bury their answer in prose."""
    started = time.thread_time()
    try:
        # Without the interpreter's lock, so that a slow pattern holds up nobody else.
        match = regex.search(pattern, text, timeout=max(_patience.left, 0.001), concurrent=True)
    except TimeoutError:
        raise SecurityError(f"the pattern {pattern!r} takes more than {SEARCH_S:g} s; make it simpler") from None
    finally:
        _patience.left -= time.thread_time() - started
    return "" if match is None else str(match[group])


def _first_alternatives(parameters: dict[str, Any]) -> dict[str, Any]:
    """One answer out of {parameter: [accepted values]}; "" among the values marks one that may be left out.

    Mappings inside are of the same form, alone or in a list, as function-calling benchmarks write them.
    """
    chosen = {name: next((v for v in values if v != ""), None) for name, values in parameters.items()}
    return {name: _settle(value) for name, value in chosen.items() if value is not None}


def _settle(value: Any) -> Any:
    if isinstance(value, list):
        return [_settle(item) for item in value]
    if isinstance(value, dict) and all(isinstance(item, list) for item in value.values()):
        return _first_alternatives(value)
    return value


def _guarded(name: str, function: Any) -> Any:
    """The filter *name* with its numbers and texts checked first."""

    @functools.wraps(function)  # takes Jinja2's marks over, which say what else the filter is handed
    def checked(*args: Any, **kwargs: Any) -> Any:
        values = (*args, *kwargs.values())
        _check_growth(name, values)
        texts = [value for value in values if isinstance(value, str)]
        if name == "format" and texts:
            _check_format(texts[0])
        if name == "replace" and len(texts) >= 3:
            _check_replace(*texts[:3])
        if name == "join" and len(texts) >= 1:
            _check(
                max(map(len, texts)) * max((len(v) for v in values if hasattr(v, "__len__")), default=0) <= MAX_BUILT
            )
        return function(*args, **kwargs)

    return checked


def guarded_environment() -> GuardedEnvironment:
    """The environment that every template of a bundle is compiled in."""
    env = GuardedEnvironment(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True)
    env.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "sort_keys": True}
    env.filters["fromjson"] = json.loads
    env.filters["regex_search"] = _regex_search
    env.filters["first_alternatives"] = _first_alternatives
    for name in (*_GROWING, "format", "replace", "join"):
        if name in env.filters:
            env.filters[name] = _guarded(name, env.filters[name])
    for name in ("namespace", "cycler", "joiner", "lipsum"):
        env.globals.pop(name, None)
    return env


def check_syntax(body: nodes.Template) -> None:
    """Refuse statements that templates of bundles have no use for. Raises SecurityError."""
    refused = next(body.find_all(_REFUSED), None)
    if refused is not None:
        kind = type(refused).__name__.lower()
        raise SecurityError(f"`{kind}` is not offered here; templates have expressions, `if` and `for`")
    for loop in body.find_all(nodes.For):
        inner = list(loop.find_all(nodes.For))
        if any(list(one.find_all(nodes.For)) for one in inner):
            raise SecurityError(f"loops nest at most {MAX_LOOPS} deep")
