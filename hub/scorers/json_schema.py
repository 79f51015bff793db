"""The rule `json_schema`: the answer is JSON that a schema accepts."""

from collections.abc import Iterator
from typing import Any

import regex
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError, best_match
from jsonschema.validators import extend
from pydantic import ConfigDict, Field, field_validator

from hub import extraction
from hub.harnesses.base import Services
from hub.scorers.base import Scorer, ScorerOptions, Submission, Verdict
from hub.scorers.regex import TIMEOUT_S
from hub.scorers.texts import shown


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[ValidationError]:
    """`pattern` with a time limit: it comes with a bundle and meets a model's text."""
    if isinstance(instance, str):
        try:
            found = regex.search(pattern, instance, timeout=TIMEOUT_S)
        except TimeoutError:
            yield ValidationError(f"matching {pattern!r} took more than {TIMEOUT_S:g} s")
            return
        if not found:
            yield ValidationError(f"{instance!r} does not match {pattern!r}")


_Validator = extend(Draft202012Validator, {"pattern": _pattern})


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
        if "$ref" in str(value) and "://" in str(value):
            raise ValueError("references to other documents are not followed; write the schema out")
        return value


class JsonSchema(Scorer):
    type = "json_schema"
    summary = "The answer is JSON that a schema accepts."
    Options = JsonSchemaOptions

    async def score(self, options: JsonSchemaOptions, submission: Submission, services: Services) -> Verdict:
        try:
            value = extraction.json_value(submission.text)
        except extraction.NoJSON as error:
            return Verdict.of(False, f"In {shown(submission.text)}, {error}.")
        problem = best_match(_Validator(options.schema_).iter_errors(value))
        if problem is not None:
            return Verdict.of(False, f"At {problem.json_path}: {problem.message[:300]}.")
        if options.target is not None and not _equal(value, options.target):
            return Verdict.of(False, f"Expected {shown(repr(options.target))}, found {shown(repr(value))}.")
        return Verdict.of(True, "The JSON is as it should be.")


def _equal(a: Any, b: Any) -> bool:
    """JSON equality: 1 equals 1.0, and neither equals true."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_equal(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_equal, a, b))
    return bool(a == b)
