"""Episodes of trainers: rewards as in evaluations, stored state, limits, conflicts."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from hub.common.storable import storable
from hub.harnesses.steps.tool_calls import native_calls
from hub.models import Environment, EnvironmentVersion
from hub.protocols.messages import JSON, calls_of
from hub.services import import_bundle
from llmeval_site.tasks import prune
from runs.models import EpisodeSession, ModelEndpoint
from runs.rollouts.creation import RolloutOptions, create_rollout
from runs.rollouts.errors import RolloutConflict, RolloutError, RolloutFailed, TooManyEpisodes
from runs.rollouts.messages import validate_message
from runs.rollouts.roles import session_recordings
from runs.rollouts.sessions import delete_rollout, get_session
from runs.rollouts.steps import step_rollout
from tests.endpoint import Answer, completion, endpoint

pytestmark = pytest.mark.django_db(transaction=True)

PARIS = {"role": "assistant", "content": "Paris"}


@pytest.fixture
def user() -> User:
    return User.objects.create_user("trainer")


@pytest.fixture
def version(folder: Path) -> EnvironmentVersion:
    version = import_bundle(bundle=folder / "capitals")
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)
    return version


def test_episode_is_created_stepped_and_scored(user: User, version: EnvironmentVersion) -> None:
    begun = create_rollout(RolloutOptions(user=user, version=version), case_id="france")
    assert begun.observation.messages == [{"role": "user", "content": "Capital of France?"}]
    session = EpisodeSession.objects.get(pk=begun.session.pk)
    step = step_rollout(session=session, message=PARIS)
    assert (step.done, step.reward, step.truncated) == (True, 1.0, False)
    session.refresh_from_db()
    assert (session.done, session.reward, session.revision) == (True, 1.0, 1)
    assert session.score is not None and session.score["status"] == "passed"
    with pytest.raises(RolloutError, match="is over"):
        step_rollout(session=session, message=PARIS)


def test_same_seed_draws_same_case(user: User, version: EnvironmentVersion) -> None:
    drawn = [
        create_rollout(RolloutOptions(user=user, version=version, seed=seed)).session.case.external_id
        for seed in range(12)
    ]
    again = [
        create_rollout(RolloutOptions(user=user, version=version, seed=seed)).session.case.external_id
        for seed in range(12)
    ]
    assert drawn == again and len(set(drawn)) > 2


def test_second_step_from_same_state_raises_conflict(user: User, version: EnvironmentVersion) -> None:
    begun = create_rollout(RolloutOptions(user=user, version=version), case_id="france")
    first = EpisodeSession.objects.get(pk=begun.session.pk)
    second = EpisodeSession.objects.get(pk=begun.session.pk)
    step_rollout(session=first, message=PARIS)
    with pytest.raises(RolloutConflict):
        step_rollout(session=second, message={"role": "assistant", "content": "Rome"})
    assert EpisodeSession.objects.get(pk=begun.session.pk).reward == 1.0


def test_step_makes_three_read_and_two_write_queries(
    user: User, version: EnvironmentVersion, django_assert_num_queries: Any
) -> None:
    begun = create_rollout(RolloutOptions(user=user, version=version), case_id="france")
    # The teams and the permissions of the user, the read, the claim of the step, and the answer.
    with django_assert_num_queries(5):
        session = get_session(user=user, pk=begun.session.pk)
        assert session is not None and step_rollout(session=session, message=PARIS).done


def test_storable_replaces_unstorable_characters_at_any_depth() -> None:
    kept = {"a": [r"\u0000", "\U0001f600", None, 1.5], r"\\u0000": {}}
    assert storable(kept) == kept
    assert storable({"a": [{"b\0": "x\0"}, "\ud800y"], "c": 1}) == {"a": [{"b\ufffd": "x\ufffd"}, "\ufffdy"], "c": 1}


def test_held_out_environment_is_rejected(user: User, version: EnvironmentVersion) -> None:
    Environment.objects.update(held_out=True)
    version.environment.refresh_from_db()
    with pytest.raises(RolloutError, match="held out"):
        create_rollout(RolloutOptions(user=user, version=version))


def test_number_of_open_episodes_per_user_is_limited(
    user: User, version: EnvironmentVersion, settings: pytest.FixtureRequest
) -> None:
    settings.EPISODES_PER_USER = 2  # type: ignore[attr-defined]
    one = create_rollout(RolloutOptions(user=user, version=version))
    create_rollout(RolloutOptions(user=user, version=version))
    with pytest.raises(TooManyEpisodes, match="2 open episodes"):
        create_rollout(RolloutOptions(user=user, version=version))
    create_rollout(RolloutOptions(user=User.objects.create_user("other"), version=version))
    delete_rollout(session=one.session)
    create_rollout(RolloutOptions(user=user, version=version))


def test_concurrent_requests_do_not_open_more_episodes_than_allowed(
    user: User, version: EnvironmentVersion, settings: Any
) -> None:
    settings.EPISODES_PER_USER = 3
    create_rollout(RolloutOptions(user=user, version=version))
    together = Barrier(8)

    def begin(_: int) -> bool:
        try:
            together.wait(60)
            create_rollout(RolloutOptions(user=user, version=version))
            return True
        except TooManyEpisodes:
            return False
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as threads:
        opened = list(threads.map(begin, range(8)))
    assert (sum(opened), EpisodeSession.objects.count()) == (2, 3)


def test_expired_episode_rejects_steps_and_is_deleted_after_keep_days(
    user: User, version: EnvironmentVersion, settings: Any
) -> None:
    settings.EPISODE_KEEP_DAYS = 2
    session = create_rollout(RolloutOptions(user=user, version=version)).session
    session.expires_at = timezone.now() - timedelta(hours=47)
    session.save()
    with pytest.raises(RolloutError, match="expired"):
        step_rollout(session=session, message=PARIS)
    prune()
    assert EpisodeSession.objects.exists()
    EpisodeSession.objects.update(expires_at=timezone.now() - timedelta(hours=49))
    prune()
    assert not EpisodeSession.objects.exists()


def test_deletion_of_expired_episodes_is_scheduled() -> None:
    assert prune.name in {entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()}


# ---- role models -----------------------------------------------------------------------------------------------------

TALK = """\
spec: 1
slug: talk
version: 1.0.0
title: Talk
summary: Guess the word.
category: reasoning
dataset: {path: cases.jsonl}
harness:
  type: multi_turn
  prompt: ""
  user: {role: customer, prompt: "Play a customer.", stop: "###"}
scoring:
  rules:
    - {name: word, type: includes, target: "{{ target }}"}
    - {name: tone, type: judge, role: grader, criteria: [{name: polite, text: Polite.}]}
"""
MARKS = '{"polite": {"reason": "It is.", "score": %s}}'


@pytest.fixture
def talk(tmp_path: Path) -> EnvironmentVersion:
    bundle = tmp_path / "talk"
    bundle.mkdir()
    (bundle / "environment.yaml").write_text(TALK, encoding="utf-8")
    (bundle / "cases.jsonl").write_text('{"id": "one", "input": "", "target": "tea"}', encoding="utf-8")
    return import_bundle(bundle=bundle)


def user_line(turn: int, content: str, **more: Any) -> dict[str, Any]:
    return {"purpose": "user", "case": "one", "turn": turn, "content": content, **more}


def grader_line(seat: int, score: float) -> dict[str, Any]:
    return {"purpose": "rubric", "case": "one", "rule": "tone", "seat": seat, "content": MARKS % score}


def test_recorded_replies_of_role_models_are_replayed(user: User, talk: EnvironmentVersion) -> None:
    lines = [user_line(0, "Guess."), user_line(1, "Yes! ###"), grader_line(0, 1.0), grader_line(1, 0.0)]
    begun = create_rollout(RolloutOptions(user=user, version=talk), recordings=lines)
    assert [message["content"] for message in begun.observation.messages] == ["Guess."]
    step = step_rollout(session=begun.session, message={"role": "assistant", "content": "Is it tea?"})
    assert step.messages == [{"role": "user", "content": "Yes!"}]
    assert step.score is not None
    assert {rule["rule"]: rule["value"] for rule in step.score["rules"]} == {"word": 1.0, "tone": 0.5}
    told = [{**line, "environment": "talk", "attempt": 1, "model": "trainer"} for line in lines]
    assert session_recordings(begun.session) == told


def test_replayed_episode_calls_no_registered_model(user: User, talk: EnvironmentVersion) -> None:
    def script(request: dict[str, Any], number: int) -> Answer:
        return completion(["Guess.", "Yes! ###", MARKS % 1.0][number])

    with endpoint(script) as server:
        ModelEndpoint.objects.create(name="small", model="m", base_url=server.url)
        roles = {"customer": ["small"], "grader": ["small"]}
        begun = create_rollout(RolloutOptions(user=user, version=talk, roles=roles))
        asked = {"role": "assistant", "content": "Is it tea?"}
        assert step_rollout(session=begun.session, message=asked).reward == 1.0
        again = create_rollout(
            RolloutOptions(user=user, version=talk, roles=roles), recordings=session_recordings(begun.session)
        )
        assert step_rollout(session=again.session, message=asked).reward == 1.0
        assert len(server.requests) == 3
    assert again.session.state["messages"] == begun.session.state["messages"]


def test_replies_of_role_models_in_parts_are_recorded_as_text(user: User, talk: EnvironmentVersion) -> None:
    def script(request: dict[str, Any], number: int) -> Answer:
        parts = [["Gue", "ss."], ["Yes! ###"], [MARKS % 1.0]][number]
        return completion([{"type": "text", "text": part} for part in parts])

    asked = {"role": "assistant", "content": "Is it tea?"}
    with endpoint(script) as server:
        ModelEndpoint.objects.create(name="small", model="m", base_url=server.url)
        roles = {"customer": ["small"], "grader": ["small"]}
        begun = create_rollout(RolloutOptions(user=user, version=talk, roles=roles))
        assert step_rollout(session=begun.session, message=asked).reward == 1.0
    recordings = session_recordings(begun.session)
    assert [line["content"] for line in recordings] == ["Guess.", "Yes! ###", MARKS % 1.0]
    again = create_rollout(RolloutOptions(user=user, version=talk), recordings=recordings)
    assert step_rollout(session=again.session, message=asked).reward == 1.0


@pytest.mark.parametrize(
    ("reply", "reason"),
    [("###", "ended the conversation with its first message"), ("", "gave an empty reply at turn 0")],
)
def test_simulated_user_without_a_first_message_can_be_asked_again(
    user: User, talk: EnvironmentVersion, reply: str, reason: str
) -> None:
    with endpoint(lambda request, number: completion([reply, "Guess."][number])) as server:
        ModelEndpoint.objects.create(name="small", model="m", base_url=server.url)
        options = RolloutOptions(user=user, version=talk, roles={"customer": ["small"], "grader": ["small"]})
        with pytest.raises(RolloutFailed, match=rf"^Case 'one': The model of role 'customer'.* {reason}"):
            create_rollout(options)
        begun = create_rollout(options)
    assert [message["content"] for message in begun.observation.messages] == ["Guess."]


def test_failed_role_model_leaves_episode_unchanged(user: User, talk: EnvironmentVersion) -> None:
    lines = [user_line(0, "Guess."), user_line(1, "Yes! ###")]
    with endpoint(lambda request, number: Answer({"error": "wrong key"}, status=401)) as server:
        ModelEndpoint.objects.create(name="small", model="m", base_url=server.url)
        begun = create_rollout(RolloutOptions(user=user, version=talk, roles={"grader": ["small"]}), recordings=lines)
        with pytest.raises(RolloutFailed, match=r"^Case 'one': "):
            step_rollout(session=begun.session, message={"role": "assistant", "content": "Is it tea?"})
    session = EpisodeSession.objects.get(pk=begun.session.pk)
    assert (session.revision, session.done, len(session.state["messages"])) == (0, False, 1)


def test_role_model_that_can_never_reply_is_an_error_of_the_request(user: User, talk: EnvironmentVersion) -> None:
    lines = [user_line(0, "Guess."), user_line(1, "Yes! ###")]
    ModelEndpoint.objects.create(name="recorded", provider="demo", model="careful")
    begun = create_rollout(RolloutOptions(user=user, version=talk, roles={"grader": ["recorded"]}), recordings=lines)
    with pytest.raises(RolloutError, match=r"^Case 'one': The demo model .* other models in `roles`\.$"):
        step_rollout(session=begun.session, message={"role": "assistant", "content": "Is it tea?"})


def test_call_without_recording_raises_error_and_leaves_episode_unchanged(user: User, talk: EnvironmentVersion) -> None:
    begun = create_rollout(RolloutOptions(user=user, version=talk), recordings=[user_line(0, "Guess.")])
    with pytest.raises(RolloutError, match=r"do not contain the user's turn 1, .* roles\.customer"):
        step_rollout(session=begun.session, message={"role": "assistant", "content": "Is it tea?"})
    session = EpisodeSession.objects.get(pk=begun.session.pk)
    assert (session.revision, len(session.state["messages"]), len(session.calls)) == (0, 1, 1)


def test_missing_roles_without_recordings_are_rejected(user: User, talk: EnvironmentVersion) -> None:
    with pytest.raises(RolloutError, match=r"roles\.customer, roles\.grader"):
        create_rollout(RolloutOptions(user=user, version=talk))


def test_misspelled_role_is_rejected_although_recordings_reply(user: User, talk: EnvironmentVersion) -> None:
    ModelEndpoint.objects.create(name="small", model="m", base_url="http://127.0.0.1:1")
    recordings = [user_line(0, "Guess.")]
    options = RolloutOptions(user=user, version=talk, roles={"custmer": ["small"], "grader": ["small"]})
    expected = (
        r"^talk@1\.0\.0 needs no model for roles\.custmer\. "
        r"It needs models for roles\.customer, roles\.grader\.$"
    )
    with pytest.raises(RolloutError, match=expected) as caught:
        create_rollout(options, recordings=recordings)
    assert caught.value.path == "roles"


def test_roles_of_other_environments_are_accepted(user: User, talk: EnvironmentVersion) -> None:
    """Adapters send the same roles for all environments of a dataset."""
    ModelEndpoint.objects.create(name="small", model="m", base_url="http://127.0.0.1:1")
    roles = {role: ["small"] for role in ("customer", "grader", "rubric")}
    begun = create_rollout(RolloutOptions(user=user, version=talk, roles=roles), recordings=[user_line(0, "Guess.")])
    assert [message["content"] for message in begun.observation.messages] == ["Guess."]


@pytest.mark.parametrize("role", ["grader", "rubric"])
def test_step_is_refused_if_one_of_the_models_that_it_needs_was_disabled(
    user: User, talk: EnvironmentVersion, role: str
) -> None:
    for name in ("small", "large"):
        ModelEndpoint.objects.create(name=name, model="m", base_url="http://127.0.0.1:1")
    lines = [user_line(0, "Guess."), user_line(1, "Yes! ###"), grader_line(0, 1.0), grader_line(1, 0.0)]
    roles = {"customer": ["large"], "grader": ["large"], role: ["small", "large"]}
    options = RolloutOptions(user=user, version=talk, roles=roles)
    begun = create_rollout(options, recordings=lines)
    ModelEndpoint.objects.filter(name="small").update(enabled=False)
    message = {"role": "assistant", "content": "Is it tea?"}
    if role == "grader":
        with pytest.raises(RolloutError, match=r"The model 'small' of the role 'grader' can no longer be used\."):
            step_rollout(session=begun.session, message=message)
        ModelEndpoint.objects.update(enabled=True)
    assert step_rollout(session=begun.session, message=message).reward == 0.75  # of the rules: 1 and 0.5


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["x"], r"recordings\[0\]"),
        ([{"purpose": "user", "case": "one"}], r"recordings\[0\].*content"),
        ([{"case": "one", "content": "x"}], "purpose answer"),
        (
            [user_line(0, "x"), user_line(0, "y")],
            r"\[1\] replies to the same call .* keep those of one model\.",
        ),
        ([user_line(0, "x", case="two")], "is of talk, case 'two', attempt 1"),
        (
            [user_line(0, "x", attempt=2)],
            r"attempt 2; the episode is of .* attempt 1\. Send only the lines of",
        ),
        ([user_line(0, "x", environment="other")], "is of other"),
    ],
)
def test_invalid_recordings_are_rejected_with_line_number(
    user: User, talk: EnvironmentVersion, lines: list[Any], expected: str
) -> None:
    with pytest.raises(RolloutError, match=expected):
        create_rollout(RolloutOptions(user=user, version=talk), recordings=lines)
    assert not EpisodeSession.objects.exists()


# ---- what is sent ----------------------------------------------------------------------------------------------------


def test_unknown_case_is_rejected_by_name(user: User, version: EnvironmentVersion) -> None:
    with pytest.raises(RolloutError, match="no case 'atlantis'"):
        create_rollout(RolloutOptions(user=user, version=version), case_id="atlantis")


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Paris", "must be an assistant message"),
        ({"role": "user", "content": "x"}, "must be assistant"),
        ({"content": 3}, r"text or null\.$"),
        (
            {"content": [{"type": "text", "text": "x"}]},
            r"text or null, not a list of parts: join the texts",
        ),
        ({"content": None, "tool_calls": [{"id": "1"}]}, "tool_calls"),
        ({"content": None, "tool_calls": "x"}, "tool_calls"),
        ({"content": "x" * 2_000_000}, "larger than"),
    ],
)
def test_invalid_assistant_message_is_rejected_with_reason(message: object, expected: str) -> None:
    with pytest.raises(RolloutError, match=expected):
        validate_message(message)


def test_calls_without_an_id_get_that_of_their_results() -> None:
    function: dict[str, JSON] = {"name": "ship", "arguments": "{}"}
    sent: list[dict[str, JSON]] = [{"function": function}, {"id": "x", "function": function}, {"id": 5, "type": 7}]
    sent[2]["function"] = function
    stored = validate_message({"content": None, "tool_calls": sent})
    kept = [(call["id"], call["type"]) for call in calls_of(stored)]
    assert kept == [("call_0", "function"), ("x", "function"), ("call_2", "function")]
    assert [call.id for call in native_calls(stored)] == [call["id"] for call in calls_of(stored)]
    assert "id" not in sent[0]


def test_calls_with_equal_ids_get_ids_of_their_own() -> None:
    function: dict[str, JSON] = {"name": "ship", "arguments": "{}"}
    sent = [{"id": name, "function": function} for name in ("x", "x", "call_3", None, "call_1")]
    stored = validate_message({"content": None, "tool_calls": sent})
    kept = [call["id"] for call in calls_of(stored)]
    assert kept == ["x", "call_2", "call_3", "call_4", "call_1"]
    assert [call.id for call in native_calls(stored)] == kept
    assert validate_message({"content": None, "tool_calls": sent}) == stored  # a step that is sent again is the same
