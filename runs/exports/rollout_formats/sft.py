"""`sft`: the transcripts of passed rollouts, for supervised fine-tuning with TRL (rejection sampling)."""

import json
from collections.abc import Iterator

from hub.protocols.messages import is_empty_answer
from runs.exports.protocol import JSONObject, LeftOut
from runs.exports.rollout_formats.base import (
    RolloutFormat,
    RolloutItem,
    RolloutRecord,
    get_training_tools,
    replay_fields,
    split_messages,
)


class RolloutSft(RolloutFormat):
    name = "sft"
    summary = "transcripts of passed rollouts, for supervised fine-tuning (TRL)"

    def convert(self, record: RolloutRecord, item: RolloutItem) -> Iterator[JSONObject]:
        if record["status"] != "passed":
            raise LeftOut("failed, which is not an example to learn from")
        prompt, completion = split_messages(record, item, argument_objects=self.argument_objects)
        if any(is_empty_answer(message) for message in completion):
            raise LeftOut("an empty answer, which is not an example to learn from")
        yield {
            "messages": [*prompt, *completion],
            "tools": get_training_tools(record),
            "reward": record["reward"],
            **replay_fields(record),
            "recordings": json.dumps(record["recordings"], ensure_ascii=False),
        }
