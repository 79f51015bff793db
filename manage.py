#!/usr/bin/env python
"""Django's command line for LLM-Eval: `manage.py eval`, `manage.py help` lists the rest."""

import io
import os
import select
import sys
from pathlib import Path
from typing import NoReturn


def main() -> None:
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller, as with `>&-`
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - open as long as the process
    if isinstance(sys.stdout, io.TextIOWrapper):
        # In a locale without UTF-8, or for a file name that is not UTF-8: `\u2713` instead of an error.
        sys.stdout.reconfigure(errors="backslashreplace")
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
        from django.db import DatabaseError

        from hub.common.garbage_collection import loading

        try:
            with loading():
                django.setup()
            try:
                from hub.management.command_line import CommandLine

                CommandLine(sys.argv).execute()
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
        _discard_output()
        sys.exit(141)
    except OSError as error:
        if not _output_fails():
            raise
        _discard_output()
        leave(2, f"stdout cannot be written: {error.strerror}.")
    except KeyboardInterrupt:
        leave(130, "Interrupted.")


def _reader_is_gone() -> bool:
    """Return whether stdout is a pipe whose reader has closed it, as after `| head`."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return any(events & select.POLLERR for _, events in poll.poll(0))


def _output_fails() -> bool:
    """Return whether stdout takes no more text, as a file on a full disk."""
    try:
        sys.stdout.write("\n")
        sys.stdout.flush()
    except OSError:
        return True
    return False


def _discard_output() -> None:
    """Discard what is left to be written to stdout, so that it does not fail again at the interpreter's exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def leave(code: int, message: str) -> NoReturn:
    """Print *message* on stderr and exit with *code*."""
    sys.stderr.write(f"{message}\n")
    sys.exit(code)


if __name__ == "__main__":
    main()
