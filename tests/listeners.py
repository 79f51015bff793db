"""Listeners of runs for tests."""

from runs.models import Response


class SilentListener:
    """Listener that only records which models were stopped, and why the run waited."""

    def __init__(self) -> None:
        self.stopped: list[str] = []
        self.delayed: list[str] = []

    def response_finished(self, response: Response) -> None:
        """Do nothing."""

    def model_stopped(self, label: str, reason: str) -> None:
        self.stopped.append(f"{label}: {reason}")

    def run_delayed(self, reason: str, seconds: float) -> None:
        self.delayed.append(reason)
