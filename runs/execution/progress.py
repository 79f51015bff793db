"""Progress of a run: a live bar on a terminal, plain lines in a pipe."""

import threading
import time
from collections import Counter
from contextlib import AbstractContextManager
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from hub.common.output.foreign_text import clean
from runs.models import Response
from runs.selectors import StoredCounts

_WIDE = 90  # columns from which the bar and the time spent fit beside the figures
_LINE_EVERY_S = 10.0  # in a pipe


class RunProgress(AbstractContextManager["RunProgress"]):
    """Listener that shows progress on *console*, which should be stderr if stdout carries JSON."""

    def __init__(self, console: Console, total: int) -> None:
        self._console = console
        self._total = total
        self._lock = threading.Lock()  # a thread for each local process reports its responses
        self._counts: Counter[str] = Counter()
        self._cost, self._cost_unknown = 0.0, False
        self._started = self._last_line = time.monotonic()
        self._live = console.is_terminal and not console.is_dumb_terminal
        wide = console.width >= _WIDE
        columns = [
            SpinnerColumn(),
            *([BarColumn(bar_width=24)] if wide else []),
            TextColumn("{task.completed:,}/{task.total:,}"),
            TextColumn("{task.fields[counts]}"),
            *([TimeElapsedColumn()] if wide else []),
            TextColumn("left"),
            TimeRemainingColumn(),
        ]
        self._bar = Progress(*columns, console=console, disable=not self._live, transient=True)
        self._task = self._bar.add_task("run", total=total, counts="")

    def __enter__(self) -> "RunProgress":
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def response_finished(self, response: Response) -> None:
        with self._lock:
            self._counts[response.status] += 1
            self._cost += (response.cost_usd or 0.0) + (response.role_cost_usd or 0.0)
            self._cost_unknown |= response.cost_usd is None or response.role_cost_usd is None
            self._show()

    def show_stored(self, stored: StoredCounts) -> None:
        """Show what is stored so far of a run that another process executes."""
        self._counts = Counter(stored.by_status)
        self._cost, self._cost_unknown = stored.cost_usd, stored.cost_unknown
        self._show()

    def _show(self) -> None:
        done = self._counts.total()
        now = time.monotonic()
        if self._live:
            self._bar.update(self._task, completed=done, counts=self._summary(done, now))
        elif now - self._last_line >= _LINE_EVERY_S:
            self._last_line = now
            self._print(f"{done:,}/{self._total:,}  {self._summary(done, now)}")

    def model_stopped(self, label: str, reason: str) -> None:
        self._print(f"{label} was stopped: {clean(reason)}", style="bold red")

    def run_delayed(self, reason: str, seconds: float) -> None:
        text = f"{clean(reason)} The run continues when it works again; next try in {seconds:.0f} s."
        self._print(text, style="yellow")

    def show_notice(self, text: str) -> None:
        """Print why nothing happens at present."""
        self._print(clean(text), style="yellow")

    def _print(self, text: str, style: str = "") -> None:
        """Print a line, which a terminal folds; in a pipe it stays one line, so that logs can be searched."""
        self._console.print(text, style=style, markup=False, highlight=False, soft_wrap=not self._console.is_terminal)

    def _summary(self, done: int, now: float) -> str:
        counts = self._counts
        parts = [f"passed {counts['passed']:,}", f"failed {counts['failed']:,}"]
        parts += [f"{name} {counts[name]:,}" for name in ("errored", "unscored") if counts[name]]
        rate = done / max(now - self._started, 0.001)
        parts.append(f"{rate:,.0f}/s" if rate >= 1 else f"{60 * rate:.1f}/min")
        if self._cost:
            parts.append(f"{'at least ' if self._cost_unknown else ''}${self._cost:,.4f}")
        return "  ".join(parts)
