"""`manage.py start_bundle`: a folder with a small complete bundle to change."""

import shlex
from argparse import ArgumentParser
from pathlib import Path

from hub.bundles.starters import open_starter
from hub.common.output.files import new_folder
from hub.harnesses.registry import HARNESSES
from hub.management.base import Command as BaseCommand
from hub.management.invocation import command


class Command(BaseCommand):
    help = "Create a folder with a small complete bundle for a harness, to be changed into an environment of your own."
    needs_database = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("harness", choices=sorted(HARNESSES), help="the type of harness")
        parser.add_argument("folder", help="the folder to create; it must not exist")

    def handle(self, *args: object, harness: str, folder: str, **options: object) -> None:
        with new_folder(Path(folder), parents=False) as root, open_starter(harness) as bundle:
            for path in bundle.files:
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                with bundle.file(path) as file:
                    (root / path).write_bytes(file.read())
        check = command("validate_bundle", shlex.quote(str(root)))
        self.stdout.write(f"{root}: {len(bundle.files)} files. Check them with: {check}")
