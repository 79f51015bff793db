"""Conversations with a user that is scripted or simulated by a model."""

import pytest

from hub.environments.compiled import CaseError
from hub.harnesses.base import HarnessError
from hub.protocols.cases import CaseData
from tests.hub.playing import Recorded, assistant, contents, environment, episode

SCRIPT = {"type": "multi_turn", "user": {"turns": "{{ turns }}"}}
SIMULATED = {"type": "multi_turn", "system": "Help.", "user": {"role": "user", "prompt": "You lost a parcel."}}


def scripted(*turns, **row):
    return CaseData(id="c", input=row.pop("input", "First."), row={"turns": list(turns), **row})


async def test_scripted_user_sends_each_turn_and_answer_to_the_last_ends_the_episode():
    play = episode(SCRIPT, case=scripted("Second.", "Third."))
    assert contents((await play.reset()).messages) == ["First."]
    assert contents((await play.step(assistant("one"))).observation.messages) == ["Second."]
    step = await play.step(assistant("two"))
    assert (contents(step.observation.messages), step.done) == (["Third."], False)
    step = await play.step(assistant("three"))
    assert (step.done, step.truncated, step.observation.messages) == (True, False, [])


async def test_empty_prompt_starts_with_the_first_scripted_turn():
    play = episode(SCRIPT, case=scripted("Second.", "Third.", input=""))
    assert contents((await play.reset()).messages) == ["Second."]
    assert contents((await play.step(assistant("one"))).observation.messages) == ["Third."]
    assert (await play.step(assistant("two"))).done


async def test_conversation_without_first_message_is_an_environment_error():
    with pytest.raises(HarnessError, match="has no first message"):
        await episode(SCRIPT, case=scripted(input="")).reset()


async def test_turn_limit_truncates_unless_the_script_has_ended():
    play = episode({**SCRIPT, "max_turns": 2}, case=scripted("Second.", "Third."))
    await play.reset()
    await play.step(assistant("one"))
    step = await play.step(assistant("two"))
    assert (step.done, step.truncated, step.info) == (True, True, {"limit": "max_turns"})
    play = episode({**SCRIPT, "max_turns": 2}, case=scripted("Second."))
    await play.reset()
    await play.step(assistant("one"))
    assert (await play.step(assistant("two"))).truncated is False


async def test_simulated_user_gets_the_conversation_with_roles_swapped():
    user = Recorded("Number 7, please.", "Thanks. ###")
    play = episode(SIMULATED, call_model=user)
    await play.reset()
    step = await play.step(assistant("Which parcel?"))
    assert contents(step.observation.messages) == ["Number 7, please."]
    assert [(m["role"], m["content"]) for m in user.heard[0]][2:] == [
        ("assistant", "Hello."),
        ("user", "Which parcel?"),
    ]
    assert user.heard[0][0] == {"role": "system", "content": "You lost a parcel."}
    key = user.keys[0]
    assert (key.purpose, key.role, key.turn, key.model, key.attempt, key.case) == ("user", "user", 0, "a", 2, "c")


async def test_stop_word_ends_the_conversation_and_is_removed():
    user = Recorded("Number 7.", "Thanks. ### <end>")
    play = episode(SIMULATED, call_model=user)
    await play.reset()
    await play.step(assistant("Which parcel?"))
    step = await play.step(assistant("It is on its way."))
    assert (step.done, step.truncated, contents(step.observation.messages)) == (True, False, ["Thanks."])
    assert [key.turn for key in user.keys] == [0, 1]


async def test_empty_prompt_starts_with_the_simulated_user():
    play = episode({**SIMULATED, "prompt": ""}, call_model=Recorded("My parcel is gone."))
    assert contents((await play.reset()).messages) == ["Help.", "My parcel is gone."]


async def test_reasoning_of_the_simulated_user_is_removed():
    play = episode(SIMULATED, call_model=Recorded("<think>be terse ### really</think>Seven."))
    await play.reset()
    step = await play.step(assistant("Which parcel?"))
    assert (contents(step.observation.messages), step.done) == (["Seven."], False)


async def test_simulated_user_does_not_hear_the_reasoning_of_the_model():
    user = Recorded("Seven.")
    play = episode(SIMULATED, call_model=user)
    await play.reset()
    await play.step(assistant("<think>It lost parcel 7; ask anyway.</think>\n\nWhich parcel?"))
    assert contents(user.heard[0])[-1] == "Which parcel?"


@pytest.mark.parametrize("call_model", [None, Recorded("  ")], ids=["no model", "silent model"])
async def test_failed_user_model_is_an_error_and_not_a_wrong_answer(call_model):
    play = episode(SIMULATED, call_model=call_model)
    await play.reset()
    with pytest.raises(HarnessError, match="user"):
        await play.step(assistant("Which parcel?"))


async def test_simulated_conversation_continues_from_its_json_state():
    first = episode(SIMULATED, call_model=Recorded("Seven."))
    await first.reset()
    await first.step(assistant("Which parcel?"))
    user = Recorded("Bye. ###")
    second = episode(SIMULATED, call_model=user, state=first.state)
    await second.step(assistant("Found it."))
    assert contents(user.heard[0])[2:] == ["Hello.", "Which parcel?", "Seven.", "Found it."]


def test_simulated_user_requires_a_model_with_the_role_user():
    assert environment(SIMULATED).roles == ["user"]
    assert environment(SCRIPT).roles == []


@pytest.mark.parametrize(
    "user", [{}, {"role": "user"}, {"turns": [], "role": "user", "prompt": "p"}, {"turns": [], "prompt": "p"}]
)
async def test_user_needs_either_turns_or_a_role_with_a_prompt(user):
    with pytest.raises(CaseError, match="give either `turns`"):
        episode({"type": "multi_turn", "user": user})
