"""The rule `json_schema`: the answer is JSON that a schema accepts."""

from typing import Any

from pydantic import ConfigDict, Field, field_validator

from hub import extraction
from hub.harnesses.base import Services
from hub.scorers.base import Scorer, ScorerOptions, Submission, Verdict
from hub.scorers.equality import same
from hub.scorers.regex import TIMEOUT_S
from hub.scorers.texts import shown


class JsonSchemaOptions(ScorerOptions):
    """`schema`: JSON Schema 2020-12. `target`: optionally, the value that the JSON must equal as well."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)
    schema_: dict[str, Any] | bool = Field(alias="schema")
    target: Any = None

    @field_validator("schema_")
    @classmethod
    def _is_schema(cls, value: dict[str, Any] | bool) -> dict[str, Any] | bool:
        from hub.scorers.schemas import schema_problem  # slow, and needed by few runs

        problem = schema_problem(value)
        if problem:
            raise ValueError(problem)
        return value


class JsonSchema(Scorer):
    type = "json_schema"
    summary = "The answer is JSON that a schema accepts."
    Options = JsonSchemaOptions

    async def score(self, options: JsonSchemaOptions, submission: Submission, services: Services) -> Verdict:
        from hub.scorers.schemas import TooSlow, first_problem  # slow, and needed by few runs

        try:
            value = extraction.json_value(submission.text)
        except extraction.NoJSON as error:
            return Verdict.of(False, f"In {shown(submission.text)}, {error}.")
        try:
            problem = first_problem(options.schema_, value)
        except RecursionError:
            return Verdict.of(False, "The JSON is nested too deeply to be checked.")
        except TooSlow as slow:
            return Verdict(value=None, reason=f"The pattern {str(slow)!r} took more than {TIMEOUT_S:g} s.")
        if problem is not None:
            return Verdict.of(False, f"At {problem.json_path}: {problem.message[:300]}.", path=problem.json_path)
        if options.target is not None and not same(value, options.target):
            return Verdict.of(False, f"Expected {shown(repr(options.target))}, found {shown(repr(value))}.")
        return Verdict.of(True, "The JSON is as it should be.")
