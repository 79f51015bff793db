"""The rule `json_schema`: the answer is JSON that a schema accepts."""

from collections.abc import Iterator, Mapping
from typing import Any

import regex
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError, best_match
from jsonschema.validators import extend
from pydantic import ConfigDict, Field, field_validator
from referencing import Registry

from hub import extraction
from hub.harnesses.base import Services
from hub.scorers.base import Scorer, ScorerOptions, Submission, Verdict
from hub.scorers.equality import same
from hub.scorers.regex import TIMEOUT_S
from hub.scorers.texts import shown

# ---- patterns with a time limit: they come with a bundle and meet a model's text -------------------------------------


class _TooSlow(Exception):
    """A pattern met a text on which it explodes."""


def _matches(pattern: str, text: str) -> bool:
    try:
        return regex.search(pattern, text, timeout=TIMEOUT_S) is not None
    except TimeoutError:
        raise _TooSlow(pattern) from None


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not _matches(pattern, instance):
        yield ValidationError(f"{shown(instance)} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        for pattern, below in patterns.items():
            for key, value in instance.items():
                if _matches(pattern, key):
                    yield from validator.descend(value, below, path=key, schema_path=pattern)


def _additional_properties(validator: Any, below: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    for key, value in instance.items():
        if key in known or any(_matches(pattern, key) for pattern in patterns):
            continue
        if below is False:
            yield ValidationError(f"the key {shown(key)} is not allowed")
        else:
            yield from validator.descend(value, below, path=key)


_Validator = extend(
    Draft202012Validator,
    {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
    },
)


# ---- the rule --------------------------------------------------------------------------------------------------------


class JsonSchemaOptions(ScorerOptions):
    """`schema`: JSON Schema 2020-12. `target`: optionally, the value that the JSON must equal as well."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)
    schema_: dict[str, Any] | bool = Field(alias="schema")
    target: Any = None

    @field_validator("schema_")
    @classmethod
    def _is_schema(cls, value: dict[str, Any] | bool) -> dict[str, Any] | bool:
        try:
            Draft202012Validator.check_schema(value)
        except SchemaError as error:
            raise ValueError(f"not a JSON Schema: {error.message}") from None
        for problem in _problems(value):
            raise ValueError(problem)
        return value


def _problems(schema: Any) -> Iterator[str]:
    """What this rule cannot work with, at any depth of *schema*."""
    if isinstance(schema, list):
        for item in schema:
            yield from _problems(item)
    if not isinstance(schema, dict):
        return
    reference = schema.get("$ref")
    if isinstance(reference, str) and not reference.startswith("#"):
        yield f"$ref {reference!r} leads to another document, which is not fetched; write it under $defs"
    patterns = schema.get("patternProperties")
    patterns = list(patterns) if isinstance(patterns, dict) else []
    if patterns and "unevaluatedProperties" in schema:
        yield "patternProperties cannot stand beside unevaluatedProperties; use additionalProperties"
    for pattern in [*patterns, schema.get("pattern")]:
        if isinstance(pattern, str):
            try:
                regex.compile(pattern)
            except regex.error as error:
                yield f"the pattern {pattern!r} does not compile: {error}"
    for item in schema.values():
        yield from _problems(item)


class JsonSchema(Scorer):
    type = "json_schema"
    summary = "The answer is JSON that a schema accepts."
    Options = JsonSchemaOptions

    async def score(self, options: JsonSchemaOptions, submission: Submission, services: Services) -> Verdict:
        try:
            value = extraction.json_value(submission.text)
        except extraction.NoJSON as error:
            return Verdict.of(False, f"In {shown(submission.text)}, {error}.")
        try:
            problem = _first_problem(options.schema_, value)
        except RecursionError:
            return Verdict.of(False, "The JSON is nested too deeply to be checked.")
        except _TooSlow as slow:
            return Verdict(value=None, reason=f"The pattern {str(slow)!r} took more than {TIMEOUT_S:g} s.")
        if problem is not None:
            return Verdict.of(False, f"At {problem.json_path}: {problem.message[:300]}.", path=problem.json_path)
        if options.target is not None and not same(value, options.target):
            return Verdict.of(False, f"Expected {shown(repr(options.target))}, found {shown(repr(value))}.")
        return Verdict.of(True, "The JSON is as it should be.")


def _first_problem(schema: Mapping[str, Any] | bool, value: Any) -> Any:
    # An empty registry, because the library's own fetches what a reference names.
    return best_match(_Validator(schema, registry=Registry()).iter_errors(value))
