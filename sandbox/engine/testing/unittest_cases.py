"""Test classes of unittest. The module is large, so only tests that use it import it."""

import sys
from types import TracebackType

from .pytest_marks import Unsupported
from .skips import SkippedTest

ExceptionInfo = tuple[type[BaseException], BaseException, TracebackType | None]


def is_test_case(kind: type) -> bool:
    """Return whether a class extends unittest.TestCase."""
    unittest = sys.modules.get("unittest")
    return unittest is not None and issubclass(kind, unittest.TestCase)


def test_names(kind: type) -> list[str]:
    """Return the names of the test methods of a test case, in the order in which unittest runs them."""
    return list(sys.modules["unittest"].TestLoader().getTestCaseNames(kind))


def run_test(kind: type, name: str) -> None:
    """Run one test method, with its set-up and tear-down. Raises the exception that it raised, or SkippedTest."""
    if any(getattr(marked, "__unittest_skip__", False) for marked in (kind, getattr(kind, name))):
        raise SkippedTest(f"{kind.__name__}.{name}", marked=True)
    result = _CaseResult()
    sys.modules["unittest"].TestSuite([kind(name)]).run(result)
    if result.error is not None:
        raise result.error
    if result.skipped:
        raise SkippedTest(f"{kind.__name__}.{name}", marked=False)
    if not result.ran:
        raise RuntimeError(f"{kind.__name__}.{name} was not run")


class _CaseResult:
    """Result object for unittest that keeps the exception of a test method as it was raised."""

    shouldStop = failfast = False

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self.skipped = False
        self.ran = False

    def startTest(self, test: object) -> None:
        self.ran = True

    def stopTest(self, test: object) -> None: ...

    def addSuccess(self, test: object) -> None: ...

    def addFailure(self, test: object, err: ExceptionInfo) -> None:
        self.error = self.error or err[1]

    def addError(self, test: object, err: ExceptionInfo) -> None:
        self.error = self.error or err[1]

    def addSubTest(self, test: object, subtest: object, err: ExceptionInfo | None) -> None:
        self.error = self.error or (err[1] if err else None)

    def addSkip(self, test: object, reason: str) -> None:
        self.skipped = True

    def addExpectedFailure(self, test: object, err: ExceptionInfo) -> None:
        self.addUnexpectedSuccess(test)

    def addUnexpectedSuccess(self, test: object) -> None:
        self.error = self.error or Unsupported("the tests use unittest.expectedFailure, so any failure would pass")

    def addDuration(self, test: object, elapsed: float) -> None: ...
