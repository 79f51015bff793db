"""`manage.py compare`: two runs, or two models of one run, case by case."""

from argparse import ArgumentParser
from typing import Any

from hub.management import base
from runs.reports.comparison import print_comparison
from runs.results.comparison import Comparison, compare
from runs.selectors import get_run


class Command(base.Command):
    help = (
        "Compare two runs, or two models of one run, on the cases that both scored. Differences are A - B. "
        "Exits 1 if no case can be compared."
    )

    option_names = {"model_a": "--model-a and --model-b"}

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("run_a", metavar="RUN_A")
        parser.add_argument("run_b", metavar="RUN_B", nargs="?", help="by default RUN_A: two models of one run")
        parser.add_argument("--model-a", metavar="X", help="the model of RUN_A, by its label")
        parser.add_argument("--model-b", metavar="Y", help="the model of RUN_B, by its label")
        parser.add_argument("--json", action="store_true", help="one JSON document on stdout")

    def handle(self, *args: Any, **options: Any) -> None:
        found = compare(
            get_run(options["run_a"]),
            get_run(options["run_b"] or options["run_a"]),
            model_a=options["model_a"],
            model_b=options["model_b"],
        )
        self.print_json(found.to_json())
        if not options["json"]:
            print_comparison(found, base.ReportConsole())
        if not found.cases:
            raise self.exit_with(base.INCOMPLETE, "Nothing was compared.", _reasons(found))


def _reasons(found: Comparison) -> list[str]:
    """Return why no case was comparable, a line for each environment and pair of models."""
    lines = []
    for pair in found.models:
        for item in pair.environments:
            left_out = ", ".join(f"{count:,} cases {why}" for why, count in item.left_out.items())
            lines.append(f"{item.slug}, {pair.model_a} and {pair.model_b}: {left_out or 'no response on either side'}.")
    return lines
