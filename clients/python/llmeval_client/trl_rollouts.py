"""Rollouts with several turns for TRL's GRPOTrainer, as its `rollout_func`. Needs trl, transformers and torch."""

import copy
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import cast

import torch
from datasets import Dataset
from transformers import PreTrainedTokenizerBase
from trl import GRPOTrainer
from trl.chat_template_utils import add_response_schema, parse_response
from trl.models import unwrap_model_for_generation

from llmeval_client.synchronous import Client, Episode
from llmeval_client.trl import Rewards, template_message, wire_messages
from llmeval_client.types import Message, Tool

TokenIds = list[int]
# Return the completion of each prompt, with its log-probabilities or None, within a number of new tokens.
Generate = Callable[[GRPOTrainer, list[TokenIds], int], tuple[list[TokenIds], list[list[float]] | None]]


@dataclass
class _Rollout:
    """Rollout in progress. `mask` is 1 for tokens of the model, and 0 for those of the environment."""

    episode: Episode
    prompt_ids: TokenIds
    completion_ids: TokenIds = field(default_factory=list)
    mask: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)

    @property
    def ids(self) -> TokenIds:
        return self.prompt_ids + self.completion_ids


class EpisodeRollouts:
    """`rollout_func` that executes an episode for each prompt of *dataset*.

    The environment answers each message of the model with its tools and users, as in an evaluation. All rollouts of a
    batch generate together. An episode whose completion reaches the trainer's `max_completion_length` is finished
    and scored as truncated.

    dataset   of `create_dataset`; two cases with the same prompt are rejected, because TRL passes only prompts
    generate  generates one message per prompt; by default the trainer's model does, without vLLM
    which     keys of every new episode, such as seed, roles and model

    Raises ValueError.
    """

    __name__ = "EpisodeRollouts"

    def __init__(self, client: Client, dataset: Dataset, *, generate: Generate | None = None, **which: object) -> None:
        self._client = client
        self._which = which
        self._generate = generate or generate_with_model
        self._cases: dict[str, tuple[str, str]] = {}
        for row in dataset:
            found = (str(row["environment"]), str(row["case"]))
            if self._cases.setdefault(_prompt_key(row["prompt"]), found) != found:
                raise ValueError(f"{found[0]}: case {found[1]} has the prompt of another case; remove one of them.")

    def __call__(self, prompts: Sequence[Sequence[Message]], trainer: GRPOTrainer) -> dict[str, object]:
        """Return prompt_ids, completion_ids, logprobs, env_mask and episode_reward of one rollout per prompt."""
        tokenizer = _tokenizer(trainer)
        rollouts: list[_Rollout] = []
        try:
            for prompt in prompts:
                environment, case = self._cases[_prompt_key(prompt)]
                episode = self._client.start(environment, case=case, **self._which)
                if episode.tools and not _parses_calls(tokenizer):
                    add_response_schema(trainer.processing_class)
                opening = _render(trainer, episode.messages, episode.tools, reply=True)
                rollouts.append(_Rollout(episode, opening))
            while active := [rollout for rollout in rollouts if not rollout.episode.done]:
                self._generate_turn(trainer, active)
        except BaseException:
            for rollout in rollouts:
                if not rollout.episode.done:
                    rollout.episode.delete()
            raise
        results = [rollout.episode.result for rollout in rollouts]
        with_logprobs = all(len(rollout.logprobs) == len(rollout.completion_ids) for rollout in rollouts)
        return {
            "prompt_ids": [rollout.prompt_ids for rollout in rollouts],
            "completion_ids": [rollout.completion_ids for rollout in rollouts],
            "logprobs": [rollout.logprobs for rollout in rollouts] if with_logprobs else None,
            "env_mask": [rollout.mask for rollout in rollouts],
            "episode_reward": [
                None if result is None or result.status == "unscored" else result.reward for result in results
            ],
        }

    def _generate_turn(self, trainer: GRPOTrainer, active: Sequence[_Rollout]) -> None:
        """Generate one message for each rollout, and send it to its episode."""
        limit = trainer.max_completion_length
        room = max(limit - len(rollout.completion_ids) for rollout in active)
        generated, logprobs = self._generate(trainer, [rollout.ids for rollout in active], room)
        for number, (rollout, ids) in enumerate(zip(active, generated, strict=True)):
            prefix = rollout.ids
            ids = ids[: limit - len(rollout.completion_ids)]
            # Without log-probabilities, the list stays empty, and none are returned.
            known = None if logprobs is None else logprobs[number][: len(ids)]
            rollout.completion_ids += ids
            rollout.mask += [1] * len(ids)
            rollout.logprobs += known or []
            if not ids or ids[-1] != _tokenizer(trainer).eos_token_id:
                rollout.episode.finish("tokens")
                continue
            self._step(trainer, rollout, ids, prefix, counted=logprobs is not None)

    def _step(self, trainer: GRPOTrainer, rollout: _Rollout, ids: TokenIds, prefix: TokenIds, *, counted: bool) -> None:
        episode = rollout.episode
        said = _parse(trainer, ids, prefix, episode.tools)
        (message,) = wire_messages([said])
        episode.step(message)
        assert episode.result is not None
        if episode.done:
            return
        suffix = _suffix_ids(trainer, said, episode.result.messages, episode.tools)
        if len(rollout.completion_ids) + len(suffix) >= trainer.max_completion_length:
            episode.finish("tokens")
            return
        rollout.completion_ids += suffix
        rollout.mask += [0] * len(suffix)
        rollout.logprobs += [0.0] * len(suffix) if counted else []


def rollout_reward(episode_reward: Rewards, **_: object) -> Rewards:
    """Reward function for training with `EpisodeRollouts`: the rewards of its episodes."""
    return list(episode_reward)


def generate_with_model(
    trainer: GRPOTrainer, prompts: list[TokenIds], max_new_tokens: int
) -> tuple[list[TokenIds], list[list[float]] | None]:
    """Generate one completion per prompt with the model in training, as the trainer does without vLLM."""
    pad, eos = _tokenizer(trainer).pad_token_id, _tokenizer(trainer).eos_token_id
    width = max(len(ids) for ids in prompts)
    device = trainer.accelerator.device
    inputs = torch.tensor([[pad] * (width - len(ids)) + ids for ids in prompts], device=device)
    attention = torch.tensor([[0] * (width - len(ids)) + [1] * len(ids) for ids in prompts], device=device)
    options = copy.copy(trainer.generation_config)
    options.max_new_tokens = max_new_tokens
    with unwrap_model_for_generation(trainer.model_wrapped, trainer.accelerator) as model, torch.no_grad():
        output = model.generate(input_ids=inputs, attention_mask=attention, generation_config=options)
    completions: list[TokenIds] = []
    for row in output[:, width:].tolist():
        end = row.index(eos) + 1 if eos in row else len(row)
        completions.append(row[:end])
    return completions, None


def _prompt_key(prompt: Sequence[Message]) -> str:
    return json.dumps([[message["role"], message["content"], message.get("tool_calls")] for message in prompt])


def _tokenizer(trainer: GRPOTrainer) -> PreTrainedTokenizerBase:
    """Return the tokenizer, also that of a processor for images."""
    return getattr(trainer.processing_class, "tokenizer", trainer.processing_class)


def _parses_calls(tokenizer: PreTrainedTokenizerBase) -> bool:
    return any(getattr(tokenizer, name, None) is not None for name in ("response_template", "response_schema"))


def _render(trainer: GRPOTrainer, messages: Sequence[Message], tools: Sequence[Tool], *, reply: bool) -> TokenIds:
    """Return the token ids of *messages*, followed by the start of a reply if *reply*."""
    ids = _tokenizer(trainer).apply_chat_template(
        [template_message(message) for message in messages],
        tools=list(tools) or None,
        add_generation_prompt=reply,
        tokenize=True,
        return_dict=False,
        **trainer.chat_template_kwargs,
    )
    return cast(TokenIds, ids)


def _parse(trainer: GRPOTrainer, ids: TokenIds, prefix: TokenIds, tools: Sequence[Tool]) -> Message:
    """Return the message that the model wrote, with its tool calls if it was offered tools."""
    tokenizer = _tokenizer(trainer)
    if _parses_calls(tokenizer):
        return cast(Message, parse_response(tokenizer, ids, prefix=prefix, tools=list(tools) or None))
    return {"role": "assistant", "content": tokenizer.decode(ids, skip_special_tokens=True)}


def _suffix_ids(trainer: GRPOTrainer, said: Message, new: Sequence[Message], tools: Sequence[Tool]) -> TokenIds:
    """Return the tokens that follow the model's end of turn: *new* messages and the start of the next reply.

    They are the difference between two short conversations, so that the tokens of the model are never rendered again.
    """
    before: list[Message] = [{"role": "user", "content": "?"}, said]
    start = _render(trainer, before, tools, reply=False)
    full = _render(trainer, [*before, *new], tools, reply=True)
    end = _tokenizer(trainer).eos_token_id
    if end in start:
        start = start[: len(start) - start[::-1].index(end)]
    if full[: len(start)] != start:
        raise ValueError(
            "The chat template changes earlier messages when messages follow. Set a template that does not, such as "
            "the one that trl.chat_template_utils.get_training_chat_template returns."
        )
    return full[len(start) :]
