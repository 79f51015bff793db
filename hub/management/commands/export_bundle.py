"""`manage.py export_bundle`: a stored version as a .zip, byte for byte the same each time."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from hub.common.output_files import Outputs, add_force_argument
from hub.management.bundles import BundleCommand
from hub.selectors import get_version
from hub.services import export_bundle


class Command(BundleCommand):
    help = "Write a version of an environment as a .zip that import_bundle takes."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("environment", metavar="SLUG[@VERSION]")
        parser.add_argument("out", metavar="OUT.zip")
        add_force_argument(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        out = Path(options["out"])
        version = get_version(options["environment"])
        with Outputs(force=options["force"]) as outputs, outputs.file(out).open("wb") as file:
            export_bundle(version=version, file=file)
        self.stdout.write(f"{out}: {version}, {out.stat().st_size:,} bytes")
