"""Jobs whose tests have to be executed: by a judge apart from the code, or in one process with it where allowed."""

from sandbox.jobs import FunctionJob
from sandbox.results import Outcome
from sandbox.station import Station


def run_judged(station: Station, job: FunctionJob) -> Outcome:
    raise NotImplementedError


def run_shared(station: Station, job: FunctionJob) -> Outcome:
    raise NotImplementedError
