"""Dataset, reward function and tool environments for TRL, without its trainer: test_trl_training.py has that."""

import json
from typing import Any

import pytest
from conftest import Answer
from transformers.utils import get_json_schema

from llmeval_client import Client, Message
from llmeval_client.trl import create_dataset, create_environment_class, create_reward_function, environment_reward


def trl_messages(answer: Answer) -> list[Message]:
    """Return the completion as TRL parses it: calls without ids, arguments as objects, and the results of tools."""
    start = next(i for i, message in enumerate(answer.transcript) if message["role"] == "assistant")
    messages = []
    for message in answer.transcript[start:]:
        calls: Any = message.get("tool_calls") or []
        functions = [
            {"name": call["function"]["name"], "arguments": json.loads(call["function"]["arguments"])} for call in calls
        ]
        parsed = [{"type": "function", "function": function} for function in functions]
        content = message.get("content") or ""
        messages.append({"role": message["role"], "content": content} | ({"tool_calls": parsed} if parsed else {}))
    return messages


def test_dataset_has_a_row_for_each_case(client: Client, environment: str) -> None:
    dataset = create_dataset(client, environment)
    cases = client.cases(environment)
    assert dataset.column_names == ["prompt", "environment", "case", "split"]
    assert dataset["case"][:] == [case.id for case in cases]
    assert dataset[0]["prompt"] == [{"role": m["role"], "content": m["content"]} for m in cases[0].messages]


def test_reward_function_returns_the_scores_of_the_evaluation(
    client: Client, environment: str, answers: list[Answer]
) -> None:
    rewards = create_reward_function(client)(
        completions=[trl_messages(answer) for answer in answers],
        environment=[environment] * len(answers),
        case=[answer.case for answer in answers],
        prompts=["..."] * len(answers),
        trainer_state=None,
    )
    assert rewards == [answer.score for answer in answers]


@pytest.mark.parametrize("environment", ["word-problems"])
def test_text_is_scored_and_a_case_that_does_not_exist_has_no_reward(
    client: Client, environment: str, answers: list[Answer]
) -> None:
    text = str(answers[0].messages[0]["content"])
    score = create_reward_function(client)
    assert score([text, text], [environment] * 2, [answers[0].case, "atlantis"]) == [answers[0].score, None]


@pytest.mark.parametrize("environment", ["order-desk"])
def test_tools_are_methods_with_the_schemas_of_the_environment(client: Client, environment: str) -> None:
    case = client.cases(environment)[0]
    offered: Any = {tool["function"]["name"]: tool["function"] for tool in case.tools}  # type: ignore[index]
    instance = create_environment_class(client, environment)()
    for name, function in offered.items():
        shown = get_json_schema(getattr(instance, name))["function"]
        parameters = function["parameters"]
        assert shown["description"] == " ".join(function["description"].split())
        assert set(shown["parameters"].get("required", [])) == set(parameters.get("required", []))
        assert {key: value.get("type") for key, value in shown["parameters"]["properties"].items()} == {
            key: value.get("type") for key, value in parameters["properties"].items()
        }
    public = {name for name in vars(type(instance)) if not name.startswith("_")}
    assert public == set(offered)
    with pytest.raises(ValueError, match="has no tools"):
        create_environment_class(client, "word-problems")


@pytest.mark.parametrize("environment", ["order-desk"])
def test_tool_environment_returns_the_rewards_of_the_evaluation(
    client: Client, environment: str, answers: list[Answer]
) -> None:
    factory = create_environment_class(client, environment, model="step-1")
    instances, completions, scores = [], [], []
    for answer in answers:
        completion = trl_messages(answer)
        if "user" in {message["role"] for message in completion}:
            continue  # TRL ends a rollout at the first message without a call
        instance = factory()
        assert instance.reset(case=answer.case, prompt=[], environment=environment, split="") is None  # type: ignore[func-returns-value]
        for message in completion:
            calls: Any = message.get("tool_calls") or []
            for call in calls:
                assert isinstance(getattr(instance, call["function"]["name"])(**call["function"]["arguments"]), str)
        instances.append(instance)
        completions.append(completion)
        scores.append(answer.score)
    assert {score == 1.0 for score in scores} == {True, False}
    assert environment_reward(completions=completions, environments=instances, case=[]) == scores
    assert client.list_episodes(done=False) == []
    with pytest.raises(RuntimeError, match="over"):
        instances[0].list_orders(customer_id="C-201")  # type: ignore[attr-defined]
    instances[0].reset(case=answers[0].case)
    assert "tool" in instances[0].get_order(order_id="LK-0") or instances[0].get_order("LK-0")  # type: ignore[attr-defined]
    instances[0].reset(case=answers[0].case)
    assert len(client.list_episodes(done=False)) == 1  # the open one was deleted
    instances[0]._finish("")
