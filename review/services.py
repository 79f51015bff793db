"""Services that create pairs, open them for review, and record preferences decided by execution."""

import hashlib
import json
from collections.abc import Sequence

from django.db.models import F

from hub.protocols.messages import get_comparable_content
from preferences.evidence import evidence_of, winner
from preferences.models import Preference
from preferences.services import NewPreference, record_preferences
from review.models import Pair
from review.queue.loading import pairs_with_responses
from review.queue.pairing import Across, PairableResponse, Policy, SelectedPair, select_pairs
from runs.models import Response, Run
from runs.results.counting import quarantined_cases

_SCORED = (Response.Status.PASSED, Response.Status.FAILED)
_CHUNK = 400


def list_pairable_responses(run: Run) -> list[PairableResponse]:
    """Return the scored responses of *run*, without those to quarantined cases."""
    found = []
    for run_environment in run.environments.select_related("version"):
        rows = (
            Response.objects.filter(run_environment=run_environment, run_model__role="", status__in=_SCORED)
            .exclude(case_id__in=quarantined_cases(run, run_environment))
            .select_related("run_model")
            .only("case_id", "attempt", "status", "messages", "run_model__label", "run_model__position")
            .order_by("id")
        )
        found += [
            PairableResponse(
                id=row.pk,
                case=row.case_id,
                model=f"{row.run_model.position:04} {row.run_model.label}",
                attempt=row.attempt,
                passed=row.status == Response.Status.PASSED,
                answer_digest=_answer_digest(row),
            )
            for row in rows.iterator(chunk_size=_CHUNK)
        ]
    return found


def _answer_digest(response: Response) -> str:
    """Return a digest of the assistant's messages: texts without reasoning, tool calls without ids, other parts."""
    digest = hashlib.sha256()
    for message in response.messages:
        if message.get("role") == "assistant":
            _, text, *calls_and_parts = get_comparable_content(message)
            content = json.dumps([str(text).strip(), *calls_and_parts], sort_keys=True)
            digest.update(f"{content}\0".encode())
    return digest.hexdigest()


def create_pairs(*, run: Run, policy: Policy, across: Across = "models", limit: int | None = None) -> list[Pair]:
    """Return the first *limit* pairs of *run* that *policy* selects, creating those that do not exist yet.

    Their order is drawn from the seed of the run's config.
    """
    seed = int(run.config.get("seed", 0))
    wanted = select_pairs(list_pairable_responses(run), policy=policy, across=across, seed=seed)[:limit]
    known = {(pair.first_id, pair.second_id): pair for pair in run.pairs.all()}
    missing = [item for item in wanted if (item.first.id, item.second.id) not in known]
    for start in range(0, len(missing), _CHUNK):
        Pair.objects.bulk_create((_row(run, item) for item in missing[start : start + _CHUNK]), ignore_conflicts=True)
    if missing:
        known = {(pair.first_id, pair.second_id): pair for pair in run.pairs.all()}
    return [known[item.first.id, item.second.id] for item in wanted]


def _row(run: Run, item: SelectedPair) -> Pair:
    return Pair(
        run=run,
        case_id=item.first.case,
        first_id=item.first.id,
        second_id=item.second.id,
        kind=item.kind,
        position=item.position,
    )


def queue_pairs(*, pairs: Sequence[Pair], overlap: int) -> None:
    """Open *pairs* for review by *overlap* reviewers each, unless they are already. Slots are never removed."""
    for start in range(0, len(pairs), _CHUNK):
        ids = [pair.pk for pair in pairs[start : start + _CHUNK]]
        Pair.objects.filter(pk__in=ids, overlap__lt=overlap).update(
            free=F("free") + overlap - F("overlap"), overlap=overlap
        )


def record_execution_preferences(*, pairs: Sequence[Pair]) -> int:
    """Record the preference that execution decides for each of *pairs*, once; return how many it decides."""
    decided = [pair for pair in pairs if pair.kind == Pair.Kind.ONE_PASSES]
    for start in range(0, len(decided), _CHUNK):
        chunk = {pair.pk: pair for pair in decided[start : start + _CHUNK]}
        known = set(
            Preference.objects.filter(
                source=Preference.Source.EXECUTION, first__in=[pair.first_id for pair in chunk.values()]
            ).values_list("first_id", "second_id")
        )
        missing = [pk for pk, pair in chunk.items() if (pair.first_id, pair.second_id) not in known]
        record_preferences([_by_execution(pair) for pair in pairs_with_responses(Pair.objects.filter(pk__in=missing))])
    return len(decided)


def _by_execution(pair: Pair) -> NewPreference:
    return NewPreference(
        first=pair.first,
        second=pair.second,
        verdict=winner(pair.first, pair.second),
        evidence=evidence_of(pair.first, pair.second),
    )
