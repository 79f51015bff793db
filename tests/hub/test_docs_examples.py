"""docs/examples: each bundle is short, passes its gates, and rewards gold answers with 1.0 and empty ones with 0."""

import asyncio
from pathlib import Path

import pytest
from django.conf import settings

from hub.bundles.cases import PreparedCase, prepared_cases
from hub.bundles.loader import Bundle, open_bundle
from hub.bundles.reference_answers import RecordedCalls, ReferenceAnswers
from hub.environments.compiled import CompiledEnvironment
from hub.environments.episodes import Episode
from hub.gates.runner import run_gates
from hub.harnesses.base import Services
from hub.protocols.calls import CallKey
from hub.protocols.cases import CaseData
from hub.protocols.messages import Message
from hub.selectors import compile_version
from hub.services import import_bundle
from sandbox.client.pool import Pool
from tests.hub.playing import assistant

MAX_LINES = 150
DOCS: Path = settings.BASE_DIR / "docs"
FOLDERS = sorted(path.parent for path in (DOCS / "examples").glob("*/environment.yaml"))
named = pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)


async def play(environment: CompiledEnvironment, case: CaseData, messages: list[Message], services: Services) -> float:
    """Return the score of an episode with *messages* as the model's turns."""
    key = CallKey(purpose="answer", environment=environment.slug, case=case.id, model="gold", attempt=1)
    episode = Episode(environment, case, key=key, seed=1, services=services)
    try:
        await episode.reset()
        for message in messages:
            if not episode.done:
                step = await episode.step(message)
        if not episode.done:
            step = await episode.stop("turns")
    finally:
        await episode.close()
    assert step.score is not None and step.score.value is not None
    return step.score.value


def calls_of_users(bundle: Bundle) -> RecordedCalls:
    recordings = bundle.manifest.recordings
    return RecordedCalls.read(recordings, bundle.file) if recordings else RecordedCalls()


@named
def test_example_is_short_and_explained(folder: Path) -> None:
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in folder.iterdir())
    assert lines < MAX_LINES
    assert f"(examples/{folder.name}/environment.yaml)" in (DOCS / "examples.md").read_text(encoding="utf-8")


@named
@pytest.mark.django_db
def test_stored_example_passes_its_gates_and_rewards_gold_but_not_empty_answers(
    folder: Path, pool: Pool, media: Path
) -> None:
    environment = compile_version(import_bundle(bundle=folder))
    with open_bundle(folder) as bundle:
        gates = {gate["name"]: gate["status"] for gate in run_gates(bundle, pool=pool)["gates"]}
        assert set(gates.values()) == {"passed"}, gates
        services = Services(call_model=calls_of_users(bundle), pool=pool)
        with ReferenceAnswers(bundle.manifest.gold, "gold", bundle.file) as gold:
            for item in prepared_cases(bundle.manifest, environment, bundle.file):
                assert isinstance(item, PreparedCase)
                (answer,) = gold.of(item.case)
                assert asyncio.run(play(environment, item.case, answer.messages, services)) == 1.0
                assert asyncio.run(play(environment, item.case, [assistant("")], services)) == 0.0
