"""`manage.py backup FOLDER`: a consistent copy of the data folder while the site and its workers run."""

import os
import shutil
import sqlite3
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from django.conf import settings
from django.core.files.storage import FileSystemStorage

from hub.common.errors import UserError
from hub.common.wording import counted
from hub.management import base
from hub.models import EnvironmentVersion, archive_storage

_LOCAL_TRACKING = "sqlite:///"


class Command(base.Command):
    help = (
        "Copy what LLMEVAL_VAR holds to a new folder: an SQLite database, archives of bundles, the secret key, the "
        "local tracking store. The site may be in use. To restore, put the folder in the place of LLMEVAL_VAR."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path, help="a folder that does not exist yet")

    def handle(self, *args: object, folder: Path, **options: object) -> None:
        folder = folder.resolve()
        if folder.exists():
            raise UserError(f"{folder} exists. Name a new folder.")
        draft = folder.with_name(f".partial-{folder.name}-{os.getpid()}")
        try:
            draft.mkdir(parents=True, mode=0o700)
            done = [*_copy_database(draft)]
            # Archives come after the database: each one that a version of the copy names was stored before it.
            done += _copy_archives(draft)
            missing = _missing_archives(draft)
            done += _copy_secret_key(draft)
            done += _copy_tracking_store(draft)
            draft.rename(folder)
        except (OSError, sqlite3.Error) as error:
            raise UserError(f"No backup was written to {folder}: {_reason(error)}") from None
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        self.stdout.write("\n".join(done))
        if missing:
            raise self.exit_with(
                base.INCOMPLETE, f"The archives of {len(missing)} versions are missing in the storage:", missing
            )
        self.stdout.write(f"The copy is {folder}.")


def _copy_database(folder: Path) -> Iterator[str]:
    database = settings.DATABASES["default"]
    if database["ENGINE"] == "django.db.backends.sqlite3":
        yield _copied("database", _copy_sqlite(Path(database["NAME"]), folder / "llmeval.sqlite3"))
    else:
        yield (
            f"database: NOT copied. The server {database['HOST']} stores it: run pg_dump for {database['NAME']} before "
            "this command."
        )


def _copy_sqlite(source: Path, target: Path) -> int:
    """Copy a database that other processes may write to, and return the size of the copy."""
    target.touch(mode=0o600)
    with closing(sqlite3.connect(source)) as live, closing(sqlite3.connect(target)) as copy:
        live.backup(copy)
        copy.execute("PRAGMA journal_mode=WAL")  # as Django opens it
    return target.stat().st_size


def _copy_archives(folder: Path) -> Iterator[str]:
    """Copy all files of the storage: archives of bundles, and large transcripts."""
    storage = archive_storage()
    what = "archives of bundles and large transcripts"
    if isinstance(storage, FileSystemStorage):
        yield _copied(what, _copy_folder(Path(storage.location), folder / "media"))
    else:
        yield f"{what}: NOT copied. LLMEVAL_ARCHIVES names a bucket: back it up with its own tools."


def _missing_archives(folder: Path) -> list[str]:
    if not isinstance(archive_storage(), FileSystemStorage):
        return []
    versions = EnvironmentVersion.objects.exclude(archive="").select_related("environment").order_by("pk")
    return [str(version) for version in versions if not (folder / "media" / (version.archive.name or "")).is_file()]


def _copy_secret_key(folder: Path) -> Iterator[str]:
    file = settings.VAR_DIR / "secret_key"
    if file.is_file():
        shutil.copy2(file, folder)
        yield _copied("secret key", file.stat().st_size)
    else:
        yield "secret key: NOT copied. It is set by LLMEVAL_SECRET_KEY: keep it with your settings."


def _copy_tracking_store(folder: Path) -> Iterator[str]:
    uri = settings.MLFLOW_TRACKING_URI
    if not uri.startswith(_LOCAL_TRACKING):
        yield f"MLflow: NOT copied. MLFLOW_TRACKING_URI names {uri.partition('://')[0]}: back it up there."
        return
    database = Path(uri.removeprefix(_LOCAL_TRACKING))
    if database.is_file():
        yield _copied("MLflow", _copy_sqlite(database, folder / "mlflow.sqlite3"))
    yield _copied("artifacts of MLflow", _copy_folder(Path(settings.MLFLOW_ARTIFACTS), folder / "mlartifacts"))


def _copy_folder(source: Path, target: Path) -> int:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns(".partial-*"))
    return sum(file.stat().st_size for file in target.rglob("*") if file.is_file())


def _reason(error: OSError | sqlite3.Error) -> str:
    """Return what failed with the name of the file, which may be one that is copied."""
    if isinstance(error, shutil.Error):  # of a folder: (source, target, reason) of each file that was not copied
        failed = error.args[0]
        source, _, reason = failed[0]
        more = f" (and {counted(len(failed) - 1, 'more file')})" if len(failed) > 1 else ""
        return f"{source} cannot be copied{more}: {reason}"
    return f"{error.filename}: {error.strerror}" if isinstance(error, OSError) and error.filename else str(error)


def _copied(what: str, size: int) -> str:
    return f"{what}: {size / 1e6:,.1f} MB"
