"""`manage.py prune`: remove deleted runs, old cached calls, expired rollouts and others permanently."""

import re
from argparse import ArgumentParser, ArgumentTypeError
from datetime import timedelta
from typing import TypedDict, Unpack

from django.utils import timezone

from hub.common.errors import UserError
from hub.management import base
from llmeval_site.retention import audit_entries, removals_by_settings
from runs.retention import (
    Removal,
    cached_calls,
    deleted_runs,
    episode_checkpoints,
    gate_leftovers,
    old_rollouts,
    unused_archives,
    unused_files,
    workspace_snapshots,
)

_UNITS = {"kB": 10**3, "MB": 10**6, "GB": 10**9}


def size(text: str) -> int:
    """Return the number of bytes of an option such as 10GB."""
    match = re.fullmatch(r"([0-9]{1,6})(kB|MB|GB)", text)
    if match is None:
        raise ArgumentTypeError(f"{text!r} is not a size such as 500MB or 10GB")
    return int(match[1]) * _UNITS[match[2]]


class Options(TypedDict):
    """Options of the command as parsed."""

    older_than: timedelta | None
    deleted: bool
    calls: bool
    max_size: int | None
    rollouts: bool
    gates: bool
    audit: bool
    files: bool
    by_settings: bool
    dry_run: bool
    json: bool


class Command(base.Command):
    help = (
        "Permanently remove what is selected: --deleted, --calls, --rollouts, --gates, --audit, --files, or "
        "--by-settings. Runs that have not ended and runs with preferences are never removed. Can be interrupted and "
        "repeated."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--older-than", type=base.days, metavar="90d", help="only what is at least that old")
        parser.add_argument("--deleted", action="store_true", help="runs that were deleted that long ago")
        parser.add_argument("--calls", action="store_true", help="cached replies of models")
        parser.add_argument(
            "--max-size", type=size, metavar="10GB", help="with --calls: keep the newest up to this size"
        )
        parser.add_argument(
            "--rollouts",
            action="store_true",
            help="rollouts that expired and snapshots that nothing needs (LLMEVAL_EPISODE_KEEP_DAYS)",
        )
        parser.add_argument("--gates", action="store_true", help="requests for gates that were given up")
        parser.add_argument("--audit", action="store_true", help="entries of the audit log")
        parser.add_argument("--files", action="store_true", help="archives and files of large values that no row needs")
        parser.add_argument(
            "--by-settings", action="store_true", help="what the periodic task removes (LLMEVAL_KEEP_..._DAYS)"
        )
        parser.add_argument("--dry-run", action="store_true", help="show what would be removed, and remove nothing")
        base.add_json_argument(parser)

    def handle(self, *args: object, **options: Unpack[Options]) -> None:
        removals = _removals(options)
        rows = []
        for removal in removals:
            if not options["dry_run"]:
                removal.remove()
            rows.append(
                {"kind": removal.kind, "count": removal.count, "characters": removal.characters, "kept": removal.kept}
            )
            if not options["json"]:
                self.stdout.write(_line(removal))
        self.print_json({"dry_run": options["dry_run"], "removed": rows})
        if not options["json"]:
            self.stdout.write("Nothing was removed (--dry-run)." if options["dry_run"] else "Removed.")


def _removals(options: Options) -> list[Removal]:
    by_age = options["deleted"] or options["gates"] or options["audit"]
    if options["by_settings"]:
        selected = by_age or options["calls"] or options["rollouts"] or options["files"]
        if selected or options["older_than"] or options["max_size"]:
            raise UserError("--by-settings takes kinds and ages from the settings; use it without other selections.")
        return [removal() for removal in removals_by_settings()]
    if not (by_age or options["calls"] or options["rollouts"] or options["files"]):
        raise UserError(
            "Select what to remove: --deleted, --calls, --rollouts, --gates, --audit, --files, or --by-settings."
        )
    if options["max_size"] is not None and not options["calls"]:
        raise UserError("--max-size limits the cached calls; add --calls.")
    age = options["older_than"]
    if age is None and (by_age or (options["calls"] and options["max_size"] is None)):
        raise UserError("Name the age with --older-than, for example --older-than 90d.")
    before = timezone.now() - age if age is not None else None
    removals = []
    if options["deleted"]:
        assert before is not None
        removals.append(deleted_runs(before=before))
    if options["calls"]:
        removals.append(cached_calls(before=before, max_characters=options["max_size"]))
    if options["rollouts"]:
        removals += [old_rollouts(), episode_checkpoints(), workspace_snapshots()]
    if options["gates"]:
        assert before is not None
        removals.append(gate_leftovers(before=before))
    if options["audit"]:
        assert before is not None
        removals.append(audit_entries(before=before))
    if options["files"]:
        removals += [unused_files(), unused_archives()]
    return removals


def _line(removal: Removal) -> str:
    kept = f"  ({removal.kept})" if removal.kept else ""
    return f"{removal.kind:<20} {removal.count:>10,}  {_shown(removal.characters):>10} of text{kept}"


def _shown(count: int) -> str:
    for unit, factor in reversed(_UNITS.items()):
        if count >= factor:
            return f"{count / factor:,.1f} {unit}"
    return f"{count:,} B"
