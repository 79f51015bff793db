"""`manage.py load_catalog`: the environments shipped with the product into the database; what is there is skipped."""

from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.db import connection

from hub.common.wording import counted
from hub.management import base
from hub.services import load_catalog

CATALOG = Path(__file__).resolve().parents[2] / "catalog"


class Command(base.Command):
    help = (
        "Load the environments of hub/catalog, published. What is stored already is skipped; no code of theirs is run."
    )

    def prepare_database(self) -> None:
        """Only migrate: the rest of what `prepare` does is this command."""
        if connection.vendor == "sqlite":
            call_command("migrate", verbosity=0, interactive=False)
        else:
            super().prepare_database()

    def handle(self, *args: Any, **options: Any) -> None:
        failed = 0
        for name, result in load_catalog(folder=CATALOG):
            if isinstance(result, Exception):
                failed += 1
                self.stderr.write(f"{name}: {result}")
            elif options["verbosity"]:
                self.stdout.write(f"{result}: {counted(result.case_count, 'case')} loaded")
        if failed:
            count = counted(failed, "environment")
            raise self.invalid_input(f"{count} of hub/catalog could not be loaded.")
