"""`sft`: prompt and right answer of each failing case, for supervised fine-tuning with TRL.

Messages are as chat templates expect them (`for_chat_template`), and `tools` is JSON text.
"""

from collections.abc import Iterator

from hub.protocols.messages import for_chat_template, tools_text
from runs.exports.failure_formats.base import CompletionFormat, Failure, completed
from runs.exports.protocol import JSONObject
from runs.exports.provenance import response_provenance


class Sft(CompletionFormat):
    name = "sft"
    summary = (
        "for supervised fine-tuning (TRL): as openai, with tools, the failed answer and the source of the right one"
    )

    def convert(self, item: Failure) -> Iterator[JSONObject]:
        right = completed(item)
        yield {
            "messages": [for_chat_template(message) for message in right.messages],
            "tools": tools_text(right.tools) if right.tools else None,
            **response_provenance(
                item.response, "run", "response", "environment", "digest", "case", "model", "attempt"
            ),
            "failed_response": item.response.text,
            "reason": item.response.reason,
            "completion_source": right.source,
        }
