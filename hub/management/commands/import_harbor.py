"""`manage.py import_harbor`: store tasks in Harbor's format as one environment of workspaces."""

import tempfile
from argparse import ArgumentParser
from pathlib import Path
from typing import TypedDict, Unpack

from hub.benchmarks.harbor import FoundTasks, find_tasks, write_bundle
from hub.common.wording import counted
from hub.management.base import INCOMPLETE
from hub.management.bundles import BundleCommand
from hub.manifest.problems import BundleError
from hub.services import import_bundle


class Options(TypedDict):
    """Options of the command as parsed."""

    path: str
    slug: str
    bundle_version: str
    out: str | None
    json: bool


class Command(BundleCommand):
    help = "Import a Harbor task, or a folder of them, as one environment. Tasks that cannot run here are refused."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", help="the folder of a task, or a folder of such folders")
        parser.add_argument("--slug", required=True, help="the environment's slug")
        parser.add_argument("--bundle-version", default="1.0.0", metavar="VERSION", help="its version number")
        parser.add_argument("--out", metavar="FOLDER", help="write the bundle into a new folder, and store nothing")
        parser.add_argument("--json", action="store_true", help="one JSON document on stdout")

    def handle(self, *args: object, **options: Unpack[Options]) -> None:
        found = find_tasks(Path(options["path"]))
        if found.tasks:
            self._store(found, options)
        if options["json"]:
            self.print_json({"imported": [task.id for task in found.tasks], "refused": found.refused})
        else:
            for task in found.tasks:
                self.stdout.write(f"  imported  {task.id}")
            for name, reason in found.refused.items():
                self.stdout.write(f"  refused   {name}: {reason}")
        if not found.tasks:
            raise self.invalid_input("No task could be imported.")
        if found.refused:
            raise self.exit_with(INCOMPLETE, f"{counted(len(found.refused), 'task')} of {options['path']} refused.")

    def _store(self, found: FoundTasks, options: Options) -> None:
        try:
            if options["out"]:
                folder = Path(options["out"])
                if folder.exists():
                    raise self.invalid_input(f"{folder} exists already; name a new folder.")
                folder.mkdir(parents=True)
                write_bundle(found, folder, slug=options["slug"], version=options["bundle_version"])
                return
            with tempfile.TemporaryDirectory(prefix="llmeval-harbor-") as name:
                write_bundle(found, Path(name), slug=options["slug"], version=options["bundle_version"])
                import_bundle(bundle=Path(name))
        except BundleError as error:
            raise self.invalid_input("; ".join(str(problem) for problem in error.problems)) from None
