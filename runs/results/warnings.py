"""Warnings: sentences that a reader needs before trusting a figure."""

from collections.abc import Mapping, Sequence

from hub.common import wording
from hub.protocols.calls import TOO_LONG
from runs.models import Run
from runs.providers.base import ModelSpec
from runs.providers.registry import costs_money
from runs.results.figures import CellResult
from runs.selectors import stop_reason


def warnings(run: Run, cells: Sequence[CellResult], *, name_served: bool = True) -> list[str]:
    """Return the warnings about *run* and its results, the most serious first.

    name_served: with the names of models at their endpoints, which only some readers may see.
    """
    return [
        *_status_warnings(run),
        *_incomplete_warnings(cells),
        *_too_long_warnings(cells),
        *_stopped_model_warnings(run),
        *_served_model_warnings(cells, named=name_served),
        *_execution_warnings(cells),
        *_cost_warnings(cells),
        *_quarantine_warnings(cells),
    ]


def _status_warnings(run: Run) -> list[str]:
    if run.status in (Run.Status.COMPLETED, Run.Status.RUNNING):
        return []
    return [f"The run is {run.get_status_display()}. {run.message}".strip()]


def _incomplete_warnings(cells: Sequence[CellResult]) -> list[str]:
    incomplete = [cell for cell in cells if cell.incomplete]
    if len(incomplete) == 1:
        [cell] = incomplete
        return [
            f"{cell.model} on {cell.environment} is incomplete: {cell.scored:,} of {cell.expected:,} responses are "
            "scored, so its accuracy is not final."
        ]
    named = wording.name_some(
        f"{cell.model} on {cell.environment} ({cell.scored:,} of {cell.expected:,} responses are scored)"
        for cell in incomplete
    )
    return [f"Incomplete, so the accuracies are not final: {named}."] if incomplete else []


def _too_long_warnings(cells: Sequence[CellResult]) -> list[str]:
    counts = {
        f"{cell.model} on {cell.environment}": count
        for cell in cells
        if (count := cell.figures.errors.get(TOO_LONG, 0))
    }
    if not counts:
        return []
    total = wording.counted(sum(counts.values()), "response")
    named = wording.name_some(f"{name} ({count:,})" for name, count in counts.items())
    return [
        f"The conversation is too long for the model in {total}: {named}. A resume requests them again only with "
        "`--retry-too-long` of the command `eval`, `retry_too_long` over REST, or the button on the page of the run."
    ]


def _stopped_model_warnings(run: Run) -> list[str]:
    return [
        f"{model.label}{f' ({model.role})' if model.role else ''} was stopped: {stop_reason(model)}"
        for model in run.models.exclude(stopped="").order_by("role", "position")
    ]


def _served_model_warnings(cells: Sequence[CellResult], *, named: bool) -> list[str]:
    return [
        f"{cell.model} on {cell.environment}: the endpoint answered with several models, so the figures mix them"
        + (f": {_counts(cell.figures.served_models)}." if named else ".")
        for cell in cells
        if len(cell.figures.served_models) > 1
    ]


def _counts(models: Mapping[str, int]) -> str:
    return ", ".join(f"{name} ({count:,})" for name, count in models.items())


def _execution_warnings(cells: Sequence[CellResult]) -> list[str]:
    found = []
    if any(cell.figures.tier == "C" for cell in cells):
        found.append(
            "Code ran under isolation tier C: separate processes and limits only. The code was only weakly isolated; "
            "it may have read tests that its user can read."
        )
    for cell in cells:
        if tampered := cell.figures.executions.get("tampered", 0):
            answers = wording.counted(tampered, "answer")
            found.append(f"{cell.model} on {cell.environment}: {answers} interfered with their tests.")
        if shared := cell.figures.trust["in_process"]:
            total = sum(cell.figures.trust.values())
            found.append(
                f"{cell.model} on {cell.environment}: {shared:,} of {total:,} executions shared a process with their "
                "tests, so hostile code can forge their results (trust: in_process)."
            )
    return found


def _cost_warnings(cells: Sequence[CellResult]) -> list[str]:
    found = []
    recorded = {cell.model: cell.run_model.priced for cell in cells if cell.recorded}
    for priced, unknown in ((False, "Latency and cost are unknown."), (True, "Latency is unknown.")):
        if labels := sorted(label for label, has_price in recorded.items() if has_price is priced):
            found.append(f"Recorded answers, given before this run: {wording.name_some(labels)}. {unknown}")
    if unpriced := sorted({cell.model for cell in cells if not cell.recorded and not cell.run_model.priced}):
        found.append(f"No price is given for {wording.name_some(unpriced)}, so the cost is unknown.")
    for cell in cells:
        if cell.figures.unmetered and cell.run_model.priced:
            found.append(
                f"{wording.counted(cell.figures.unmetered, 'response')} of {cell.model} on {cell.environment} came "
                "without token counts (`usage`), so their cost is unknown."
            )
        timeouts = cell.figures.errors.get("timeout", 0)
        if timeouts and cell.run_model.priced and costs_money(ModelSpec.model_validate(cell.run_model.spec)):
            found.append(
                f"{wording.counted(timeouts, 'response')} of {cell.model} on {cell.environment} ended with a request "
                "that timed out. The endpoint may charge for it, but the cost and the budget do not include it."
            )
        if cell.figures.role_cost_usd is None:
            found.append(
                f"The cost of role models (judges, simulated users) for {cell.model} on {cell.environment} is unknown: "
                "one has no price, or its replies carried no token counts."
            )
    return found


def _quarantine_warnings(cells: Sequence[CellResult]) -> list[str]:
    counts = {cell.environment: len(cell.figures.quarantined_cases) for cell in cells}
    return [
        f"Left out of {environment}, because a curator found it wrong: {wording.counted(count, 'case')}."
        for environment, count in counts.items()
        if count
    ]
