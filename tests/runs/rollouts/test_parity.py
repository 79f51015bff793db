"""Evaluation and training play the same episodes: a run's transcripts, played again over REST, earn its scores."""

import json
from collections import defaultdict
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
from tests.runs.execution.test_running import start

pytestmark = pytest.mark.django_db(transaction=True)

CATALOG = settings.BASE_DIR / "hub" / "catalog"
SLUGS = sorted(manifest.parent.name for manifest in CATALOG.glob("*/environment.yaml"))
SEED = 11
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
    """A run of four cases by two models: one gives their gold answers, the other those that must fail."""
    with open_bundle(CATALOG / slug) as bundle:
        manifest, roles = bundle.manifest, bundle.compile().roles
    assert isinstance(manifest.gold, str) and isinstance(manifest.wrong, str)
    answers = {name: read(CATALOG / slug / getattr(manifest, name)) for name in ("gold", "wrong")}
    failing = {str(row["case"]) for row in answers["wrong"]}
    cases = [case for case in dict.fromkeys(str(row["case"]) for row in answers["gold"]) if case in failing][:4]
    for name, rows in answers.items():
        first = {str(row["case"]): {**row, "environment": slug} for row in reversed(rows)}
        write(folder / f"{name}.jsonl", [first[case] for case in cases])
    config = {
        "name": slug,
        "environments": [{"path": str(CATALOG / slug), "cases": cases}],
        "models": [{"name": name, "provider": "replay", "responses": f"{name}.jsonl"} for name in answers],
        "roles": {role: [_recorded(role, CATALOG / slug, folder)] for role in roles},
        "seed": SEED,
        "tracking": {"mlflow": False},
        "sandbox": {"accept": ["A", "B", "C"]},
    }
    return start(folder, json.dumps(config))[0]


def _recorded(role: str, bundle: Path, folder: Path) -> dict[str, Any]:
    """The model of a role, which says what the bundle has recorded; a line that names no model holds for both."""
    rows = read(bundle / "recordings.jsonl")
    named = [{**row, "model": name} for row in rows for name in _names(row)]
    write(folder / f"{role}.jsonl", named)
    return {"name": role, "provider": "replay", "responses": f"{role}.jsonl"}


def _names(row: dict[str, Any]) -> list[str]:
    return [row["model"]] if row.get("model") else ["gold", "wrong"]


def spoken(run: Run, folder: Path) -> dict[tuple[str, str], Lines]:
    """What role models said, as the run's export has it, by case and answering model."""
    lines = defaultdict(list)
    for path in export_responses(run, folder).files:
        for row in read(path):
            if row["purpose"] != "answer":
                lines[row["case"], row["model"]].append(row)
    return lines


def played(api: APIClient, response: Response, recordings: Lines) -> tuple[dict[str, Any], dict[str, Any]]:
    """The last step, and the episode as it is shown after it."""
    slug = response.case.version.environment.slug
    body = {"environment": slug, "case": response.case.external_id, "seed": SEED, "model": response.run_model.label}
    begun = api.post("/api/v1/episodes/", {**body, "recordings": recordings}, format="json")
    assert begun.status_code == 201, begun.content
    path = f"/api/v1/episodes/{begun.json()['id']}/"
    step: dict[str, Any] = {}
    for message in (item for item in response.messages if item["role"] == "assistant"):
        answer = api.post(f"{path}step", {"message": message}, format="json")
        assert answer.status_code == 200, answer.content
        step = answer.json()
    return step, api.get(path).json()


@pytest.mark.parametrize("slug", SLUGS)
def test_a_transcript_replayed_over_rest_earns_what_the_evaluation_gave(
    api: APIClient, tmp_path: Path, slug: str
) -> None:
    run = evaluated(slug, tmp_path)
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)
    recordings = spoken(run, tmp_path / "recorded")
    responses = list(Response.objects.select_related("case__version__environment", "run_model"))
    assert {response.status for response in responses} == {"passed", "failed"} and len(responses) == 8
    for response in responses:
        said = recordings[response.case.external_id, response.run_model.label]
        step, shown = played(api, response, said)
        assert (step["done"], step["reward"], step["info"]["status"]) == (True, response.score, response.status)
        assert shown["messages"] == response.messages
        # Reasons may tell how long something took.
        assert {rule: verdict["value"] for rule, verdict in step["info"]["rules"].items()} == {
            score.rule: score.value for score in response.scores.all()
        }
        assert EpisodeSession.objects.get(pk=shown["id"]).seed == response.seed
        assert shown["recordings"] == said
    with open_bundle(CATALOG / slug) as bundle:
        assert bool(bundle.compile().roles) == any(recordings.values())
