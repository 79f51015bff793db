"""Gold and wrong answers of the catalog score the same in an evaluation and over REST."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from hub.bundles.loader import open_bundle
from hub.models import Environment
from runs.exports import export_responses
from runs.models import EpisodeSession, Response, Run
from tests.runs.rollouts.adapters.catalog_runs import CATALOG, SEED, Lines, evaluated, read

pytestmark = pytest.mark.django_db(transaction=True)

SLUGS = sorted(
    manifest.parent.name
    for manifest in CATALOG.glob("*/environment.yaml")
    if (manifest.parent / "gold.jsonl").exists()  # workspaces have scripts instead, and need Docker
)
# Only in the exhaustive tests; `python-semantics` also runs code, and `changing-plans` also has several turns.
SLOW = {"code-repair", "instruction-following", "order-desk", "python-functions", "word-problems"}
# The default suite repeats every tenth answer over REST, the exhaustive tests every third.
SAMPLE_STEP, EXHAUSTIVE_STEP = 10, 3


@pytest.fixture
def api() -> APIClient:
    client = APIClient()
    client.force_authenticate(User.objects.create_user("trainer"))
    return client


def spoken(run: Run, folder: Path) -> dict[tuple[str, str, int], Lines]:
    """Return the exported recordings of role models by case, model under test and attempt."""
    lines = defaultdict(list)
    for path in export_responses(run, folder).files:
        for row in read(path):
            if row["purpose"] != "answer":
                lines[row["case"], row["model"], row["attempt"]].append(row)
    return lines


def played(api: APIClient, response: Response, recordings: Lines) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the last step, and the episode after it."""
    slug = response.case.version.environment.slug
    body = {
        "environment": slug,
        "case": response.case.external_id,
        "seed": SEED,
        "attempt": response.attempt,
        "model": response.run_model.label,
    }
    begun = api.post("/api/v1/episodes/", {**body, "recordings": recordings}, format="json")
    assert begun.status_code == 201, begun.content
    path = f"/api/v1/episodes/{begun.json()['id']}/"
    step: dict[str, Any] = {}
    for message in (item for item in response.messages if item["role"] == "assistant"):
        answer = api.post(f"{path}step", {"message": message}, format="json")
        assert answer.status_code == 200, answer.content
        step = answer.json()
    return step, api.get(path).json()


@pytest.mark.parametrize(
    ("slug", "step"),
    [
        *(pytest.param(slug, SAMPLE_STEP, id=slug) for slug in SLUGS if slug not in SLOW),
        *(pytest.param(slug, EXHAUSTIVE_STEP, id=f"{slug}-more", marks=pytest.mark.exhaustive) for slug in SLUGS),
    ],
)
def test_catalogue_answers_score_the_same_in_evaluation_and_over_rest(
    api: APIClient, tmp_path: Path, slug: str, step: int
) -> None:
    """Gold answers score 1 and wrong answers less, in a run and in an episode that repeats its transcript."""
    run = evaluated(slug, tmp_path)
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)
    recordings = spoken(run, tmp_path / "recorded")
    rows = Response.objects.exclude(error_kind="no_recording").select_related("case__version__environment", "run_model")
    responses = list(rows.prefetch_related("scores"))
    assert len(responses) == sum(len(read(tmp_path / f"{name}.jsonl")) for name in ("gold", "wrong"))
    assert not [response.reason for response in responses if not as_expected(response)]
    repeated = responses[::step]
    for response in repeated:
        recorded = recordings[response.case.external_id, response.run_model.label, response.attempt]
        last, shown = played(api, response, recorded)
        assert (last["done"], last["reward"], last["info"]["status"]) == (True, response.score, response.status)
        assert shown["messages"] == response.messages
        # Reasons may tell how long something took.
        assert {rule: verdict["value"] for rule, verdict in last["info"]["rules"].items()} == {
            score.rule: score.value for score in response.scores.all()
        }
        assert shown["recordings"] == recorded
    seeds = EpisodeSession.objects.values_list("case", "model", "attempt", "seed")
    assert set(seeds) == {(r.case_id, r.run_model.label, r.attempt, r.seed) for r in repeated}
    with open_bundle(CATALOG / slug) as bundle:
        assert bool(bundle.compile().roles) == any(recordings.values())


def as_expected(response: Response) -> bool:
    """Return whether a gold answer passed with score 1, or a wrong answer failed with less."""
    if response.run_model.label == "gold":
        return (response.status, response.score) == ("passed", 1.0)
    return response.status == "failed" and response.score is not None and response.score < 1.0
