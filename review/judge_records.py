"""Stored data of the pair judge: pairs without a suggestion, its calls, and its suggestions as preferences."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import QuerySet

from hub.common.storable import storable
from hub.protocols.calls import Usage, total_cost
from hub.protocols.messages import JSON, text_of
from preferences.evidence import SideEvidence, evidence_of
from preferences.models import IssueCategory, Preference
from preferences.selectors import categories
from preferences.services import JudgeIdentity, NewIssue, NewPreference, record_preferences
from review.judge.pair_judge import OrderResult, Suggestion, combine
from review.judge.prompts import PROMPT_VERSION, PairForJudge, ResponseForJudge, render_evidence
from review.judge.replies import PairVerdict
from review.models import JudgeCall, Pair
from review.queue.loading import pairs_with_responses
from runs.models import Response, Run, RunModel

DEFAULT_CATEGORY = "wrong-result"  # used if the judge names an unknown category

_ANSWER_COLUMNS = [  # the columns of a JudgeCall outside its unique key
    *("judge", "saw_evidence", "answer", "text", "problem", "replies", "struck"),
    *("input_tokens", "output_tokens", "cost_usd"),
]


@dataclass(frozen=True, slots=True)
class PairJudgeRecords:
    """Judge model of a run, with the data that all its calls share."""

    model: RunModel
    families: dict[int, str]  # RunModel id -> family
    categories: list[IssueCategory]

    @classmethod
    def of(cls, run: Run) -> "PairJudgeRecords":
        """Return the records of the judge model of *run*, which must have one."""
        rows = list(run.models.all())
        judge = next(row for row in rows if row.role == "judge")
        return cls(judge, {row.pk: str(row.spec.get("family", "")) for row in rows}, categories())

    def suggestions(self) -> QuerySet[Preference]:
        """Return the suggestions of this judge with the current prompt version, in all runs."""
        return Preference.objects.filter(
            source=Preference.Source.LLM, judge_fingerprint=self.model.fingerprint, prompt_version=PROMPT_VERSION
        )

    def calls(self) -> QuerySet[JudgeCall]:
        """Return the calls of this judge with the current prompt version, in all runs."""
        return JudgeCall.objects.filter(fingerprint=self.model.fingerprint, prompt_version=PROMPT_VERSION)

    def pairs_without_suggestion(self, ids: list[int]) -> list[Pair]:
        """Return those of the pairs with *ids* that are without a suggestion of this judge and prompt version."""
        done = self.suggestions().values("pk")
        missing = Pair.objects.filter(pk__in=ids).exclude(suggestion__in=done).values_list("pk", flat=True)
        return pairs_with_responses(Pair.objects.filter(pk__in=missing))

    def pair_for_judge(self, pair: Pair) -> PairForJudge:
        """Return *pair* as the prompt shows it."""
        evidence = evidence_of(pair.first, pair.second)
        return PairForJudge(
            environment=pair.first.run_environment.version.environment.slug,
            case=pair.case.external_id,
            first=_side(pair.first, evidence["first"]),
            second=_side(pair.second, evidence["second"]),
            blind=pair.judged_blind,
            categories=[(item.slug, item.description) for item in self.categories],
        )

    def store(self, judged: list[tuple[Pair, tuple[OrderResult, OrderResult]]]) -> None:
        """Store the calls that got a reply or have a cost, and the suggestions."""
        earlier = self._earlier_calls([pair for pair, _ in judged])
        JudgeCall.objects.bulk_create(
            [
                self._call(pair, order, earlier.get((pair.pk, order.swapped)))
                for pair, orders in judged
                for order in orders
                if order.replies or (order.error is not None and order.error.usage is not None)
            ],
            update_conflicts=True,  # an earlier unusable answer to the same order is replaced; its cost is added
            unique_fields=["pair", "fingerprint", "prompt_version", "swapped"],
            update_fields=_ANSWER_COLUMNS,
        )
        combined = [(pair, combine(orders)) for pair, orders in judged]
        suggested = [(pair, suggestion) for pair, suggestion in combined if suggestion is not None]
        with transaction.atomic():
            preferences = record_preferences([self._new_preference(pair, suggestion) for pair, suggestion in suggested])
            for (pair, _), preference in zip(suggested, preferences, strict=True):
                pair.suggestion = preference
            Pair.objects.bulk_update([pair for pair, _ in suggested], ["suggestion"])

    def _earlier_calls(self, pairs: Sequence[Pair]) -> dict[tuple[int, bool], JudgeCall]:
        """Return the earlier calls of this judge for *pairs*, by pair and order."""
        return {(row.pair_id, row.swapped): row for row in self.calls().filter(pair__in=pairs)}

    def answers(self, pairs: Sequence[Pair]) -> dict[int, dict[bool, PairVerdict]]:
        """Return, by pair, the parsed answers of orders that an earlier execution of the run stored."""
        found: dict[int, dict[bool, PairVerdict]] = {}
        for (pair, swapped), row in self._earlier_calls(pairs).items():
            if row.answer is not None:
                found.setdefault(pair, {})[swapped] = PairVerdict.model_validate(row.answer)
        return found

    def _call(self, pair: Pair, order: OrderResult, earlier: JudgeCall | None) -> JudgeCall:
        answer = order.judged.answer if order.judged else None
        problem = str(order.error) if order.error else order.judged.problem if order.judged else ""
        text = text_of(order.replies[-1].message) if order.replies else ""
        # Usage of a cached reply was counted when it was first received.
        counted = [reply.usage for reply in order.replies if earlier is None or not reply.cached]
        costs = [reply.cost_usd for reply in order.replies]
        if order.error is not None and order.error.usage is not None:
            counted.append(order.error.usage)
            costs.append(order.error.cost_usd)
        usage, cost = sum(counted, Usage()), total_cost(costs)
        return JudgeCall(
            pair=pair,
            fingerprint=self.model.fingerprint,
            prompt_version=PROMPT_VERSION,
            swapped=order.swapped,
            judge=self.model.label,
            saw_evidence=not pair.judged_blind,
            answer=answer.model_dump() if answer else None,
            text=storable(text),
            problem=problem,
            replies=len(order.replies),
            struck=order.struck,
            input_tokens=usage.input + (earlier.input_tokens if earlier else 0),
            output_tokens=usage.output + (earlier.output_tokens if earlier else 0),
            cost_usd=total_cost([cost, earlier.cost_usd]) if earlier else cost,
        )

    def _new_preference(self, pair: Pair, suggestion: Suggestion) -> NewPreference:
        known = {item.slug: item for item in self.categories}
        fallback = known.get(DEFAULT_CATEGORY) or next(iter(known.values()), None)
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
            saw_evidence=not pair.judged_blind,
            self_preference=bool(family) and family in [self.families.get(s.run_model_id) for s in sides.values()],
        )
        return NewPreference(
            first=pair.first,
            second=pair.second,
            verdict=suggestion.verdict,
            fields={"critique": suggestion.critique},
            confidence=suggestion.confidence,
            issues=issues,
            evidence=evidence_of(pair.first, pair.second),
            judge=judge,
            supersedes=self._superseded(pair),
        )

    def _superseded(self, pair: Pair) -> Preference | None:
        """Return the suggestion of another judge or prompt version to supersede, unless it is superseded already."""
        earlier = pair.suggestion
        return None if earlier is None or hasattr(earlier, "successor") else earlier


def _side(response: Response, evidence: SideEvidence) -> ResponseForJudge:
    label = f"{response.run_model.label}#{response.attempt}"
    return ResponseForJudge(
        label=label, prompt=response.prompt, answer=response.answer, evidence=render_evidence(evidence)
    )


def judge_figures(run: Run, judge: PairJudgeRecords) -> dict[str, JSON]:
    """Return the figures of this judge over all executions of the run."""
    verdicts = list(
        judge.suggestions()
        .filter(run=run)
        .only("verdict", "order_sensitive", "self_preference", "saw_evidence", "evidence")
    )
    calls = list(judge.calls().filter(pair__run=run).values_list("pair_id", "answer", "struck", "cost_usd", "replies"))
    failed = {pair for pair, answer, _, _, replies in calls if answer is None and replies}
    winners = [answer["winner"] for _, answer, *_ in calls if answer and answer["winner"] in ("A", "B")]
    blind = [item for item in verdicts if not item.saw_evidence]
    agreed = sum(item.verdict == item.evidence.get("winner") for item in blind)
    return {
        "suggested": len(verdicts),
        "failed": len(failed),
        "order_sensitive": sum(item.order_sensitive for item in verdicts),
        "quotes_struck": sum(struck for _, _, struck, *_ in calls),
        "self_preference": sum(item.self_preference for item in verdicts),
        "first_position": {"answers": len(winners), "first": winners.count("A")},
        "with_execution": {"pairs": len(blind), "agreed": agreed},
        "verdicts": dict(Counter(str(item.verdict) for item in verdicts)),
        "cost_usd": total_cost(cost for _, _, _, cost, _ in calls),
    }
