"""`manage.py compare`: two runs, or two models of one run, case by case."""

import json
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand
from rich.console import Console

from runs.comparison import ComparisonError, compare
from runs.reports.compared import print_comparison
from runs.selectors import RunNotFound, run_get

WRONG_INPUT = 2


class Command(BaseCommand):
    help = "Compare two runs, or two models of one run, on the cases that both scored. Differences are A - B."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("run_a", metavar="RUN_A")
        parser.add_argument("run_b", metavar="RUN_B", nargs="?", help="by default RUN_A: two models of one run")
        parser.add_argument("--model-a", metavar="X", help="the model of RUN_A, by its label")
        parser.add_argument("--model-b", metavar="Y", help="the model of RUN_B, by its label")
        parser.add_argument("--json", action="store_true", help="one JSON document on stdout")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            found = compare(
                run_get(options["run_a"]),
                run_get(options["run_b"] or options["run_a"]),
                model_a=options["model_a"],
                model_b=options["model_b"],
            )
        except (RunNotFound, ComparisonError) as error:
            self.stderr.write(str(error))
            sys.exit(WRONG_INPUT)
        if options["json"]:
            self.stdout.write(json.dumps(found.to_json(), ensure_ascii=False, allow_nan=False))
        else:
            print_comparison(found, Console())
