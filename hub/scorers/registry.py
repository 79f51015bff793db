"""Every scorer by its type. To add one: a file in this folder and a line here."""

from hub.scorers.base import Scorer
from hub.scorers.choice import Choice
from hub.scorers.exact_match import ExactMatch
from hub.scorers.includes import Includes
from hub.scorers.instructions import Instructions
from hub.scorers.json_schema import JsonSchema
from hub.scorers.number import Number
from hub.scorers.python_tests import PythonTests
from hub.scorers.regex import Regex
from hub.scorers.reward import Reward
from hub.scorers.rubric_judge import Judge
from hub.scorers.state import Custom, State
from hub.scorers.stdin_stdout import StdinStdout
from hub.scorers.tool_calls import ToolCalls

SCORERS: dict[str, Scorer] = {
    scorer.type: scorer
    for scorer in (
        ExactMatch(),
        Includes(),
        Regex(),
        Number(),
        Choice(),
        JsonSchema(),
        PythonTests(),
        StdinStdout(),
        Instructions(),
        ToolCalls(),
        State(),
        Custom(),
        Judge(),
        Reward(),
    )
}
