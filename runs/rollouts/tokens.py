"""Token ids and log-probabilities that a trainer sends with a step, so that exports need no second tokenization."""

import math
from collections.abc import Sequence
from typing import TypedDict, cast

from runs.rollouts.errors import RolloutError

MAX_EPISODE_TOKENS = 1_000_000
_MAX_ID = 2**31 - 1
_KEYS = ("prompt_ids", "completion_ids", "logprobs")


class StepTokens(TypedDict):
    """Tokens of one step. `logprobs` has one value for each of `completion_ids`, or is None."""

    prompt_ids: list[int]
    completion_ids: list[int]
    logprobs: list[float] | None


def validate_tokens(tokens: object) -> StepTokens:
    """Return *tokens* as they are stored. Raises RolloutError."""
    if not isinstance(tokens, dict):
        raise RolloutError("It must be an object {prompt_ids, completion_ids, logprobs?}.", "tokens")
    for key in tokens:
        if key not in _KEYS:
            raise RolloutError(f"There is no such key; the keys are {', '.join(_KEYS)}.", f"tokens.{key}")
    completion_ids = _ids(tokens, "completion_ids")
    return {
        "prompt_ids": _ids(tokens, "prompt_ids"),
        "completion_ids": completion_ids,
        "logprobs": _logprobs(tokens.get("logprobs"), len(completion_ids)),
    }


def append_tokens(stored: Sequence[StepTokens | None], turn: int, tokens: StepTokens) -> list[StepTokens | None]:
    """Return *stored* with the tokens of step *turn*. Steps without tokens are None. Raises RolloutError."""
    steps = [*stored, *[None] * (turn - len(stored)), tokens]
    total = sum(len(step["prompt_ids"]) + len(step["completion_ids"]) for step in steps if step)
    if total > MAX_EPISODE_TOKENS:
        raise RolloutError(
            f"The episode would have {total:,} token ids; at most {MAX_EPISODE_TOKENS:,} are stored. "
            "Send the following steps without tokens.",
            "tokens",
        )
    return steps


def _ids(tokens: dict[str, object], key: str) -> list[int]:
    ids = tokens.get(key)
    if not isinstance(ids, list) or not all(type(item) is int and 0 <= item <= _MAX_ID for item in ids):
        raise RolloutError("It must be a list of token ids, which are integers from 0 on.", f"tokens.{key}")
    return ids


def _logprobs(values: object, count: int) -> list[float] | None:
    if values is None:
        return None
    if not isinstance(values, list) or not all(_is_finite(item) for item in values):
        raise RolloutError("It must be a list of finite numbers, or null.", "tokens.logprobs")
    if len(values) != count:
        raise RolloutError(
            f"It has {len(values)} values for {count} completion_ids; send one for each.", "tokens.logprobs"
        )
    return [float(item) for item in values]


def _is_finite(value: object) -> bool:
    """Return whether *value* is a finite number. Integers may be too large for a float."""
    try:
        return type(value) in (int, float) and math.isfinite(cast(float, value))
    except OverflowError:
        return False
