"""`manage.py eval`: validate a config, run it, print the report."""

import json
import sys
import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any, NoReturn

from django.core.management import call_command
from django.core.management.base import BaseCommand
from rich.console import Console

from runs.config import ConfigError, Problem, RunConfig, parse_text
from runs.dispatch import run_dispatch
from runs.leases import RunBusy
from runs.models import Run
from runs.planning import Chosen, environments_find, source_for_command
from runs.progress import RunProgress
from runs.reports import print_report, results_json
from runs.selectors import RunNotFound, run_get, stored_counts
from runs.services import config_of, run_create, run_reopen
from runs.session import Execution, run_execute
from runs.stages import stages
from sandbox.errors import SandboxUnavailable

_WATCH_EVERY_S = 0.5
DONE, INCOMPLETE, WRONG_INPUT, UNAVAILABLE, INTERRUPTED = 0, 1, 2, 3, 130


class Command(BaseCommand):
    help = "Play environments against models as a config says; score, store, track and report."
    requires_system_checks: list[str] = []  # they load every page of the site

    def add_arguments(self, parser: ArgumentParser) -> None:
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--config", metavar="FILE", help="the run's config (YAML)")
        what.add_argument("--resume", metavar="RUN", help="go on with a run: ask what is missing or errored")
        parser.add_argument(
            "--set", action="append", default=[], metavar="KEY=VALUE", help="override path.to.key; repeatable"
        )
        parser.add_argument(
            "--limit", type=int, metavar="N", help="only the first N of each environment's chosen cases"
        )
        parser.add_argument("--json", action="store_true", help="one JSON document on stdout, the rest on stderr")
        parser.add_argument("--dry-run", action="store_true", help="validate, count and estimate; ask nothing")
        parser.add_argument("--no-cache", action="store_true", help="ask anew even what was answered before")
        parser.add_argument(
            "--fail-under", type=float, metavar="X", help="exit 1 where an accuracy (0 to 1) is below X"
        )

        parser.add_argument("--enqueue", action="store_true", help="hand the run to the workers and follow it")

    def handle(self, *args: Any, **options: Any) -> None:
        call_command("prepare")
        console = Console(stderr=options["json"], soft_wrap=False)
        try:
            run, config = self._prepare(console, options)
            with RunProgress(console, _total(run, config)) as progress:
                if options["enqueue"]:
                    run = self._hand_over(run, progress)
                else:
                    how = Execution(use_cache=not options["no_cache"], signals=True)
                    run = run_execute(run=run, config=config, listener=progress, how=how)
        except (ConfigError, RunNotFound, RunBusy) as error:
            self._refuse(error, options)
        except SandboxUnavailable as error:
            self._leave(UNAVAILABLE, str(error))
        results = results_json(run)
        if options["json"]:
            self.stdout.write(json.dumps(results, ensure_ascii=False, allow_nan=False))
        else:
            print_report(run, console)
        self._end(run, results, options)

    def _prepare(self, console: Console, options: dict[str, Any]) -> tuple[Run, RunConfig]:
        """The run to execute, stored; leaves the process after a dry run."""
        if options["resume"]:
            if options["set"] or options["limit"] or options["dry_run"]:
                raise ConfigError(
                    [Problem("--resume", "a run goes on as it was configured; leave --set, --limit and --dry-run out")]
                )
            run = run_get(options["resume"])
            config = config_of(run)
            run_reopen(run=run)
            return run, config
        config, found = _load(options)
        if options["dry_run"]:
            self._dry_run(console, config, found, options["json"])
        return run_create(config=config, found=found), config

    def _hand_over(self, run: Run, progress: RunProgress) -> Run:
        """Let the workers execute *run*, and watch until it has ended. Ctrl-C ends the watching alone."""
        run_dispatch(run=run)
        try:
            while run.status in (Run.Status.QUEUED, Run.Status.RUNNING):
                time.sleep(_WATCH_EVERY_S)
                run.refresh_from_db()
                progress.counted(*stored_counts(run))
        except KeyboardInterrupt:
            self._leave(INTERRUPTED, f"Run {run.pk} goes on with the workers; its page is /runs/{run.pk}/.")
        return run

    def _dry_run(self, console: Console, config: RunConfig, found: list[Chosen], as_json: bool) -> NoReturn:
        cases = sum(item.count for item in found)
        responses = cases * len(config.models) * config.attempts
        estimates = {
            stage.key: stage.estimate(config, config.stage_configs[stage.key], responses)
            for stage in stages()
            if stage.key in config.stage_configs
        }
        if as_json:
            document = {
                "name": config.name,
                "environments": [{"environment": str(item.label), "cases": item.count} for item in found],
                "models": [spec.name for spec in config.models],
                "responses": responses,
                "stages": {key: {"calls": e.calls, "cost_usd": e.cost_usd} for key, e in estimates.items()},
            }
            self.stdout.write(json.dumps(document))
        else:
            for item in found:
                console.print(f"{item.label}: {item.count:,} cases", highlight=False)
            models = ", ".join(spec.name for spec in config.models)
            console.print(f"{responses:,} responses by {models}; {config.attempts} attempt(s) each", markup=False)
            for estimate in estimates.values():
                if estimate.line:
                    console.print(estimate.line, markup=False, highlight=False)
            console.print("The config is sound. Nothing was asked or stored.")
        sys.exit(DONE)

    def _end(self, run: Run, results: dict[str, Any], options: dict[str, Any]) -> None:
        if run.status == Run.Status.INTERRUPTED:
            self._leave(INTERRUPTED, f"Interrupted. Go on with: python manage.py eval --resume {run.pk}")
        if run.status != Run.Status.COMPLETED:
            self._leave(INCOMPLETE, f"{run.message} Go on with: python manage.py eval --resume {run.pk}")
        rows = results["results"]
        if any(row["passed"] + row["failed"] < row["cases"] * results["attempts"] for row in rows):
            self._leave(
                INCOMPLETE,
                f"Some responses are errored or unscored; ask again: python manage.py eval --resume {run.pk}",
            )
        floor = options["fail_under"]
        below = [row for row in rows if floor is not None and (row["accuracy"] is None or row["accuracy"] < floor)]
        for row in below:
            self.stderr.write(f"{row['model']} on {row['environment']}: {row['accuracy']} is below {floor}.")
        if below:
            sys.exit(INCOMPLETE)

    def _refuse(self, error: Exception, options: dict[str, Any]) -> NoReturn:
        if isinstance(error, ConfigError):
            count = len(error.problems)
            self.stderr.write(f"{error.source}: {count} problem{'s' if count > 1 else ''}; nothing was stored.")
            for problem in error.problems:
                self.stderr.write(f"  {problem}")
            if options["json"]:
                problems = [{"path": p.path, "line": p.line, "message": p.message} for p in error.problems]
                self.stdout.write(json.dumps({"message": "The config is wrong.", "errors": problems}))
        else:
            self.stderr.write(str(error))
        sys.exit(WRONG_INPUT)

    def _leave(self, code: int, message: str) -> NoReturn:
        self.stderr.write(message)
        sys.exit(code)


def _load(options: dict[str, Any]) -> tuple[RunConfig, list[Chosen]]:
    path = Path(options["config"])
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError([Problem("", f"cannot be read: {error.strerror}")], str(path)) from None
    except UnicodeDecodeError:
        raise ConfigError([Problem("", "is not UTF-8 text")], str(path)) from None
    limit, floor = options["limit"], options["fail_under"]
    if limit is not None and limit < 1:
        raise ConfigError([Problem("--limit", "must be 1 or more")], "command line")
    if floor is not None and not 0 <= floor <= 1:
        raise ConfigError([Problem("--fail-under", f"an accuracy lies between 0 and 1, not {floor:g}")], "command line")
    config = parse_text(text, source_for_command(path.resolve().parent, str(path)), options["set"])
    try:
        found = environments_find(config)
    except ConfigError as error:
        error.source = str(path)
        raise
    return config, [item.first(limit) for item in found] if limit else found


def _total(run: Run, config: RunConfig) -> int:
    return sum(part.case_count for part in run.environments.all()) * len(config.models) * config.attempts
