"""Estimates of what a run will need: requests, cost and time, from earlier responses or from the length of cases."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hub.models import Case, EnvironmentVersion
from hub.protocols.calls import Usage
from runs.models import Response, RunEnvironment
from runs.providers.base import ModelSpec
from runs.providers.registry import PROVIDERS

_EARLIER = 100  # responses that an estimate is made from
_RUNS = 5  # last runs of an environment that they are taken from
_CASES = 20  # cases whose length is measured if there are no earlier responses
_CHARACTERS_PER_TOKEN = 4
_GUESSED_OUTPUT = 500  # tokens of a response of one turn
_GUESSED_TURNS = 6  # of harnesses with several turns


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEstimate:
    """What a run will need. cost_usd and seconds are None if unknown; `measured`: from earlier responses."""

    responses: int
    requests: int
    cost_usd: float | None
    seconds: float | None
    measured: bool
    recorded: bool


def sum_estimates(items: Iterable[RunEstimate]) -> RunEstimate:
    """Return the estimate of a run with several environments and models, whose parts share its requests in flight."""
    found = list(items)
    costs, seconds = [item.cost_usd for item in found], [item.seconds for item in found]
    return RunEstimate(
        responses=sum(item.responses for item in found),
        requests=sum(item.requests for item in found),
        cost_usd=None if None in costs else sum(cost or 0.0 for cost in costs),
        seconds=None if None in seconds else sum(value or 0.0 for value in seconds),
        measured=all(item.measured for item in found),
        recorded=all(item.recorded for item in found),
    )


def estimate_run(
    version: EnvironmentVersion, spec: ModelSpec, *, cases: int, attempts: int = 1, concurrency: int = 16
) -> RunEstimate:
    """Return what *cases* cases of *version* need from the model *spec*. Models that fill roles are left out."""
    responses = cases * attempts
    if not PROVIDERS[spec.provider].live:
        return RunEstimate(
            responses=responses, requests=responses, cost_usd=0.0, seconds=None, measured=False, recorded=True
        )
    earlier = _earlier_responses(version, spec.name)
    usage, turns, latency_ms = _means(earlier) if earlier else (*_guess(version), None)
    return RunEstimate(
        responses=responses,
        requests=round(responses * turns),
        cost_usd=spec.price.cost(usage) * responses if spec.price else None,
        seconds=None if latency_ms is None else responses * latency_ms / 1000 / min(concurrency, max(responses, 1)),
        measured=bool(earlier),
        recorded=False,
    )


def _earlier_responses(version: EnvironmentVersion, label: str) -> list[Response]:
    """Return responses of the last runs of this environment, with token counts: of model *label*, or else of any."""
    runs = RunEnvironment.objects.filter(version__environment_id=version.environment_id).order_by("-run_id")
    rows = (
        Response.objects.filter(run_environment__in=list(runs.values_list("pk", flat=True)[:_RUNS]), input_tokens__gt=0)
        .exclude(latency_ms=None)
        .only("input_tokens", "output_tokens", "cached_input_tokens", "turns", "latency_ms")
        .order_by()  # sorting would read all responses of these runs
    )
    return list(rows.filter(run_model__label=label)[:_EARLIER]) or list(rows[:_EARLIER])


def _means(rows: Sequence[Response]) -> tuple[Usage, float, float]:
    """Return the mean usage, requests and milliseconds of a response."""
    count = len(rows)
    usage = Usage(
        input=round(sum(row.input_tokens for row in rows) / count),
        cached_input=round(sum(row.cached_input_tokens for row in rows) / count),
        output=round(sum(row.output_tokens for row in rows) / count),
    )
    turns = sum(max(row.turns, 1) for row in rows) / count
    return usage, turns, sum(row.latency_ms or 0.0 for row in rows) / count


def _guess(version: EnvironmentVersion) -> tuple[Usage, float]:
    """Return the usage and requests of a response, guessed from the harness and the length of some cases."""
    inputs = Case.objects.filter(version=version).order_by("position").values_list("data", flat=True)[:_CASES]
    sizes = [len(json.dumps(data.get("input", ""), ensure_ascii=False)) for data in inputs]
    prompt = sum(sizes) / max(len(sizes), 1) / _CHARACTERS_PER_TOKEN + 100
    harness = (version.manifest.get("harness") or {}).get("type", "single_turn")
    turns = 1 if harness == "single_turn" else _GUESSED_TURNS
    # Each turn sends everything before it again.
    sent = prompt * turns + _GUESSED_OUTPUT * turns * (turns - 1) / 2
    return Usage(input=round(sent), output=_GUESSED_OUTPUT * turns), turns
