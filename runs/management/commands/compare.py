"""`manage.py compare`: compare two runs, or two models of one run, case by case."""

from argparse import ArgumentParser
from typing import TypedDict, Unpack

from hub.management import base
from runs.reports.comparison import print_comparison
from runs.results.comparison import Comparison, compare
from runs.selectors import get_run


class Options(TypedDict):
    """Options of the command as parsed."""

    run_a: str
    run_b: str | None
    model_a: str | None
    model_b: str | None
    json: bool


class Command(base.Command):
    help = (
        "Compare two runs, or two models of one run, on the cases with scored responses on both sides. Differences are "
        "A - B. The exit code is 1 if no case can be compared."
    )

    option_names = {"model_a": "--model-a and --model-b"}

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("run_a", metavar="RUN_A")
        parser.add_argument("run_b", metavar="RUN_B", nargs="?", help="default: RUN_A, to compare two of its models")
        parser.add_argument("--model-a", metavar="X", help="label of the model in RUN_A")
        parser.add_argument("--model-b", metavar="Y", help="label of the model in RUN_B")
        parser.add_argument("--json", action="store_true", help="print one JSON document on stdout")

    def handle(self, *args: object, **options: Unpack[Options]) -> None:
        comparison = compare(
            get_run(options["run_a"]),
            get_run(options["run_b"] or options["run_a"]),
            model_a=options["model_a"],
            model_b=options["model_b"],
        )
        self.print_json(comparison.to_json())
        if not options["json"]:
            print_comparison(comparison, base.ReportConsole())
        if not comparison.cases:
            raise self.exit_with(base.INCOMPLETE, "No case can be compared.", _reasons(comparison))


def _reasons(comparison: Comparison) -> list[str]:
    """Return why no case can be compared, with one line for each environment and pair of models."""
    lines = []
    for pair in comparison.models:
        for item in pair.environments:
            left_out = ", ".join(f"{count:,} cases {why}" for why, count in item.left_out.items())
            lines.append(f"{item.slug}, {pair.model_a} and {pair.model_b}: {left_out or 'no response on either side'}.")
    return lines
