"""`manage.py export_bundle`: a stored version as a .zip; the same bytes each time."""

from argparse import ArgumentParser
from pathlib import Path

from hub.common.output.files import Outputs, add_force_argument, check_suffix
from hub.management.bundles import BundleCommand
from hub.selectors import get_version
from hub.services import export_bundle


class Command(BundleCommand):
    help = "Write a version of an environment as a .zip for import_bundle."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("environment", metavar="SLUG[@VERSION]")
        parser.add_argument("out", metavar="OUT.zip")
        add_force_argument(parser)

    def handle(self, *args: object, environment: str, out: str, force: bool, **options: object) -> None:
        path = Path(out)
        check_suffix(path, ".zip", "a bundle")
        version = get_version(environment)
        with Outputs(force=force) as outputs, outputs.file(path).open("wb") as file:
            export_bundle(version=version, file=file)
        self.stdout.write(f"{path}: {version}, {path.stat().st_size:,} bytes")
