"""What the commands about bundles share: exit codes, how problems and certificates are shown, running the gates."""

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from hub.bundles.gates import gates_run
from hub.bundles.loader import Bundle
from hub.bundles.problems import Problem
from hub.pools import pool_options
from sandbox.errors import SandboxUnavailable
from sandbox.pool import shared

DONE, INCOMPLETE, WRONG_INPUT, UNAVAILABLE = 0, 1, 2, 3


class BundleCommand(BaseCommand):
    """A command whose exit codes are those of contracts: 1 gates failed, 2 wrong input, 3 no sandbox."""

    def add_gate_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--accept",
            default="A,B",
            metavar="TIERS",
            help="isolation tiers under which the gates may run code (default A,B; C hardly contains it)",
        )

    def refuse(self, problems: Sequence[Problem] | str) -> CommandError:
        """The error to raise for wrong input."""
        if isinstance(problems, str):
            return CommandError(problems, returncode=WRONG_INPUT)
        listed = "\n".join(f"  {problem}" for problem in problems)
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        return CommandError(f"{count}, nothing stored:\n{listed}", returncode=WRONG_INPUT)

    def gates(self, bundle: Bundle, accept: str) -> dict[str, Any]:
        """Run the gates and give the certificate. Raises CommandError where the sandbox is unavailable."""
        pool = None
        try:
            if bundle.compile().needs_sandbox:
                tiers = frozenset(tier.strip().upper() for tier in accept.split(",") if tier.strip())
                pool = shared(pool_options(accept=tiers))
        except SandboxUnavailable as error:
            raise CommandError(str(error), returncode=UNAVAILABLE) from None
        except ValueError as error:
            raise CommandError(f"--accept: {error}", returncode=WRONG_INPUT) from None
        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
        console = Console(stderr=True)
        with Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty()) as progress:
            task = progress.add_task("gates", total=None)
            return gates_run(
                bundle, pool=pool, progress=lambda done, total: progress.update(task, completed=done, total=total)
            )

    def show(self, certificate: dict[str, Any]) -> None:
        """Print what each gate found."""
        marks = {"passed": "passed ", "failed": "FAILED ", "not_run": "not run"}
        for gate in certificate["gates"]:
            self.stdout.write(f"  {marks[gate['status']]}  {gate['name']:8} {gate['what']} {_counted(gate)}")
            for failure in gate["failures"][:10]:
                self.stdout.write(f"           {failure['case']}: {failure['message']}")
            if gate["failed"] > 10:
                self.stdout.write(f"           and {gate['failed'] - 10:,} more")


def _counted(gate: dict[str, Any]) -> str:
    counted = f"{gate['failed']:,} of {gate['checked']:,} fail." if gate["failed"] else f"{gate['checked']:,} checked."
    return " ".join(part for part in (counted if gate["checked"] else "", gate["note"]) if part)


def failed_gates(certificate: dict[str, Any]) -> list[str]:
    """The names of the gates that failed."""
    return [gate["name"] for gate in certificate["gates"] if gate["status"] == "failed"]
