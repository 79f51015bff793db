"""Stage `judge` of a run: create pairs, record execution's decisions, and ask a judge model for suggestions."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, NotRequired, TypedDict, cast

from pydantic import Field

from hub.common import wording
from hub.protocols.calls import split_quote, total_cost
from hub.protocols.messages import JSON
from review.judge.pair_judge import OrderResult, judge_pair
from review.judge.prompts import PROMPT_VERSION
from review.judge_records import PairJudgeRecords, judge_figures
from review.models import JudgeCall, Pair
from review.queue.pairing import NO_PAIRS, Across, Policy, at_most, max_pair_count
from review.services import create_pairs, record_execution_preferences
from runs.config.resolve import fingerprint
from runs.execution.storage import Reader
from runs.models import Run
from runs.providers.base import ModelSpec
from runs.providers.registry import PROVIDERS
from runs.selectors import is_held_out
from runs.stages import RunSize, Stage, StageConfig, StageContext, StageEstimate

_AT_ONCE = 64  # pairs read and judged together
_TOKENS = (1500, 500)  # input and output tokens of one call, for estimates


class JudgeStageConfig(StageConfig):
    """Config section `judge:`. `pairs` selects pairs; `max_pairs` limits them to a sample drawn with the run's seed."""

    model: ModelSpec
    pairs: Policy = "all"
    across: Across = "models"
    max_pairs: Annotated[int, Field(ge=1)] = 200

    def role_models(self) -> dict[str, list[ModelSpec]]:
        return {"judge": [self.model]}


class _BlindAgreement(TypedDict):
    pairs: int
    agreed: int


class JudgeSummary(TypedDict):
    """Part of the stored summary of the stage that reports show."""

    judge: str
    recorded: bool
    pairs: int
    suggested: int
    order_sensitive: int
    with_execution: _BlindAgreement
    error: NotRequired[str]


class JudgeStage(Stage[JudgeStageConfig]):
    """Stage that asks a judge model for a suggestion for each pair. Failures of the judge are counted, not raised."""

    key = "judge"
    title = "Pre-review by a judge"
    order = 10
    Config = JudgeStageConfig

    def identity(self, config: JudgeStageConfig) -> JSON:
        return {
            "model": fingerprint(config.model),
            "prompt": PROMPT_VERSION,
            **config.model_dump(include={"pairs", "across", "max_pairs"}),
        }

    def estimate(self, size: RunSize, config: JudgeStageConfig) -> StageEstimate:
        pairs = min(max_pair_count(size.models, size.attempts, size.cases, config.across), config.max_pairs)
        calls, price = 2 * pairs, config.model.price
        cost: float | None = 0.0
        if PROVIDERS[config.model.provider].live:
            tokens_in, tokens_out = _TOKENS
            cost = calls * (tokens_in * price.input + tokens_out * price.output) / 1_000_000 if price else None
        return StageEstimate(
            calls=calls,
            cost_usd=cost,
            line=f"Judge {config.model.name}: {at_most(pairs, 'both orders')}",
        )

    def spent(self, run: Run) -> float | None:
        return total_cost(JudgeCall.objects.filter(pair__run=run).values_list("cost_usd", flat=True))

    async def execute(self, context: StageContext, config: JudgeStageConfig) -> dict[str, JSON]:
        """Return the summary described in `JudgingResult.summary`."""
        database = Reader()
        try:
            judge = await database.run(PairJudgeRecords.of, context.run)
            pairs = await database.run(_pairs_to_judge, context.run, config)
            result = JudgingResult(judge=config.model.name, recorded=not PROVIDERS[config.model.provider].live)
            result.pairs = len(pairs)
            result.held_out = await database.run(is_held_out, context.run)
            await self._judge_all(context, pairs, judge, result, database)
            stored = await database.run(judge_figures, context.run, judge)
            return result.summary(stored)
        finally:
            await database.close()

    def describe_summary(self, summary: Mapping[str, JSON]) -> str:
        figures = cast(JudgeSummary, summary)
        if not figures["pairs"]:
            return f"Judge {figures['judge']}: {NO_PAIRS}"
        blind = figures["with_execution"]
        return (
            f"Judge {figures['judge']}{', recorded' if figures['recorded'] else ''}: {figures['suggested']:,} of "
            f"{wording.counted(figures['pairs'], 'pair')} judged, {figures['order_sensitive']:,} order-sensitive; "
            f"agrees with execution on {blind['agreed']:,} of {wording.counted(blind['pairs'], 'pair')} judged blind."
            + (f" {figures['error']}" if "error" in figures else "")
        )

    async def _judge_all(
        self,
        context: StageContext,
        pairs: list[Pair],
        judge: PairJudgeRecords,
        result: "JudgingResult",
        database: Reader,
    ) -> None:
        done = 0
        for start in range(0, len(pairs), _AT_ONCE):
            if context.stopping() or result.fatal:
                break
            ids = [pair.pk for pair in pairs[start : start + _AT_ONCE]]
            waiting = await database.run(judge.pairs_without_suggestion, ids)
            known = await database.run(judge.answers, waiting)
            judged = await asyncio.gather(
                *(judge_pair(context.call_model, judge.pair_for_judge(pair), known.get(pair.pk)) for pair in waiting)
            )
            await database.run(judge.store, list(zip(waiting, judged, strict=True)))
            for orders in judged:
                result.add(orders)
            done += len(ids)
            context.progress(done, len(pairs))


def _pairs_to_judge(run: Run, config: JudgeStageConfig) -> list[Pair]:
    pairs = create_pairs(run=run, policy=config.pairs, across=config.across, limit=config.max_pairs)
    record_execution_preferences(pairs=pairs)
    return pairs


@dataclass(slots=True)
class JudgingResult:
    """Result of the stage in this execution of the run: errors of the judge, and whether they ended the judging."""

    judge: str
    recorded: bool
    pairs: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    first_error: str = ""
    fatal: bool = False
    stopped: str = ""  # the reason, if the budget ended the judging
    held_out: bool = False  # an endpoint may repeat the request, and everybody who sees the run sees the first error

    def add(self, orders: tuple[OrderResult, OrderResult]) -> None:
        errors = [order.error for order in orders if order.error is not None]
        for error in errors:
            self.errors[error.kind] += 1
            self.first_error = self.first_error or (split_quote(str(error))[0] if self.held_out else str(error))
            self.fatal = self.fatal or error.fatal or error.kind == "budget"
            if error.kind == "budget":
                self.stopped = self.stopped or str(error)

    def summary(self, stored: dict[str, JSON]) -> dict[str, JSON]:
        """Return `{"judge", "recorded", "pairs", "suggested", "failed", "order_sensitive", ..., "cost_usd"}`.

        `failed` counts pairs with a reply that could not be parsed, `errors` calls without a reply, by kind. `stopped`
        is set if the run's budget ended the judging.
        """
        found = {"judge": self.judge, "recorded": self.recorded, "pairs": self.pairs, **stored}
        if self.errors:
            found |= {"errors": dict(self.errors), "error": self.first_error}
        if self.stopped:
            found |= {"stopped": self.stopped}
        return found
