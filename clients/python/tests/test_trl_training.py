"""Training with TRL's GRPOTrainer: two steps of a small model with random weights, whose messages are scripted."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import Answer
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM
from trl import GRPOConfig, GRPOTrainer
from trl.chat_template_utils import qwen2_5_chat_template

from llmeval_client import Client
from llmeval_client.trl import create_dataset, create_environment_class, create_reward_function, environment_reward
from llmeval_client.trl_rollouts import EpisodeRollouts, rollout_reward

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def create_tokenizer(texts: Sequence[str]) -> PreTrainedTokenizerFast:
    """Return a tokenizer trained on *texts*, with the chat template of Qwen 2.5."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=1000, initial_alphabet=alphabet, special_tokens=SPECIAL)
    tokenizer.train_from_iterator(texts, trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>", padding_side="left"
    )
    fast.chat_template = qwen2_5_chat_template
    return fast


class Model(Qwen2ForCausalLM):  # type: ignore[misc]
    """Small model. With a script, `generate` returns its replies instead of samples; training is the usual one."""

    script: Callable[[int, str], str] | None = None
    tokenizer: PreTrainedTokenizerFast

    def generate(self, *args: Any, **kwargs: Any) -> Any:
        if self.script is None:
            return super().generate(*args, **kwargs)
        prompts = kwargs["input_ids"]
        replies = [
            self.tokenizer(self.script(row, self.tokenizer.decode(ids)) + "<|im_end|>")["input_ids"]
            for row, ids in enumerate(prompts)
        ]
        width = max(map(len, replies))
        padded = [ids + [self.tokenizer.pad_token_id] * (width - len(ids)) for ids in replies]
        return torch.cat([prompts, torch.tensor(padded)], dim=1)


def create_model(tokenizer: PreTrainedTokenizerFast, script: Callable[[int, str], str] | None) -> Model:
    torch.manual_seed(1)
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=32768,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )
    model = Model(config)
    model.script, model.tokenizer = script, tokenizer
    return model


def rendered(message: dict[str, Any]) -> str:
    """Return an assistant message as the model writes it."""
    calls = [
        {"name": call["function"]["name"], "arguments": json.loads(call["function"]["arguments"])}
        for call in message.get("tool_calls") or []
    ]
    return "\n".join(
        [
            *([message["content"]] if message.get("content") else []),
            *(f"<tool_call>\n{json.dumps(call)}\n</tool_call>" for call in calls),
        ]
    )


def scripted(answers: Sequence[Answer]) -> Callable[[int, str], str]:
    """Continue the answer that a prompt has so far; the first messages of a batch are those of one answer each."""

    def reply(row: int, prompt: str) -> str:
        said = prompt.count("<|im_start|>assistant") - 1
        texts = [[rendered(message) for message in answer.messages] for answer in answers]
        matching = [text for text in texts if len(text) > said and all(part in prompt for part in text[:said])]
        return matching[row % len(matching)][said]

    return reply


def pair(answers: list[Answer], *, single: bool = False) -> list[Answer]:
    """Return an answer that passed and one that failed, of the same case. *single*: without further turns of a user."""
    usable = [
        answer
        for answer in answers
        if not single or [message["role"] for message in answer.transcript].count("user") == 1
    ]
    passed = {answer.case: answer for answer in usable if answer.status == "passed"}
    for answer in usable:
        if answer.status == "failed" and answer.case in passed:
            return [passed[answer.case], answer]
    raise AssertionError("no case has both")


def train(folder: Path, model: Model, dataset: Any, *, length: int = 2048, **trainer: Any) -> list[dict[str, Any]]:
    """Train for two steps with groups of two, check that the weights change, and return what was logged."""
    before = [parameter.detach().clone() for parameter in model.parameters()]
    args = GRPOConfig(
        output_dir=str(folder),
        per_device_train_batch_size=2,
        num_generations=2,
        max_completion_length=length,
        max_steps=2,
        learning_rate=1e-3,
        logging_steps=1,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        bf16=False,
        seed=1,
    )
    running = GRPOTrainer(model=model, args=args, train_dataset=dataset, processing_class=model.tokenizer, **trainer)
    running.train()
    if model.script is not None:
        assert any(not torch.equal(old, new) for old, new in zip(before, model.parameters(), strict=True))
    return [row for row in running.state.log_history if "reward" in row]


def texts(client: Client, environment: str) -> list[str]:
    return [str(message["content"]) for case in client.cases(environment) for message in case.messages]


def only(client: Client, answer: Answer) -> Any:
    return create_dataset(client, answer.environment).filter(lambda row: row["case"] == answer.case)


@pytest.mark.parametrize("environment", ["word-problems"])
def test_single_turn_with_the_reward_function(
    client: Client, environment: str, answers: list[Answer], tmp_path: Path
) -> None:
    chosen = pair(answers)
    model = create_model(create_tokenizer(texts(client, environment)), scripted(chosen))
    logged = train(tmp_path, model, only(client, chosen[0]), reward_funcs=create_reward_function(client))
    assert [row["reward"] for row in logged] == [pytest.approx(sum(a.score for a in chosen) / 2)] * 2


@pytest.mark.parametrize("environment", ["order-desk"])
def test_tools_with_the_environment_factory(
    client: Client, environment: str, answers: list[Answer], tmp_path: Path
) -> None:
    chosen = pair(answers, single=True)
    model = create_model(create_tokenizer(texts(client, environment)), scripted(chosen))
    logged = train(
        tmp_path,
        model,
        only(client, chosen[0]),
        length=8192,
        reward_funcs=environment_reward,
        environment_factory=create_environment_class(client, environment),
    )
    assert [row["reward"] for row in logged] == [pytest.approx(sum(a.score for a in chosen) / 2)] * 2
    assert logged[0]["tools/call_frequency"] > 0 and logged[0]["tools/failure_frequency"] == 0


def test_episodes_with_the_rollout_function(
    client: Client, environment: str, answers: list[Answer], tmp_path: Path
) -> None:
    """The tokens of a rollout are those of its transcript, and the mask selects the messages of the model."""
    chosen = pair(answers)
    dataset = only(client, chosen[0])
    tokenizer = create_tokenizer(texts(client, environment))
    rollouts = EpisodeRollouts(client, dataset, model="step-1")
    returned: list[dict[str, Any]] = []

    def rollout(prompts: Any, trainer: GRPOTrainer) -> dict[str, Any]:
        returned.append(rollouts(prompts, trainer))
        return returned[-1]

    model = create_model(tokenizer, scripted(chosen))
    logged = train(tmp_path, model, dataset, length=8192, reward_funcs=rollout_reward, rollout_func=rollout)
    assert [row["reward"] for row in logged] == [pytest.approx(sum(a.score for a in chosen) / 2)] * 2
    assert client.list_episodes(done=False) == []
    assert returned[0]["episode_reward"] == [answer.score for answer in chosen]
    (tools,) = [case.tools for case in client.cases(environment) if case.id == chosen[0].case]
    for row, answer in enumerate(chosen):
        prompt, completion, mask = (returned[0][key][row] for key in ("prompt_ids", "completion_ids", "env_mask"))
        conversation = [template_message(message) for message in answer.transcript]
        whole = tokenizer.apply_chat_template(conversation, tools=tools or None, tokenize=False)
        assert tokenizer.decode(prompt + completion) == whole.rstrip("\n")
        said = [token for token, by_model in zip(completion, mask, strict=True) if by_model]
        assert tokenizer.decode(said) == "".join(f"{rendered(message)}<|im_end|>" for message in answer.messages)


def template_message(message: dict[str, Any]) -> dict[str, Any]:
    """Return *message* with arguments as objects, as chat templates expect them."""
    calls = [
        {**call, "function": {**call["function"], "arguments": json.loads(call["function"]["arguments"])}}
        for call in message.get("tool_calls") or []
    ]
    return {**message, "content": message.get("content") or ""} | ({"tool_calls": calls} if calls else {})


@pytest.mark.parametrize("environment", ["changing-plans"])
def test_samples_of_the_model_are_truncated_at_the_limit_and_scored(
    client: Client, environment: str, tmp_path: Path
) -> None:
    dataset = create_dataset(client, environment).select([0, 1])
    model = create_model(create_tokenizer(texts(client, environment)), None)
    rollouts = EpisodeRollouts(client, dataset)
    logged = train(tmp_path, model, dataset, length=32, reward_funcs=rollout_reward, rollout_func=rollouts)
    assert [row["reward"] for row in logged] == [0.0, 0.0]
    assert {item["truncated"] for item in client.list_episodes()} >= {True}


@pytest.mark.parametrize("environment", ["changing-plans"])
def test_cases_with_the_same_prompt_are_rejected(client: Client, environment: str) -> None:
    rows = create_dataset(client, environment).select([0, 0]).to_list()
    rows[1]["case"] = "another"
    with pytest.raises(ValueError, match="prompt of another case"):
        EpisodeRollouts(client, rows)
