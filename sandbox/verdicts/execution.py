"""Execution of a job of any kind."""

from dataclasses import replace

from sandbox.connections.engine_pair import EnginePair
from sandbox.verdicts.call_run import CallRun
from sandbox.verdicts.in_process_tests import run_in_process
from sandbox.verdicts.isolated_tests import IsolatedTests
from sandbox.verdicts.jobs import CallJob, FunctionJob, Job, ProgramJob
from sandbox.verdicts.literal.expressions import NeedsTestJudge
from sandbox.verdicts.literal.plans import plan_job
from sandbox.verdicts.literal.run import LiteralRun
from sandbox.verdicts.program_run import ProgramRun
from sandbox.verdicts.results import Outcome, Status


def run_job(job: Job, engines: EnginePair) -> Outcome:
    """Return the outcome of a job. Raises InfrastructureFailed or EngineFailed if the sandbox fails."""
    if isinstance(job, CallJob):
        return CallRun(engines, job).run()
    if isinstance(job, ProgramJob):
        return ProgramRun(engines, job).run()
    if job.trust == "in_process":
        return run_in_process(engines, job)
    outcome = _run_isolated(job, engines)
    if outcome.status is Status.UNSUPPORTED and job.trust == "auto":
        return replace(run_in_process(engines, job), trust_reason=outcome.message)
    return outcome


def _run_isolated(job: FunctionJob, engines: EnginePair) -> Outcome:
    tests = plan_job(job)
    if tests is not None:
        try:
            return LiteralRun(engines, job, tests).run()
        except NeedsTestJudge:
            pass
    return IsolatedTests(engines, job).run()
