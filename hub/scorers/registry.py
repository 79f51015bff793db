"""Registry of scorers by type. To add one: a module in this folder, a line here and a section in docs/scorers.md."""

from hub.common.registry import Registry
from hub.scorers.base import Scorer, ScorerOptions

SCORERS: Registry[Scorer[ScorerOptions]] = Registry(
    "rule",
    {
        "exact_match": "hub.scorers.exact_match:ExactMatch",
        "includes": "hub.scorers.includes:Includes",
        "regex": "hub.scorers.regex:Regex",
        "number": "hub.scorers.number:Number",
        "choice": "hub.scorers.choice:Choice",
        "json_schema": "hub.scorers.json_schema:JsonSchema",
        "python_tests": "hub.scorers.python_tests:PythonTests",
        "stdin_stdout": "hub.scorers.stdin_stdout:StdinStdout",
        "instructions": "hub.scorers.instructions:Instructions",
        "tool_calls": "hub.scorers.tool_calls:ToolCalls",
        "state": "hub.scorers.state:StateScorer",
        "custom": "hub.scorers.state:CustomScorer",
        "judge": "hub.scorers.rubric_judge:Judge",
        "reward": "hub.scorers.reward:Reward",
    },
    create=True,
)
