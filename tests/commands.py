"""Management commands called in the process of the test."""

import io

from django.core.management import call_command


def run_command(*words: object, code: int = 0) -> str:
    """Call a command, check its exit code, and return what it printed. With --json, return only standard output."""
    out, err = io.StringIO(), io.StringIO()
    exit_code: object = 0
    try:
        call_command(*map(str, words), stdout=out, stderr=err)
    except SystemExit as error:
        exit_code = error.code
    assert exit_code == code, err.getvalue()
    return out.getvalue() if "--json" in words else out.getvalue() + err.getvalue()
