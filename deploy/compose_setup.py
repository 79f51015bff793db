"""First step of `docker-compose up`: passwords, databases, tables and the catalogue; then says where to sign in.

Runs once at every start, before the other services, and changes nothing that is in place. The password of the database
is drawn at the first start and kept in the volume `secrets`, unless POSTGRES_PASSWORD is set. The port of the database
is not published, so that the initial password of the image is only valid between containers, and only until this step.
"""

import os
import secrets
import sys
from pathlib import Path

import django
import psycopg
from django.core.management import call_command
from psycopg import sql

PASSWORD_FILE = Path(os.environ["LLMEVAL_DATABASE_PASSWORD_FILE"])
DATABASE_URL = os.environ["DATABASE_URL"]  # without a password
INITIAL_PASSWORD = os.environ["INITIAL_POSTGRES_PASSWORD"]
MLFLOW_DATABASE = "mlflow"


def set_password() -> str:
    """Return the password of the database's user, after setting it if the initial one is still valid."""
    if PASSWORD_FILE.is_file():
        password = PASSWORD_FILE.read_text(encoding="utf-8")
    else:
        password = os.environ.get("POSTGRES_PASSWORD") or secrets.token_urlsafe(32)
        draft = PASSWORD_FILE.with_suffix(".draft")
        draft.touch(mode=0o600)
        draft.write_text(password, encoding="utf-8")
        draft.rename(PASSWORD_FILE)
    # The file is written first: a start that is interrupted here finds the initial password again and sets this one.
    try:
        psycopg.connect(DATABASE_URL, password=password).close()
    except psycopg.OperationalError:
        with psycopg.connect(DATABASE_URL, password=INITIAL_PASSWORD) as connection:
            user = sql.Identifier(connection.info.user)
            connection.execute(sql.SQL("ALTER ROLE {} PASSWORD {}").format(user, sql.Literal(password)))
    return password


def create_mlflow_database(password: str) -> None:
    with psycopg.connect(DATABASE_URL, password=password, autocommit=True) as connection:
        found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [MLFLOW_DATABASE]).fetchone()
        if found is None:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(MLFLOW_DATABASE)))


def print_sign_in_help() -> None:
    from django.contrib.auth.models import User

    print(f"LLM-Eval starts at {os.environ['SITE_URL']}", flush=True)
    if not User.objects.filter(is_superuser=True, is_active=True).exists():
        print("Nobody can sign in yet. Create an administrator once the site is up:")
        print("    docker-compose exec web python manage.py createsuperuser", flush=True)


def main() -> int:
    try:
        create_mlflow_database(set_password())
    except psycopg.OperationalError as error:
        print(f"The database does not accept its password: {error}", file=sys.stderr)
        print(
            "If the volume `secrets` was removed and the volume `postgres` was not, set POSTGRES_PASSWORD in .env to "
            "the password of the database; see docs/operations.md.",
            file=sys.stderr,
        )
        return 1
    # Django's settings read the password's file, so they cannot be loaded earlier.
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "llmeval_site.settings")
    django.setup()
    call_command("prepare")
    print_sign_in_help()
    return 0


if __name__ == "__main__":
    sys.exit(main())
