"""Runs units of tests and makes the verdict that a judge reports."""

import ast
import reprlib
from collections.abc import Iterable
from typing import Any

from ..protocol import codec
from ..protocol.error_reports import describe
from ..proxies.remote import CandidateGone, Missing, Peer, Remote, Tampered, TooLarge
from ..testing.pytest_api import Unsupported
from ..testing.units import Recorder, Unit, line_in_tests

_MAX_SHOWN = 1000


_LOST = {CandidateGone: "gone", Tampered: "tampered", Missing: "missing"}
_FINAL = (*_LOST.values(), "bad_tests", "unsupported")
_UNSURE = ("assertion", "raised", "test_error", "bad_tests")


class Tally:
    """The units of one job's tests as they run, and the verdict that they come to.

    The verdict: {"passed", "total", "failure": null or {"kind", "test", "expected", "got", "line", "message", ...}}.
    Where tests are one block its asserts are counted, else its named units.
    """

    def __init__(self, recorder: Recorder, peer: Peer | None = None) -> None:
        """`peer`: the candidate, if it lives in another process."""
        self.reason = (
            ""  # why the tests need the process of the code: with that, a unit that fails says nothing about it
        )
        self._recorder, self._peer = recorder, peer
        self._unit, self._begun = Unit("", None, lambda: None), False
        self._passed = self._total = 0
        self._named = False
        self._first: dict[str, Any] | None = None

    def run(self, found: Iterable[Unit]) -> dict[str, Any]:
        """Run every unit, stopping where the candidate is lost or the tests turn out broken; the verdict."""
        for unit in found:
            self._unit, self._begun = unit, True
            failure = self._failure_of(unit)
            if failure is not None and failure["kind"] in _UNSURE and self._unsupported:
                failure = {**failure, "kind": "unsupported", "message": self._unsupported}
            self._count(unit, failure)
            if failure is not None and (failure["kind"] in _FINAL or not unit.name):
                break
        return self._verdict()

    def lost(self, signal: BaseException) -> dict[str, Any]:
        """The verdict of tests whose candidate is lost during a unit, whatever the unit would still do."""
        failure = self._failure(_LOST[type(signal)], message=str(signal))
        if not self._begun:
            return {"passed": 0, "total": 0, "failure": failure}
        self._count(self._unit, failure)
        return self._verdict()

    def _count(self, unit: Unit, failure: dict[str, Any] | None) -> None:
        if unit.name:
            self._named = True
            self._total += 1
            self._passed += failure is None
        self._first = self._first or failure

    def _verdict(self) -> dict[str, Any]:
        recorder, passed, total = self._recorder, self._passed, self._total
        if not self._named and recorder.total:
            passed, total = recorder.passed, recorder.total
        elif not self._named:
            total, passed = 1, int(self._first is None)  # tests that raise by other means than assert
        if recorder.control is not None:
            passed = recorder.held  # one assert is enough to give the code away
        return {"passed": passed, "total": total, "failure": self._first}

    @property
    def _unsupported(self) -> str:
        """What the tests did that has another result here than beside the code."""
        return (self._peer.unsupported if self._peer else "") or self.reason

    def _failure_of(self, unit: Unit) -> dict[str, Any] | None:
        """Run one unit. None where it passed, else its failure."""
        recorder, peer = self._recorder, self._peer
        recorder.failed = None
        before = recorder.executed
        if peer is not None:
            peer.too_large = None
        try:
            unit.run()
        except (CandidateGone, Tampered, Missing) as signal:
            return self._failure(_LOST[type(signal)], message=str(signal))
        except Unsupported as error:
            return self._failure("unsupported", message=str(error))
        except TooLarge as error:
            return self._failure("large", message=str(error))
        except BaseException as error:
            described = getattr(error, "_llm_remote", None)
            line = line_in_tests(error)
            if described is not None:
                return self._failure("raised", error=described, line=line)
            if isinstance(error, AssertionError):
                return self._failure("assertion", message=str(error)[:_MAX_SHOWN], line=line)
            # As long as nothing of the candidate's has reached the tests, what goes wrong is their own fault.
            kind = "test_error" if peer is None or peer.influenced else "bad_tests"
            return self._failure(kind, error=describe(error, "<tests>"), line=line)
        if peer is not None and peer.too_large is not None:  # the tests caught it
            return self._failure("large", message=str(peer.too_large))
        if peer is not None and peer.inconsistent:  # it may meet conditions that contradict each other
            return self._failure("unsupported", message=peer.inconsistent)
        if unit.must_assert and recorder.executed == before:
            return self._failure("assertion", message="none of its asserts was reached")
        return None

    def _failure(self, kind: str, line: int | None = None, **more: Any) -> dict[str, Any]:
        unit, recorder = self._unit, self._recorder
        failure = {"kind": kind, "test": unit.name, "expected": "", "got": "", "line": line or unit.line, **more}
        if recorder.failed is None:
            return failure
        index, name, operands = recorder.failed
        condition = recorder.asserts[index]
        text = ast.unparse(condition)
        named = unit.name and unit.name not in text and text not in unit.name
        failure["test"] = f"{unit.name}: {text}" if named else text
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
