"""`manage.py import_bundle`: store a bundle in the database."""

from argparse import ArgumentParser
from pathlib import Path

from hub.bundles.loader import open_bundle
from hub.bundles.validation import validate_bundle
from hub.common.wording import counted
from hub.gates.certificates import failed_gates
from hub.management.base import add_json_argument
from hub.management.bundles import BundleCommand
from hub.manifest.problems import BundleError
from hub.selectors import find_by_digest, is_newer
from hub.services import import_bundle


class Command(BundleCommand):
    help = "Store a bundle (a folder or a .zip) as a new version of its environment, private at first."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", help="the bundle's folder or .zip")
        parser.add_argument(
            "--publish", action="store_true", help="run the gates, and publish the version if they pass"
        )
        add_json_argument(parser)
        self.add_gate_arguments(parser)

    def handle(
        self, *args: object, path: str, publish: bool, json: bool, accept: frozenset[str], **options: object
    ) -> None:
        with open_bundle(Path(path)) as bundle:
            certificate = None
            if publish:
                problems = validate_bundle(bundle).problems
                if problems:
                    raise BundleError(problems)
                certificate = self.gates(bundle, accept)
                if failed_gates(certificate):
                    if not json:
                        self.show(certificate)
                    failed = ", ".join(failed_gates(certificate))
                    raise self.invalid_input(f"Nothing was stored: the gates {failed} failed.")
            known = find_by_digest(bundle.digest) is not None
            version = import_bundle(bundle=bundle, certificate=certificate, publish=publish)
        stored = {
            "environment": str(version),
            "digest": version.digest,
            "cases": version.case_count,
            "visibility": version.environment.visibility,
        }
        self.print_json(stored)
        if not json:
            self.stdout.write(f"{version}: {counted(version.case_count, 'case')}, {version.environment.visibility}.")
            if known and not publish:
                self.stdout.write(f"{version} is already stored; nothing changed.")
            version.environment.refresh_from_db()  # the certificate may have made this version the latest
            latest = version.environment.latest
            missed = failed_gates(version.certificate) if version.certificate else []
            if latest is not None and is_newer(latest, version):
                self.stdout.write(f"{latest.version} remains the latest version: its number is higher.")
            if latest is not None and is_newer(version, latest):
                self.stdout.write(
                    f"{latest.version} remains the latest version, because this one failed {', '.join(missed)}."
                    if missed
                    else f"It becomes the latest version, instead of {latest.version}, when it has passed its gates."
                )
