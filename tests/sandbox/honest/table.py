"""All honest solutions."""

from tests.sandbox.honest.callables import CALLABLES
from tests.sandbox.honest.failures import FAILURES
from tests.sandbox.honest.iteration import ITERATION
from tests.sandbox.honest.kind import Honest, honest_solutions
from tests.sandbox.honest.objects import OBJECTS
from tests.sandbox.honest.processes import PROCESSES
from tests.sandbox.honest.structures import STRUCTURES
from tests.sandbox.honest.values import VALUES

KINDS = [*OBJECTS, *VALUES, *ITERATION, *FAILURES, *STRUCTURES, *CALLABLES, *PROCESSES]
HONEST: list[Honest] = list(honest_solutions(KINDS))
