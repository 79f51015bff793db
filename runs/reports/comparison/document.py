"""The JSON document of `compare --json`, which REST returns, too."""

from collections.abc import Sequence

from hub.protocols.messages import JSON
from runs.reports.comparison.rows import compared_rows
from runs.results.comparison.gate import GateResult
from runs.results.comparison.pair import Comparison


def comparison_json(
    comparisons: Sequence[Comparison], *, gate: GateResult | None = None, margin: float | None = None
) -> dict[str, JSON]:
    """Return the document: one comparison, or several below `comparisons`, with the verdicts and the gate."""
    document: dict[str, JSON] = (
        comparisons[0].to_json()
        if len(comparisons) == 1
        else {"comparisons": [comparison.to_json() for comparison in comparisons]}
    )
    document["verdicts"] = [row.verdict for row in compared_rows(comparisons, margin=margin)]
    if gate is not None:
        document["gate"] = gate.to_json()
    return document
