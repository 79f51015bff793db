"""Provenance of exported rows: the names by which every export refers to environments, cases, models and runs."""

from collections.abc import Callable
from typing import TypedDict

from hub.models import EnvironmentVersion
from runs.exports.protocol import JSONObject
from runs.models import Response


class AttemptProvenance(TypedDict):
    """Which attempt at which case of which version a rollout is."""

    environment: str
    digest: str
    case: str
    attempt: int
    seed: int


class UsageCounts(TypedDict):
    """Token counts of a step, of a response or of a rollout."""

    input: int
    output: int
    cached_input: int
    reasoning: int


_OF_RESPONSE: dict[str, Callable[[Response], object]] = {
    "run": lambda response: response.run_environment.run_id,
    "response": lambda response: response.pk,
    "environment": lambda response: str(response.run_environment.version),
    "digest": lambda response: response.run_environment.version.digest,
    "case": lambda response: response.case.external_id,
    "input_digest": lambda response: response.case.input_digest,
    "scoring_digest": lambda response: response.case.scoring_digest,
    "model": lambda response: response.run_model.label,
    "model_fingerprint": lambda response: response.run_model.fingerprint,
    "attempt": lambda response: response.attempt,
    "seed": lambda response: response.seed,
}


def response_provenance(response: Response, *names: str) -> JSONObject:
    """Return where *response* comes from, under the given *names*, in their order.

    The names are run, response, environment, digest, case, input_digest, scoring_digest, model, model_fingerprint (a
    digest of the model's address and parameters), attempt and seed.
    """
    return {name: _OF_RESPONSE[name](response) for name in names}


def attempt_provenance(version: EnvironmentVersion, case: str, attempt: int, seed: int) -> AttemptProvenance:
    """Return which attempt at which case of which version a rollout is."""
    return {"environment": str(version), "digest": version.digest, "case": case, "attempt": attempt, "seed": seed}


def token_usage(response: Response) -> UsageCounts:
    """Return the token counts of *response*, summed over its turns."""
    return {
        "input": response.input_tokens,
        "output": response.output_tokens,
        "cached_input": response.cached_input_tokens,
        "reasoning": response.reasoning_tokens,
    }
