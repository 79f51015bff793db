"""Stages `judge` and `review` of a run: create pairs, record execution's decisions, ask the judge, open the queue."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Annotated, Any

from django.db import transaction
from pydantic import Field

from hub.common import wording
from hub.common.storable import storable
from hub.protocols.calls import Usage, total_cost
from hub.protocols.messages import JSON, text_of
from preferences.evidence import evidence_of
from preferences.models import IssueCategory, Preference
from preferences.selectors import categories
from preferences.services import Judged, JudgeIdentity, Judgment, NewIssue, record_preferences
from review.judge.pair_judge import (
    PROMPT_VERSION,
    Order,
    PairVerdict,
    Question,
    Side,
    Suggestion,
    combine,
    judge_pair,
    render_evidence,
)
from review.models import JudgeCall, Pair
from review.queue.pairing import Across, Policy
from review.services import create_pairs, pairs_with_responses, queue_pairs, record_execution_preferences
from runs.config.resolve import fingerprint
from runs.execution.storage import Reader
from runs.models import Response, Run, RunModel
from runs.providers.base import ModelSpec
from runs.providers.registry import PROVIDERS
from runs.stages import RunSize, Stage, StageConfig, StageContext, StageEstimate

OTHER = "wrong-result"  # the category if the judge names an unknown one
_AT_ONCE = 64  # pairs read and judged together
_ANSWER_COLUMNS = [  # the columns of a JudgeCall outside its unique key
    *("judge", "saw_evidence", "answer", "text", "problem", "replies", "struck"),
    *("input_tokens", "output_tokens", "cost_usd"),
]
_TOKENS = (1500, 500)  # input and output tokens of one call, for estimates


class JudgeStageConfig(StageConfig):
    """Config section `judge:`. `pairs` selects pairs; `max_pairs` limits them to a sample drawn with the run's seed."""

    model: ModelSpec
    pairs: Policy = "all"
    across: Across = "models"
    max_pairs: Annotated[int, Field(ge=1)] = 200

    def role_models(self) -> dict[str, list[Any]]:
        return {"judge": [self.model]}


class ReviewStageConfig(StageConfig):
    """Config section `review:`. `overlap`: number of reviewers for each pair; `max_pairs`: no limit if not given."""

    pairs: Policy = "all"
    across: Across = "models"
    overlap: Annotated[int, Field(ge=1, le=50)] = 1
    max_pairs: Annotated[int, Field(ge=1)] | None = None


def _pairs_at_most(size: RunSize, across: Across) -> int:
    """Return the largest number of pairs that the responses of a run can form, for estimates."""
    models, attempts = size.models, size.attempts
    between = len(list(combinations(range(models), 2))) * attempts
    within = models * len(list(combinations(range(attempts), 2)))
    return size.cases * ({"models": between, "attempts": within}.get(across, between + within))


class ReviewStage(Stage[ReviewStageConfig]):
    """Stage that opens pairs for review. It runs after the judge stage, so that reviewers see its suggestions."""

    key = "review"
    title = "Pairs for review"
    order = 20
    Config = ReviewStageConfig

    def estimate(self, size: RunSize, config: ReviewStageConfig) -> StageEstimate:
        pairs = _pairs_at_most(size, config.across)
        shown = min(pairs, config.max_pairs or pairs)
        return StageEstimate(line=f"Review: up to {shown:,} pairs, {wording.counted(config.overlap, 'reviewer')} each.")

    async def execute(self, context: StageContext, config: ReviewStageConfig) -> dict[str, JSON]:
        """Return the summary `{"pairs", "opened", "overlap", "decided_by_execution"}`."""
        database = Reader()
        try:
            return await database.run(_open_review, context.run, config)
        finally:
            await database.close()

    def describe_summary(self, summary: dict[str, Any]) -> str:
        opened = wording.counted(summary["opened"], "pair")
        return f"Review: {opened} opened for review; execution decides {summary['decided_by_execution']:,}."


def _open_review(run: Run, config: ReviewStageConfig) -> dict[str, JSON]:
    pairs = create_pairs(run=run, policy=config.pairs, across=config.across, seed=_seed(run), limit=config.max_pairs)
    decided = record_execution_preferences(pairs=pairs)
    opened = queue_pairs(pairs=pairs, overlap=config.overlap)
    return {"pairs": len(pairs), "opened": opened, "overlap": config.overlap, "decided_by_execution": decided}


def _seed(run: Run) -> int:
    return int(run.config.get("seed", 0))


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
        pairs = min(_pairs_at_most(size, config.across), config.max_pairs)
        calls, price = 2 * pairs, config.model.price
        cost: float | None = 0.0
        if PROVIDERS[config.model.provider].live:
            tokens_in, tokens_out = _TOKENS
            cost = calls * (tokens_in * price.input + tokens_out * price.output) / 1_000_000 if price else None
        return StageEstimate(
            calls=calls, cost_usd=cost, line=f"Judge {config.model.name}: up to {pairs:,} pairs, both orders."
        )

    def spent(self, run: Run) -> float | None:
        return total_cost(JudgeCall.objects.filter(pair__run=run).values_list("cost_usd", flat=True))

    async def execute(self, context: StageContext, config: JudgeStageConfig) -> dict[str, JSON]:
        """Return the summary described in `_SessionResult.summary`."""
        database = Reader()
        try:
            judge = await database.run(_PairJudge.of, context.run, config)
            pairs = await database.run(_pairs_to_judge, context.run, config)
            result = _SessionResult(judge=config.model.name, recorded=not PROVIDERS[config.model.provider].live)
            result.pairs = len(pairs)
            await self._judge_all(context, pairs, judge, result, database)
            stored = await database.run(_stored_figures, context.run, judge)
            return result.summary(stored)
        finally:
            await database.close()

    def describe_summary(self, summary: dict[str, Any]) -> str:
        turned, blind = summary["order_sensitive"], summary["with_execution"]
        return (
            f"Judge {summary['judge']}{', recorded' if summary['recorded'] else ''}: {summary['suggested']:,} of "
            f"{wording.counted(summary['pairs'], 'pair')} judged, {turned:,} order-sensitive; agrees with execution on "
            f"{blind['agreed']:,} of {blind['pairs']:,} pairs judged blind."
            + (f" {summary['error']}" if "error" in summary else "")
        )

    async def _judge_all(
        self, context: StageContext, pairs: list[Pair], judge: "_PairJudge", result: "_SessionResult", database: Reader
    ) -> None:
        done = 0
        for start in range(0, len(pairs), _AT_ONCE):
            if context.stopping() or result.fatal:
                break
            ids = [pair.pk for pair in pairs[start : start + _AT_ONCE]]
            waiting = await database.run(judge.unjudged, ids)
            known = await database.run(judge.answers, waiting)
            judged = await asyncio.gather(
                *(judge_pair(context.call_model, judge.question(pair), known.get(pair.pk)) for pair in waiting)
            )
            await database.run(judge.store, list(zip(waiting, judged, strict=True)))
            for orders in judged:
                result.add(orders)
            done += len(ids)
            context.progress(done, len(pairs))


def _pairs_to_judge(run: Run, config: JudgeStageConfig) -> list[Pair]:
    pairs = create_pairs(run=run, policy=config.pairs, across=config.across, seed=_seed(run), limit=config.max_pairs)
    record_execution_preferences(pairs=pairs)
    return pairs


@dataclass(slots=True)
class _SessionResult:
    """Errors of the judge in this session of the run, and whether they ended the judging."""

    judge: str
    recorded: bool
    pairs: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    sentence: str = ""
    fatal: bool = False
    stopped: str = ""  # the reason, if the budget ended the judging

    def add(self, orders: tuple[Order, Order]) -> None:
        errors = [order.error for order in orders if order.error is not None]
        for error in errors:
            self.errors[error.kind] += 1
            self.sentence = self.sentence or str(error)
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
            found |= {"errors": dict(self.errors), "error": self.sentence}
        if self.stopped:
            found |= {"stopped": self.stopped}
        return found


@dataclass(frozen=True, slots=True)
class _PairJudge:
    """Judge model of a run, with the data that all its calls share."""

    model: RunModel
    families: dict[int, str]  # RunModel id -> family
    categories: list[IssueCategory]

    @classmethod
    def of(cls, run: Run, config: JudgeStageConfig) -> "_PairJudge":
        rows = list(run.models.all())
        judge = next(row for row in rows if row.role == "judge")
        return cls(judge, {row.pk: str(row.spec.get("family", "")) for row in rows}, categories())

    def unjudged(self, ids: list[int]) -> list[Pair]:
        """Return the pairs among *ids* without a suggestion of this judge and prompt version."""
        done = Preference.objects.filter(
            source=Preference.Source.LLM, judge_fingerprint=self.model.fingerprint, prompt_version=PROMPT_VERSION
        ).values("pk")
        missing = Pair.objects.filter(pk__in=ids).exclude(suggestion__in=done).values_list("pk", flat=True)
        return pairs_with_responses(Pair.objects.filter(pk__in=missing))

    def question(self, pair: Pair) -> Question:
        evidence = evidence_of(pair.first, pair.second)
        return Question(
            environment=pair.first.run_environment.version.environment.slug,
            case=pair.case.external_id,
            first=_side(pair.first, evidence["first"]),
            second=_side(pair.second, evidence["second"]),
            blind=pair.kind == Pair.Kind.ONE_PASSES,
            categories=[(item.slug, item.description) for item in self.categories],
        )

    def store(self, judged: list[tuple[Pair, tuple[Order, Order]]]) -> None:
        """Store the calls that got a reply, and the suggestions."""
        earlier = self._calls([pair for pair, _ in judged])
        JudgeCall.objects.bulk_create(
            [
                self._call(pair, order, earlier.get((pair.pk, order.swapped)))
                for pair, orders in judged
                for order in orders
                if order.replies
            ],
            update_conflicts=True,  # an earlier unusable answer to the same order is replaced; its cost is added
            unique_fields=["pair", "fingerprint", "prompt_version", "swapped"],
            update_fields=_ANSWER_COLUMNS,
        )
        combined = [(pair, combine(orders)) for pair, orders in judged]
        suggested = [(pair, suggestion) for pair, suggestion in combined if suggestion is not None]
        with transaction.atomic():
            preferences = record_preferences([self._judged(pair, suggestion) for pair, suggestion in suggested])
            for (pair, _), preference in zip(suggested, preferences, strict=True):
                pair.suggestion = preference
            Pair.objects.bulk_update([pair for pair, _ in suggested], ["suggestion"])

    def _calls(self, pairs: Sequence[Pair]) -> dict[tuple[int, bool], JudgeCall]:
        """Return the earlier calls of this judge for *pairs*, by pair and order."""
        rows = JudgeCall.objects.filter(
            pair__in=pairs, fingerprint=self.model.fingerprint, prompt_version=PROMPT_VERSION
        )
        return {(row.pair_id, row.swapped): row for row in rows}

    def answers(self, pairs: Sequence[Pair]) -> dict[int, dict[bool, PairVerdict]]:
        """Return, by pair, the orders answered by a session that stopped before it asked for both."""
        found: dict[int, dict[bool, PairVerdict]] = {}
        for (pair, swapped), row in self._calls(pairs).items():
            if row.answer is not None:
                found.setdefault(pair, {})[swapped] = PairVerdict.model_validate(row.answer)
        return found

    def _call(self, pair: Pair, order: Order, earlier: JudgeCall | None) -> JudgeCall:
        answer = order.judged.answer if order.judged else None
        problem = str(order.error) if order.error else order.judged.problem if order.judged else ""
        text = text_of(order.replies[-1].message)
        # Usage of a cached reply was counted when it was first received.
        counted = [reply.usage for reply in order.replies if earlier is None or not reply.cached]
        usage = sum(counted, Usage())
        cost = total_cost(reply.cost_usd for reply in order.replies)
        return JudgeCall(
            pair=pair,
            fingerprint=self.model.fingerprint,
            prompt_version=PROMPT_VERSION,
            swapped=order.swapped,
            judge=self.model.label,
            saw_evidence=pair.kind != Pair.Kind.ONE_PASSES,
            answer=answer.model_dump() if answer else None,
            text=storable(text),
            problem=problem,
            replies=len(order.replies),
            struck=order.struck,
            input_tokens=usage.input + (earlier.input_tokens if earlier else 0),
            output_tokens=usage.output + (earlier.output_tokens if earlier else 0),
            cost_usd=total_cost([cost, earlier.cost_usd]) if earlier else cost,
        )

    def _judged(self, pair: Pair, suggestion: Suggestion) -> Judged:
        known = {item.slug: item for item in self.categories}
        fallback = known.get(OTHER) or next(iter(known.values()), None)
        sides = {"first": pair.first, "second": pair.second}
        family = self.families.get(self.model.pk)
        issues = [
            NewIssue(
                response=sides[item.side],
                category=category,
                severity=item.severity,
                note=item.note,
                span=item.span,
            )
            for item in suggestion.issues
            if (category := known.get(item.category.strip().lower().replace(" ", "-").replace("_", "-"), fallback))
        ]
        judge = JudgeIdentity(
            label=self.model.label,
            fingerprint=self.model.fingerprint,
            prompt_version=PROMPT_VERSION,
            order_sensitive=suggestion.order_sensitive,
            orders=suggestion.orders,
            order_critiques=suggestion.order_critiques,
            saw_evidence=pair.kind != Pair.Kind.ONE_PASSES,
            self_preference=bool(family) and family in [self.families.get(s.run_model_id) for s in sides.values()],
        )
        judgment = Judgment(
            verdict=suggestion.verdict,
            critique=suggestion.critique,
            confidence=suggestion.confidence,
            issues=issues,
            evidence=evidence_of(pair.first, pair.second),
            judge=judge,
        )
        return Judged(first=pair.first, second=pair.second, judgment=judgment, supersedes=self._earlier(pair))

    def _earlier(self, pair: Pair) -> Preference | None:
        """Return the suggestion of another judge or prompt version to supersede, unless it is superseded already."""
        earlier = pair.suggestion
        return None if earlier is None or hasattr(earlier, "successor") else earlier


def _side(response: Response, evidence: dict[str, Any]) -> Side:
    label = f"{response.run_model.label}#{response.attempt}"
    return Side(label=label, messages=response.messages, evidence=render_evidence(evidence))


def _stored_figures(run: Run, judge: _PairJudge) -> dict[str, JSON]:
    """Return the figures of this judge over all sessions of the run."""
    mine = {"judge_fingerprint": judge.model.fingerprint, "prompt_version": PROMPT_VERSION}
    verdicts = list(
        Preference.objects.filter(run=run, source=Preference.Source.LLM, **mine).only(
            "verdict", "order_sensitive", "self_preference", "saw_evidence", "evidence"
        )
    )
    calls = list(
        JudgeCall.objects.filter(
            pair__run=run, fingerprint=judge.model.fingerprint, prompt_version=PROMPT_VERSION
        ).values_list("pair_id", "answer", "struck", "cost_usd")
    )
    failed = {pair for pair, answer, _, _ in calls if answer is None}
    sided = [answer["winner"] for _, answer, _, _ in calls if answer and answer["winner"] in ("A", "B")]
    blind = [item for item in verdicts if not item.saw_evidence]
    agreed = sum(item.verdict == item.evidence.get("winner") for item in blind)
    return {
        "suggested": len(verdicts),
        "failed": len(failed),
        "order_sensitive": sum(item.order_sensitive for item in verdicts),
        "quotes_struck": sum(struck for _, _, struck, _ in calls),
        "self_preference": sum(item.self_preference for item in verdicts),
        "first_position": {"answers": len(sided), "first": sided.count("A")},
        "with_execution": {"pairs": len(blind), "agreed": agreed},
        "verdicts": dict(Counter(str(item.verdict) for item in verdicts)),
        "cost_usd": total_cost(cost for _, _, _, cost in calls),
    }
