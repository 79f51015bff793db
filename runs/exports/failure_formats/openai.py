"""`openai`: prompt and right answer of each failing case, for fine-tuning at OpenAI."""

from collections.abc import Iterator

from hub.protocols.messages import plain_message
from runs.exports.failure_formats.base import CompletionFormat, Failure, completed
from runs.exports.protocol import JSONObject


class OpenAi(CompletionFormat):
    name = "openai"
    summary = 'for fine-tuning at OpenAI: {"messages": prompt and right answer}, one line for each case'

    def convert(self, item: Failure) -> Iterator[JSONObject]:
        right = completed(item)
        messages = [plain_message(message) for message in right.messages]  # OpenAI knows no `reasoning_content`
        yield {"messages": messages, **({"tools": right.tools} if right.tools else {})}
