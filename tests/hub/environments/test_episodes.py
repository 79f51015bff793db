"""Episodes: reset, step, stop, state and scores."""

import json
from functools import reduce

import pytest

from hub.environments.episodes import Episode, EpisodeError
from hub.harnesses.base import HarnessError, Services, Turn
from hub.harnesses.registry import HARNESSES
from hub.harnesses.single_turn import SingleTurn
from hub.protocols.calls import CallKey
from hub.protocols.cases import CaseData
from hub.protocols.messages import text_of
from hub.scorers.base import Scorer, ScorerOptions, ScoringFailed, Verdict
from hub.scorers.registry import SCORERS
from tests.hub.playing import assistant, environment

KEY = CallKey(purpose="answer", environment="play", case="c", model="m")


class Counting(SingleTurn):
    """Counts to three, telling each time; its own reward is a third for each turn."""

    type = "counting"

    async def reset(self, play):
        return Turn(state=0, messages=[{"role": "user", "content": "Count."}])

    async def step(self, play, state, message):
        done = state == 2
        said = [] if done else [{"role": "user", "content": f"{state + 1}"}]
        return Turn(state=state + 1, messages=said, done=done, reward=(state + 1) / 3)


class Own(Scorer):
    """Takes what the harness rewarded."""

    type = "own"
    summary = ""
    Options = ScorerOptions
    seen: list = []

    async def score(self, options, submission, services):
        Own.seen.append(submission)
        return Verdict(value=submission.reward, reason=f"stopped by {submission.stop}")


@pytest.fixture(autouse=True)
def counting(monkeypatch):
    monkeypatch.setitem(HARNESSES, "counting", Counting())
    monkeypatch.setitem(SCORERS, "own", Own())
    Own.seen = []


def episode(state=None, **options):
    created = Episode(
        environment({"type": "counting"}, rules=[{"type": "own"}]),
        CaseData(id="c", input="x"),
        key=KEY,
        services=Services(),
        **options,
    )
    created.restore(state or {})
    return created


async def test_steps_return_new_messages_and_the_last_one_the_reward():
    running = episode()
    assert (await running.reset()).messages == [{"role": "user", "content": "Count."}]
    first = await running.step(assistant("one"))
    assert (first.observation.messages, first.reward, first.done) == ([{"role": "user", "content": "1"}], 0.0, False)
    await running.step(assistant("two"))
    last = await running.step(assistant("three"))
    assert (last.done, last.reward, last.truncated, last.score.status) == (True, 1.0, False, "passed")
    assert [message["content"] for message in running.messages] == ["Count.", "one", "1", "two", "2", "three"]
    assert Own.seen[0].text == "three"


async def test_episode_continues_from_its_json_state():
    first = episode()
    await first.reset()
    await first.step(assistant("one"))
    second = episode(state=json.loads(json.dumps(first.state)))
    await second.step(assistant("two"))
    step = await second.step(assistant("three"))
    assert (step.done, step.reward, second.turns) == (True, 1.0, 3)


async def test_max_turns_ends_and_scores_the_episode():
    running = episode(max_turns=2)
    await running.reset()
    await running.step(assistant("one"))
    step = await running.step(assistant("two"))
    assert (step.done, step.truncated, step.score.status) == (True, True, "failed")
    assert step.reward == pytest.approx(2 / 3)
    assert Own.seen[0].stop == "turns"


async def test_stop_scores_the_messages_so_far():
    running = episode()
    await running.reset()
    await running.step(assistant("one"))
    step = await running.stop("time")
    assert (step.truncated, Own.seen[0].stop) == (True, "time")
    with pytest.raises(EpisodeError, match="already over"):
        await running.stop("time")


async def test_invalid_steps_are_rejected_without_changing_the_state():
    running = episode()
    with pytest.raises(EpisodeError, match="not been reset"):
        await running.step(assistant("early"))
    with pytest.raises(EpisodeError, match="not been reset"):
        await running.stop("time")
    await running.reset()
    before = json.dumps(running.state)
    with pytest.raises(EpisodeError, match="role was 'user'"):
        await running.step({"role": "user", "content": "x"})
    assert json.dumps(running.state) == before
    for word in ("one", "two", "three"):
        await running.step(assistant(word))
    with pytest.raises(EpisodeError, match="is over"):
        await running.step(assistant("four"))


async def test_reset_restarts_the_episode():
    running = episode()
    await running.reset()
    await running.step(assistant("one"))
    await running.reset()
    assert (running.turns, len(running.messages), running.done) == (0, 1, False)


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        (object(), "not JSON"),
        (float("nan"), "not JSON"),
        (reduce(lambda inner, _: [inner], range(200_000), []), "not JSON"),
        ("x" * 2**24, "bytes"),
    ],
    ids=["object", "nan", "nested-too-deeply", "too-large"],
)
async def test_invalid_state_is_a_harness_error(monkeypatch, state, sentence):
    class Bad(Counting):
        async def reset(self, play):
            return Turn(state=state, messages=[])

    monkeypatch.setitem(HARNESSES, "counting", Bad())
    with pytest.raises(HarnessError, match=sentence):
        await episode().reset()


async def test_undecided_rule_leaves_the_episode_unscored(monkeypatch):
    class Undecided(Own):
        async def score(self, options, submission, services):
            return Verdict(value=None, reason="I cannot tell.")

    monkeypatch.setitem(SCORERS, "own", Undecided())
    running = episode()
    await running.reset()
    step = await running.stop("time")
    assert (step.score.status, step.score.value, step.reward, step.score.reason) == (
        "unscored",
        None,
        0.0,
        "I cannot tell.",
    )


async def test_failed_scoring_can_be_repeated(monkeypatch):
    class Failing(Own):
        async def score(self, options, submission, services):
            raise ScoringFailed("sandbox", "No sandbox.")

    monkeypatch.setitem(SCORERS, "own", Failing())
    running = episode()
    await running.reset()
    with pytest.raises(ScoringFailed):
        await running.stop("time")
    assert not running.done
    monkeypatch.setitem(SCORERS, "own", Own())
    again = episode(state=running.state)
    assert (await again.stop("time")).done


def test_text_of_joins_content_parts():
    assert text_of({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}) == "ab"
    assert text_of({"content": [{"type": "image_url", "text": None}, {"type": "text", "text": "b"}]}) == "b"
    assert text_of({"content": None}) == ""
