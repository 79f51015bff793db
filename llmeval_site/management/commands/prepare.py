"""`manage.py prepare`: bring the database, the catalog and the demo models up to date, quickly if they are already."""

import fcntl
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.apps import apps
from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from hub.common.errors import UserError
from hub.management.base import Command as BaseCommand
from runs.services import DEMO_MODELS, register_demo_models

_LOCK = 0x4C4D4556  # of PostgreSQL's advisory locks; any number that nothing else takes


class Command(BaseCommand):
    help = "Migrate the database, register the demo models and load the catalog if any of them has changed."
    requires_system_checks: list[str] = []
    needs_database = False
    stealth_options = ("json",)  # of a command that prepares the database first: an error is its JSON document

    def handle(self, **options: object) -> None:
        stamp = settings.VAR_DIR / "prepared"
        if stamp.is_file() and stamp.read_text(encoding="ascii") == _state():
            return
        with _one_at_a_time():
            self._prepare(stamp)

    def _prepare(self, stamp: Path) -> None:
        _refuse_earlier_database()
        call_command("migrate", verbosity=0, interactive=False)
        register_demo_models()
        try:
            call_command("load_catalog", verbosity=0, stderr=self.stderr)
        except (
            SystemExit
        ):  # continue with the other environments; without the stamp the error is reported at the next start
            self.stderr.write("The stored versions remain in use.")
        else:
            stamp.write_text(_state(), encoding="ascii")


def _refuse_earlier_database() -> None:
    """Raise UserError if only some of the migrations were applied that others have replaced."""
    loader = MigrationLoader(connection)
    for migration in loader.replacements.values():
        applied = [name in loader.applied_migrations for name in migration.replaces]
        if any(applied) and not all(applied):
            app, name = migration.replaces[applied.index(False)]
            raise UserError(
                "The database is of an earlier state of the main branch, before the first release: the migration "
                f"{app}.{name}, which no longer exists, was not applied. Migrate it with an earlier commit that has "
                f"{app}/migrations/{name}.py, or use a new database."
            )


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Wait until no other process prepares the same database: containers that start together would collide."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s)", [_LOCK])
            try:
                yield
            finally:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [_LOCK])
    else:
        with (settings.VAR_DIR / "prepare.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _state() -> str:
    """Return a digest of the database URL, the demo models, the migrations and the files of the catalog.

    The migrations that the database has applied are part of it, each with its time: a database that was created anew or
    restored has to be prepared again.
    """
    database = settings.DATABASES["default"]
    parts = [f"{database['ENGINE']} {database['HOST']} {database['PORT']} {database['NAME']}", *DEMO_MODELS]
    applied = MigrationRecorder(connection).applied_migrations()  # empty if the database is
    parts += sorted(f"{app}.{name} {row.applied.isoformat()}" for (app, name), row in applied.items())
    for app in apps.get_app_configs():
        parts += [f"{app.label}/{path.name}" for path in sorted(Path(app.path, "migrations").glob("[0-9]*.py"))]
    for path in sorted((settings.BASE_DIR / "hub" / "catalog").rglob("*")):
        if path.is_file():
            stat = path.stat()
            parts.append(f"{path} {stat.st_size} {stat.st_mtime_ns}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
