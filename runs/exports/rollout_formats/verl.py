"""`verl`: Parquet with the columns that verl reads, and the completion, reward and tokens of each rollout."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from hub.protocols.messages import Message, text_of
from runs.exports.parquet import write_parquet
from runs.exports.protocol import JSONObject, LeftOut, Row
from runs.exports.rollout_formats.base import (
    RolloutFormat,
    RolloutItem,
    RolloutRecord,
    flatten_tokens,
    replay_fields,
    split_messages,
)

_GROUP = 500  # rows
_INFO = ("rollout", "environment", "digest", "case", "model", "group", "stop", "tools", "recordings")
_SCHEMA = pa.schema(
    [
        ("data_source", pa.string()),
        ("prompt", pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))),
        ("ability", pa.string()),
        ("reward_model", pa.struct([("style", pa.string()), ("ground_truth", pa.string())])),
        (
            "extra_info",
            pa.struct(
                [
                    ("index", pa.int64()),
                    ("attempt", pa.int64()),
                    ("seed", pa.int64()),
                    *((name, pa.string()) for name in _INFO),
                ]
            ),
        ),
        ("completion", pa.string()),
        ("reward", pa.float64()),
        ("prompt_ids", pa.list_(pa.int64())),
        ("response_ids", pa.list_(pa.int64())),
        ("response_mask", pa.list_(pa.int64())),
        ("rollout_log_probs", pa.list_(pa.float64())),
    ]
)


class RolloutVerl(RolloutFormat):
    name = "verl"
    summary = "Parquet with the columns of verl's datasets, completion, reward and tokens"
    suffix = ".parquet"
    has_lines = False

    def convert(self, record: RolloutRecord, item: RolloutItem) -> Iterator[JSONObject]:
        prompt, completion = split_messages(record, item)
        tokens = flatten_tokens(record["tokens"])
        yield {
            "data_source": record["environment"].partition("@")[0],
            "prompt": [{"role": message["role"], "content": _text(message)} for message in prompt],
            "ability": item.category(),
            "reward_model": {"style": "rule", "ground_truth": record["case"]},
            "extra_info": {
                **replay_fields(record),
                "group": item.group(),
                "stop": record["stop"],
                "tools": record["tools"],
                "recordings": json.dumps(record["recordings"]),
            },
            "completion": json.dumps(completion),
            "reward": record["reward"],
            "prompt_ids": tokens["prompt_ids"],
            "response_ids": tokens["completion_ids"],
            "response_mask": tokens["completion_mask"],
            "rollout_log_probs": tokens["logprobs"],
        }

    def write(self, rows: Iterable[Row[RolloutItem]], path: Path) -> None:
        write_parquet((_cells(i, row.data) for i, row in enumerate(rows)), _SCHEMA, path, group=_GROUP)


def _text(message: Message) -> str:
    """Return the text of a message of the prompt. Raises LeftOut if it calls tools."""
    if message.get("tool_calls"):
        raise LeftOut("the prompt has calls of tools, which verl's column `prompt` cannot hold")
    return text_of(message)


def _cells(index: int, data: JSONObject) -> dict[str, object]:
    info = data["extra_info"]
    numbered = {**data, "extra_info": {"index": index, **(info if isinstance(info, dict) else {})}}
    return {name: _storable(value) for name, value in numbered.items()}


def _storable(value: object) -> object:
    """Return *value* with lone surrogates, which Parquet cannot store, replaced by question marks."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {name: _storable(item) for name, item in value.items()}
    if isinstance(value, list) and value and not isinstance(value[0], int | float):
        return [_storable(item) for item in value]
    return value
