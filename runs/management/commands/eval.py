"""`manage.py eval`: validate a config, execute its run, print the report."""

import os
import sys
import time
from argparse import ArgumentParser
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn, cast

from django.conf import settings
from django.core.management import call_command
from django.utils import timezone
from rich.console import Console

from hub.common.errors import UserError
from hub.common.leases import new_owner
from hub.management import base
from hub.management.base import DONE, INTERRUPTED, UNAVAILABLE
from hub.management.invocation import command
from runs.config.resolve import config_hash, describe_tiny_prices, describe_unused_recordings
from runs.config.schema import RunConfig
from runs.description import add_tags, check_tags
from runs.execution.dispatch import dispatch_run
from runs.execution.faults import InfrastructureFault
from runs.execution.progress import RunProgress
from runs.execution.runner import execute_run
from runs.execution.session.context import ExecutionOptions
from runs.leases import release_lease, take_lease
from runs.management.config_file import UsageError, build_config, load_config
from runs.management.dry_run import DryRun
from runs.management.report_files import (
    ReportFileOptions,
    add_report_arguments,
    check_report_files,
    write_report_files,
)
from runs.management.run_end import check_scored, describe_unfinished, find_unfinished, resume_command
from runs.missing import count_expected, count_missing, is_run_complete
from runs.models import ACTIVE, Run
from runs.queue import count_workers
from runs.reports import print_report, results_json
from runs.selectors import get_run, stored_counts
from runs.services import RunInProgress, config_of, create_run, interrupt_run, resume_run
from runs.spending import check_amount
from sandbox.workspaces.shared import allow_builds

_POLL_EVERY_S = 0.5
_WAITS_LONG_S = 10.0  # time without a worker after which a command says that none has taken its run
_STILL_WAITS_S = 300.0  # time until it says so again
_COUNT_SHARE = 0.05  # of the time that a command waits, the database may spend on counting the responses of the run
BELOW_FLOOR = 4  # exit code if an accuracy is below --fail-under, as for the gate of `compare`
_MAX_PROCESSES = 256
_MANY = 5000  # missing responses from which several processes are worth their start


class EvalOptions(ReportFileOptions):
    """Options of the command, as argparse returns them."""

    config: str | None
    env: list[str] | None
    model: list[str]
    resume: str | None
    set: list[str]
    limit: int | None
    json: bool
    dry_run: bool
    no_cache: bool
    fail_under: float | None
    enqueue: bool
    processes: int | None
    tag: list[str]
    budget: float | None
    retry_too_long: bool


class Command(base.Command):
    help = "Evaluate models on environments as described in a config: call, score, store, track and report."
    requires_system_checks: list[str] = []  # they import every page of the site
    needs_database = False  # `handle` prepares every kind of database

    def add_arguments(self, parser: ArgumentParser) -> None:
        # Not required here: argparse would report that before a misspelt option, such as --confg.
        source = parser.add_mutually_exclusive_group()
        source.add_argument("--config", metavar="FILE", help="the run's config (YAML)")
        source.add_argument("--env", action="append", metavar="SLUG", help="environment; repeatable, with --model")
        source.add_argument("--resume", metavar="RUN", help="continue a run: request missing and errored responses")
        parser.add_argument(
            "--budget", type=float, metavar="USD", help="with --resume: new budget of the run, more than it has spent"
        )
        parser.add_argument(
            "--retry-too-long",
            action="store_true",
            help="with --resume: request also responses again whose conversation was too long for the model",
        )
        parser.add_argument(
            "--model", action="append", default=[], metavar="NAME", help="registered model, such as demo; repeatable"
        )
        parser.add_argument(
            "--set", action="append", default=[], metavar="KEY=VALUE", help="override path.to.key; repeatable"
        )
        parser.add_argument(
            "--limit", type=int, metavar="N", help="only the first N of each environment's selected cases"
        )
        base.add_json_argument(parser)
        parser.add_argument("--dry-run", action="store_true", help="validate, count and estimate; call no model")
        parser.add_argument("--no-cache", action="store_true", help="call models even if replies are in the cache")
        parser.add_argument("--fail-under", type=float, metavar="X", help="exit 4 if an accuracy (0 to 1) is below X")
        parser.add_argument("--tag", action="append", default=[], metavar="TAG", help="tag of the new run; repeatable")
        add_report_arguments(parser)
        parser.add_argument("--enqueue", action="store_true", help="let the workers execute the run, and follow it")
        parser.add_argument(
            "--processes",
            type=int,
            metavar="N",
            help=f"processes that execute the run (default: one per core from {_MANY:,} missing responses on, else 1)",
        )

    def handle(self, *args: object, **options: object) -> None:
        call_command("prepare", json=self.prints_json)
        allow_builds()
        self._evaluate(cast(EvalOptions, options))

    def _evaluate(self, options: EvalOptions) -> None:
        check_report_files(options)
        console = base.ReportConsole(stderr=options["json"], soft_wrap=False)
        owner = "" if options["enqueue"] else new_owner()
        run, config = self._prepare_run(console, options, owner)
        if config is not None:
            run = self._execute_run(run, config, console, options, owner)
        results = results_json(run)
        self.print_json(results)
        if not options["json"]:
            print_report(run, console)
        for path in write_report_files(run, options):
            self.stderr.write(f"Wrote {path}.")
        self._exit(run, results, options)

    def _prepare_run(self, console: Console, options: EvalOptions, owner: str) -> tuple[Run, RunConfig | None]:
        """Create or reopen the run, and return it with its config, or None if no response is to be requested.

        *owner*, if given, then holds its lease. Exits after a dry run.
        """
        fail_under = options["fail_under"]
        if fail_under is not None and not 0 <= fail_under <= 1:
            raise UsageError(f"--fail-under is an accuracy from 0 to 1, not {fail_under:g}.")
        if options["processes"] is not None and not 1 <= options["processes"] <= _MAX_PROCESSES:
            raise UsageError(f"--processes is a number from 1 to {_MAX_PROCESSES}, not {options['processes']}.")
        if options["enqueue"] and options["processes"] is not None:
            raise UsageError("The workers execute the run; remove --processes or --enqueue.")
        if options["enqueue"] and options["no_cache"]:
            raise UsageError("Workers use the cache; remove --no-cache or --enqueue.")
        if options["model"] and options["env"] is None:
            raise UsageError("--model belongs to --env; a config names its own models.")
        tags = check_tags(options["tag"])
        if options["resume"] is not None:
            if tags:
                raise UsageError("--tag belongs to a new run; `runs tag RUN TAG` adds one to a stored run.")
            return self._reopen_run(options["resume"], options, owner)
        if options["budget"] is not None:
            raise UsageError("--budget belongs to --resume; a new run has --set limits.budget_usd=USD.")
        if options["retry_too_long"]:
            raise UsageError("--retry-too-long belongs to --resume; a new run requests every response.")
        if options["env"] is not None:
            if not options["model"]:
                raise UsageError("Name the model: --env SLUG --model NAME, such as --model demo.")
            resolved = build_config(options["env"], options["model"], overrides=options["set"], limit=options["limit"])
        else:
            if options["config"] is None:
                raise UsageError("Say what to evaluate: --config FILE, or --env SLUG --model NAME, or --resume RUN.")
            resolved = load_config(Path(options["config"]), overrides=options["set"], limit=options["limit"])
        for sentence in [*describe_unused_recordings(resolved), *describe_tiny_prices(resolved)]:
            self.stderr.write(f"Warning: {sentence}")
        unfinished = find_unfinished(config_hash(resolved.config, resolved.environments))
        if unfinished is not None:
            self.stderr.write(f"{describe_unfinished(unfinished)} Without --resume, a new run starts.")
        if options["dry_run"]:
            self._print_dry_run(console, DryRun(resolved), as_json=options["json"])
        run = create_run(config=resolved.config, environments=resolved.environments, team=resolved.team, owner=owner)
        add_tags(run=run, add=tags)
        return run, resolved.config

    def _reopen_run(self, run_id: str, options: EvalOptions, owner: str) -> tuple[Run, RunConfig | None]:
        if options["set"] or options["limit"] is not None or options["dry_run"]:
            raise UsageError("--resume continues a run with its own config; remove --set, --limit and --dry-run.")
        if options["budget"] is not None:
            check_amount(options["budget"])
        run = get_run(run_id)
        if is_run_complete(run, retry_too_long=options["retry_too_long"]):
            ignored = " --budget was ignored; the budget is unchanged." if options["budget"] is not None else ""
            self.stderr.write(
                f"Run {run.pk} is complete: no response is to be requested. No model was called.{ignored}"
            )
            return run, None
        config_of(run)  # before its lease is taken: a recording may be missing
        if owner:
            take_lease(run=run, owner=owner)
        budget, retry_too_long = options["budget"], options["retry_too_long"]
        try:
            resumed = resume_run(run=run, owner=owner, budget_usd=budget, retry_too_long=retry_too_long)
            if not resumed and (budget is not None or retry_too_long):
                raise RunInProgress(run)  # a run that has not ended takes neither of them
        except UserError:
            release_lease(run=run, owner=owner)
            raise
        return run, config_of(run)  # with the new budget

    def _execute_run(self, run: Run, config: RunConfig, console: Console, options: EvalOptions, owner: str) -> Run:
        """Execute *run* here, or follow the workers that do."""
        total = count_expected(run) if options["enqueue"] else count_missing(run)
        try:
            with RunProgress(console, total) as progress:
                if options["enqueue"]:
                    return self._follow_workers(run, progress)
                how = ExecutionOptions(
                    use_cache=not options["no_cache"],
                    signals=True,
                    retry_for_s=settings.EVAL_RETRY_SECONDS,
                    processes=options["processes"] or (_count_cores() if total >= _MANY else 1),
                )
                return execute_run(run=run, config=config, listener=progress, options=how, owner=owner)
        except InfrastructureFault as fault:
            raise self.exit_with(UNAVAILABLE, f"{fault} Continue with: {resume_command(run)}") from None
        except KeyboardInterrupt:
            interrupt_run(run=run, owner=owner)
            raise self.exit_with(INTERRUPTED, f"Interrupted. Continue with: {resume_command(run)}") from None

    def _follow_workers(self, run: Run, progress: RunProgress) -> Run:
        """Let the workers execute *run*, and wait until it has ended. Ctrl-C only ends the waiting."""
        dispatch_run(run=run)
        delayed_until = None
        count_at = 0.0
        notice = _WaitingNotice(progress)
        try:
            while run.status in ACTIVE:
                time.sleep(_POLL_EVERY_S)
                run.refresh_from_db()
                if run.retry_at is not None and run.retry_at != delayed_until:
                    delayed_until = run.retry_at
                    progress.run_delayed(run.message, (run.retry_at - timezone.now()).total_seconds())
                notice.update(run)
                started = time.monotonic()
                if started >= count_at:
                    progress.show_stored(stored_counts(run))
                    ended = time.monotonic()
                    count_at = ended + (ended - started) / _COUNT_SHARE
        except KeyboardInterrupt:
            message = f"The workers continue run {run.pk}; its page is /runs/{run.pk}/."
            raise self.exit_with(INTERRUPTED, message) from None
        return run

    def _print_dry_run(self, console: Console, dry_run: DryRun, *, as_json: bool) -> NoReturn:
        if as_json:
            self.print_json(dry_run.to_json())
        else:
            dry_run.print(console)
        sys.exit(DONE)

    def _exit(self, run: Run, results: Mapping[str, object], options: EvalOptions) -> None:
        rows = check_scored(run, results, self)
        floor = options["fail_under"]
        below = [row for row in rows if floor is not None and (row["accuracy"] is None or row["accuracy"] < floor)]
        for row in below:
            found = "no case was scored" if row["accuracy"] is None else f"{row['accuracy']} is below {floor}"
            self.stderr.write(f"{row['model']} on {row['environment']}: {found}.")
        if below:
            sys.exit(BELOW_FLOOR)


def _count_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _WaitingNotice:
    """Notice that no worker has taken a run, which is shown after some seconds and then every few minutes."""

    def __init__(self, progress: RunProgress) -> None:
        self._progress = progress
        self._next_at: float | None = None

    def update(self, run: Run) -> None:
        """Show the notice if *run* has waited long enough."""
        now = time.monotonic()
        if run.status != Run.Status.QUEUED or run.lease_owner or run.retry_at is not None:
            self._next_at = None
        elif self._next_at is None:
            self._next_at = now + _WAITS_LONG_S
        elif now >= self._next_at:
            self._next_at = now + _STILL_WAITS_S
            self._progress.show_notice(_why_waiting(run))


def _why_waiting(run: Run) -> str:
    """Return that no worker has taken *run* yet, and what helps."""
    if count_workers():
        return f"No worker has taken run {run.pk} yet: the workers execute other runs."
    notice = f"No worker has taken run {run.pk} yet. If none is running, start the site and its workers"
    return f"{notice}: {command('serve')}"
