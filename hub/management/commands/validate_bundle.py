"""`manage.py validate_bundle`: check a bundle and run its gates; nothing is stored."""

from argparse import ArgumentParser
from json import dumps
from pathlib import Path

from hub.bundles.loader import CERTIFICATE, open_bundle
from hub.bundles.validation import Report, validate_bundle
from hub.common.output.files import Outputs
from hub.common.wording import counted
from hub.gates.certificates import Certificate, failed_gates
from hub.management.base import INCOMPLETE, add_json_argument
from hub.management.bundles import BundleCommand
from hub.manifest.problems import BundleError, problem_to_json


class Command(BundleCommand):
    help = "Check a bundle (a folder or a .zip): all problems at once, then the gates. Nothing is stored."
    needs_database = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", help="the bundle's folder or .zip")
        add_json_argument(parser)
        parser.add_argument("--no-gates", action="store_true", help="check the files only; run nothing")
        parser.add_argument(
            "--write-certificate", action="store_true", help=f"write {CERTIFICATE} into the bundle's folder"
        )
        self.add_gate_arguments(parser)

    def handle(
        self,
        *args: object,
        path: str,
        json: bool,
        no_gates: bool,
        write_certificate: bool,
        accept: frozenset[str],
        **options: object,
    ) -> None:
        bundle_path = Path(path)
        if write_certificate and not (bundle_path.is_dir() and not no_gates):
            raise self.invalid_input("--write-certificate needs a folder, and excludes --no-gates.")
        certificate = None
        try:
            with open_bundle(bundle_path) as bundle:
                report = validate_bundle(bundle)
                if report.valid and not no_gates:
                    certificate = self.gates(bundle, accept)
        except BundleError as error:
            report = Report(problems=error.problems)
        if certificate is not None and write_certificate:
            text = dumps(certificate, indent=1, ensure_ascii=False) + "\n"
            with Outputs(force=True) as outputs:
                outputs.file(bundle_path / CERTIFICATE).write_text(text, encoding="utf-8")
        if json:
            self._print_json(report, certificate)
        else:
            self._print(report, certificate)
        if report.problems:
            raise self.invalid_input(f"{path}: not valid, {counted(len(report.problems), 'problem')}.")
        if certificate and failed_gates(certificate):
            raise self.exit_with(INCOMPLETE, f"Gates failed: {', '.join(failed_gates(certificate))}.")

    def _print_json(self, report: Report, certificate: Certificate | None) -> None:
        document = {
            "valid": report.valid,
            "environment": f"{report.slug}@{report.version}" if report.slug else None,
            "digest": report.digest or None,
            "cases": report.cases,
            "problems": [problem_to_json(problem) for problem in report.problems],
            "certificate": certificate,
        }
        self.print_json(document)

    def _print(self, report: Report, certificate: Certificate | None) -> None:
        for problem in report.problems:
            self.stdout.write(f"  {problem}")
        if report.valid:
            self.stdout.write(
                f"{report.slug}@{report.version}: valid, {counted(report.cases, 'case')}, digest {report.digest[:12]}"
            )
        if certificate is not None:
            self.show(certificate)
