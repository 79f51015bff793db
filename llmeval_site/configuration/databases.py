"""The database: from a URL, with the options that SQLite needs here."""

from pathlib import Path

import dj_database_url
from dj_database_url import DBConfig
from django.core.exceptions import ImproperlyConfigured

from llmeval_site.configuration.private_files import make_private_database

_ENGINES = ("django.db.backends.postgresql", "django.db.backends.sqlite3")


def database_settings(url: str, *, password_file: str, test_file: Path) -> DBConfig:
    """Return the entry of DATABASES for *url*. Raises ImproperlyConfigured with the name of the variable.

    password_file: its text replaces the password of the URL; "": none. test_file: the database of tests on SQLite.
    """
    try:
        found = dj_database_url.parse(url, conn_max_age=60, conn_health_checks=True)
    except ValueError:
        raise ImproperlyConfigured(
            "DATABASE_URL is not a valid database URL. Example: postgres://user:password@host:5432/name. "
            "Percent-encode special characters of the password (/ is %2F), or put the password into a file and name it "
            "in LLMEVAL_DATABASE_PASSWORD_FILE."
        ) from None
    if found["ENGINE"] not in _ENGINES:
        scheme = url.partition(":")[0]
        raise ImproperlyConfigured(
            f"DATABASE_URL begins with {scheme}:, which is not supported. Use PostgreSQL, "
            "postgres://user:password@host:5432/name, or SQLite, sqlite:////path/to/file."
        )
    if password_file:
        try:
            found["PASSWORD"] = Path(password_file).read_text(encoding="utf-8").rstrip("\n")
        except OSError as error:
            raise ImproperlyConfigured(
                f"LLMEVAL_DATABASE_PASSWORD_FILE: {password_file} cannot be read: {error.strerror}."
            ) from None
    if found["ENGINE"] == "django.db.backends.sqlite3":
        _set_sqlite_options(found, test_file)
    return found


def _set_sqlite_options(settings: DBConfig, test_file: Path) -> None:
    # In WAL mode readers do not wait for a writer. IMMEDIATE takes the write lock at BEGIN: otherwise a transaction can
    # fail when it upgrades its lock, which the busy timeout does not cover.
    settings["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 30,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON;"
        " PRAGMA cache_size=-8000; PRAGMA temp_store=MEMORY;",
    }
    settings["CONN_HEALTH_CHECKS"] = False
    # Tests need a file: each thread of the executor has its own connection.
    settings["TEST"] = {"NAME": test_file}
    if settings["NAME"] != ":memory:":
        make_private_database(Path(settings["NAME"]))
