"""`manage.py sandbox_packages`: the packages that code in the local sandbox may import."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from sandbox.client import packages


class Command(BaseCommand):
    help = "Install or list the packages that environments may name under `packages:` (numpy, pandas, pytest)."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("action", choices=["install", "list"])
        parser.add_argument(
            "--wheels", metavar="DIR", help="install: take the wheels from this directory, and ask no package index"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        folder = Path(settings.SANDBOX_PACKAGES)
        if options["action"] == "install":
            offline = ["--no-index", "--find-links", options["wheels"]] if options["wheels"] else []
            try:
                packages.install(folder, offline)
            except (packages.InstallationFailed, OSError) as error:
                raise CommandError(f"{error}\nNothing was changed in {folder}.") from None
        there = packages.installed(folder)
        for name, version in packages.known().items():
            self.stdout.write(f"{name} {version}: {'installed' if name in there else 'not installed'}")
        self.stdout.write(f"Directory: {folder}")
