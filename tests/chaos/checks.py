"""What must hold after a chaos run. Each function returns what is wrong, as sentences."""

from collections import Counter
from collections.abc import Iterator, Sequence

from django.db.models import Sum
from pytest import approx

from runs.execution.executor import FINISH_WITHIN_S
from runs.models import ModelCall, Response, Run, RunModel, Score
from tests.chaos.faults import OUTAGE_S, Fault
from tests.chaos.workload import MODELS, CountingScript, Key, Size

_LONGEST_PAUSE_S = 8.0  # of the openai client between two attempts
_UNSTORED_S = 5.0  # how long before a kill a reply may have arrived without being stored: waiting rows and reconnecting


def check_all(run: Run, size: Size, script: CountingScript, faults: Sequence[Fault]) -> list[str]:
    """Return everything that is wrong."""
    checks = (
        _check_run(run),
        _check_responses(run, size),
        _check_totals(run),
        _check_requests(script, size, faults),
    )
    return [problem for check in checks for problem in check]


def _check_run(run: Run) -> Iterator[str]:
    if run.status != Run.Status.COMPLETED:
        yield f"The run is {run.status}: {run.message}"
    if run.lease_owner or run.lease_until:
        yield f"The run is leased by {run.lease_owner}."
    if left := run.shards.count():
        yield f"{left} shards are left."
    for model in RunModel.objects.filter(run=run).exclude(stopped=""):
        yield f"The model {model.label} was stopped: {model.stopped}"


def _check_responses(run: Run, size: Size) -> Iterator[str]:
    rows = Response.objects.filter(run_environment__run=run)
    stored = Counter(rows.values_list("run_model_id", "case_id", "attempt"))
    if len(stored) != size.responses or stored.total() != size.responses:
        yield f"{stored.total()} responses to {len(stored)} attempts are stored instead of {size.responses}."
    statuses = Counter(rows.values_list("status", flat=True))
    wrong = sum(len(range(0, count, 7)) for count in (size.texts, size.programs)) * len(MODELS) * size.attempts
    if statuses != {"passed": size.responses - wrong, "failed": wrong}:
        reasons = Counter(rows.filter(status__in=["errored", "unscored"]).values_list("error_kind", "reason"))
        yield f"The statuses are {dict(statuses)}, with {wrong} wrong answers: {reasons.most_common(3)}"
    scores = Score.objects.filter(response__run_environment__run=run).count()
    if scores != size.responses:
        yield f"{scores} scores are stored instead of {size.responses}."


def _check_totals(run: Run) -> Iterator[str]:
    rows = Response.objects.filter(run_environment__run=run)
    sums = rows.aggregate(cost=Sum("cost_usd"), output=Sum("output_tokens"))
    calls = ModelCall.objects.aggregate(cost=Sum("cost_usd"))["cost"]
    if run.cost_usd != approx(sums["cost"]):
        yield f"The run cost {run.cost_usd}, but its responses {sums['cost']}."
    if run.cost_usd != approx(calls):
        yield f"The run cost {run.cost_usd}, but its calls {calls}."
    if sums["output"] != rows.count() * 5:
        yield f"The responses have {sums['output']} output tokens."


def _check_requests(script: CountingScript, size: Size, faults: Sequence[Fault]) -> Iterator[str]:
    stored = _stored_at()
    answered = sum(map(len, script.answered.values()))
    if len(stored) != size.responses:
        yield f"{len(stored)} calls are stored instead of {size.responses}."
    late = [key for key, times in script.arrived.items() if key in stored and times[-1] > stored[key]]
    if late:
        yield f"{len(late)} stored responses were requested again, such as {late[0]}."
    kills = sum(fault.kills for fault in faults)
    lost = [(key, at) for key, times in script.answered.items() for at in times[:-1]]
    for key, at in lost:
        if not any(_may_lose(fault, at, faults) for fault in faults):
            yield f"No fault explains that the reply to {key} was not stored: {_since(at, faults)}."
    most = kills * (len(MODELS) * size.concurrency + 100)
    if len(lost) > most:
        yield f"{len(lost)} of {answered} replies were lost, more than {most} for {kills} kills."
    for model in MODELS:
        if script.peaks[model] > size.concurrency:
            since = _since(script.peaked_at[model], faults)
            yield f"{script.peaks[model]} requests to {model} were in flight, more than {size.concurrency}: {since}."


def _since(at: float, faults: Sequence[Fault]) -> str:
    return ", ".join(f"{at - fault.at:.1f} s after {fault.description}" for fault in faults)


def _may_lose(fault: Fault, at: float, faults: Sequence[Fault]) -> bool:
    """Return whether *fault* explains that a reply of the time *at* was not stored."""
    if fault.kills:
        others = any(not other.kills and 0 <= fault.at - other.at < OUTAGE_S for other in faults)
        return -2.0 < fault.at - at < _UNSTORED_S + OUTAGE_S * others
    # A worker that ends cancels calls after FINISH_WITHIN_S. A call takes that long if the endpoint rejected it,
    # because its next attempt is seconds later.
    repeats = any(other.outage and 0 <= fault.at - other.at < OUTAGE_S + _LONGEST_PAUSE_S for other in faults)
    return fault.restarts and repeats and FINISH_WITHIN_S - 1.0 < at - fault.at < FINISH_WITHIN_S + 4.0


def _stored_at() -> dict[Key, float]:
    """Return when the response to each request was stored."""
    rows = Response.objects.values_list("run_model__label", "case__data", "seed", "created_at")
    return {(label, _question(data), seed): created_at.timestamp() for label, data, seed, created_at in rows}


def _question(data: dict[str, object]) -> str:
    messages = data["input"]
    return messages if isinstance(messages, str) else str(messages[-1]["content"])  # type: ignore[index]
