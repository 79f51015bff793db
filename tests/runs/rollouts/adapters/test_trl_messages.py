"""Messages in the TRL adapter: contents of text or parts, and fields of some messages. Needs only `datasets`."""

from typing import Any, cast

import pytest
from datasets import concatenate_datasets

from llmeval_client import Case, Client, Message, ScoredConversation
from llmeval_client.trl import create_dataset, create_reward_function, wire_messages

TEXT: Message = {"role": "user", "content": "What is this?"}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
CALL = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"a": 1}'}}
TOOL_TURN: list[Message] = [
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "name": "find", "content": "found"},
]


class FakeClient:
    """Client whose environments have the openings *prompts*, and which scores the text of the last message."""

    def __init__(self, *prompts: list[Message]) -> None:
        self.prompts = prompts

    def cases(self, environment: str, **which: object) -> list[Case]:
        return [Case(f"c{i}", "", messages, []) for i, messages in enumerate(self.prompts)]

    def score(self, environment: str, items: list[tuple[str, list[Message]]]) -> list[ScoredConversation]:
        rewards = [float(messages[-1]["content"] == "Lima") for _, messages in items]
        return [ScoredConversation("c0", reward, "passed", False, "") for reward in rewards]


def dataset(*prompts: list[Message]) -> Any:
    return create_dataset(cast(Client, FakeClient(*prompts)), "environment")


@pytest.mark.parametrize("reverse", [False, True])
def test_dataset_has_contents_of_parts_if_one_message_has_an_image(reverse: bool) -> None:
    mixed: list[Message] = [{"role": "system", "content": None}, {"role": "user", "content": [IMAGE]}]
    rows = dataset(*([mixed, [TEXT]] if reverse else [[TEXT], mixed]))
    contents = [[message["content"] for message in prompt] for prompt in rows["prompt"]]
    text = [[{"type": "text", "text": "What is this?"}]]
    assert contents == ([[[], [IMAGE]], text] if reverse else [text, [[], [IMAGE]]])


def test_dataset_has_texts_if_all_parts_are_texts() -> None:
    parts = [{"type": "text", "text": "What is "}, {"type": "text", "text": "this?"}]
    rows = dataset([TEXT], [{"role": "user", "content": parts}])
    assert rows["prompt"][:] == [[TEXT], [TEXT]]


def test_dataset_keeps_tool_calls_and_names() -> None:
    rows = dataset([{**TEXT, "name": "kim"}, *TOOL_TURN], [TEXT])
    called = {**CALL, "function": {"name": "find", "arguments": {"a": 1}}}
    tool_turn = [{"role": "assistant", "content": "", "tool_calls": [called]}, TOOL_TURN[1]]
    assert rows["prompt"][:] == [[{**TEXT, "name": "kim"}, *tool_turn], [TEXT]]


def test_datasets_with_different_messages_are_concatenated() -> None:
    parts = [dataset([TEXT]), dataset([TEXT, *TOOL_TURN]), dataset([{"role": "user", "content": [IMAGE]}]), dataset()]
    assert [len(prompt) for prompt in concatenate_datasets(parts)["prompt"]] == [1, 3, 1]


def test_completion_with_parts_is_scored_by_its_text() -> None:
    completion: list[Message] = [{"role": "assistant", "content": [{"type": "text", "text": "Lima"}]}]
    score = create_reward_function(cast(Client, FakeClient()))
    assert score(completions=[completion, "Cusco"], environment=["e", "e"], case=["c0", "c0"]) == [1.0, 0.0]


@pytest.mark.parametrize("field", ["reasoning_content", "thinking"])
def test_messages_that_are_sent_keep_their_reasoning(field: str) -> None:
    call = {"type": "function", "function": {"name": "find", "arguments": {"a": 1}}}
    said: Message = {"role": "assistant", "content": "", field: "I look.", "tool_calls": [call]}
    sent = {**CALL, "id": "call_0_0"}
    assert wire_messages([said, {"role": "assistant", "content": "found", field: ""}]) == [
        {"role": "assistant", "content": "", "reasoning_content": "I look.", "tool_calls": [sent]},
        {"role": "assistant", "content": "found"},
    ]
