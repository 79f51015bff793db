"""`manage.py import_harbor`: store tasks in Harbor's format as one environment of workspaces."""

import tempfile
from argparse import ArgumentParser
from pathlib import Path
from typing import TypedDict, Unpack

from hub.benchmarks.harbor.bundle import write_bundle
from hub.benchmarks.harbor.tasks import FoundTasks, find_tasks
from hub.bundles.loader import open_bundle
from hub.common.output.files import new_folder
from hub.common.wording import counted
from hub.management.base import INCOMPLETE, add_json_argument
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
        add_json_argument(parser)

    def handle(self, *args: object, **options: Unpack[Options]) -> None:
        found = find_tasks(Path(options["path"]))
        if found.tasks:
            self._store(found, options)
        if options["json"]:
            without = {task.id: task.without_solution for task in found.tasks if not task.solution}
            imported = [task.id for task in found.tasks]
            self.print_json({"imported": imported, "without_gold_answer": without, "refused": found.refused})
        else:
            self._print_table(found)
        if not found.tasks:
            raise self.invalid_input("No task could be imported.")
        if found.refused:
            raise self.exit_with(INCOMPLETE, f"{counted(len(found.refused), 'task')} of {options['path']} refused.")

    def _print_table(self, found: FoundTasks) -> None:
        for task in found.tasks:
            note = "" if task.solution else f" (without a gold answer: {task.without_solution})"
            self.stdout.write(f"  imported  {task.id}{note}")
        for name, reason in found.refused.items():
            self.stdout.write(f"  refused   {name}: {reason}")
        solved = sum(bool(task.solution) for task in found.tasks)
        total = counted(len(found.tasks) + len(found.refused), "task")
        self.stdout.write(
            f"{total}: {len(found.tasks)} imported, {solved} of them with a gold answer; {len(found.refused)} refused."
        )

    def _store(self, found: FoundTasks, options: Options) -> None:
        try:
            if options["out"]:
                with new_folder(Path(options["out"])) as folder:
                    write_bundle(found, folder, slug=options["slug"], version=options["bundle_version"])
                    with open_bundle(folder) as bundle:
                        bundle.compile()
                return
            with tempfile.TemporaryDirectory(prefix="llmeval-harbor-") as name:
                write_bundle(found, Path(name), slug=options["slug"], version=options["bundle_version"])
                import_bundle(bundle=Path(name))
        except BundleError as error:
            raise self.invalid_input("; ".join(str(problem) for problem in error.problems)) from None
