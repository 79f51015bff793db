"""Stage `review` of a run: create pairs, record execution's decisions, and open the pairs for reviewers."""

from collections.abc import Mapping
from typing import Annotated, TypedDict, cast

from pydantic import Field

from hub.common import wording
from hub.protocols.messages import JSON
from review.queue.pairing import NO_PAIRS, Across, Policy, at_most, max_pair_count
from review.services import create_pairs, queue_pairs, record_execution_preferences
from runs.execution.storage import Reader
from runs.models import Run
from runs.stages import RunSize, Stage, StageConfig, StageContext, StageEstimate


class ReviewStageConfig(StageConfig):
    """Config section `review:`. `overlap`: number of reviewers for each pair; `max_pairs`: no limit if not given."""

    pairs: Policy = "all"
    across: Across = "models"
    overlap: Annotated[int, Field(ge=1, le=50)] = 1
    max_pairs: Annotated[int, Field(ge=1)] | None = None


class ReviewSummary(TypedDict):
    """Stored summary of the stage."""

    pairs: int
    opened: int
    overlap: int
    decided_by_execution: int


class ReviewStage(Stage[ReviewStageConfig]):
    """Stage that opens pairs for review. It runs after the judge stage, so that reviewers see its suggestions."""

    key = "review"
    title = "Pairs for review"
    order = 20
    Config = ReviewStageConfig

    def estimate(self, size: RunSize, config: ReviewStageConfig) -> StageEstimate:
        pairs = max_pair_count(size.models, size.attempts, size.cases, config.across)
        shown = min(pairs, config.max_pairs or pairs)
        reviewers = wording.counted(config.overlap, "reviewer")
        return StageEstimate(line=f"Review: {at_most(shown, f'{reviewers} each')}")

    async def execute(self, context: StageContext, config: ReviewStageConfig) -> dict[str, JSON]:
        """Return a ReviewSummary."""
        database = Reader()
        try:
            return await database.run(_open_review, context.run, config)
        finally:
            await database.close()

    def describe_summary(self, summary: Mapping[str, JSON]) -> str:
        counts = cast(ReviewSummary, summary)
        if not counts["pairs"]:
            return f"Review: {NO_PAIRS}"
        opened = wording.counted(counts["opened"], "pair")
        return f"Review: {opened} opened for review; execution decides {counts['decided_by_execution']:,}."


def _open_review(run: Run, config: ReviewStageConfig) -> dict[str, JSON]:
    pairs = create_pairs(run=run, policy=config.pairs, across=config.across, limit=config.max_pairs)
    decided = record_execution_preferences(pairs=pairs)
    queue_pairs(pairs=pairs, overlap=config.overlap)
    return {"pairs": len(pairs), "opened": len(pairs), "overlap": config.overlap, "decided_by_execution": decided}
