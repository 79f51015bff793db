"""Estimates of the requests, cost and time of a run, from earlier runs or from the length of cases.

There are two sources of figures of earlier runs. Stored results serve runs of any size in two queries, but they have no
turns, and exist only for runs that have ended. Responses have turns and exist during a run, but each pair of an
environment and a model needs its own queries: they serve runs of one environment and one model.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Avg, QuerySet, TextField
from django.db.models.functions import Cast, Length

from hub.common.fields import json_text
from hub.models import Case, EnvironmentVersion
from hub.protocols.calls import Usage
from runs.config.schema import DEFAULT_CONCURRENCY
from runs.models import Response, Run, RunEnvironment, RunResult
from runs.providers.base import ModelSpec
from runs.providers.registry import PROVIDERS

_EARLIER = 100  # responses that an estimate is made from
_RESULTS = 2000  # latest results that the estimate of several environments looks at
_RUNS = 5  # last runs of an environment that they are taken from
_CASES = 20  # cases whose length is measured if there are no earlier responses
_CHARACTERS_PER_TOKEN = 4
_GUESSED_OUTPUT = 500  # tokens of a response of one turn
_GUESSED_TURNS = 6  # of harnesses with several turns


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEstimate:
    """Estimated needs of a run, with the data that the estimate is made from.

    cost_usd: of the models with a price; None if none has one. unpriced: names of the others. seconds: None unless the
    time is known for all parts. parts: pairs of an environment and a model that is called. measured: those with
    responses in earlier runs. earlier: number of these responses.
    """

    responses: int
    requests: int
    cost_usd: float | None
    unpriced: list[str]
    seconds: float | None
    parts: int
    measured: int
    earlier: int

    @property
    def parts_guessed(self) -> int:
        return self.parts - self.measured

    @property
    def recorded(self) -> bool:
        """Whether all answers are recorded, so that no model is called."""
        return not self.parts


@dataclass(frozen=True, slots=True)
class _Means:
    """Mean needs of a response. responses: number of earlier responses they are from; 0 if they are a guess."""

    usage: Usage
    turns: float
    latency_ms: float | None
    responses: int = 0


@dataclass(frozen=True, slots=True)
class _Part:
    """Responses of one model to one environment. means: None if the model is not called, but has recorded answers."""

    spec: ModelSpec
    responses: int
    means: _Means | None


def estimate_from_results(
    cases: Mapping[EnvironmentVersion, int],
    specs: Sequence[ModelSpec],
    *,
    runs: QuerySet[Run],
    attempts: int,
    concurrency: int,
) -> RunEstimate:
    """Return what *specs* need for a number of cases of each version, in two queries. Models for roles are left out.

    Tokens and times are those of the latest result in *runs* of the same environment and model, or else of the
    environment and any model, or else a guess from the length of some cases. Turns are guessed from the harness.
    """
    calls = any(_is_called(spec) for spec in specs)
    earlier = _latest_results(cases, runs) if calls else {}
    unmeasured = [version for version in cases if not earlier.get(version.environment_id)] if calls else []
    guesses = _guess_all(unmeasured) if unmeasured else {}
    parts = []
    for version, count in cases.items():
        for spec in specs:
            means = None
            if _is_called(spec):
                labelled = earlier.get(version.environment_id, {})
                means = labelled.get(spec.name) or next(iter(labelled.values()), None) or guesses[version.pk]
            parts.append(_Part(spec, count * attempts, means))
    return _add_up(parts, concurrency)


def estimate_from_responses(
    version: EnvironmentVersion, spec: ModelSpec, *, runs: QuerySet[Run], cases: int
) -> RunEstimate:
    """Return what one attempt at *cases* cases of *version* needs from the model *spec*, without models for roles.

    Tokens, turns and times are those of single responses in the last runs among *runs*, which may not have ended: of
    the same model, or else of any model, or else a guess as in `estimate_from_results`.
    """
    means = None
    if _is_called(spec):
        means = _mean_of_responses(_earlier_responses(version, spec.name, runs)) or _guess_all([version])[version.pk]
    return _add_up([_Part(spec, cases, means)], DEFAULT_CONCURRENCY)


def _is_called(spec: ModelSpec) -> bool:
    return PROVIDERS[spec.provider].live


def _add_up(parts: Sequence[_Part], concurrency: int) -> RunEstimate:
    """Return what all *parts* need together, with at most *concurrency* responses at a time."""
    called = [(part, means) for part in parts if (means := part.means) is not None]
    total = sum(part.responses for part in parts)
    requests = sum(part.responses * (part.means.turns if part.means else 1) for part in parts)
    costs = [part.spec.price.cost(means.usage) * part.responses for part, means in called if part.spec.price]
    times = [means.latency_ms * part.responses / 1000 for part, means in called if means.latency_ms is not None]
    return RunEstimate(
        responses=total,
        requests=round(requests),
        cost_usd=sum(costs) if costs or not called else None,
        unpriced=list(dict.fromkeys(part.spec.name for part, _ in called if not part.spec.price)),
        seconds=sum(times) / min(concurrency, max(total, 1)) if called and len(times) == len(called) else None,
        parts=len(called),
        measured=sum(bool(means.responses) for _, means in called),
        earlier=sum(means.responses for _, means in called),
    )


def _latest_results(cases: Iterable[EnvironmentVersion], runs: QuerySet[Run]) -> dict[int, dict[str, _Means]]:
    """Return the means of the latest result with token counts by environment id and label, the latest label first."""
    versions = {version.environment_id: version for version in cases}
    rows = (
        RunResult.objects.filter(run_environment__version__environment_id__in=list(versions))
        .filter(run__in=runs.order_by().values("pk"))
        .annotate(tokens=json_text("figures", "tokens"), times=json_text("figures", "latency_ms"))
        .order_by("-run_id")
        .values_list("run_environment__version__environment_id", "run_model__label", "stored", "tokens", "times")
    )
    found: dict[int, dict[str, _Means]] = {}
    for environment, label, stored, tokens, times in rows[:_RESULTS]:
        # Errored responses have few tokens or none.
        count, sums = sum(stored.values()) - stored.get("errored", 0), json.loads(tokens or "{}")
        labelled = found.setdefault(environment, {})
        if label in labelled or count < 1 or not sums.get("input"):
            continue
        usage = Usage(
            input=round(sums["input"] / count),
            cached_input=round(sums.get("cached_input", 0) / count),
            output=round(sums.get("output", 0) / count),
        )
        known = json.loads(times or "{}")
        latency_ms = known.get("mean", known.get("p50"))  # results of earlier releases have no mean
        labelled[label] = _Means(usage, _guessed_turns(versions[environment]), latency_ms, count)
    return found


def _guess_all(versions: Sequence[EnvironmentVersion]) -> dict[int, _Means]:
    """Return the means guessed from the length of some cases, by id of the version."""
    sizes = dict(
        Case.objects.filter(version__in=versions, position__lt=_CASES)
        .order_by()
        .values("version_id")
        .annotate(size=Avg(Length(Cast(json_text("data", "input"), TextField()))))
        .values_list("version_id", "size")
    )
    found = {}
    for version in versions:
        usage, turns = _guessed_usage(version, sizes.get(version.pk) or 0.0)
        found[version.pk] = _Means(usage, turns, None)
    return found


def _earlier_responses(version: EnvironmentVersion, label: str, visible: QuerySet[Run]) -> list[Response]:
    """Return responses of the last runs of this environment, with token counts: of model *label*, or else of any."""
    runs = RunEnvironment.objects.filter(version__environment_id=version.environment_id)
    runs = runs.filter(run__in=visible.order_by().values("pk")).order_by("-run_id")
    rows = (
        Response.objects.filter(run_environment__in=list(runs.values_list("pk", flat=True)[:_RUNS]), input_tokens__gt=0)
        .exclude(latency_ms=None)
        .only("input_tokens", "output_tokens", "cached_input_tokens", "turns", "latency_ms")
        .order_by()  # sorting would read all responses of these runs
    )
    return list(rows.filter(run_model__label=label)[:_EARLIER]) or list(rows[:_EARLIER])


def _mean_of_responses(rows: Sequence[Response]) -> _Means | None:
    """Return the means of *rows*, or None without any."""
    if not rows:
        return None
    count = len(rows)
    usage = Usage(
        input=round(sum(row.input_tokens for row in rows) / count),
        cached_input=round(sum(row.cached_input_tokens for row in rows) / count),
        output=round(sum(row.output_tokens for row in rows) / count),
    )
    turns = sum(max(row.turns, 1) for row in rows) / count
    return _Means(usage, turns, sum(row.latency_ms or 0.0 for row in rows) / count, count)


def _guessed_usage(version: EnvironmentVersion, size: float) -> tuple[Usage, float]:
    """Return the usage and requests of a response to a case whose input has *size* characters."""
    prompt, turns = size / _CHARACTERS_PER_TOKEN + 100, _guessed_turns(version)
    # Each turn sends everything before it again.
    sent = prompt * turns + _GUESSED_OUTPUT * turns * (turns - 1) / 2
    return Usage(input=round(sent), output=_GUESSED_OUTPUT * turns), turns


def _guessed_turns(version: EnvironmentVersion) -> int:
    harness = (version.manifest.get("harness") or {}).get("type", "single_turn")
    return 1 if harness == "single_turn" else _GUESSED_TURNS
