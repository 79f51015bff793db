"""`jsonl`: all data of each rollout."""

from collections.abc import Iterator

from runs.exports.protocol import JSONObject
from runs.exports.rollout_formats.base import RolloutFormat, RolloutItem, RolloutRecord


class RolloutJsonl(RolloutFormat):
    name = "jsonl"
    summary = "all data: transcript, reward, rules and tokens"

    def convert(self, record: RolloutRecord, item: RolloutItem) -> Iterator[JSONObject]:
        yield {**record}
