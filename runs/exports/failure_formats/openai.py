"""`openai`: prompt and gold answer of each failing case, for fine-tuning at OpenAI."""

from collections.abc import Iterator

from runs.exports.failure_formats.base import Failure, GoldFormat, gold_messages
from runs.exports.protocol import JSONObject


class OpenAi(GoldFormat):
    name = "openai"
    summary = '{"messages": prompt and gold answer}, one line for each case: fine-tuning at OpenAI'

    def rows(self, item: Failure) -> Iterator[JSONObject]:
        messages, tools = gold_messages(item)
        yield {"messages": messages, **({"tools": tools} if tools else {})}
