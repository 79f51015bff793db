"""Gates of bundles: checks that a bundle must pass before it can be published. Their result is its certificate.

Gold answers pass, wrong and empty answers fail, scoring twice gives the same result, the model's code cannot read
expected answers, ids are unique, and cases render. All answers go through Episode, as in a run. Code runs in the
sandbox.
"""

import asyncio
import datetime
import platform
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from hub.bundles.cases import PreparedCase, prepared_cases
from hub.bundles.loader import Bundle
from hub.bundles.reference_answers import RecordedCalls, ReferenceAnswers
from hub.common import wording
from hub.common.digests import attempt_seed
from hub.common.problems import Problem
from hub.environments.compiled import CompiledEnvironment
from hub.environments.episodes import Episode, Step
from hub.gates.certificates import Certificate, GateFailure, GateResult, Status
from hub.gates.leaks import file_leaks, probe_answer, probe_report
from hub.harnesses.base import HarnessError, Services
from hub.manifest.problems import BundleError
from hub.protocols.calls import CallKey, ModelError
from hub.protocols.cases import CaseData
from hub.protocols.messages import Message, text_of
from hub.scorers.base import ScoringFailed
from sandbox.client.pool import Pool
from sandbox.errors import InfrastructureFailed

MAX_CASES = 2000  # cases of a large dataset, evenly spaced; the certificate has the number of cases that were checked
MAX_FAILURES = 50  # listed for a gate; all are counted
MAX_STEPS = 64
MAX_RETURNED = 300  # characters, the last ones, of what a failing gold answer's last call returned
PROBED_CASES = 20
CONCURRENCY = 16


@dataclass(slots=True)
class Gate:
    """Result of one gate. `checked` counts episodes or cases, `failed` those that failed; the first are listed."""

    name: str
    what: str
    checked: int = 0
    failed: int = 0
    failures: list[GateFailure] = field(default_factory=list)
    note: str = ""

    def fail(self, case: str, message: str) -> None:
        self.failed += 1
        if len(self.failures) < MAX_FAILURES:
            self.failures.append({"case": case, "message": message})

    @property
    def status(self) -> Status:
        return "failed" if self.failed else "passed" if self.checked else "not_run"

    def to_json(self) -> GateResult:
        return {
            "name": self.name,
            "what": self.what,
            "status": self.status,
            "checked": self.checked,
            "failed": self.failed,
            "failures": self.failures,
            "note": self.note,
        }


@dataclass(frozen=True, slots=True)
class EpisodeOutcome:
    """Result of an episode: `not_run` if a recording is missing, `broken` if the environment failed.

    returned what the answer's last tool call, or its script, returned; "" if it made none
    unused   how many turns of the answer were left when the episode ended
    stopped  whether the answer's turns ended before the episode did
    """

    status: Literal["passed", "failed", "unscored", "not_run", "broken"]
    value: float | None
    reason: str
    step: Step | None = None
    returned: str = ""
    unused: int = 0
    stopped: bool = False


@dataclass(slots=True)
class _GateRunner:
    """Runs the answers of a bundle through episodes and records the results in `gates`."""

    bundle: Bundle
    environment: CompiledEnvironment
    services: Services
    gates: dict[str, Gate]

    async def run_episode(self, case: CaseData, label: str, attempt: int, messages: list[Message]) -> EpisodeOutcome:
        """Run an episode with *messages* as the assistant's turns. If they end before the episode does, stop it.

        Raises InfrastructureFailed if the sandbox failed.
        """
        environment = self.environment
        key = CallKey(purpose="answer", environment=environment.slug, case=case.id, model=label, attempt=attempt)
        seed = attempt_seed(0, environment.slug, case.id, attempt)
        episode = Episode(environment, case, key=key, seed=seed, services=self.services)
        try:
            await episode.reset()
            used = 0
            while used < len(messages) and not episode.done:
                step = await episode.step(messages[used])
                used += 1
            stopped = not episode.done
            if stopped:
                step = await episode.stop("turns")
        except ModelError as error:
            return EpisodeOutcome("not_run" if error.kind == "no_recording" else "broken", None, str(error))
        except ScoringFailed as error:
            if error.kind == "sandbox":  # a failed certificate would never be replaced
                raise InfrastructureFailed(str(error)) from None
            return EpisodeOutcome("broken", None, str(error))
        except (HarnessError, BundleError) as error:
            return EpisodeOutcome("broken", None, str(error))
        finally:
            await episode.close()
        assert step.score is not None
        score = step.score
        returned = _last_returned(episode.messages[episode.prompt_messages or 0 :], step)
        return EpisodeOutcome(score.status, score.value, score.reason, step, returned, len(messages) - used, stopped)

    async def expect(self, gate: Gate, case: CaseData, attempt: int, messages: list[Message], why: str = "") -> None:
        """Score an answer twice. Fail *gate* if the result is wrong, and `repeat` if the second result differs."""
        expected = "passed" if gate.name == "gold" else "failed"
        outcome = await self.run_episode(case, gate.name, attempt, messages)
        if outcome.status == "not_run":
            gate.note = f"Not run for cases without a recording: {outcome.reason}"
            return
        gate.checked += 1
        if outcome.status != expected:
            note = f" ({why})" if why else ""
            message = f"{gate.name} answer {attempt}{note}: {outcome.status}. {outcome.reason}".strip()
            if gate.name == "gold" and outcome.returned:
                message += f" Its last call returned: {outcome.returned}"
            gate.fail(case.id, message)
        if gate.name == "gold" and not gate.note:
            gate.note = _length_note(outcome, f"case {case.id!r}", f"gold answer {attempt}")
        if outcome.status == "broken":
            return
        again = await self.run_episode(case, gate.name, attempt, messages)
        self.gates["repeat"].checked += 1
        if (again.status, again.value) != (outcome.status, outcome.value):
            self.gates["repeat"].fail(
                case.id,
                f"{gate.name} answer {attempt}: {outcome.status} {outcome.value}, then {again.status} {again.value}.",
            )


def _last_returned(messages: list[Message], step: Step) -> str:
    """Return the end of what the answer's last tool call, or the script of a program's answer, returned."""
    texts = [text_of(message) for message in messages if message["role"] == "tool"]
    text = str(step.info.get("reference_answer", "")) or (texts[-1] if texts else "")
    text = text.strip()
    return text if len(text) <= MAX_RETURNED else "…" + text[-MAX_RETURNED:]


def _length_note(outcome: EpisodeOutcome, case: str, answer: str) -> str:
    """Return a sentence if an answer has more or fewer turns than its episode took; "" otherwise."""
    by_script = outcome.step is not None and "reference_answer" in outcome.step.info
    if outcome.unused and not by_script:  # a script replaces all turns of an agent program
        return f"{case}: the episode ended before {wording.counted(outcome.unused, 'turn')} of {answer}."
    return f"{case}: {answer} ended before the episode, which was stopped and scored." if outcome.stopped else ""


def run_gates(
    bundle: Bundle, *, pool: Pool | None, progress: Callable[[int, int], object] | None = None
) -> Certificate:
    """Run every gate on a valid bundle and return its certificate as JSON.

    *pool* may be None if the environment needs no sandbox. *progress* is called with (cases done, all cases).
    Raises BundleError for answer files that cannot be read, and InfrastructureFailed if the sandbox failed.
    """
    return asyncio.run(_run_gates(bundle, pool, progress))


async def _run_gates(bundle: Bundle, pool: Pool | None, progress: Callable[[int, int], object] | None) -> Certificate:
    manifest, environment = bundle.manifest, bundle.compile()
    environment.check_available()
    recorded = RecordedCalls.read(manifest.recordings, bundle.file) if manifest.recordings else RecordedCalls()
    models_per_role = dict.fromkeys(environment.roles, 1)
    gates = {gate.name: gate for gate in _all_gates()}
    services = Services(call_model=recorded, pool=environment.pool(pool), models_per_role=models_per_role)
    runner = _GateRunner(bundle, environment, services, gates)
    total = _count_ids(runner)
    checked, probed = _select_positions(total)
    with (
        ReferenceAnswers(manifest.gold, "gold", bundle.file) as gold,
        ReferenceAnswers(manifest.wrong, "wrong", bundle.file) as wrong,
    ):
        done = 0

        async def check_case(prepared: PreparedCase) -> None:
            nonlocal done
            await _case_gates(runner, prepared, gold, wrong, probed=prepared.position in probed)
            done += 1
            if progress:
                progress(done, len(checked))

        await _in_parallel(check_case, (case for case in _prepared(runner) if case.position in checked))
        _add_notes(gates, gold, wrong, total, len(checked))
    return {
        "digest": bundle.digest,
        "environment": f"{manifest.slug}@{manifest.version}",
        "cases": total,
        "gates": [gate.to_json() for gate in gates.values()],
        "sandbox": {"tier": pool.tier, "backend": pool.backend} if pool else None,
        "versions": {"python": platform.python_version()},
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }


def _all_gates() -> Iterator[Gate]:
    yield Gate("ids", "Every case has an id of its own.")
    yield Gate("renders", "Every case renders and opens with a message.")
    yield Gate("gold", "Every gold answer passes.")
    yield Gate("wrong", "Every wrong answer fails.")
    yield Gate("empty", "An empty answer fails.")
    yield Gate("repeat", "Scoring the same answer twice agrees.")
    yield Gate("sealed", "What the model's code can open holds no expected answer.")


def _prepared(runner: _GateRunner) -> Iterator[PreparedCase]:
    for found in prepared_cases(runner.bundle.manifest, runner.environment, runner.bundle.file):
        if isinstance(found, Problem):
            raise BundleError(found)
        yield found


def _count_ids(runner: _GateRunner) -> int:
    """Count the cases; preparing them checks that ids are distinct."""
    for _ in _prepared(runner):
        runner.gates["ids"].checked += 1
    return runner.gates["ids"].checked


def _select_positions(total: int) -> tuple[set[int], set[int]]:
    """Return the positions of the cases to check and of those to probe for leaks, evenly spaced in a large dataset."""
    checked = range(total) if total <= MAX_CASES else [i * total // MAX_CASES for i in range(MAX_CASES)]
    probed = [checked[i * len(checked) // PROBED_CASES] for i in range(PROBED_CASES)] if total else []
    return set(checked), set(probed)


async def _in_parallel(work: Callable[[PreparedCase], Awaitable[None]], cases: Iterator[PreparedCase]) -> None:
    """Run *work* on every case, CONCURRENCY at a time, reading a case only when it is needed."""

    async def worker() -> None:
        for case in cases:
            await work(case)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(CONCURRENCY):
                group.create_task(worker())
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None  # callers expect the error itself, not an ExceptionGroup


async def _case_gates(
    runner: _GateRunner, prepared: PreparedCase, gold: ReferenceAnswers, wrong: ReferenceAnswers, *, probed: bool
) -> None:
    case, gates = prepared.case, runner.gates
    gates["renders"].checked += 1
    first_messages = await _first_messages(runner, case)
    if isinstance(first_messages, str):
        gates["renders"].fail(case.id, first_messages)
        return
    gold_answers = gold.of(case)
    for number, answer in enumerate(gold_answers, 1):
        await runner.expect(gates["gold"], case, number, answer.messages)
    for number, answer in enumerate(wrong.of(case), 1):
        await runner.expect(gates["wrong"], case, number, answer.messages, answer.why)
    await runner.expect(gates["empty"], case, 1, [{"role": "assistant", "content": ""}] * MAX_STEPS)
    gates["sealed"].checked += 1
    for leak in file_leaks(runner.environment, case, first_messages, gold_answers):
        gates["sealed"].fail(case.id, leak)
    probe = probe_answer(runner.environment, case, first_messages, gold_answers) if probed else None
    if probe is not None:
        outcome = await runner.run_episode(case, "probe", 1, [probe])
        found = probe_report(outcome.step)
        if found:
            gates["sealed"].fail(case.id, found)


async def _first_messages(runner: _GateRunner, case: CaseData) -> list[Message] | str:
    """Return the first messages of the case, or a sentence that says what is wrong with them."""
    key = CallKey(purpose="answer", environment=runner.environment.slug, case=case.id, model="gold")
    episode = Episode(runner.environment, case, key=key, services=runner.services)
    try:
        messages = (await episode.reset()).messages
    except ModelError as error:
        return [] if error.kind == "no_recording" else str(error)
    except HarnessError as error:
        return str(error)
    finally:
        await episode.close()
    shown = [m for m in messages if m.get("role") != "system" and m.get("content")]
    return messages if shown else "the case opens without a message; is its `input`, or the prompt, empty?"


def _add_notes(
    gates: dict[str, Gate], gold: ReferenceAnswers, wrong: ReferenceAnswers, total: int, checked: int
) -> None:
    if gold.empty:
        gates["gold"].note = "The bundle has no gold answers; name them by `gold`."
    if wrong.empty:
        gates["wrong"].note = "The bundle has no wrong answers; name them by `wrong`."
    if checked < total:
        gates["renders"].note = f"{checked:,} of {total:,} cases, evenly spread."
    renders = gates["renders"]
    reason = "No answer could be scored." if renders.failed < renders.checked else "No case renders."
    for gate in gates.values():
        if gate.status == "not_run" and not gate.note:
            gate.note = reason
