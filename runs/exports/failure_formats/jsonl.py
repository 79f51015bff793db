"""`jsonl`: each failed response with its case, transcript and the result of every rule. Not training data."""

from collections.abc import Iterator

from hub.protocols.calls import total_cost
from runs.exports.failure_formats.base import Failure, FailureFormat
from runs.exports.protocol import JSONObject
from runs.exports.provenance import response_provenance, token_usage


class FailureJsonl(FailureFormat):
    name = "jsonl"
    summary = "all data, one line for each failed response"
    training = False

    def convert(self, item: Failure) -> Iterator[JSONObject]:
        """Return one row with all data of the failed response."""
        response = item.response
        yield {
            **response_provenance(
                response, "run", "response", "environment", "digest", "case", "input_digest", "scoring_digest"
            ),
            "case_data": response.case.data,
            **response_provenance(response, "model", "attempt", "seed"),
            "status": response.status,
            "score": response.score,
            "reason": response.reason,
            "finish_reason": response.finish_reason,
            "stop": response.stop,
            "truncated": response.truncated,
            "refused": response.refused,
            "messages": response.messages,
            "text": response.text,
            "usage": token_usage(response),
            "latency_ms": response.latency_ms,
            "cost_usd": total_cost([response.cost_usd, response.role_cost_usd]),
            "scores": [
                {
                    "rule": score.rule,
                    "type": score.type,
                    "value": score.value,
                    "weight": score.weight,
                    "required": score.required,
                    "reason": score.reason,
                    "detail": score.detail,
                    "execution": score.execution,
                }
                for score in response.scores.all()
            ],
        }
