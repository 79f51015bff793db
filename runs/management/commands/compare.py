"""`manage.py compare`: compare runs, or models of one run, case by case, and decide a gate."""

from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict, Unpack

from hub.common import wording
from hub.common.output.files import Outputs, add_force_argument, check_suffix
from hub.management import base
from runs.management.config_file import UsageError
from runs.reports.comparison.document import comparison_json
from runs.reports.comparison.files import comparison_html, comparison_markdown, gate_lines
from runs.reports.comparison.rows import compared_rows
from runs.reports.comparison.terminal import print_comparison
from runs.results.comparison.gate import decide_gate, parse_gate
from runs.results.comparison.pair import Comparison
from runs.results.comparison.several import compare_all
from runs.selectors import get_run

NO_GO, INCONCLUSIVE = 4, 5


class Options(TypedDict):
    """Options of the command as parsed."""

    runs: list[str]
    model_a: str | None
    model_b: str | None
    gate: str | None
    margin: float | None
    html: Path | None
    markdown: Path | None
    force: bool
    json: bool


class Command(base.Command):
    help = (
        "Compare runs, or the models of one run, on the cases with scored responses on both sides. Differences are "
        "A - B, where A is the run named first. The exit code is 1 if no case can be compared, 4 if the gate is NO-GO, "
        "and 5 if it is INCONCLUSIVE."
    )

    option_names = {"model_a": "--model-a and --model-b", "gate": "--gate"}

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "runs",
            metavar="RUN",
            nargs="+",
            help="one run, to compare its models, or several; a number, `latest`, or `latest:TAG`",
        )
        parser.add_argument("--model-a", metavar="X", help="label of the model in the first run")
        parser.add_argument("--model-b", metavar="Y", help="label of the model in the second run")
        parser.add_argument(
            "--gate", metavar="CONDITIONS", help='decide by intervals, as in "accuracy >= -0.01; cost <= 1.2x"'
        )
        parser.add_argument(
            "--margin", type=float, metavar="M", help="accuracies that differ by at most M (0 to 1) are equivalent"
        )
        parser.add_argument("--html", type=Path, metavar="FILE", help="write the comparison as one HTML file")
        parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the comparison as Markdown")
        add_force_argument(parser)
        base.add_json_argument(parser)

    def handle(self, *args: object, **options: Unpack[Options]) -> None:
        margin = options["margin"]
        if margin is not None and not 0 < margin < 1:
            raise UsageError(f"--margin is a difference of accuracies between 0 and 1, not {margin:g}.")
        if options["gate"] is not None:
            parse_gate(options["gate"])  # before anything is computed
        files = [
            (options["html"], ".html", comparison_html),
            (options["markdown"], ".md", comparison_markdown),
        ]
        for path, suffix, _ in files:
            if path is not None:
                check_suffix(path, suffix, "the comparison in this format")
        runs = [get_run(run) for run in options["runs"]]
        comparisons = compare_all(runs, model_a=options["model_a"], model_b=options["model_b"])
        gate = None if options["gate"] is None else decide_gate(options["gate"], comparisons)
        with Outputs(force=options["force"]) as outputs:
            for path, _, render in files:
                if path is not None:
                    outputs.file(path).write_text(render(comparisons, gate=gate, margin=margin), encoding="utf-8")
        self.print_json(comparison_json(comparisons, gate=gate, margin=margin))
        if not options["json"]:
            console = base.ReportConsole()
            for comparison in comparisons:
                print_comparison(comparison, console)
                console.print()
            verdicts = [row.verdict for row in compared_rows(comparisons, margin=margin)]
            for line in [*verdicts, *([f"{gate.decision}: {gate.expression}", *gate_lines(gate)] if gate else [])]:
                console.print(line, highlight=False, markup=False, soft_wrap=not console.is_terminal)
        if not any(comparison.cases for comparison in comparisons):
            raise self.exit_with(base.INCOMPLETE, "No case can be compared.", _reasons(comparisons))
        if gate is not None and gate.decision != "GO":
            raise SystemExit(NO_GO if gate.decision == "NO-GO" else INCONCLUSIVE)


def _reasons(comparisons: Sequence[Comparison]) -> list[str]:
    """Return why no case can be compared, with one line for each environment and pair of models."""
    lines = []
    for comparison in comparisons:
        for pair in comparison.models:
            for item in pair.environments:
                left_out = ", ".join(
                    f"{wording.counted(count, 'case')} ({why})" for why, count in item.left_out.items()
                )
                lines.append(
                    f"{item.slug}, {pair.model_a} and {pair.model_b}: {left_out or 'no response on either side'}."
                )
    return lines
