"""`manage.py runs`: list, show, cancel, rename, tag, delete or restore runs."""

import sys
from argparse import ArgumentParser
from collections import Counter
from typing import TypedDict, Unpack

from django.utils import timezone

from hub.common import wording
from hub.common.errors import UserError
from hub.management import base
from runs.description import add_tags, check_tags, describe_run, tags_of
from runs.leases import left_behind
from runs.management.run_end import describe_unfinished
from runs.models import Run
from runs.results.outcomes import Outcome, outcome_of, outcomes_of
from runs.results.stored import count_responses
from runs.selectors import get_run
from runs.services import cancel_run, delete_run, restore_run

ACTIONS = ["show", "cancel", "rename", "tag", "note", "delete", "restore"]  # on one run
WITH_TEXT = ["rename", "tag", "note"]


class Options(TypedDict):
    """Options of the command as parsed."""

    action: str
    run: str | None
    values: list[str]
    tag: str | None
    remove: list[str]
    deleted: bool
    limit: int
    json: bool


class Command(base.Command):
    help = "List runs, or show, cancel, rename, tag, annotate, delete or restore one."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("action", choices=["list", *ACTIONS], help="what to do; `list` takes no run")
        parser.add_argument(
            "run", metavar="RUN", nargs="?", help="number of the run, or, not for `restore`, `latest` or `latest:TAG`"
        )
        parser.add_argument(
            "values",
            metavar="TEXT",
            nargs="*",
            default=[],
            help="new tags for `tag`, the name for `rename`, the note for `note`",
        )
        parser.add_argument(
            "--remove", action="append", default=[], metavar="TAG", help="`tag`: remove this tag; repeatable"
        )
        parser.add_argument("--tag", metavar="TAG", help="`list`: only runs with this tag")
        parser.add_argument("--deleted", action="store_true", help="`list`: the deleted runs")
        parser.add_argument("--limit", type=int, default=20, metavar="N", help="`list`: at most N runs (default 20)")
        base.add_json_argument(parser)

    def handle(self, *args: object, **options: Unpack[Options]) -> None:
        action, name = options["action"], options["run"]
        self._check_values(options)
        if action == "list":
            if name is not None:
                raise UserError(f"`runs list` takes no run; `runs show {name}` shows one.")
            self._list(options)
            return
        if name is None:
            raise UserError(f"Name the run: `runs {action} 12`, or `runs {action} latest`.")
        if options["deleted"]:
            raise UserError("--deleted belongs to `runs list`.")
        if action == "restore":
            run = _get_deleted_run(name)
            restore_run(run=run)
        else:
            run = get_run(name)
        if action == "cancel":
            if not cancel_run(run=run):
                self.stderr.write(f"Run {run.pk} has ended; there is nothing to cancel.")
        elif action == "delete":
            delete_run(run=run)
        elif action == "tag":
            for tag in sorted(set(check_tags(options["remove"])) - set(tags_of(run))):
                self.stderr.write(f"Run {run.pk} has no tag {tag!r}.")
            add_tags(run=run, add=options["values"], remove=options["remove"])
        elif action == "rename":
            describe_run(run=run, name=" ".join(options["values"]))
        elif action == "note":
            describe_run(run=run, note=" ".join(options["values"]))
        counts = count_responses([run])[run.pk]
        self.print_json(_row(run, counts))
        if not options["json"]:
            self.stdout.write(_line(run, counts, outcome_of(run)))
            advice = describe_unfinished(run) if left_behind([run]) else ""
            for text in (run.message, advice, run.note) if action in ("show", "note") else ():
                if text:
                    self.stdout.write(text)

    def _check_values(self, options: Options) -> None:
        action, values = options["action"], options["values"]
        if values and action not in WITH_TEXT:
            raise UserError(f"`runs {action}` takes no further text: {' '.join(values)}")
        if action == "tag" and not values and not options["remove"]:
            raise UserError("Name tags to add, `runs tag 12 nightly`, or to remove, `runs tag 12 --remove nightly`.")
        if action == "note" and not values:
            raise UserError('Write the note: `runs note 12 "TEXT"`; `runs note 12 ""` removes it.')
        if action == "rename" and not values:
            raise UserError("Give the new name: `runs rename 12 NAME`.")
        if options["remove"] and action != "tag":
            raise UserError("--remove belongs to `runs tag`.")
        if options["tag"] is not None and action != "list":
            raise UserError("--tag belongs to `runs list`; `runs tag RUN TAG` adds one.")

    def _list(self, options: Options) -> None:
        if options["limit"] < 1:
            raise UserError(f"--limit is a number from 1, not {options['limit']}.")
        found = Run.objects.filter(deleted_at__isnull=not options["deleted"]).prefetch_related("tags")
        if options["tag"] is not None:
            found = found.filter(tags__name=options["tag"].lower())
        runs = list(found[: min(options["limit"], sys.maxsize)])
        counts, outcomes = count_responses(runs), outcomes_of(runs)
        self.print_json([_row(run, counts[run.pk]) for run in runs])
        if not options["json"]:
            for run in runs:
                self.stdout.write(_line(run, counts[run.pk], outcomes[run.pk]))
            if not runs:
                self.stdout.write(_nothing(options))


def _nothing(options: Options) -> str:
    if options["tag"] is not None:
        return f"No run has the tag {options['tag']}."
    return "No run is deleted." if options["deleted"] else "No run is stored yet."


def _get_deleted_run(name: str) -> Run:
    run = Run.objects.filter(pk=int(name), deleted_at__isnull=False).first() if name.isdecimal() else None
    if run is None:
        raise UserError(f"No deleted run has the number {name}; `runs list --deleted` lists them.")
    return run


def _row(run: Run, counts: Counter[str]) -> dict[str, object]:
    return {
        "run": run.pk,
        "name": run.name,
        "tags": tags_of(run),
        "note": run.note,
        "status": run.status,
        "message": run.message,
        "created_at": run.created_at.isoformat(),
        "deleted_at": run.deleted_at.isoformat() if run.deleted_at else None,
        "responses": dict(+counts),
    }


def _line(run: Run, counts: Counter[str], outcome: Outcome) -> str:
    responses = ", ".join(f"{status} {count:,}" for status, count in sorted((+counts).items()))
    created = timezone.localtime(run.created_at).strftime("%Y-%m-%d %H:%M")
    state = f"{outcome.label}, deleted" if run.deleted_at else outcome.label
    ending = "; cancelling" if run.cancel_requested and run.finished_at is None else ""
    tags = "".join(f" [{tag}]" for tag in tags_of(run))
    return f"{run.pk:>6}  {created}  {state}{ending}  {run.name}{tags}  ({responses or wording.counted(0, 'response')})"
