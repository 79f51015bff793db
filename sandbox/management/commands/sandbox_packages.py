"""`manage.py sandbox_packages`: the packages that code in the local sandbox may import."""

from argparse import ArgumentParser
from pathlib import Path

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from sandbox.client.packages import InstallationFailed, find_installed, get_versions, install_packages


class Command(BaseCommand):
    help = "Install or list the packages that environments may name under `packages:` (numpy, pandas, pytest)."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("action", choices=["install", "list"])
        parser.add_argument(
            "--wheels", metavar="DIR", help="install from the wheels in this directory, without a package index"
        )

    def handle(self, *args: object, action: str, wheels: str | None, **options: object) -> None:
        folder = Path(settings.SANDBOX_PACKAGES)
        if action == "install":
            _install(folder, wheels)
        elif wheels:
            raise CommandError("--wheels belongs to `sandbox_packages install`; `list` installs nothing.")
        installed = find_installed(folder)
        for name, version in get_versions().items():
            self.stdout.write(f"{name} {version}: {'installed' if name in installed else 'not installed'}")
        self.stdout.write(f"Directory: {folder}")


def _install(folder: Path, wheels: str | None) -> None:
    if wheels and not Path(wheels).is_dir():
        raise CommandError(f"--wheels: {wheels} is not a directory.")
    offline = ["--no-index", "--find-links", wheels] if wheels else []
    try:
        install_packages(folder, offline)
    except (InstallationFailed, OSError) as error:
        raise CommandError(f"{error}\nNothing was changed in {folder}.") from None
