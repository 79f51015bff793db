"""Runs units of tests and builds the verdict that a test judge reports."""

import ast
import os
import reprlib
from collections.abc import Iterable
from types import CoroutineType
from typing import NotRequired, TypedDict

from ..protocol import codec
from ..protocol.error_reports import ErrorReport, describe
from ..proxies.conversion import ORIGIN
from ..proxies.errors import CandidateGone, Missing, Tampered, TooLarge
from ..proxies.peer import Peer
from ..proxies.proxy import Proxy, state_of
from ..testing.pytest_marks import Unsupported
from ..testing.recorder import LISTED, BadTests, Recorder
from ..testing.skips import SkippedTest
from ..testing.units import Unit, line_in_tests

_MAX_SHOWN = 1000
_LIBRARY = os.path.dirname(os.__file__) + os.sep


_LOST = {CandidateGone: "gone", Tampered: "tampered", Missing: "missing"}
_FINAL = (*_LOST.values(), "bad_tests", "unsupported")
_UNSURE = ("assertion", "raised", "test_error", "bad_tests")


class TestFailure(TypedDict):
    """The first failure of a job's tests. The keys that it has depend on its kind."""

    kind: str
    test: NotRequired[str]
    expected: NotRequired[str]
    got: NotRequired[str]
    line: NotRequired[int | None]
    message: NotRequired[str]
    error: NotRequired[ErrorReport]


class JudgeReport(TypedDict):
    """The result of a job's tests. In tests that are one block, asserts are counted; in all others, named units."""

    passed: int
    total: int
    failure: TestFailure | None


class BadTestsReport(TypedDict):
    """The reason why the tests cannot be run with any code."""

    bad_tests: str


class VerdictBuilder:
    """Runs the units of one job's tests and counts their results."""

    def __init__(self, recorder: Recorder, peer: Peer | None = None) -> None:
        """`peer`: the connection to the candidate, if it is another process."""
        self.skips_may_depend_on_code = False
        self.own_requests = 0  # requests to the code that are made for any tests
        self.reason = ""  # why the tests need the process of the code; if set, a failure is no failure of the code
        self._recorder, self._peer = recorder, peer
        self._unit, self._begun = Unit("", None, lambda: None), False
        self._passed = self._total = 0
        self._named = self._skipped = self._any_skipped = False
        self._first: TestFailure | None = None

    def run(self, found: Iterable[Unit]) -> JudgeReport:
        """Run the units until the candidate is lost or the tests prove to be broken. Return the verdict.

        Raises BadTests.
        """
        for unit in found:
            self._unit, self._begun = unit, True
            failure = self._failure_of(unit)
            if failure is not None and failure["kind"] in _UNSURE:
                if self._peer is not None:
                    self._peer.compare_variables()
                if self._unsupported:
                    failure = {**failure, "kind": "unsupported", "message": self._unsupported}
            self._count(unit, failure)
            if failure is not None and (failure["kind"] in _FINAL or not unit.name):
                break
        if self._any_skipped and not self._named and self._first is None:
            raise BadTests("All tests are skipped.")
        asked_nothing = self._peer is not None and self._peer.answered <= self.own_requests
        if asked_nothing and (self._first is None or self._first["kind"] == "assertion"):
            raise BadTests("The tests use nothing that the code defines, so they have the same result with any code.")
        return self._verdict()

    def lost(self, signal: BaseException) -> JudgeReport:
        """Return the verdict of tests that lost their candidate during a unit."""
        failure = self._failure(_LOST[type(signal)], message=str(signal))
        if not self._begun:
            return {"passed": 0, "total": 0, "failure": failure}
        self._count(self._unit, failure)
        return self._verdict()

    def _count(self, unit: Unit, failure: TestFailure | None) -> None:
        if unit.name and not self._skipped:
            self._named = True
            self._total += 1
            self._passed += failure is None
        self._any_skipped = self._any_skipped or self._skipped
        self._first = self._first or failure

    def _verdict(self) -> JudgeReport:
        recorder, passed, total = self._recorder, self._passed, self._total
        if not self._named and recorder.total:
            passed, total = recorder.passed, recorder.total
        elif not self._named:
            total, passed = 1, int(self._first is None)  # tests that raise by other means than assert
        if recorder.control is not None:
            passed = recorder.held  # one assert that passes proves tampering
        return {"passed": passed, "total": total, "failure": self._first}

    @property
    def _unsupported(self) -> str:
        """Why this process cannot decide the tests: they need the process of the code; "" if it can decide them."""
        return (self._peer.unsupported if self._peer else "") or self.reason

    def _failure_of(self, unit: Unit) -> TestFailure | None:
        """Run one unit. Return its failure, or None if it passed."""
        recorder, peer = self._recorder, self._peer
        recorder.failed = None
        self._skipped = False
        before = recorder.executed
        if peer is not None:
            peer.too_large = None
        try:
            unit.run()
        except (CandidateGone, Tampered, Missing) as signal:
            return self._failure(_LOST[type(signal)], message=str(signal))
        except Unsupported as error:
            return self._failure("unsupported", message=str(error))
        except SkippedTest as skipped:
            self._skipped = self._may_skip(skipped)
            if self._skipped:
                return None
            return self._failure("assertion", message="it was skipped, which may depend on the code")
        except TooLarge as error:
            return self._failure("large", message=str(error))
        except BaseException as error:
            if recorder.control is None and _ends_tests(error):
                failed = _failed_assert_before(error)
                if failed is None:
                    return self._failure_of_completed(unit, before)
                error = failed
            described = getattr(error, ORIGIN, None)
            line = line_in_tests(error)
            if described is not None:
                return self._failure("raised", error=described, line=line)
            if isinstance(error, AssertionError):
                return self._failure("assertion", message=str(error)[:_MAX_SHOWN], line=line)
            # An error before anything of the candidate has reached the tests is their own mistake.
            kind = "test_error" if peer is None or peer.influenced else "bad_tests"
            return self._failure(kind, error=describe(error, "<tests>"), line=line)
        return self._failure_of_completed(unit, before)

    def _may_skip(self, skipped: SkippedTest) -> bool:
        """Return whether the code cannot be the reason why a test is skipped."""
        if self._peer is None:  # the code itself may raise `SkipTest`
            return skipped.marked and not self.skips_may_depend_on_code
        return not (self.skips_may_depend_on_code and self._peer.influenced)

    def _failure_of_completed(self, unit: Unit, before: int) -> TestFailure | None:
        """Return the failure of a unit that raised nothing, or None. Raises BadTests.

        before  number of asserts executed before the unit
        """
        recorder, peer = self._recorder, self._peer
        if peer is not None and peer.too_large is not None:  # the tests caught it
            return self._failure("large", message=str(peer.too_large))
        if peer is not None:
            peer.compare_variables()
        if peer is not None and peer.undecidable:  # an inconsistent object may pass contradictory conditions
            return self._failure("unsupported", message=peer.undecidable)
        if unit.must_assert and recorder.executed == before:
            if peer is not None and not peer.influenced and not self._unsupported:
                raise BadTests("The tests reach none of their asserts, whatever the code returns.")
            return self._failure("assertion", message="none of its asserts was reached")
        return None

    def _failure(
        self, kind: str, line: int | None = None, message: str | None = None, error: ErrorReport | None = None
    ) -> TestFailure:
        unit, recorder = self._unit, self._recorder
        failure: TestFailure = {"kind": kind, "test": unit.name, "expected": "", "got": "", "line": line or unit.line}
        if message is not None:
            failure["message"] = message
        if error is not None:
            failure["error"] = error
        if recorder.failed is None:
            return failure
        number, name, operands = recorder.failed
        condition = recorder.asserts[number]
        text, written = ast.unparse(_without_hook(condition)), ast.unparse(condition)
        named = unit.name and unit.name not in written and written not in unit.name
        failure["test"] = f"{unit.name}: {text}" if named else text
        failure["line"] = line or condition.lineno
        got, *others = reversed(operands) if _is_reversed(condition) else operands
        failure["got"] = shown(got)
        if name == "Eq":
            failure["expected"] = shown(others[0])
        return failure


def _is_reversed(condition: ast.expr) -> bool:
    """Return whether the expected value is on the left of a comparison: `3 == f()`."""
    match condition:
        case ast.Compare(left=left, comparators=[right]):
            return _is_literal(left) and not _is_literal(right)
    return False


def _is_literal(node: ast.expr) -> bool:
    return not any(isinstance(part, ast.Name | ast.Call) for part in ast.walk(node))


def _ends_tests(error: BaseException) -> bool:
    """Return whether lines of the tests end them with exit code 0, by `sys.exit()` or `raise SystemExit`."""
    if not isinstance(error, SystemExit) or hasattr(error, ORIGIN):
        return False
    if error.code is not None and (type(error.code) not in (int, bool) or error.code):
        return False
    files = []
    trace = error.__traceback__
    while trace is not None:
        files.append(trace.tb_frame.f_code.co_filename)
        trace = trace.tb_next
    if files[-1:] != ["<tests>"]:
        return False
    # The code may not call a function of the tests that ends them.
    return all(file.startswith(("<tests>", "<frozen ", _LIBRARY)) for file in files[files.index("<tests>") :])


def _failed_assert_before(error: BaseException) -> AssertionError | None:
    """Return the failed assert that tests were handling when they ended: `finally: exit()`."""
    context = error.__context__
    while context is not None and not isinstance(context, AssertionError):
        context = context.__context__
    return context


def _without_hook(condition: ast.expr) -> ast.expr:
    """Return the condition of a test of values as its author thinks of it: without the call of `without_tuples`."""
    match condition:
        case ast.Compare(left=ast.Call(func=ast.Name(id=name), args=[value])) if name == LISTED:
            return ast.Compare(value, condition.ops, condition.comparators)
    return condition


def shown(value: object) -> str:
    """Return a value as text, without calling the code's `__repr__`."""
    try:
        return _repr.repr(value)[:_MAX_SHOWN]
    except Exception:
        return f"<{type(value).__name__}>"


class _Repr(reprlib.Repr):
    def repr1(self, x: object, level: int) -> str:
        if isinstance(x, Proxy):
            return f"<{state_of(x).class_name} object>"
        if isinstance(x, CoroutineType):  # its name is that of a function of the sandbox
            return "<coroutine object>"
        if isinstance(x, codec.Opaque):
            return repr(x)
        return super().repr1(x, level)


_repr = _Repr()
_repr.maxstring = _repr.maxother = _repr.maxlong = 200
_repr.maxlist = _repr.maxtuple = _repr.maxset = _repr.maxdict = 20
