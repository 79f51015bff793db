"""Base class of commands on bundles: runs the gates and shows certificates."""

import sys

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from hub.bundles.loader import Bundle
from hub.gates.certificates import Certificate, GateResult
from hub.gates.runner import run_gates
from hub.management.base import Command
from sandbox.client.settings import get_pool_options
from sandbox.client.shared_pools import get_shared_pool
from sandbox.management.tiers import add_accept_argument
from sandbox.workspaces.shared import allow_builds


class BundleCommand(Command):
    """Command on bundles; exit code 1 means that gates failed."""

    add_gate_arguments = staticmethod(add_accept_argument)

    def gates(self, bundle: Bundle, accept: frozenset[str]) -> Certificate:
        """Run the gates and return the certificate. Raises SandboxUnavailable."""
        allow_builds()
        pool = None
        environment = bundle.compile()
        if environment.needs_sandbox:
            pool = environment.pool(get_shared_pool(get_pool_options(accept=accept)))
        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
        console = Console(stderr=True)
        with Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty()) as progress:
            task = progress.add_task("gates", total=None)
            return run_gates(
                bundle, pool=pool, progress=lambda done, total: progress.update(task, completed=done, total=total)
            )

    def show(self, certificate: Certificate) -> None:
        """Print the result of each gate."""
        marks = {"passed": "passed ", "failed": "FAILED ", "not_run": "not run"}
        for gate in certificate["gates"]:
            self.stdout.write(f"  {marks[gate['status']]}  {gate['name']:8} {gate['what']} {_counted(gate)}")
            for failure in gate["failures"][:10]:
                self.stdout.write(f"           {failure['case']}: {failure['message']}")
            if gate["failed"] > 10:
                self.stdout.write(f"           and {gate['failed'] - 10:,} more")


def _counted(gate: GateResult) -> str:
    counted = f"{gate['failed']:,} of {gate['checked']:,} fail." if gate["failed"] else f"{gate['checked']:,} checked."
    return " ".join(part for part in (counted if gate["checked"] else "", gate["note"]) if part)
