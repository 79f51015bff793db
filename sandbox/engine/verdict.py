"""Runs units of tests and makes the verdict that a judge reports."""

import ast
import reprlib
from collections.abc import Callable, Iterable
from typing import Any

from . import codec
from .describing import describe
from .remote import CandidateGone, Missing, Remote, Tampered, TooLarge
from .testing import Recorder, Unit, line_in_tests

_MAX_SHOWN = 1000


def run_units(
    found: Iterable[Unit],
    recorder: Recorder,
    influenced: Callable[[], bool],
    unsupported: Callable[[], str] = lambda: "",
) -> dict[str, Any]:
    """Run every unit, stopping where the candidate is lost or the tests turn out broken.

    influenced   whether anything of the candidate's has reached the tests yet; as long as it has not, what goes wrong
                 is the tests' own fault
    unsupported  what the tests did that has another result here than beside the code; with that, a unit that fails
                 says nothing about the code

    The verdict: {"passed", "total", "failure": null or {"kind", "test", "expected", "got", "line", "message", ...}}.
    Where tests are one block its asserts are counted, else its named units.
    """
    passed = total = 0
    named = False
    first: dict[str, Any] | None = None
    for unit in found:
        failure = _run(unit, recorder, influenced)
        if failure is not None and failure["kind"] in _UNSURE and (reason := unsupported()):
            failure = {**failure, "kind": "unsupported", "message": reason}
        if unit.name:
            named = True
            total += 1
            passed += failure is None
        first = first or failure
        if failure is not None and (failure["kind"] in _FINAL or not unit.name):
            break
    if not named and recorder.total:
        passed, total = recorder.passed, recorder.total
    elif not named:
        total, passed = 1, int(first is None)  # tests that raise by other means than assert
    if recorder.control is not None:
        passed = recorder.held  # one assert is enough to give the code away
    return {"passed": passed, "total": total, "failure": first}


_FINAL = ("gone", "tampered", "missing", "bad_tests", "unsupported")
_UNSURE = ("assertion", "raised", "test_error", "bad_tests")


def _run(unit: Unit, recorder: Recorder, influenced: Callable[[], bool]) -> dict[str, Any] | None:
    """None where the unit passed, else its failure."""
    recorder.failed = None
    before = recorder.executed
    try:
        unit.run()
    except CandidateGone:
        return _failure("gone", unit, recorder)
    except Tampered as error:
        return _failure("tampered", unit, recorder, message=str(error))
    except TooLarge as error:
        return _failure("large", unit, recorder, message=str(error))
    except Missing as error:
        return _failure("missing", unit, recorder, message=str(error))
    except BaseException as error:
        described = getattr(error, "_llm_remote", None)
        line = line_in_tests(error)
        if described is not None:
            return _failure("raised", unit, recorder, error=described, line=line)
        if isinstance(error, AssertionError):
            return _failure("assertion", unit, recorder, message=str(error)[:_MAX_SHOWN], line=line)
        kind = "test_error" if influenced() else "bad_tests"
        return _failure(kind, unit, recorder, error=describe(error, "<tests>"), line=line)
    if unit.must_assert and recorder.executed == before:
        return _failure("assertion", unit, recorder, message="none of its asserts was reached")
    return None


def _failure(kind: str, unit: Unit, recorder: Recorder, line: int | None = None, **more: Any) -> dict[str, Any]:
    failure = {"kind": kind, "test": unit.name, "expected": "", "got": "", "line": line or unit.line, **more}
    if recorder.failed is None:
        return failure
    index, name, operands = recorder.failed
    condition = recorder.asserts[index]
    text = ast.unparse(condition)
    failure["test"] = f"{unit.name}: {text}" if unit.name and unit.name not in text and text not in unit.name else text
    failure["line"] = line or condition.lineno
    failure["got"] = shown(operands[0])
    if name == "Eq":
        failure["expected"] = shown(operands[1])
    return failure


def shown(value: Any) -> str:
    """A value as text, without asking the code for its `__repr__`."""
    try:
        return _repr.repr(value)[:_MAX_SHOWN]
    except Exception:
        return f"<{type(value).__name__}>"


class _Repr(reprlib.Repr):
    def repr1(self, x: Any, level: int) -> str:
        if isinstance(x, Remote):
            return f"<{x._llm_names[0]} object>"
        if isinstance(x, codec.Opaque):
            return repr(x)
        return super().repr1(x, level)


_repr = _Repr()
_repr.maxstring = _repr.maxother = _repr.maxlong = 200
_repr.maxlist = _repr.maxtuple = _repr.maxset = _repr.maxdict = 20
