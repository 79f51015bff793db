"""Episodes driven from outside: the same rewards as an evaluation, state kept between steps, limits, conflicts."""

import json
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.utils import timezone

from hub.bundles.loader import open_bundle
from hub.models import Environment, EnvironmentVersion
from hub.services import bundle_import
from runs.models import EpisodeSession, Response
from runs.rollouts import (
    RolloutConflict,
    RolloutRefused,
    checked_message,
    rollout_begin,
    rollout_end,
    rollout_step,
    rollouts_sweep,
)
from tests.runs.test_running import folder, start  # noqa: F401

pytestmark = pytest.mark.django_db(transaction=True)

CATALOG = settings.BASE_DIR / "hub" / "catalog"
PARIS = {"role": "assistant", "content": "Paris"}


@pytest.fixture
def user() -> User:
    return User.objects.create_user("trainer")


@pytest.fixture
def version(folder: Path) -> EnvironmentVersion:  # noqa: F811
    return bundle_import(bundle=folder / "capitals")


def test_an_episode_is_begun_stepped_and_scored(user: User, version: EnvironmentVersion) -> None:
    begun = rollout_begin(user=user, version=version, case_id="france")
    assert begun.observation.messages == [{"role": "user", "content": "Capital of France?"}]
    session = EpisodeSession.objects.get(pk=begun.session.pk)
    step = rollout_step(session=session, message=PARIS)
    assert (step.done, step.reward, step.truncated) == (True, 1.0, False)
    session.refresh_from_db()
    assert (session.done, session.reward, session.revision) == (True, 1.0, 1)
    assert session.score is not None and session.score["status"] == "passed"
    with pytest.raises(RolloutRefused, match="is over"):
        rollout_step(session=session, message=PARIS)


def test_the_seed_draws_the_case_and_the_same_seed_the_same_one(user: User, version: EnvironmentVersion) -> None:
    drawn = [rollout_begin(user=user, version=version, seed=seed).session.case.external_id for seed in range(12)]
    again = [rollout_begin(user=user, version=version, seed=seed).session.case.external_id for seed in range(12)]
    assert drawn == again and len(set(drawn)) > 2


def test_two_steps_from_the_same_state_cannot_both_count(user: User, version: EnvironmentVersion) -> None:
    begun = rollout_begin(user=user, version=version, case_id="france")
    first = EpisodeSession.objects.get(pk=begun.session.pk)
    second = EpisodeSession.objects.get(pk=begun.session.pk)
    rollout_step(session=first, message=PARIS)
    with pytest.raises(RolloutConflict):
        rollout_step(session=second, message={"role": "assistant", "content": "Rome"})
    assert EpisodeSession.objects.get(pk=begun.session.pk).reward == 1.0


def test_held_out_environments_are_refused(user: User, version: EnvironmentVersion) -> None:
    Environment.objects.update(held_out=True)
    version.environment.refresh_from_db()
    with pytest.raises(RolloutRefused, match="held out"):
        rollout_begin(user=user, version=version)


def test_a_user_may_have_so_many_open_and_no_more(
    user: User, version: EnvironmentVersion, settings: pytest.FixtureRequest
) -> None:
    settings.EPISODES_PER_USER = 2  # type: ignore[attr-defined]
    one = rollout_begin(user=user, version=version)
    rollout_begin(user=user, version=version)
    with pytest.raises(RolloutRefused, match="2 episodes open"):
        rollout_begin(user=user, version=version)
    rollout_begin(user=User.objects.create_user("other"), version=version)
    rollout_end(session=one.session)
    rollout_begin(user=user, version=version)


def test_an_expired_episode_takes_no_step_and_is_swept_a_day_later(user: User, version: EnvironmentVersion) -> None:
    session = rollout_begin(user=user, version=version).session
    session.expires_at = timezone.now() - timedelta(hours=1)
    session.save()
    with pytest.raises(RolloutRefused, match="expired"):
        rollout_step(session=session, message=PARIS)
    assert rollouts_sweep() == 0
    EpisodeSession.objects.update(expires_at=timezone.now() - timedelta(hours=25))
    assert rollouts_sweep() == 1


def test_an_unknown_case_is_named(user: User, version: EnvironmentVersion) -> None:
    with pytest.raises(RolloutRefused, match="no case 'atlantis'"):
        rollout_begin(user=user, version=version, case_id="atlantis")


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("Paris", "must be an assistant message"),
        ({"role": "user", "content": "x"}, "must be assistant"),
        ({"content": 3}, "text or null"),
        ({"content": None, "tool_calls": [{"id": "1"}]}, "tool_calls"),
        ({"content": None, "tool_calls": "x"}, "tool_calls"),
        ({"content": "x" * 2_000_000}, "larger than"),
    ],
)
def test_what_is_no_assistant_message_is_refused_with_the_reason(message: object, said: str) -> None:
    with pytest.raises(RolloutRefused, match=said):
        checked_message(message)


def plain_environments() -> list[str]:
    """The catalogue's environments that ask no role models; those have a test of their own."""
    names = []
    for path in sorted(manifest.parent for manifest in CATALOG.glob("*/environment.yaml")):
        with open_bundle(path) as bundle:
            if not bundle.compile().roles:
                names.append(path.name)
    return names


@pytest.mark.parametrize("slug", plain_environments())
def test_a_transcript_replayed_through_an_episode_earns_what_the_evaluation_gave(
    user: User, tmp_path: Path, slug: str
) -> None:
    with open_bundle(CATALOG / slug) as bundle:
        gold, wrong = bundle.manifest.gold, bundle.manifest.wrong
    assert isinstance(gold, str) and isinstance(wrong, str)
    ids = _recordings(CATALOG / slug / gold, CATALOG / slug / wrong, tmp_path / "answers.jsonl", slug)
    model = {"name": "old", "provider": "replay", "responses": "answers.jsonl"}
    config = {
        "name": slug,
        "environments": [{"path": str(CATALOG / slug), "cases": ids}],
        "models": [model],
        "tracking": {"mlflow": False},
        "sandbox": {"accept": ["A", "B", "C"]},
    }
    start(tmp_path, json.dumps(config))
    responses = list(Response.objects.select_related("case__version__environment"))
    assert len(responses) == len(ids)
    rewards = set()
    for response in responses:
        session = rollout_begin(user=user, version=response.case.version, case_id=response.case.external_id).session
        for message in (item for item in response.messages if item["role"] == "assistant"):
            step = rollout_step(session=session, message=message)
        assert step.done
        assert (session.state["messages"], step.reward) == (response.messages, response.score)
        rewards.add(step.reward)
    assert len(rewards) > 1, "right and wrong answers should differ"


def _recordings(gold: Path, wrong: Path, out: Path, slug: str) -> list[str]:
    """Gold answers of two cases and wrong ones of two others, as recordings; the ids of the cases."""
    right = _first(gold, without=set())
    others = _first(wrong, without=set(right))
    rows = [{**row, "case": case, "environment": slug} for case, row in {**right, **others}.items()]
    out.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return [*right, *others]


def _first(path: Path, without: set[str]) -> dict[str, dict[str, object]]:
    """The first answers of two cases in a file of answers."""
    found: dict[str, dict[str, object]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        case = str(row.get("case", row.get("id")))
        if case not in without and len(found) < 2:
            found.setdefault(case, row)
    return found
