"""The harness `tools`: functions of a bundle as tools that change the state of the episode."""

import json

import pytest

from hub.environments.compiled import CaseError, CompileError
from hub.harnesses.base import HarnessError
from hub.protocols.cases import CaseData
from sandbox.errors import SandboxUnavailable
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
        return "x" * 17_000_000
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


async def test_reset_offers_the_tools_and_the_initial_state():
    playing = play(CaseData(id="c", input="Go.", metadata={"start": 3}))
    seen = await playing.reset()
    assert contents(seen.messages) == ["Count.", "Go."]
    assert [tool["function"]["name"] for tool in seen.tools] == ["add", "twice", "broken"]
    assert world(playing) == {"count": 3, "seed": 7}


async def test_parallel_calls_run_in_order_on_one_state():
    playing = play()
    await playing.reset()
    step = await playing.step(calls(("add", {"n": 2}), ("twice", {"n": 5}), ("add", {"n": 3})))
    assert contents(step.observation.messages) == ["2", "10", "5"]
    assert [message["tool_call_id"] for message in step.observation.messages] == ["id0", "id1", "id2"]
    step = await playing.step(calls(("add", {"n": 1})))
    assert contents(step.observation.messages) == ["6"]
    assert world(playing)["count"] == 6


async def test_episode_ends_with_a_message_without_tool_calls():
    playing = play()
    await playing.reset()
    step = await playing.step(assistant("Done."))
    assert (step.done, step.truncated) == (True, False)


async def test_exception_in_a_tool_is_returned_and_keeps_the_state():
    playing = play()
    await playing.reset()
    step = await playing.step(calls(("broken", {"how": "raise"})))
    assert contents(step.observation.messages) == ["error: ValueError: no such order"]
    assert (step.done, world(playing)["count"]) == (False, 0)


@pytest.mark.parametrize("how", ["die", "hang", "flood", "not json", "spoil", "exit"])
async def test_crash_or_timeout_of_a_tool_is_returned_and_keeps_the_state(how):
    playing = play(call_seconds=1 if how == "hang" else 10)
    await playing.reset()
    step = await playing.step(calls(("broken", {"how": how}), ("add", {"n": 1})))
    failed, added = contents(step.observation.messages)
    assert failed.startswith("error: the tool broken failed and changed nothing: ")
    assert added == "1"


async def test_lines_of_failing_code_are_those_of_the_file_that_the_message_names():
    tool = 'def go() -> int:\n    """Go."""\n    return 1\n'
    playing = episode({"type": "tools", "tools": "tools.py"}, files={"tools.py": f"{tool}1 / 0\n"})
    await playing.reset()
    step = await playing.step(calls(("go", {})))
    assert contents(step.observation.messages)[0].endswith("The code raised ZeroDivisionError: division by zero")
    reset = "def reset(case, seed):\n    return {}['k']\n"
    playing = episode({"type": "tools", "tools": "tools.py"}, files={"tools.py": reset + tool})
    with pytest.raises(HarnessError, match=r"tools.py: reset failed: The code raised KeyError: 'k' \(line 2\)"):
        await playing.reset()


async def test_unknown_tool_or_invalid_arguments_return_an_error():
    playing = play()
    await playing.reset()
    step = await playing.step(calls(("subtract", {"n": 1}), ("add", {"n": "1"}), ("add", "{"), ("reset", {})))
    said = contents(step.observation.messages)
    assert "there is no tool 'subtract'" in said[0]
    assert said[1] == 'error: argument n must be integer, not "1"'
    assert "not valid JSON" in said[2]
    assert "there is no tool 'reset'" in said[3]
    assert world(playing)["count"] == 0


async def test_max_calls_ends_the_episode_without_further_calls():
    playing = play(max_calls=2)
    await playing.reset()
    step = await playing.step(calls(*[("add", {"n": 1})] * 3))
    assert contents(step.observation.messages)[2] == "not called: the episode's limit max_calls is reached"
    assert (step.done, step.truncated, step.info["limit"], world(playing)["count"]) == (True, True, "max_calls", 2)
    assert playing.state["stop"] == "calls"


async def test_tool_seconds_limits_all_calls_of_an_episode():
    playing = play(call_seconds=0.5, tool_seconds=0.2)
    await playing.reset()
    step = await playing.step(calls(("broken", {"how": "hang"}), ("add", {"n": 1})))
    assert (step.truncated, step.info["limit"], world(playing)["count"]) == (True, "tool_seconds", 0)
    assert playing.state["stop"] == "tool_seconds"


async def test_calls_of_the_last_turn_are_made_and_the_episode_is_truncated():
    playing = play(max_turns=1)
    await playing.reset()
    step = await playing.step(calls(("add", {"n": 4})))
    assert (step.done, step.truncated, world(playing)["count"]) == (True, True, 4)


async def test_episode_with_tools_continues_from_its_json_state():
    first = play()
    await first.reset()
    await first.step(calls(("add", {"n": 2})))
    second = episode(HARNESS, files=FILES, state=json.loads(json.dumps(first.state)))
    step = await second.step(calls(("add", {"n": 2})))
    assert contents(step.observation.messages) == ["4"]


async def test_failing_reset_is_an_environment_error():
    files = {"tools.py": 'def reset(case, seed):\n    return case["nothing"]\ndef f():\n    """F."""\n'}
    with pytest.raises(HarnessError, match=r"tools\.py: reset failed"):
        await episode({"type": "tools", "tools": "tools.py"}, files=files).reset()


async def test_sandbox_failure_is_an_error_and_not_a_wrong_answer():
    begun = play()
    await begun.reset()
    playing = episode(HARNESS, files=FILES, state=begun.state, pool=BrokenPool())
    with pytest.raises(SandboxUnavailable, match="no engine"):
        await playing.step(calls(("add", {"n": 1})))


async def test_scripted_user_replies_to_messages_without_calls():
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


async def test_call_of_a_declared_schema_ends_the_episode_without_execution():
    playing = episode(DECLARED, case=CaseData(id="c", input="Where?", row={"functions": SCHEMAS}))
    seen = await playing.reset()
    assert seen.tools[0]["function"]["name"] == "geo_find"
    step = await playing.step(calls(("geo_find", {"q": 1})))
    assert (step.done, step.truncated, step.observation.messages) == (True, False, [])
    assert not playing.environment.needs_sandbox


async def test_scorers_get_the_declared_tool_names():
    playing = episode(DECLARED, case=CaseData(id="c", input="Where?", row={"functions": SCHEMAS}))
    await playing.reset()
    await playing.step(calls(("geo_find", {"q": 1})))
    options = playing.environment.harness_options(playing.case)
    read = playing.environment.harness.transcript(options, playing.messages)
    assert read[-1]["tool_calls"][0]["function"]["name"] == "geo.find"


# ---- the text protocol -----------------------------------------------------------------------------------------------


def written(name, **arguments):
    return assistant(f"Let me see.\n```tool_call\n{json.dumps({'name': name, 'arguments': arguments})}\n```")


async def test_text_protocol_describes_tools_and_parses_calls():
    playing = play(protocol="text")
    seen = await playing.reset()
    assert seen.tools == []
    assert seen.messages[0]["content"].startswith("Count.\n\nYou can call these tools.")
    step = await playing.step(written("add", n=2))
    assert [message["role"] for message in step.observation.messages] == ["user"]
    assert step.observation.messages[0]["content"] == '```tool_result\n{"name": "add", "content": "2"}\n```'
    assert world(playing)["count"] == 2
    assert (await playing.step(assistant("It is 2."))).done


async def test_text_call_in_a_part_of_the_content_is_made():
    playing = play(protocol="text")
    await playing.reset()
    said = written("add", n=2)
    await playing.step({**said, "content": [{"type": "text", "text": said["content"]}]})
    assert world(playing)["count"] == 2
    read = playing.environment.harness.transcript(playing.environment.harness_options(playing.case), playing.messages)
    assert read[2]["tool_calls"][0]["function"]["name"] == "add" and read[3]["role"] == "tool"


async def test_invalid_text_call_is_answered_and_the_episode_continues():
    playing = play(protocol="text")
    await playing.reset()
    step = await playing.step(assistant('```tool_call\n{"name": "add"'))
    assert "not closed" in step.observation.messages[0]["content"]
    assert (step.done, world(playing)["count"]) == (False, 0)


async def test_scorers_get_text_calls_as_native_calls():
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
async def test_state_check_gets_native_calls_for_both_protocols(protocol):
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


def test_files_read_by_tools_are_part_of_the_input_digest():
    case = CaseData(id="c", input="Go.")
    changed = {**FILES, "helper.py": FILES["helper.py"] + "# changed\n"}
    before, after = (environment(HARNESS, files=files).rendered(case).input_digest() for files in (FILES, changed))
    assert before != after


SHIPPING = '''
def reset(case, seed):
    return {"sent": []}

def ship(world, state: str) -> int:
    """Ship to a state."""
    world["sent"].append(state)
    return len(world["sent"])

def refund(amount: int) -> str:
    """Refund an amount."""
    return "done"
'''
SHIP = {"type": "tools", "tools": "tools.py", "state_parameter": "world", "offer": "{{ tools }}"}


def shipping(offered, **options):
    case = CaseData(id="c", input="Go.", row={"tools": offered})
    return episode({**SHIP, **options}, files={"tools.py": SHIPPING}, case=case)


async def test_state_is_passed_in_the_state_parameter():
    playing = shipping(["ship"])
    await playing.reset()
    step = await playing.step(calls(("ship", {"state": "Ohio"}), ("ship", {"state": "Utah"})))
    assert contents(step.observation.messages) == ["1", "2"]
    assert world(playing) == {"sent": ["Ohio", "Utah"]}


@pytest.mark.parametrize("parameter", ["{{ name }}", "two words", 3])
def test_state_parameter_must_be_a_name(parameter):
    with pytest.raises(CompileError, match=r"harness.state_parameter"):
        environment({**SHIP, "state_parameter": parameter}, files={"tools.py": SHIPPING})


@pytest.mark.parametrize("protocol", ["native", "text"])
async def test_only_offered_tools_exist_in_a_case(protocol):
    playing = shipping(["ship"], protocol=protocol)
    seen = await playing.reset()
    if protocol == "native":
        assert [tool["function"]["name"] for tool in seen.tools] == ["ship"]
        step = await playing.step(calls(("refund", {"amount": 1}), ("ship", {"state": "Ohio"})))
        assert contents(step.observation.messages) == ["error: there is no tool 'refund'; the tools are ship", "1"]
    else:
        assert "refund" not in str(seen.messages)
        assert "ship" in str(seen.messages)
    assert [tool["function"]["name"] for tool in (await shipping(["refund", "ship"]).reset()).tools] == [
        "ship",
        "refund",
    ]


async def test_offer_selects_declared_schemas():
    schemas = [{"name": name, "description": name, "parameters": {}} for name in ("math.sqrt", "math.exp")]
    case = CaseData(id="c", input="Go.", row={"tools": ["math.exp"]})
    playing = episode({"type": "tools", "tools": schemas, "offer": "{{ tools }}"}, case=case)
    assert [tool["function"]["name"] for tool in (await playing.reset()).tools] == ["math_exp"]


def test_unknown_names_in_offer_are_a_problem_of_the_case():
    play = environment(SHIP, files={"tools.py": SHIPPING})
    play.rendered(CaseData(id="c", input="Go.", row={"tools": ["ship"]})).check()
    with pytest.raises(
        CaseError, match=r"harness.offer: case 'c': there is no tool 'shop'; the tools are ship, refund"
    ):
        play.rendered(CaseData(id="c", input="Go.", row={"tools": ["ship", "shop"]})).check()


def test_new_options_change_no_digest_of_cases_without_them():
    options = play().environment.harness_options(CaseData(id="c", input="Go."))
    assert not {"offer", "state_parameter"} & set(options.model_dump(mode="json"))
    case = CaseData(id="c", input="Go.", row={"tools": ["ship"]})
    given = environment(SHIP, files={"tools.py": SHIPPING}).harness_options(case)
    assert {"offer", "state_parameter"} <= set(given.model_dump(mode="json"))
