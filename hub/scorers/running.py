"""Helper of scorers that run code: reports failures of the sandbox separately from those of the model."""

from hub.harnesses.base import Services
from hub.scorers.base import ScoringFailed
from sandbox.verdicts.jobs import CallJob, FunctionJob, ProgramJob
from sandbox.verdicts.results import Outcome, Status


async def run(services: Services, job: FunctionJob | ProgramJob | CallJob) -> Outcome:
    """Run *job*. Raises ScoringFailed (kind `sandbox`) if the sandbox itself failed."""
    if services.pool is None:
        raise ScoringFailed("sandbox", "This environment runs code, and no sandbox is open.")
    outcome = await services.pool.arun(job)
    if outcome.status == Status.INFRA_ERROR:
        raise ScoringFailed("sandbox", outcome.message)
    return outcome
