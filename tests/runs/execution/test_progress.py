"""Progress of a run on a terminal and in a pipe."""

import io
import time

import pytest
from rich.console import Console

from runs.execution.progress import RunProgress
from runs.models import Response
from runs.selectors import StoredCounts

REASON = "The endpoint answered 401: check the key in the variable that api_key_env names, then resume the run."


def printed(*, terminal: bool) -> list[str]:
    console = Console(file=io.StringIO(), force_terminal=terminal, width=60, soft_wrap=False, color_system=None)
    progress = RunProgress(console, 3)
    progress.model_stopped("small", REASON)
    progress.run_delayed(REASON, 4.0)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_messages_are_one_line_each_in_a_pipe() -> None:
    stopped, delayed = printed(terminal=False)
    assert stopped == f"small was stopped: {REASON}"
    assert delayed == f"{REASON} The run continues when it works again; next try in 4 s."


def test_messages_are_folded_on_a_terminal() -> None:
    lines = printed(terminal=True)
    assert len(lines) > 2 and max(map(len, lines)) <= 60


def test_reasons_of_endpoints_are_printed_without_terminal_sequences() -> None:
    output = io.StringIO()
    progress = RunProgress(Console(file=output, width=200), total=3)
    progress.model_stopped("small", "401: bad\x1b]0;title\x07 \x1b[2Jkey [bold]")
    progress.run_delayed("The disk is\x1b[1A full.", 5.0)
    assert "small was stopped: 401: bad key [bold]\nThe disk is full. The run continues" in output.getvalue()


def test_rate_of_a_slow_run_is_per_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    output = io.StringIO()
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    progress = RunProgress(Console(file=output, width=200), total=100)
    for seconds in (12.0, 24.0):
        now += seconds
        progress.response_finished(Response(status="passed"))
    now += 1.0
    progress.show_stored(StoredCounts(by_status={"passed": 90}, cost_usd=0.0, cost_unknown=False))
    now += 10.0
    progress.show_stored(StoredCounts(by_status={"passed": 94}, cost_usd=0.0, cost_unknown=False))
    lines = output.getvalue().splitlines()
    assert [line.split()[-1] for line in lines] == ["5.0/min", "3.3/min", "2/s"]
