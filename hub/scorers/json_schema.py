"""The rule `json_schema`: the answer is JSON that conforms to a schema."""

import asyncio

from pydantic import ConfigDict, Field, field_validator

from hub import extraction
from hub.common.wording import sentence
from hub.harnesses.base import Services
from hub.scorers.base import Scorer, ScorerOptions, Submission, Verdict
from hub.scorers.comparison.equality import json_difference
from hub.scorers.comparison.texts import PATTERN_TIMEOUT_S, quoted


class JsonSchemaOptions(ScorerOptions):
    """`schema`: JSON Schema 2020-12. `target`: optional value that the JSON must also equal."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)
    schema_: dict[str, object] | bool = Field(alias="schema")
    target: object = None

    @field_validator("schema_")
    @classmethod
    def _is_schema(cls, value: dict[str, object] | bool) -> dict[str, object] | bool:
        from hub.scorers.comparison.schemas import schema_problem  # slow, and needed by few runs

        problem = schema_problem(value)
        if problem:
            raise ValueError(problem)
        return value

    @field_validator("target")
    @classmethod
    def _no_null(cls, value: object) -> object:
        if value is None:
            raise ValueError(
                "the target is null, which would compare nothing; leave it out, or use the schema {const: null}"
            )
        return value


class JsonSchema(Scorer[JsonSchemaOptions]):
    type = "json_schema"
    summary = "The answer is JSON that conforms to a schema."
    Options = JsonSchemaOptions

    async def score(self, options: JsonSchemaOptions, submission: Submission, services: Services) -> Verdict:
        from hub.scorers.comparison.schemas import TooSlow, first_problem  # slow, and needed by few runs

        try:
            value = extraction.json_value(submission.text)
        except extraction.NoJSON as error:
            return Verdict.of(False, f"In {quoted(submission.text)}, {error}.")
        try:
            # In a thread, so that slow patterns do not block other episodes.
            problem = await asyncio.to_thread(first_problem, options.schema_, value)
        except RecursionError:
            return Verdict.of(False, "The JSON is nested too deeply to be checked.")
        except TooSlow as slow:
            return Verdict(value=None, reason=f"The pattern {str(slow)!r} took more than {PATTERN_TIMEOUT_S:g} s.")
        if problem is not None:
            return Verdict.of(False, f"At {problem.json_path}: {problem.message[:300]}.", path=problem.json_path)
        if options.target is not None and (difference := json_difference(_visible(options.target), _visible(value))):
            return Verdict.of(False, sentence(difference))
        return Verdict.of(True, "The JSON conforms to the schema.")


def _visible(value: object) -> object:
    """Return *value* without the invisible characters in its texts, which the text of an answer lacks, too."""
    if isinstance(value, str):
        return extraction.clean(value)
    if isinstance(value, list):
        return [_visible(item) for item in value]
    return {key: _visible(item) for key, item in value.items()} if isinstance(value, dict) else value
