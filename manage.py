#!/usr/bin/env python
"""Django's command line for LLM-Eval: `manage.py eval`, `manage.py help` lists the rest."""

import gc
import os
import select
import sys
from typing import NoReturn

_UNPREPARED = ("no such table", "no such column", "UndefinedTable", "UndefinedColumn")
_UNREACHABLE = ("connection failed", "connection is bad", "unable to open database file", "readonly database")


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "llmeval_site.settings")
    if os.environ.get("NO_COLOR"):  # no-color.org; Django knows only a variable of its own
        os.environ["DJANGO_COLORS"] = "nocolor"
    gc.disable()  # what start-up makes stays; looking through it over and over was a fifth of a short run
    try:
        try:
            import django
        except ModuleNotFoundError:
            leave(
                2,
                "This Python lacks the product's packages; run .venv/bin/python manage.py, which `make eval` installs.",
            )
        from django.core.exceptions import ImproperlyConfigured
        from django.core.management import execute_from_command_line
        from django.db import OperationalError, ProgrammingError

        try:
            django.setup()
            gc.freeze()
            gc.enable()
            try:
                execute_from_command_line(sys.argv)
            finally:
                sys.stdout.flush()  # here, where a reader that has gone is noticed, and not by the interpreter's end
        except ImproperlyConfigured as error:
            leave(2, str(error))
        except (OperationalError, ProgrammingError) as error:
            if any(sign in f"{type(error.__cause__).__name__} {error}" for sign in _UNPREPARED):
                from hub.management.invocation import command

                leave(3, f"The database lacks tables or columns of this release. Prepare it with: {command('prepare')}")
            if not any(said in str(error) for said in _UNREACHABLE):
                raise
            leave(3, f"The database cannot be reached (DATABASE_URL, LLMEVAL_VAR): {str(error).splitlines()[0]}.")
    except BrokenPipeError:
        if not _reader_is_gone():
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is flushed at the end goes nowhere
        sys.exit(141)
    except KeyboardInterrupt:
        leave(130, "Interrupted.")


def _reader_is_gone() -> bool:
    """Whether stdout is a pipe that nobody reads any more, as after `| head`."""
    watched = select.poll()
    watched.register(sys.stdout.fileno(), 0)
    return any(events & select.POLLERR for _, events in watched.poll(0))


def leave(code: int, message: str) -> NoReturn:
    """End with a sentence."""
    sys.stderr.write(f"{message}\n")
    sys.exit(code)


if __name__ == "__main__":
    main()
