"""Gold and wrong answers of the catalog score the same in an evaluation and over REST."""

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from hub.bundles.loader import open_bundle
from hub.models import Environment
from runs.exports import export_responses
from runs.models import EpisodeSession, Response, Run
from tests.runs.capitals import start

pytestmark = pytest.mark.django_db(transaction=True)

CATALOG = settings.BASE_DIR / "hub" / "catalog"
SLUGS = sorted(manifest.parent.name for manifest in CATALOG.glob("*/environment.yaml"))
SEED = 11
SAMPLE_STEP = 10  # the default suite repeats every tenth answer over REST, the exhaustive tests repeat all of them
Lines = list[dict[str, Any]]


@pytest.fixture
def api() -> APIClient:
    client = APIClient()
    client.force_authenticate(User.objects.create_user("trainer"))
    return client


def read(path: Path) -> Lines:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write(path: Path, rows: Lines) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def evaluated(slug: str, folder: Path) -> Run:
    """Run two models on every case: one replies with the bundle's gold answers, the other with its wrong answers.

    The n-th answer of a case is the n-th attempt. Attempts for which a case has no answer end as errored.
    """
    with open_bundle(CATALOG / slug) as bundle:
        manifest, roles = bundle.manifest, bundle.compile().roles
    assert isinstance(manifest.gold, str) and isinstance(manifest.wrong, str)
    attempts = 0
    for name in ("gold", "wrong"):
        count: Counter[str] = Counter()
        rows = []
        for row in read(CATALOG / slug / getattr(manifest, name)):
            count[str(row["case"])] += 1
            rows.append({**row, "environment": slug, "attempt": count[str(row["case"])]})
        attempts = max(attempts, *count.values())
        write(folder / f"{name}.jsonl", rows)
    config = {
        "name": slug,
        "environments": [{"path": str(CATALOG / slug)}],
        "models": [{"name": name, "provider": "replay", "responses": f"{name}.jsonl"} for name in ("gold", "wrong")],
        "roles": {role: [_recorded(role, CATALOG / slug, folder, attempts)] for role in roles},
        "attempts": attempts,
        "seed": SEED,
        "tracking": {"mlflow": False},
        "sandbox": {"accept": ["A", "B", "C"]},
    }
    return start(folder, json.dumps(config))[0]


def _recorded(role: str, bundle: Path, folder: Path, attempts: int) -> dict[str, Any]:
    """Register a model for a role that replies with the recordings of the bundle.

    A line that names no model serves both models, and one that names no attempt serves each attempt that has no line
    of its own.
    """
    recorded: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in sorted(read(bundle / "recordings.jsonl"), key=lambda row: ("attempt" in row, "model" in row)):
        for model in [row["model"]] if row.get("model") else ["gold", "wrong"]:
            for attempt in [row["attempt"]] if "attempt" in row else range(1, attempts + 1):
                call = (row["purpose"], str(row["case"]), row.get("turn"), row.get("rule"), row.get("seat"))
                recorded[(*call, model, attempt)] = {**row, "model": model, "attempt": attempt}
    write(folder / f"{role}.jsonl", list(recorded.values()))
    return {"name": role, "provider": "replay", "responses": f"{role}.jsonl"}


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
        *(pytest.param(slug, SAMPLE_STEP, id=slug) for slug in SLUGS),
        *(pytest.param(slug, 1, id=f"{slug}-all", marks=pytest.mark.exhaustive) for slug in SLUGS),
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
