"""Functions of a bundle as tools, on a state of the episode's own."""

import json

import pytest

from hub.environments.compiled import CompileError
from hub.harnesses.base import HarnessError
from hub.protocols.cases import CaseData
from tests.hub.playing import BrokenPool, Recorded, assistant, calls, contents, environment, episode

TOOLS = '''
import time
from helper import double

def reset(case, seed):
    return {"count": case.get("metadata", {}).get("start", 0), "seed": seed}

def add(state, n: int) -> int:
    """Add to the counter."""
    state["count"] += n
    return state["count"]

def twice(n: int) -> int:
    """Double a number."""
    return double(n)

def broken(state, how: str) -> object:
    """Fail in some way."""
    state["count"] = -1
    if how == "raise":
        raise ValueError("no such order")
    if how == "die":
        import os
        os._exit(3)
    if how == "hang":
        while True:
            pass
    if how == "flood":
        return "x" * 3_000_000
    if how == "not json":
        return {1, 2}
    if how == "spoil":
        state["count"] = {1, 2}
    if how == "exit":
        raise SystemExit
'''
FILES = {"tools.py": TOOLS, "helper.py": "def double(n):\n    return 2 * n\n"}
HARNESS = {"type": "tools", "system": "Count.", "tools": "tools.py", "reads": ["helper.py"]}


def play(case=None, **options):
    return episode({**HARNESS, **options}, files=FILES, case=case)


def world(playing):
    return playing.environment.harness.scored_state(playing.state["harness"])


async def test_the_model_is_shown_the_tools_and_the_state_begins_by_reset():
    playing = play(CaseData(id="c", input="Go.", metadata={"start": 3}))
    seen = await playing.reset()
    assert contents(seen.messages) == ["Count.", "Go."]
    assert [tool["function"]["name"] for tool in seen.tools] == ["add", "twice", "broken"]
    assert world(playing) == {"count": 3, "seed": 7}


async def test_parallel_and_repeated_calls_are_made_in_order_on_one_state():
    playing = play()
    await playing.reset()
    step = await playing.step(calls(("add", {"n": 2}), ("twice", {"n": 5}), ("add", {"n": 3})))
    assert contents(step.observation.messages) == ["2", "10", "5"]
    assert [message["tool_call_id"] for message in step.observation.messages] == ["id0", "id1", "id2"]
    step = await playing.step(calls(("add", {"n": 1})))
    assert contents(step.observation.messages) == ["6"]
    assert world(playing)["count"] == 6


async def test_the_episode_ends_when_the_model_speaks_without_calling():
    playing = play()
    await playing.reset()
    step = await playing.step(assistant("Done."))
    assert (step.done, step.truncated) == (True, False)


async def test_a_tools_exception_is_answered_and_changes_nothing():
    playing = play()
    await playing.reset()
    step = await playing.step(calls(("broken", {"how": "raise"})))
    assert contents(step.observation.messages) == ["error: ValueError: no such order"]
    assert (step.done, world(playing)["count"]) == (False, 0)


@pytest.mark.parametrize("how", ["die", "hang", "flood", "not json", "spoil", "exit"])
async def test_a_tool_that_fails_altogether_is_answered_and_changes_nothing(how):
    playing = play(call_seconds=1)
    await playing.reset()
    step = await playing.step(calls(("broken", {"how": how}), ("add", {"n": 1})))
    failed, added = contents(step.observation.messages)
    assert failed.startswith("error: the tool broken failed and changed nothing: ")
    assert added == "1"


async def test_unknown_tools_and_bad_arguments_are_answered_by_naming_the_mistake():
    playing = play()
    await playing.reset()
    step = await playing.step(calls(("subtract", {"n": 1}), ("add", {"n": "1"}), ("add", "{"), ("reset", {})))
    said = contents(step.observation.messages)
    assert "there is no tool 'subtract'" in said[0]
    assert said[1] == 'error: argument n must be integer, not "1"'
    assert "not valid JSON" in said[2]
    assert "there is no tool 'reset'" in said[3]
    assert world(playing)["count"] == 0


async def test_calls_beyond_the_limit_are_not_made_and_end_the_episode():
    playing = play(max_calls=2)
    await playing.reset()
    step = await playing.step(calls(*[("add", {"n": 1})] * 3))
    assert contents(step.observation.messages)[2] == "not called: the episode's limit max_calls is reached"
    assert (step.done, step.truncated, step.info["limit"], world(playing)["count"]) == (True, True, "max_calls", 2)


async def test_the_time_that_tools_take_is_limited_over_the_whole_episode():
    playing = play(call_seconds=0.5, tool_seconds=0.2)
    await playing.reset()
    step = await playing.step(calls(("broken", {"how": "hang"}), ("add", {"n": 1})))
    assert (step.truncated, step.info["limit"], world(playing)["count"]) == (True, "tool_seconds", 0)


async def test_the_last_allowed_turn_still_acts_and_is_marked_truncated():
    playing = play(max_turns=1)
    await playing.reset()
    step = await playing.step(calls(("add", {"n": 4})))
    assert (step.done, step.truncated, world(playing)["count"]) == (True, True, 4)


async def test_any_worker_can_take_the_next_step():
    first = play()
    await first.reset()
    await first.step(calls(("add", {"n": 2})))
    second = episode(HARNESS, files=FILES, state=json.loads(json.dumps(first.state)))
    step = await second.step(calls(("add", {"n": 2})))
    assert contents(step.observation.messages) == ["4"]


async def test_reset_that_fails_is_the_environments_fault():
    files = {"tools.py": 'def reset(case, seed):\n    return case["nothing"]\ndef f():\n    """F."""\n'}
    with pytest.raises(HarnessError, match=r"tools\.py: reset failed"):
        await episode({"type": "tools", "tools": "tools.py"}, files=files).reset()


async def test_a_sandbox_that_fails_is_an_error_and_not_the_models_mistake():
    begun = play()
    await begun.reset()
    playing = episode(HARNESS, files=FILES, state=begun.state, pool=BrokenPool())
    with pytest.raises(HarnessError, match="no engine"):
        await playing.step(calls(("add", {"n": 1})))


async def test_a_scripted_user_answers_when_the_model_speaks():
    playing = play(user={"turns": ["And one more."]})
    await playing.reset()
    await playing.step(calls(("add", {"n": 1})))
    step = await playing.step(assistant("It is 1."))
    assert (contents(step.observation.messages), step.done) == (["And one more."], False)
    await playing.step(calls(("add", {"n": 1})))
    assert (await playing.step(assistant("It is 2."))).done


async def test_simulated_user_gets_messages_without_tool_calls():
    user = Recorded("Thank you. ###")
    playing = episode({**HARNESS, "user": {"role": "user", "prompt": "Be brief."}}, files=FILES, call_model=user)
    await playing.reset()
    await playing.step(calls(("add", {"n": 1})))
    assert (await playing.step(assistant("It is 1."))).done
    assert contents(user.heard[0])[2:] == ["Hello.", "It is 1."]
    assert playing.environment.roles == ["user"]


# ---- schemas alone ---------------------------------------------------------------------------------------------------

SCHEMAS = [{"name": "geo.find", "description": "Find.", "parameters": {"type": "dict", "properties": {}}}]
DECLARED = {"type": "tools", "tools": "{{ functions }}"}


async def test_with_schemas_alone_a_call_ends_the_episode_and_nothing_runs():
    playing = episode(DECLARED, case=CaseData(id="c", input="Where?", row={"functions": SCHEMAS}))
    seen = await playing.reset()
    assert seen.tools[0]["function"]["name"] == "geo_find"
    step = await playing.step(calls(("geo_find", {"q": 1})))
    assert (step.done, step.truncated, step.observation.messages) == (True, False, [])
    assert not playing.environment.needs_sandbox


async def test_scorers_read_calls_under_the_names_that_the_bundle_declared():
    playing = episode(DECLARED, case=CaseData(id="c", input="Where?", row={"functions": SCHEMAS}))
    await playing.reset()
    await playing.step(calls(("geo_find", {"q": 1})))
    options = playing.environment.harness_options(playing.case)
    read = playing.environment.harness.transcript(options, playing.messages)
    assert read[-1]["tool_calls"][0]["function"]["name"] == "geo.find"


# ---- the text protocol -----------------------------------------------------------------------------------------------


def written(name, **arguments):
    return assistant(f"Let me see.\n```tool_call\n{json.dumps({'name': name, 'arguments': arguments})}\n```")


async def test_a_model_without_tool_calling_reads_the_tools_and_writes_its_calls():
    playing = play(protocol="text")
    seen = await playing.reset()
    assert seen.tools == []
    assert seen.messages[0]["content"].startswith("Count.\n\nYou can call these tools.")
    step = await playing.step(written("add", n=2))
    assert [message["role"] for message in step.observation.messages] == ["user"]
    assert step.observation.messages[0]["content"] == '```tool_result\n{"name": "add", "content": "2"}\n```'
    assert world(playing)["count"] == 2
    assert (await playing.step(assistant("It is 2."))).done


async def test_a_text_call_that_cannot_be_read_is_answered_and_the_episode_goes_on():
    playing = play(protocol="text")
    await playing.reset()
    step = await playing.step(assistant('```tool_call\n{"name": "add"'))
    assert "not closed" in step.observation.messages[0]["content"]
    assert (step.done, world(playing)["count"]) == (False, 0)


async def test_scorers_read_text_calls_as_native_ones():
    playing = play(protocol="text")
    await playing.reset()
    await playing.step(written("add", n=2))
    read = playing.environment.harness.transcript(playing.environment.harness_options(playing.case), playing.messages)
    assert read[2]["tool_calls"][0]["function"] == {"name": "add", "arguments": '{"n": 2}'}
    assert (read[3]["role"], read[3]["content"]) == ("tool", "2")


CHECK = """
def check(case, state, transcript):
    called = [c["function"]["name"] for m in transcript for c in m.get("tool_calls") or []]
    told = [m["content"] for m in transcript if m["role"] == "tool"]
    return {"score": 1.0, "reason": f"{state} {called} {told}"}
"""


@pytest.mark.parametrize("protocol", ["native", "text"])
async def test_a_check_reads_the_bundles_own_state_and_one_shape_of_transcript(protocol):
    files = {**FILES, "check.py": CHECK}
    rules = [{"type": "state", "path": "check.py"}]
    playing = episode({**HARNESS, "protocol": protocol}, files=files, rules=rules)
    await playing.reset()
    await playing.step(written("add", n=2) if protocol == "text" else calls(("add", {"n": 2})))
    step = await playing.step(assistant("It is 2."))
    assert step.score.rules[0].reason == "{'count': 2, 'seed': 7} ['add'] ['2']"


# ---- what validation tells -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "files", "said"),
    [
        ({"tools": "gone.py"}, {}, "no file 'gone.py'"),
        ({"tools": "tools.txt"}, {"tools.txt": "x"}, "must be a .py file"),
        ({"tools": "tools.py"}, {"tools.py": "def f(x):\n    '''F.'''\n"}, "parameter x has no type hint"),
        ({"tools": "tools.py"}, FILES, "imports helper.py, which is not listed; add it to `reads`"),
    ],
)
def test_invalid_tools_file_is_reported_without_running_it(options, files, said):
    with pytest.raises(CompileError, match=said.replace("(", r"\(")):
        environment({"type": "tools", **options}, files=files)


def test_what_the_tools_read_is_part_of_the_input_digest():
    case = CaseData(id="c", input="Go.")
    changed = {**FILES, "helper.py": FILES["helper.py"] + "# changed\n"}
    before, after = (environment(HARNESS, files=files).input_digest(case) for files in (FILES, changed))
    assert before != after
