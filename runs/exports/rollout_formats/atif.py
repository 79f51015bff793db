"""`atif`: each rollout as a trajectory of the Agent Trajectory Interchange Format, version 1.7, which Harbor reads."""

import json
from collections.abc import Iterator, Sequence
from typing import TypeVar

from hub.protocols.messages import JSON, ContentPart, Message, calls_of, exported_arguments, text_of
from runs.exports.protocol import JSONObject, LeftOut
from runs.exports.provenance import UsageCounts
from runs.exports.rollout_formats.base import (
    RolloutFormat,
    RolloutItem,
    RolloutRecord,
    replay_fields,
)
from runs.rollouts.tokens import StepTokens

T = TypeVar("T")
_AGENT_VERSION = "1"  # required by the format; raise it if the episodes show a policy something else
_SOURCES = {"system": "system", "developer": "system", "user": "user", "assistant": "agent"}


class RolloutAtif(RolloutFormat):
    name = "atif"
    summary = "trajectories in ATIF, which Harbor reads, one per line"

    def convert(self, record: RolloutRecord, item: RolloutItem) -> Iterator[JSONObject]:
        if any(part["type"] != "text" for message in record["messages"] for part in _parts(message)):
            raise LeftOut("a message has parts other than text, which are not exported in this format")
        steps = _steps(record, item)
        if not steps:
            raise LeftOut("the transcript is empty")
        agent: JSONObject = {"name": "llm-eval", "version": _AGENT_VERSION}
        if record["model"]:
            agent["model_name"] = record["model"]
        if record["tools"]:
            agent["tool_definitions"] = json.loads(record["tools"])
        trajectory: JSONObject = {
            "schema_version": "ATIF-v1.7",
            "session_id": record["rollout"],
            "trajectory_id": record["rollout"],
            "agent": agent,
            "steps": steps,
            "final_metrics": {**_total(record["usage"]), "total_steps": len(steps)},
            "extra": {
                **replay_fields(record),
                "reward": record["reward"],
                "status": record["status"],
                "stop": record["stop"],
                "group": item.group(),
                "rules": record["rules"],
                "recordings": record["recordings"],
                "steps": record["steps"],
            },
        }
        yield trajectory


def _steps(record: RolloutRecord, item: RolloutItem) -> list[JSONObject]:
    """Return a step for each message; results of tools become observations of the step that called them."""
    steps: list[JSONObject] = []
    start, turn = item.first_answer(), 0
    results: list[JSON] | None = None
    for index, message in enumerate(record["messages"]):
        if message["role"] == "tool" and results is not None:
            results.append(_result(message, steps[-1]))
            steps[-1]["observation"] = {"results": results}
            continue
        results = None
        step: JSONObject = {
            "step_id": len(steps) + 1,
            "source": _SOURCES.get(message["role"], "system"),
            "message": text_of(message),
        }
        steps.append(step)
        if message["role"] == "assistant":
            results = []
            if message.get("reasoning_content"):
                step["reasoning_content"] = message["reasoning_content"]
            calls = [_call(call, len(steps), i) for i, call in enumerate(calls_of(message))]
            if calls:
                step["tool_calls"] = calls
            if index < start:
                step["is_copied_context"] = True  # an example of the prompt
                continue
            step["llm_call_count"] = 1
            metrics = _metrics(_at(record["step_usage"], turn), _at(record["tokens"], turn))
            if metrics:
                step["metrics"] = metrics
            turn += 1
    return steps


def _parts(message: Message) -> list[ContentPart]:
    content = message.get("content")
    return content if isinstance(content, list) else []


def _call(call: dict[str, JSON], step: int, position: int) -> JSONObject:
    function = call.get("function")
    name = function.get("name") if isinstance(function, dict) else None
    arguments = exported_arguments(call)
    converted: JSONObject = {
        "tool_call_id": str(call.get("id") or f"step-{step}-call-{position + 1}"),
        "function_name": str(name or ""),
        "arguments": arguments if isinstance(arguments, dict) else {},
    }
    if not isinstance(arguments, dict):
        converted["extra"] = {"invalid_arguments": arguments}
    return converted


def _result(message: Message, step: JSONObject) -> JSONObject:
    """Return the result of a tool; `source_call_id` is left out if the step has no such call."""
    result: JSONObject = {"content": text_of(message)}
    calls = step.get("tool_calls")
    known = {call["tool_call_id"] for call in calls} if isinstance(calls, list) else set()
    source = str(message.get("tool_call_id") or "")
    return {"source_call_id": source, **result} if source in known else result


def _metrics(usage: UsageCounts | None, tokens: StepTokens | None) -> JSONObject:
    metrics: JSONObject = {}
    if usage:
        metrics |= {
            "prompt_tokens": usage["input"],
            "completion_tokens": usage["output"],
            "cached_tokens": usage["cached_input"],
        }
    if tokens:
        metrics |= {"prompt_token_ids": tokens["prompt_ids"], "completion_token_ids": tokens["completion_ids"]}
        if tokens["logprobs"] is not None:
            metrics["logprobs"] = tokens["logprobs"]
    return metrics


def _total(usage: UsageCounts | None) -> JSONObject:
    if not usage:
        return {}
    return {
        "total_prompt_tokens": usage["input"],
        "total_completion_tokens": usage["output"],
        "total_cached_tokens": usage["cached_input"],
    }


def _at(values: Sequence[T | None] | None, index: int) -> T | None:
    return values[index] if values and index < len(values) else None
