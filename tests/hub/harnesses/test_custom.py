"""The harness `custom`: `reset` and `step` of a bundle."""

import pytest

from hub.environments.compiled import CompileError
from hub.harnesses.base import HarnessError
from tests.hub.playing import assistant, contents, environment, episode

GUESS = """
def reset(case, seed):
    return {"state": {"secret": seed, "tries": 0}, "messages": [{"role": "user", "content": case["input"]}]}

def step(state, message):
    state["tries"] += 1
    if message["content"] == str(state["secret"]):
        return {"state": state, "done": True, "reward": 1 / state["tries"]}
    return {"state": state, "messages": [{"role": "user", "content": "No."}], "info": {"tries": state["tries"]}}
"""


def play(source=GUESS, **options):
    return episode({"type": "custom", **options}, files={"harness.py": source})


def stepping(body):
    return f"def reset(case, seed):\n    return {{'state': {{'n': 1}}}}\ndef step(state, message):\n    {body}\n"


async def test_bundle_code_runs_the_episode_and_returns_the_reward():
    playing = play()
    assert contents((await playing.reset()).messages) == ["Hello."]
    step = await playing.step(assistant("1"))
    assert (contents(step.observation.messages), step.done, step.info) == (["No."], False, {"tries": 1})
    step = await playing.step(assistant("7"))
    assert (step.done, step.truncated, playing.state["reward"]) == (True, False, 0.5)
    assert playing.environment.harness.scored_state(playing.state["harness"]) == {"secret": 7, "tries": 2}


async def test_max_turns_truncates_the_episode():
    playing = play(max_turns=1)
    await playing.reset()
    step = await playing.step(assistant("1"))
    assert (step.done, step.truncated, step.info) == (True, True, {"tries": 1, "limit": "max_turns"})


async def test_tools_stay_if_left_out_and_an_empty_list_withdraws_them():
    tool = {"type": "function", "function": {"name": "look", "description": "", "parameters": {"type": "object"}}}
    playing = play(
        f"def reset(case, seed):\n    return {{'state': 0, 'tools': [{tool!r}]}}\n"
        "def step(state, message):\n    return {'state': state + 1} | ({'tools': []} if state else {})\n"
    )
    offered = [(await playing.reset()).tools]
    offered += [(await playing.step(assistant("Hm."))).observation.tools for _ in range(2)]
    assert offered == [[tool], [tool], []]


async def test_turn_limit_without_reward_fails_with_reward_0():
    playing = play(max_turns=1)
    await playing.reset()
    step = await playing.step(assistant("1"))
    assert (step.reward, step.score.status, step.score.value) == (0.0, "failed", 0.0)
    assert step.score.reason.startswith("The episode ended at its limit (turns), and the harness gave no reward")


async def test_reward_returned_before_the_turn_limit_is_kept():
    playing = play(stepping("return {'state': state, 'reward': 0.25}"), max_turns=1)
    await playing.reset()
    step = await playing.step(assistant("1"))
    assert (step.truncated, step.reward, step.score.status) == (True, 0.25, "failed")


async def test_episode_ended_by_the_harness_without_reward_is_unscored():
    playing = play(stepping("return {'state': state, 'done': True}"))
    await playing.reset()
    step = await playing.step(assistant("1"))
    assert (step.score.status, step.score.reason) == ("unscored", "The harness gave no reward.")


async def test_truncation_by_the_harness_without_reward_counts_as_0():
    playing = play(stepping("return {'state': state, 'done': True, 'truncated': True}"))
    await playing.reset()
    step = await playing.step(assistant("1"))
    assert (step.score.status, step.score.value) == ("failed", 0.0)


async def test_time_limit_without_reward_counts_as_0():
    playing = play()
    await playing.reset()
    step = await playing.stop("time")
    assert (step.score.status, step.score.value) == ("failed", 0.0)


async def test_episode_that_ends_at_the_turn_limit_is_not_truncated():
    playing = play(max_turns=2)
    await playing.reset()
    assert not (await playing.step(assistant("1"))).done
    step = await playing.step(assistant("7"))
    assert (step.done, step.truncated) == (True, False)


async def test_turns_are_counted_across_resumed_steps():
    playing = play(max_turns=2)
    await playing.reset()
    assert [(await playing.step(assistant("1"))).truncated for _ in range(2)] == [False, True]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("return {}['x']", "step failed"),
        ("import os; os._exit(0)", "step failed"),
        ("return {'state': {1, 2}}", "step failed"),
        ("return {'state': 'x' * 17_000_000}", "17,000,0.* are allowed"),
        ("return None", "step must return"),
        ("return {'dnoe': True}", "dnoe"),
        ("return {'messages': [{'role': 'robot'}]}", r"messages\.0\.role"),
        ("return {'messages': ['again']}", r"messages\.0: must be a mapping with `role` \(found \"again\"\)\.$"),
        ("return {'tools': [{'name': 'f', 'parameters': {}}]}", r"tools\.0\.type: missing"),
        ("return {'tools': [{'type': 'function', 'function': {}}]}", r"tools\.0\.function\.name: missing"),
        ("return {'reward': float('nan')}", "step failed"),
    ],
)
async def test_failing_bundle_code_is_an_environment_error_and_keeps_the_state(body, said):
    await _step_fails(play(stepping(body)), said)


async def test_bundle_code_that_does_not_end_is_an_environment_error():
    await _step_fails(play(stepping("while True: pass"), call_seconds=1), "step failed.*still running after 1 seconds")


async def _step_fails(playing, said):
    await playing.reset()
    before = dict(playing.state["harness"])
    with pytest.raises(HarnessError, match=said):
        await playing.step(assistant("x"))
    assert playing.state["harness"] == before
    assert playing.turns == 0


async def test_message_that_is_not_json_is_rejected():
    playing = play()
    await playing.reset()
    with pytest.raises(HarnessError, match="must be JSON"):
        await playing.step({"role": "assistant", "content": "1", "extra": float("nan")})


async def test_failing_reset_is_an_environment_error():
    with pytest.raises(HarnessError, match=r"harness\.py: reset failed"):
        await play("def reset(case, seed):\n    raise KeyError\ndef step(state, message):\n    return {}\n").reset()


@pytest.mark.parametrize("key", ["done", "truncated"])
async def test_reset_that_ends_the_episode_is_an_environment_error(key):
    source = f"def reset(case, seed):\n    return {{'{key}': True}}\ndef step(state, message):\n    return {{}}\n"
    playing = play(source)
    with pytest.raises(HarnessError, match=r"harness\.py: reset returned that the episode is over"):
        await playing.reset()
    assert playing.state == {}


def test_missing_file_and_unlisted_import_are_reported_without_running_code():
    with pytest.raises(CompileError, match=r"no file 'harness\.py'"):
        environment({"type": "custom"})
    with pytest.raises(CompileError, match=r"imports rules\.py"):
        environment({"type": "custom"}, files={"harness.py": "import rules\nreset = step = print", "rules.py": ""})


@pytest.mark.parametrize("rule", ["state", "custom"])
@pytest.mark.parametrize(
    ("path", "line", "module"),
    [
        ("check.py", "import marks", "marks.py"),
        ("check.py", "from marks import mean", "marks.py"),
        ("check.py", "from lib import marks", "lib/marks.py"),
        ("check.py", "import lib.marks", "lib/marks.py"),
        ("lib/check.py", "from .marks import mean", "lib/marks.py"),
        ("lib/check.py", "from . import marks", "lib/marks.py"),
    ],
)
def test_unlisted_import_of_a_rule_is_reported_without_running_code(rule, path, line, module):
    files = {path: f"{line}\ndef check(case, state, transcript): return 1", "marks.py": "", "lib/marks.py": ""}
    with pytest.raises(CompileError, match=rf"{path} imports {module}, which is not listed; add it to `reads`"):
        environment({"type": "single_turn"}, files=files, rules=[{"type": rule, "path": path}])
    environment({"type": "single_turn"}, files=files, rules=[{"type": rule, "path": path, "reads": [module]}])


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def reset(case)\n", r"harness\.py:1 is not Python"),
        ("def reset(case): ...\ndef step(state, message): ...", r":1: reset cannot be called as reset\(case, seed\)"),
        ("def reset(case, seed): ...", r"defines no function step\(state, message\)"),
        (
            "def reset(case, seed): ...\nasync def step(state, message): ...",
            r":2: step is async; write a plain function step\(state, message\)",
        ),
    ],
)
def test_code_that_cannot_be_called_is_reported_without_running_it(source, said):
    with pytest.raises(CompileError, match=said):
        environment({"type": "custom"}, files={"harness.py": source})


@pytest.mark.parametrize(
    "source",
    [
        "from lib import reset, step",
        "from lib import *",
        "reset = step = print",
        "def reset(*args): ...\ndef step(state, message, more=1): ...",
    ],
)
def test_code_that_may_be_callable_is_checked_by_the_gates(source):
    environment({"type": "custom"}, files={"harness.py": source})
