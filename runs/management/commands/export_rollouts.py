"""`manage.py export_rollouts`: export rollouts with rewards and token counts for training."""

from argparse import ArgumentParser
from datetime import date
from pathlib import Path
from typing import TypedDict, Unpack

from django.contrib.auth.models import User

from hub.common import wording
from hub.management import base
from hub.selectors import get_version
from runs.exports import (
    ROLLOUT_FORMATS,
    ExportError,
    ExportReport,
    RolloutSelection,
    check_known,
    export_episodes,
    export_run_rollouts,
)
from runs.management.export_command import ExportCommand
from runs.models import EpisodeSession
from runs.selectors import get_run


class Options(TypedDict):
    """Options of the command as parsed."""

    out: Path
    format: str
    run: str | None
    environment: str
    model: str
    user: str | None
    since: date | None
    force: bool
    json: bool


class Command(ExportCommand):
    help = (
        "Write episodes that trainers drove over REST, or a run's scored responses, to a file with rewards and tokens."
    )

    option_names = {"environment": "--environment", "model": "--model", "user": "--user"}

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--out", required=True, type=Path, metavar="FILE")
        parser.add_argument(
            "--format", choices=list(ROLLOUT_FORMATS), default="jsonl", help="format of the file (default: %(default)s)"
        )
        parser.add_argument("--run", metavar="RUN", help="export the scored responses of this run instead of episodes")
        parser.add_argument("--environment", metavar="SLUG", default="", help="only rollouts of this environment")
        parser.add_argument("--model", metavar="M", default="", help="only rollouts of the model with this label")
        parser.add_argument("--user", metavar="NAME", help="only episodes of this user")
        parser.add_argument("--since", type=base.day, metavar="DATE", help="only episodes started since this day (UTC)")
        super().add_arguments(parser)

    def handle(self, *args: object, **options: Unpack[Options]) -> None:
        exported = self._export(options)
        exported.require_rows("rollout")
        self.print_report(exported, [f"Wrote {wording.counted(exported.written, 'rollout')} to {options['out']}."])

    def _export(self, options: Options) -> ExportReport:
        selection = RolloutSelection(
            user=self._user(options["user"]),
            environment=options["environment"],
            model=options["model"],
            since=options["since"],
        )
        format, force = options["format"], options["force"]
        if options["run"]:
            if selection.user or selection.since:
                raise ExportError("--user and --since select episodes; remove them, or remove --run.")
            return export_run_rollouts(get_run(options["run"]), options["out"], selection, format=format, force=force)
        if selection.environment:
            get_version(selection.environment)
        return export_episodes(options["out"], selection, format=format, force=force)

    def _user(self, name: str | None) -> User | None:
        if name is None:
            return None
        user = User.objects.filter(username=name).first()
        if user is None:
            users = User.objects.filter(pk__in=EpisodeSession.objects.order_by().values("user"))
            check_known("user", name, users.order_by("username").values_list("username", flat=True), "user")
        return user
