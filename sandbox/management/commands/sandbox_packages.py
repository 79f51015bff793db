"""`manage.py sandbox_packages`: the packages that code in the local sandbox may import."""

from argparse import ArgumentParser
from pathlib import Path

from django.conf import settings
from django.core.management.base import BaseCommand

from sandbox.packages import InstallationFailed, find_installed, get_versions, install_packages

_WRONG_INPUT, _UNAVAILABLE = 2, 3  # exit codes, as in docs/commands.md


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
            self._install(folder, wheels)
        elif wheels:
            raise self._exit_with(
                _WRONG_INPUT, "--wheels belongs to `sandbox_packages install`; `list` installs nothing."
            )
        installed = find_installed(folder)
        for name, version in get_versions().items():
            self.stdout.write(f"{name} {version}: {'installed' if name in installed else 'not installed'}")
        self.stdout.write(f"Directory: {folder}")

    def _install(self, folder: Path, wheels: str | None) -> None:
        if wheels and not Path(wheels).is_dir():
            raise self._exit_with(_WRONG_INPUT, f"--wheels: {wheels} is not a directory.")
        offline = ["--no-index", "--find-links", wheels] if wheels else []
        try:
            install_packages(folder, offline)
        except (InstallationFailed, OSError) as error:
            raise self._exit_with(_UNAVAILABLE, f"{error}\nNothing was changed in {folder}.") from None

    def _exit_with(self, code: int, message: str) -> SystemExit:
        """Print *message* on stderr; return the exception to raise."""
        self.stderr.write(message)
        return SystemExit(code)
