"""`grpo`: prompt, completion, group and reward of each rollout, with the tokens that the trainer sent."""

import json
from collections.abc import Iterator

from runs.exports.protocol import JSONObject
from runs.exports.rollout_formats.base import (
    RolloutFormat,
    RolloutItem,
    RolloutRecord,
    flatten_tokens,
    get_training_tools,
    replay_fields,
    split_messages,
)


class RolloutGrpo(RolloutFormat):
    name = "grpo"
    summary = "prompt, completion, group, reward and tokens, for GRPO"

    def convert(self, record: RolloutRecord, item: RolloutItem) -> Iterator[JSONObject]:
        prompt, completion = split_messages(record, item, argument_objects=self.argument_objects)
        yield {
            "prompt": prompt,
            "completion": completion,
            "group": item.group(),
            "reward": record["reward"],
            "tools": get_training_tools(record),
            **flatten_tokens(record["tokens"]),
            "stop": record["stop"],
            **replay_fields(record),
            "recordings": json.dumps(record["recordings"], ensure_ascii=False),
            "steps": record["steps"],
        }
