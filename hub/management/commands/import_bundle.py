"""`manage.py import_bundle`: a bundle into the database."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from hub.bundles.loader import open_bundle
from hub.bundles.validation import validate_bundle
from hub.common.wording import counted
from hub.management.bundles import BundleCommand, failed_gates
from hub.manifest.problems import BundleError
from hub.services import import_bundle


class Command(BundleCommand):
    help = "Store a bundle (a folder or a .zip) as a new version of its environment; usable at once, private at first."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", help="the bundle's folder or .zip")
        parser.add_argument(
            "--publish", action="store_true", help="run the gates, and show it to everyone if they pass"
        )
        parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
        self.add_gate_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        with open_bundle(Path(options["path"])) as bundle:
            certificate = None
            if options["publish"]:
                problems = validate_bundle(bundle).problems
                if problems:
                    raise BundleError(problems)
                certificate = self.gates(bundle, options["accept"])
                if failed_gates(certificate):
                    if not options["json"]:
                        self.show(certificate)
                    failed = ", ".join(failed_gates(certificate))
                    raise self.invalid_input(f"Not published, nothing stored: failed {failed}.")
            version = import_bundle(bundle=bundle, certificate=certificate, publish=options["publish"])
        stored = {
            "environment": str(version),
            "digest": version.digest,
            "cases": version.case_count,
            "visibility": version.environment.visibility,
        }
        self.print_json(stored)
        if not options["json"]:
            self.stdout.write(f"{version}: {counted(version.case_count, 'case')}, {version.environment.visibility}.")
