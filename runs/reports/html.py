"""The report as one HTML file: no script, no foreign address, everything that models wrote escaped by the template."""

import json
from functools import cache
from typing import Any

from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User
from django.template import Context, Engine
from django.utils import timezone

from runs.models import Run
from runs.reports import formats as write
from runs.reports.terminal import detail_lines
from runs.results.aggregate import (
    CellResult,
    FailedResponse,
    failed_responses,
    known_cost,
    run_results,
    stage_sentences,
    warnings,
)
from runs.results.outcomes import outcome_of
from runs.selectors import REASON_WITHHELD, shown_config, withheld_environments

FAILURES = 50  # listed for each environment and model
ANSWER = 4000  # characters of an answer
REASON = 500


def render_html(run: Run, cells: list[CellResult] | None = None, *, user: User | AnonymousUser | None = None) -> str:
    """The whole report of *run* as an HTML document. *cells* are `run_results(run)`, where they are at hand.

    It leaves out what *user* may not see: reasons on held-out environments, and endpoints. None: an operator.
    """
    hidden = set(withheld_environments(user, run).values_list("pk", flat=True)) if user else set()
    cells = run_results(run) if cells is None else cells
    environments = [
        {
            "name": write.clean(name),
            "digest": group[0].run_environment.version.digest,
            "selection": _selection(group[0]),
            "rows": [_row(cell) for cell in group],
        }
        for name, group in _grouped(cells).items()
    ]
    content = Context(
        {
            "run": run,
            "name": write.clean(run.name),
            "status": outcome_of(run).label,
            "duration": write.duration(run.seconds),
            "cost": write.money(known_cost(run)),
            "generated": timezone.now(),
            "environments": environments,
            "sections": [section for cell in cells if (section := _section(cell, cell.run_environment.pk in hidden))],
            "warnings": [write.clean(note) for note in warnings(run, cells)],
            "stages": [write.clean(sentence) for sentence in stage_sentences(run)],
            "summaries": {key: _json(value) for key, value in run.summaries.items()},
            "config": write.clean(_json(shown_config(run, user) if user else run.config), lines=True),
            "host": _json(run.host),
        },
    )
    return _engine().get_template("runs/report.html").render(content)


@cache
def _engine() -> Engine:
    """Not the site's, which at its first use imports the template tags of every app: longer than the report takes."""
    return Engine(dirs=[str(settings.BASE_DIR / "templates")])


def _selection(cell: CellResult) -> str:
    return _json(cell.run_environment.selection) if cell.run_environment.selection else "all cases"


def _grouped(cells: list[CellResult]) -> dict[str, list[CellResult]]:
    groups: dict[str, list[CellResult]] = {}
    for cell in cells:
        groups.setdefault(cell.environment, []).append(cell)
    return groups


def _row(cell: CellResult) -> dict[str, Any]:
    latency = [write.milliseconds(cell.latency(q)) for q in (0.5, 0.95)]
    return {
        "model": write.clean(cell.model),
        "recorded": cell.recorded,
        "incomplete": cell.incomplete,
        "accuracy": write.percent(cell.accuracy.value),
        "interval": write.interval(cell.accuracy.low, cell.accuracy.high),
        "method": cell.accuracy.note or write.method(cell.accuracy.method),
        "n": f"{cell.accuracy.n:,}",
        # Whole per mille as text: the bar's geometry must not depend on the reader's language.
        "bar": _bar(cell),
        "counts": [(status, f"{cell.statuses[status]:,}") for status in ("passed", "failed", "errored", "unscored")],
        "truncated": f"{cell.truncated:,}",
        "refused": f"{cell.refused:,}",
        "latency": write.UNDEFINED if cell.latency(0.5) is None else " / ".join(latency),
        "tokens": f"{write.tokens(cell.tokens['input'])} / {write.tokens(cell.tokens['output'])}",
        "cost": write.money(cell.known_cost_usd),
        "details": [write.clean(line) for line in detail_lines(cell)],
    }


def _bar(cell: CellResult) -> dict[str, str] | None:
    """Where point and interval lie on a line from 0 to 1000."""
    accuracy = cell.accuracy
    if accuracy.value is None or accuracy.low is None or accuracy.high is None:
        return None
    low, high = round(1000 * accuracy.low), round(1000 * accuracy.high)
    return {"low": str(low), "width": str(max(high - low, 1)), "point": str(round(1000 * accuracy.value))}


def _section(cell: CellResult, withheld: bool) -> dict[str, Any] | None:
    """The responses of one cell that did not pass, or None where all did."""
    found = failed_responses(cell, statuses=["failed", "errored", "unscored"], limit=FAILURES)
    total = cell.responses - cell.statuses["passed"]
    if not found:
        return None
    return {
        "model": write.clean(cell.model),
        "environment": write.clean(cell.environment),
        "total": f"{total:,}",
        "shown": f"{len(found):,}",
        "capped": total > len(found),
        "items": [_item(item, cell.attempts, withheld) for item in found],
    }


def _item(item: FailedResponse, attempts: int, withheld: bool) -> dict[str, Any]:
    answer = write.clean(item.text, lines=True)
    reason = REASON_WITHHELD if withheld and item.status != "errored" else item.reason
    return {
        "case": write.clean(item.case),
        "attempt": item.attempt if attempts > 1 else None,
        "status": item.status,
        "flags": item.flags,
        "reason": write.cut(write.clean(reason), REASON) or "no reason was given",
        "answer": answer[:ANSWER],
        "size": f"{len(answer):,}",
        "cut": len(answer) > ANSWER,
        "cut_at": f"{ANSWER:,}",
    }


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=False, default=str)
