"""`manage.py load_catalog`: load the environments shipped with the product; those already stored are skipped."""

from pathlib import Path

from django.core.management import call_command
from django.db import connection

from hub.common.wording import counted
from hub.management import base
from hub.services import load_catalog

CATALOG = Path(__file__).resolve().parents[2] / "catalog"


class Command(base.Command):
    help = (
        "Load and publish the environments of hub/catalog. Those already stored are skipped; none of their code is run."
    )

    def prepare_database(self) -> None:
        """Only migrate, because the other step of `prepare` is this command."""
        if connection.vendor == "sqlite":
            call_command("migrate", verbosity=0, interactive=False)
        else:
            super().prepare_database()

    def handle(self, *args: object, verbosity: int, **options: object) -> None:
        failed = 0
        for name, result in load_catalog(folder=CATALOG):
            if isinstance(result, Exception):
                failed += 1
                self.stderr.write(f"{name}: {result}")
            elif verbosity:
                self.stdout.write(f"{result}: {counted(result.case_count, 'case')} loaded")
        if failed:
            count = counted(failed, "environment")
            raise self.invalid_input(f"{count} of hub/catalog could not be loaded.")
