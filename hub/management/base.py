"""Base class of all commands: exit codes, error messages, and one JSON document with --json."""

import codecs
import errno
import io
import json
import re
import signal
import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import ClassVar, TextIO, cast

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, OutputWrapper
from django.db import DatabaseError, connection
from rich.console import Console

from hub.common.errors import UserError
from hub.common.output.files import describe_file_error
from hub.common.output.foreign_text import clean
from hub.common.termination import termination_signals
from hub.management.database_errors import describe_database_error, describe_unprepared
from sandbox.errors import SandboxError

DONE, INCOMPLETE, WRONG_INPUT, UNAVAILABLE, INTERRUPTED = 0, 1, 2, 3, 130
_UNUSABLE = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT}  # of files: no fault of the program


def add_json_argument(parser: ArgumentParser) -> None:
    """Add the option --json, with which a command prints one JSON document (`Command.print_json`)."""
    parser.add_argument("--json", action="store_true", help="print one JSON document on stdout")


def day(text: str) -> date:
    """Return the date of an option; for use as its `type`."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a date like 2026-01-31") from None


def days(text: str) -> timedelta:
    """Return the duration of an option such as 90d; for use as its `type`."""
    if not re.fullmatch("[1-9][0-9]{0,4}d", text):
        raise ArgumentTypeError(f"{text!r} is not a number of days such as 90d")
    return timedelta(days=int(text[:-1]))


class ReportConsole(Console):
    """Console for reports. A closed pipe, as with `| head`, ends the program with exit code 141, as usual."""

    def on_broken_pipe(self) -> None:
        raise


class TextOutput(OutputWrapper):
    """Output of a command. What it prints may contain text of users, models and bundles, such as the name of a run."""

    def write(  # type: ignore[override]
        self, msg: str = "", style_func: Callable[[str], str] | None = None, ending: str | None = None
    ) -> None:
        """Print *msg* without terminal sequences."""
        super().write(clean(msg, lines=True), style_func, ending)

    def lacks_characters(self) -> bool:
        """Return whether some characters cannot be printed, as in a locale without UTF-8."""
        encoding = getattr(self, "encoding", None)  # of the stream; None for text in memory
        return encoding is not None and codecs.lookup(encoding).name != "utf-8"

    def write_document(self, text: str) -> None:
        """Print a document for programs, which needs every character."""
        super().write(text)


class Command(BaseCommand):
    """Base class of commands with documented exit codes.

    0 done; 1 done, but with failures to look at; 2 the input is wrong and nothing was written; 3 a service or the
    sandbox is missing; 130 interrupted. With --json, stdout has exactly one document, however the command ends, once
    its arguments are parsed.
    """

    # Path of a UserError -> the option of this command that corrects it.
    option_names: ClassVar[Mapping[str, str]] = {}
    needs_database = True  # whether the database is prepared before the command runs from the command line

    stdout: TextOutput
    stderr: TextOutput
    prints_json = False  # whether stdout is for one JSON document (--json)
    _printed = False
    _from_command_line = False

    def __init__(self, stdout: TextIO | None = None, stderr: TextIO | None = None, **colours: bool) -> None:
        super().__init__(stdout, stderr, **colours)
        styled = self.stderr.style_func
        self.stdout, self.stderr = TextOutput(stdout or sys.stdout), TextOutput(stderr or sys.stderr)
        self.stderr.style_func = styled

    def run_from_argv(self, argv: list[str]) -> None:
        self._from_command_line = True
        for number in termination_signals():
            signal.signal(number, signal.default_int_handler)  # the same as Ctrl-C, also during start-up
        super().run_from_argv(argv)

    def execute(self, *args: object, **options: object) -> str | None:
        self.prints_json, self._printed = bool(options.get("json")), False
        for name in ("stdout", "stderr"):  # Django would replace them by outputs that print everything
            if (given := options.pop(name, None)) is not None:
                setattr(self, name, TextOutput(cast(TextIO, given)))
        try:
            if self._from_command_line and self.needs_database:
                self.prepare_database()
            return super().execute(*args, **options)
        except UserError as error:
            option = self.option_names.get(error.path)
            message = f"{error.headline()} (Option: {option}.)" if option else error.headline()
            raise self.exit_with(error.exit_code, message, error.lines(), error.errors() or None) from None
        except SandboxError as error:
            raise self.exit_with(UNAVAILABLE, str(error)) from None
        except DatabaseError as error:
            described = describe_database_error(error)
            if described is None:
                raise
            raise self.exit_with(UNAVAILABLE, described) from None
        except OSError as error:  # a file of another user, or a full or read-only disk
            if not error.filename or error.errno not in _UNUSABLE:
                raise
            raise self.invalid_input(describe_file_error(error, Path(error.filename), settings.VAR_DIR)) from None
        except KeyboardInterrupt:
            self.print_json({"message": "Interrupted.", "errors": []})
            raise  # manage.py prints the message on stderr

    def prepare_database(self) -> None:
        """Prepare the embedded database if it is new or outdated. A database server is left to its operator."""
        if connection.vendor == "sqlite":
            call_command("prepare", json=self.prints_json)
            return
        try:
            call_command("migrate", check_unapplied=True, verbosity=0, stdout=io.StringIO())
        except SystemExit:
            raise self.exit_with(UNAVAILABLE, describe_unprepared()) from None

    def print_json(self, document: object) -> None:
        """Print the JSON document; does nothing without --json or if one was printed."""
        if self.prints_json and not self._printed:
            self._printed = True
            escaped = self.stdout.lacks_characters()
            self.stdout.write_document(json.dumps(document, ensure_ascii=escaped, allow_nan=False))

    def exit_with(
        self, code: int, message: str, more: Iterable[object] = (), errors: Sequence[object] | None = None
    ) -> SystemExit:
        """Print *message* and the lines *more* on stderr; return the exception to raise. *errors* is *more* as JSON."""
        lines = [str(line) for line in more]
        self.stderr.write("\n".join([message, *(f"  {line}" for line in lines)]))
        self.print_json(
            {"message": message, "errors": [{"message": line} for line in lines] if errors is None else errors}
        )
        return SystemExit(code)

    def invalid_input(
        self, message: str, more: Iterable[object] = (), errors: Sequence[object] | None = None
    ) -> SystemExit:
        """Print that the input is wrong; return the exception to raise."""
        return self.exit_with(WRONG_INPUT, message, more, errors)
