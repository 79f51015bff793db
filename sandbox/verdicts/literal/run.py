"""Execution of literal tests: the candidate answers the calls, and this process compares the answers.

This is a second way to a verdict, kept for its speed. Without it, the code row of benchmarks/pipeline.py takes 1.5
times as much processor time (median of 4 interleaved rounds: 18.8 s instead of 11.6 s), and the solutions of HumanEval
in the local sandbox take 1.9 times as much. See decision 0016. `tests/sandbox/verdicts/test_literal_agreement.py`
compares its verdicts with the judge's.
"""

import builtins

from sandbox.connections.engine_pair import EnginePair
from sandbox.connections.events import RunEnd
from sandbox.engine.protocol import codec
from sandbox.limits import DECODED_AT_ONCE_BYTES, MAX_COMPARED_BYTES
from sandbox.verdicts.jobs import FunctionJob
from sandbox.verdicts.literal.expressions import NeedsTestJudge
from sandbox.verdicts.literal.plans import LiteralTest
from sandbox.verdicts.reports import DEFINITION, Report, check_answer, check_report, read_error, read_number
from sandbox.verdicts.results import Conclusion, Failure, Status
from sandbox.verdicts.single_run import SingleRun
from sandbox.verdicts.statuses import (
    create_failure,
    cut_text,
    show_value,
    status_of_definition,
    status_of_early_exit,
    status_of_end,
    status_of_exception,
)
from sandbox.verdicts.test_inputs import build_prelude

BUILT_INS = frozenset(dir(builtins))

_FailedTest = tuple[Status, str, Failure]


class LiteralRun(SingleRun):
    """One run of a candidate that answers all calls. `run` raises NeedsTestJudge if one has to compare an answer."""

    def __init__(self, engines: EnginePair, job: FunctionJob, tests: tuple[LiteralTest, ...]) -> None:
        super().__init__(engines, job.limits)
        self.job, self.tests = job, tests
        self.calls = [call for test in tests for call in test.calls]
        self.definition: Report | None = None
        self.answers: list[Report] = []

    def start(self) -> int:
        job = self.job
        head = {
            "role": "candidate",
            "code": job.code,
            "prelude": build_prelude(job),
            "files": list(job.files),
            "calls": [[call.target, call.args, call.kwargs] for call in self.calls],
            "max_result": MAX_COMPARED_BYTES,
        }
        return self.engine.start(head, list(job.files.values()), self.limits)

    def read_report(self, report: Report, payload: bytes) -> None:
        if self.definition is None:
            self.definition = check_report(report, DEFINITION)
            return
        if "defined" not in self.definition or len(self.answers) == len(self.calls):
            raise codec.CodecError("an answer that was not requested")
        report = check_answer(report, len(self.answers) + 1)
        if "value" in report:
            small = len(payload) <= DECODED_AT_ONCE_BYTES
            report = {"value": codec.decode(report["value"])} if small else {"payload": payload}
        self.answers.append({"error": report["crashed"]} if "crashed" in report else report)

    def draw_conclusion(self, end: RunEnd) -> Conclusion:
        ended = status_of_end(end, self.limits)
        if self.definition is None:
            return Conclusion(*(ended or status_of_early_exit(end)))
        if "defined" not in self.definition:
            if self.definition.get("missing") in BUILT_INS and any(c.target not in BUILT_INS for c in self.calls):
                raise NeedsTestJudge  # the tests mean Python's function
            return Conclusion(*status_of_definition(self.definition, self.limits))
        passed, first_answer = 0, 0
        failed: _FailedTest | None = None
        for test in self.tests:
            answers = self.answers[first_answer : first_answer + len(test.calls)]
            first_answer += len(test.calls)
            if len(answers) == len(test.calls):
                result = self._judge(test, answers)
            elif failed is not None:
                continue  # an earlier test decides the outcome
            elif self.flooded:
                raise NeedsTestJudge
            else:
                result = *(ended or status_of_early_exit(end)), _create_failure(test)
            passed += result is None
            failed = failed or result
        total = len(self.tests)
        if failed is None:
            return Conclusion(Status.PASSED, f"All {total} tests passed.", passed, total)
        status, message, failure = failed
        return Conclusion(status, message, passed, total, failure)

    def _judge(self, test: LiteralTest, answers: list[Report]) -> _FailedTest | None:
        """Return None if the test passes, otherwise the status, the message and the failure. Raises NeedsTestJudge."""
        for answer in answers:
            if "error" in answer:
                return *status_of_exception(read_error(answer["error"]), self.limits), _create_failure(test)
            if "large" in answer:
                size = read_number(answer["large"])
                if size <= self.limits.result_bytes:
                    raise NeedsTestJudge
                message = f"The code returned {size} bytes; {self.limits.result_bytes} are allowed."
                return Status.OUTPUT_LIMIT, message, _create_failure(test)
        values = [_decode(answer) for answer in answers]
        status, problem = Status.ASSERTION, ""
        try:
            if test.passes(values):
                return None
        except NeedsTestJudge:
            raise
        except Exception as error:  # such as abs() of a text that the code returned
            status, problem = Status.EXCEPTION, f"{type(error).__name__}: {error}"
        if any(map(codec.has_opaque, values)):
            raise NeedsTestJudge  # an object may equal the expected value; only its own process can compare them
        text, expected = test.describe()
        got = ", ".join(map(show_value, values))
        note = f" ({test.note})" if test.note else ""
        failed = f"A test failed: {text}{note}"
        message = f"The tests could not use what the code returned: {problem}" if problem else failed
        return status, cut_text(message), create_failure(text, expected, got, test.line)


def _decode(answer: Report) -> object:
    if "payload" not in answer:
        return answer["value"]
    payload = answer["payload"]
    assert isinstance(payload, bytes)
    return codec.decode(codec.of_type(dict, codec.loads(payload))["value"])


def _create_failure(test: LiteralTest) -> Failure:
    return create_failure(*test.describe(), line=test.line)
