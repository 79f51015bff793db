"""All correct solutions."""

from tests.sandbox.correct_solutions.callables import CALLABLES
from tests.sandbox.correct_solutions.failures import FAILURES
from tests.sandbox.correct_solutions.iteration import ITERATION
from tests.sandbox.correct_solutions.kind import StyledSolution, in_every_style
from tests.sandbox.correct_solutions.objects import OBJECTS
from tests.sandbox.correct_solutions.processes import PROCESSES
from tests.sandbox.correct_solutions.structures import STRUCTURES
from tests.sandbox.correct_solutions.values import VALUES

KINDS = [*OBJECTS, *VALUES, *ITERATION, *FAILURES, *STRUCTURES, *CALLABLES, *PROCESSES]
SOLUTIONS: list[StyledSolution] = list(in_every_style(KINDS))
