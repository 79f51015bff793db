"""`manage.py eval`: validate a config, run it, print the report."""

import gc
import os
import signal
import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

from django.conf import settings
from django.core.management import call_command
from rich.console import Console

from hub.common import wording
from hub.common.errors import UserError
from hub.common.leases import new_owner
from hub.management import base
from hub.management.base import DONE, INCOMPLETE, INTERRUPTED
from hub.management.invocation import command
from runs.config.parsing import read_config_text
from runs.config.resolve import SelectedEnvironment, resolve_config, source_for_command
from runs.config.schema import RunConfig
from runs.execution.dispatch import dispatch_run
from runs.execution.progress import RunProgress
from runs.execution.runner import Execution, execute_run
from runs.leases import take_lease
from runs.models import Run
from runs.reports import print_report, results_json
from runs.selectors import get_run, stored_counts
from runs.services import config_of, create_run, fail_run, interrupt_run, reopen_run, resume_run
from runs.stages import stages
from runs.web.queries import is_run_complete
from sandbox.errors import SandboxUnavailable

_WATCH_EVERY_S = 0.5


class UsageError(UserError):
    """The command line asks for what cannot be; the text is a sentence."""


class Command(base.Command):
    help = "Play environments against models as a config says; score, store, track and report."
    requires_system_checks: list[str] = []  # they load every page of the site
    needs_database = False  # `handle` prepares it

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

    def run_from_argv(self, argv: list[str]) -> None:
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C, from the first moment on
        super().run_from_argv(argv)

    def handle(self, *args: Any, **options: Any) -> None:
        with _uncollected():
            call_command("prepare")
        console = base.ReportConsole(stderr=options["json"], soft_wrap=False)
        owner = "" if options["enqueue"] else new_owner()
        with _uncollected():
            run, config = self._prepare(console, options, owner)
        if not (options["resume"] and is_run_complete(run)):
            run = self._play(run, config, console, options, owner)
        results = results_json(run)
        self.print_json(results)
        if not options["json"]:
            print_report(run, console)
        self._end(run, results, options)

    def _play(self, run: Run, config: RunConfig, console: Console, options: dict[str, Any], owner: str) -> Run:
        """Execute *run* here, or follow the workers; however that ends, the run says so."""
        try:
            with RunProgress(console, _total(run, config)) as progress:
                if options["enqueue"]:
                    return self._hand_over(run, progress)
                gc.freeze()  # providers, environments and settings outlive the run
                gc.set_threshold(10_000, 10, 10)  # a case makes thousands of objects and hardly a cycle
                how = Execution(use_cache=not options["no_cache"], signals=True)
                return execute_run(run=run, config=config, listener=progress, how=how, owner=owner)
        except KeyboardInterrupt:
            interrupt_run(run=run)
            again = command("eval", "--resume", run.pk)
            raise self.exit_with(INTERRUPTED, f"Interrupted. Go on with: {again}") from None
        except SandboxUnavailable as error:
            fail_run(run=run, message=str(error))
            raise

    def _prepare(self, console: Console, options: dict[str, Any], owner: str) -> tuple[Run, RunConfig]:
        """The run to execute, stored, its lease held by *owner* if there is one; leaves the process after a dry run."""
        floor = options["fail_under"]
        if floor is not None and not 0 <= floor <= 1:
            raise UsageError(f"--fail-under is an accuracy, from 0 to 1, not {floor:g}.")
        if options["enqueue"] and options["no_cache"]:
            raise UsageError("Workers use the cache; leave --no-cache or --enqueue out.")
        if options["resume"]:
            if options["set"] or options["limit"] is not None or options["dry_run"]:
                raise UsageError("--resume goes on with a run as it is; leave --set, --limit and --dry-run out.")
            run = get_run(options["resume"])
            config = config_of(run)
            if is_run_complete(run):
                self.stderr.write(f"Run {run.pk} is finished: nothing is missing or errored, so nothing is asked.")
                return run, config
            if not owner:
                resume_run(run=run)
                return run, config
            take_lease(run=run, owner=owner)
            reopen_run(run=run)
            return run, config
        config, found = _load(options)
        if options["dry_run"]:
            self._dry_run(console, config, found, options["json"])
        return create_run(config=config, environments=found, owner=owner), config

    def _hand_over(self, run: Run, progress: RunProgress) -> Run:
        """Let the workers execute *run*, and watch until it has ended. Ctrl-C ends the watching alone."""
        dispatch_run(run=run)
        try:
            while run.status in (Run.Status.QUEUED, Run.Status.RUNNING):
                time.sleep(_WATCH_EVERY_S)
                run.refresh_from_db()
                progress.show_stored(*stored_counts(run))
        except KeyboardInterrupt:
            message = f"Run {run.pk} goes on with the workers; its page is /runs/{run.pk}/."
            raise self.exit_with(INTERRUPTED, message) from None
        return run

    def _dry_run(
        self, console: Console, config: RunConfig, found: list[SelectedEnvironment], as_json: bool
    ) -> NoReturn:
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
            self.print_json(document)
        else:
            for item in found:
                console.print(f"{item.label}: {wording.counted(item.count, 'case')}", highlight=False)
            models = ", ".join(spec.name for spec in config.models)
            each = wording.counted(config.attempts, "attempt")
            console.print(f"{wording.counted(responses, 'response')} by {models}; {each} at each case", markup=False)
            for estimate in estimates.values():
                if estimate.line:
                    console.print(estimate.line, markup=False, highlight=False)
            console.print("The config is sound. Nothing was asked or stored.")
        sys.exit(DONE)

    def _end(self, run: Run, results: dict[str, Any], options: dict[str, Any]) -> None:
        again = command("eval", "--resume", run.pk)
        if run.status == Run.Status.INTERRUPTED:
            raise self.exit_with(INTERRUPTED, f"Interrupted. Go on with: {again}")
        if run.status != Run.Status.COMPLETED:
            raise self.exit_with(INCOMPLETE, f"{run.message} Go on with: {again}")
        rows = results["results"]
        if any(row["passed"] + row["failed"] < row["cases"] * results["attempts"] for row in rows):
            if is_run_complete(run):
                raise self.exit_with(
                    INCOMPLETE, "Some responses are unscored: a rule could not decide; the report says why."
                )
            raise self.exit_with(INCOMPLETE, f"Some responses are errored or unscored; ask again: {again}")
        floor = options["fail_under"]
        below = [row for row in rows if floor is not None and (row["accuracy"] is None or row["accuracy"] < floor)]
        for row in below:
            self.stderr.write(f"{row['model']} on {row['environment']}: {row['accuracy']} is below {floor}.")
        if below:
            sys.exit(INCOMPLETE)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Look for no garbage among what is made to stay, such as a provider's library."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _load(options: dict[str, Any]) -> tuple[RunConfig, list[SelectedEnvironment]]:
    path, limit = Path(options["config"]), options["limit"]
    if limit is not None and limit < 1:
        raise UsageError(f"--limit must be 1 or more, not {limit}.")
    source = source_for_command(path.resolve().parent, str(path))
    config, found = resolve_config(read_config_text(_text(path), source, options["set"]))
    return config, [item.first(limit) for item in found] if limit else found


def _text(path: Path) -> str:
    """What stands in the config. Raises UsageError, with the configs that are there instead."""
    if str(path) == "-":
        raise UsageError("`-` is not taken: paths in a config are relative to its file. Name the file.")
    try:
        text = path.read_text(encoding="utf-8-sig")
        if not text.strip():
            raise UsageError(f"{path} is empty{_instead(path, path.parent)}")
        return text
    except FileNotFoundError:
        raise UsageError(f"There is no file {path}{_instead(path, path.parent)}") from None
    except IsADirectoryError:
        raise UsageError(f"{path} is a folder{_instead(path, path)}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not a config: it is not UTF-8 text.") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from None


def _instead(path: Path, folder: Path) -> str:
    there = _configs(folder) or _configs(settings.BASE_DIR / "configs")
    advice = wording.suggest(str(path), [item for item in there if item != str(path)])
    return f"; {advice}" if advice.endswith("?") else f"; {advice}." if advice else "."


def _configs(folder: Path) -> list[str]:
    """The files in *folder* that look like configs."""
    found = []
    for path in sorted(folder.glob("*.y*ml")):
        with suppress(OSError, UnicodeDecodeError):
            if "\nenvironments:" in path.read_text(encoding="utf-8"):
                found.append(os.path.relpath(path) if folder.is_absolute() else str(path))
    return found


def _total(run: Run, config: RunConfig) -> int:
    return sum(part.case_count for part in run.environments.all()) * len(config.models) * config.attempts
