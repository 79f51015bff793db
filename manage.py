#!/usr/bin/env python
"""Django's command line for LLM-Eval: `manage.py eval`, `manage.py help` lists the rest."""

import os
import select
import sys
from typing import NoReturn


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "llmeval_site.settings")
    if os.environ.get("NO_COLOR"):  # see no-color.org; Django has a variable of its own
        os.environ["DJANGO_COLORS"] = "nocolor"
    try:
        try:
            import django
        except ModuleNotFoundError:
            leave(
                2,
                "This Python lacks the packages of LLM-Eval. Run `make setup`, then .venv/bin/python manage.py.",
            )
        from django.core.exceptions import ImproperlyConfigured
        from django.core.management import execute_from_command_line
        from django.db import DatabaseError

        from hub.common.garbage_collection import loading

        try:
            with loading():
                django.setup()
            try:
                execute_from_command_line(sys.argv)
            finally:
                sys.stdout.flush()  # so that a closed pipe is handled below, not at interpreter exit
        except ImproperlyConfigured as error:
            leave(2, str(error))
        except DatabaseError as error:
            from hub.management.database_errors import describe_database_error

            message = describe_database_error(error)
            if message is None:
                raise
            leave(3, message)
    except BrokenPipeError:
        if not _reader_is_gone():
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # discards what is flushed at exit
        sys.exit(141)
    except KeyboardInterrupt:
        leave(130, "Interrupted.")


def _reader_is_gone() -> bool:
    """Return whether stdout is a pipe whose reader has closed it, as after `| head`."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return any(events & select.POLLERR for _, events in poll.poll(0))


def leave(code: int, message: str) -> NoReturn:
    """Print *message* on stderr and exit with *code*."""
    sys.stderr.write(f"{message}\n")
    sys.exit(code)


if __name__ == "__main__":
    main()
