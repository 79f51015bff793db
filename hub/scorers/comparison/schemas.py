"""Validation of a bundle's JSON Schemas, and of values against them. Slow to import."""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

import regex
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError, best_match
from jsonschema.validators import extend
from referencing import Registry

from hub.scorers.comparison.texts import PATTERN_TIMEOUT_S, quoted

# A JSON Schema as parsed JSON.
Schema = dict[str, object] | bool


class Validator(Protocol):
    """The part of a jsonschema validator that keyword functions use."""

    def descend(
        self, instance: object, schema: Schema, path: str | None = None, schema_path: str | None = None
    ) -> Iterator[ValidationError]: ...


# ---- patterns with a time limit: a bundle's pattern may be slow on a model's text ------------------------------------


class TooSlow(Exception):
    """A pattern that exceeded its time limit on a text."""


# A token of a pattern: an escape, a bracket of a class of characters, or $.
_TOKEN = re.compile(r"\\.|[\[\]$]", re.DOTALL)
# What ECMA 262 means by an escape, as ranges of a class.
_RANGES = {
    r"\d": "0-9",
    r"\D": r"\x00-/:-\U0010ffff",
    r"\w": "_A-Za-z0-9",
    r"\W": r"\x00-/:-@\[-\^`{-\U0010ffff",
    r"\s": r" \u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff\t-\r\u2000-\u200a",
}


@lru_cache(maxsize=256)
def _as_in_ecma(pattern: str) -> str:
    r"""Return *pattern* with the meaning of ECMA 262, which JSON Schema uses, where Python's differs.

    \d and \w are ASCII characters, and $ is the end of the text, not the line feed before it.
    """
    parts: list[str] = []
    position = 0
    class_start = -1  # of the class of characters that is open
    for token in _TOKEN.finditer(pattern):
        parts.append(pattern[position : token.start()])
        position = token.end()
        mark = token[0]
        if mark in _RANGES:
            mark = _RANGES[mark] if class_start >= 0 else f"[{_RANGES[mark]}]"
        elif class_start < 0:
            class_start = token.end() if mark == "[" else -1
            mark = r"\Z" if mark == "$" else mark
        elif mark == "]" and pattern[class_start : token.start()] not in ("", "^"):
            class_start = -1
        parts.append(mark)
    return "".join([*parts, pattern[position:]])


def _matches(pattern: str, text: str) -> bool:
    try:
        # Without the interpreter's lock, so that a slow pattern does not block other threads.
        return regex.search(_as_in_ecma(pattern), text, timeout=PATTERN_TIMEOUT_S, concurrent=True) is not None
    except TimeoutError:
        raise TooSlow(pattern) from None


def _pattern(validator: Validator, pattern: str, instance: object, schema: Schema) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not _matches(pattern, instance):
        yield ValidationError(f"{quoted(instance, exactly=True)} does not match {pattern!r}")


def _pattern_properties(
    validator: Validator, patterns: Mapping[str, Schema], instance: object, schema: Schema
) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        for pattern, below in patterns.items():
            for key, value in instance.items():
                if _matches(pattern, key):
                    yield from validator.descend(value, below, path=key, schema_path=pattern)


def _additional_properties(
    validator: Validator, below: Schema, instance: object, schema: Mapping[str, Mapping[str, Schema]]
) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    for key, value in instance.items():
        if key in known or any(_matches(pattern, key) for pattern in patterns):
            continue
        if below is False:
            yield ValidationError(f"the key {quoted(key)} is not allowed")
        else:
            yield from validator.descend(value, below, path=key)


def _multiple_of(
    validator: Validator, divisor: int | float, instance: object, schema: Schema
) -> Iterator[ValidationError]:
    """Check the keyword by decimal values, because in binary 19.99 is no multiple of 0.01."""
    if isinstance(instance, bool) or not isinstance(instance, int | float):
        return
    if not math.isfinite(instance) or Fraction(str(instance)) % Fraction(str(divisor)):
        yield ValidationError(f"{instance!r} is not a multiple of {divisor!r}")


_extend: Callable[..., type[Draft202012Validator]] = extend  # jsonschema leaves it untyped
_Validator = _extend(
    Draft202012Validator,
    {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "multipleOf": _multiple_of,
    },
)


# ---- schemas and values ----------------------------------------------------------------------------------------------


def schema_problem(schema: Schema) -> str:
    """Return the problem of *schema*, "" if it is valid."""
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return f"not a JSON Schema: {error.message}"
    return next(_problems(schema), "")


def _problems(schema: object) -> Iterator[str]:
    """Yield the problems of *schema*, at any depth, that this rule cannot handle."""
    if isinstance(schema, list):
        for item in schema:
            yield from _problems(item)
    if not isinstance(schema, dict):
        return
    reference = schema.get("$ref")
    if isinstance(reference, str) and not reference.startswith("#"):
        yield f"$ref {reference!r} refers to another document, which is not fetched; write it under $defs"
    patterns = schema.get("patternProperties")
    patterns = list(patterns) if isinstance(patterns, dict) else []
    if patterns and "unevaluatedProperties" in schema:
        yield "patternProperties cannot be combined with unevaluatedProperties; use additionalProperties"
    for pattern in [*patterns, schema.get("pattern")]:
        if isinstance(pattern, str):
            try:
                regex.compile(_as_in_ecma(pattern))
            except regex.error as error:
                yield f"the pattern {pattern!r} does not compile: {error}"
    for item in schema.values():
        yield from _problems(item)


def first_problem(schema: Schema, value: object) -> ValidationError | None:
    """Return the most relevant problem of *value*. Raises TooSlow, and RecursionError if it is nested too deeply."""
    # An empty registry, because the library's own fetches what a reference names.
    problem: ValidationError | None = best_match(_Validator(schema, registry=Registry()).iter_errors(value))
    return problem
