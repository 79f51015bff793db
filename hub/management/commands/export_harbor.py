"""`manage.py export_harbor`: write the cases of a workspace environment as tasks in Harbor's format."""

import tempfile
from argparse import ArgumentParser
from pathlib import Path

from hub.benchmarks.harbor.export import WrittenTasks, write_tasks
from hub.bundles.loader import open_bundle
from hub.common.output.files import new_folder
from hub.common.wording import counted
from hub.management.base import INCOMPLETE, add_json_argument
from hub.management.bundles import BundleCommand
from hub.selectors import get_version
from hub.services import export_bundle


class Command(BundleCommand):
    help = "Write each case of a workspace environment as a Harbor task. Cases that Harbor cannot express are refused."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("environment", metavar="SLUG[@VERSION]", help="or the folder of a bundle")
        parser.add_argument("--output", required=True, metavar="DIR", help="a new folder for the tasks")
        add_json_argument(parser)

    def handle(self, *args: object, environment: str, output: str, json: bool, **options: object) -> None:
        with new_folder(Path(output)) as folder:
            found = self._write(environment, folder)
            self._print(found, folder, json=json)
            if not found.written:
                raise self.invalid_input("No case could be written.")
        if found.refused:
            raise self.exit_with(INCOMPLETE, f"{counted(len(found.refused), 'case')} of {environment} refused.")

    def _print(self, found: WrittenTasks, folder: Path, *, json: bool) -> None:
        if json:
            self.print_json({"written": found.written, "refused": found.refused})
            return
        for case in found.written:
            self.stdout.write(f"  written  {folder / case}")
        for case, reason in found.refused.items():
            self.stdout.write(f"  refused  {case}: {reason}")

    def _write(self, environment: str, folder: Path) -> WrittenTasks:
        if Path(environment, "environment.yaml").is_file():
            with open_bundle(environment) as bundle:
                return write_tasks(bundle, folder)
        version = get_version(environment)
        with tempfile.TemporaryDirectory(prefix="llmeval-harbor-") as name:
            path = Path(name, "bundle.zip")
            with path.open("wb") as file:
                export_bundle(version=version, file=file)
            with open_bundle(path) as bundle:
                return write_tasks(bundle, folder)
