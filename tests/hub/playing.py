"""Episodes for tests: environments from a few lines, recorded models, and a real sandbox."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from hub.environments.compiled import CompiledEnvironment
from hub.environments.episodes import Episode
from hub.harnesses.base import Services
from hub.manifest.schema import Manifest
from hub.protocols.calls import CallKey, Reply
from hub.protocols.cases import CaseData
from hub.protocols.messages import Message, Tool
from sandbox.client.options import PoolOptions
from sandbox.client.shared_pools import get_shared_pool
from sandbox.verdicts.results import Outcome, Status


def environment(
    harness: dict[str, Any],
    *,
    files: Mapping[str, str] | None = None,
    rules: list[dict[str, Any]] | None = None,
    packages: Sequence[str] = (),
) -> CompiledEnvironment:
    manifest = Manifest.model_validate(
        {
            "spec": 1,
            "slug": "play",
            "version": "1.0.0",
            "title": "Play",
            "summary": "For a test.",
            "category": "tool-use",
            "dataset": {"path": "cases.jsonl"},
            "harness": harness,
            "packages": packages,
            **({"scoring": {"rules": rules}} if rules else {}),
        }
    )
    return CompiledEnvironment(manifest, {path: text.encode() for path, text in (files or {}).items()})


def episode(
    harness: dict[str, Any],
    *,
    files: Mapping[str, str] | None = None,
    rules: list[dict[str, Any]] | None = None,
    case: CaseData | None = None,
    call_model: Any = None,
    state: dict[str, Any] | None = None,
    pool: Any = None,
    packages: Sequence[str] = (),
) -> Episode:
    """Return an episode whose code runs in a real sandbox. *state* continues another episode."""
    playing = Episode(
        environment(harness, files=files, rules=rules, packages=packages),
        case or CaseData(id="c", input="Hello."),
        key=CallKey(purpose="answer", environment="play", case="c", attempt=2, model="a"),
        seed=7,
        services=Services(call_model=call_model, pool=pool or get_shared_pool(PoolOptions())),
    )
    playing.restore(state or {})
    return playing


class Recorded:
    """Model that returns *replies* in turn and records the requests."""

    def __init__(self, *replies: str) -> None:
        self.replies = list(replies)
        self.keys: list[CallKey] = []
        self.heard: list[list[Message]] = []

    async def __call__(
        self, key: CallKey, messages: Sequence[Message], tools: Sequence[Tool] = (), parameters: Any = None
    ) -> Reply:
        self.keys.append(key)
        self.heard.append(list(messages))
        return Reply(message={"role": "assistant", "content": self.replies.pop(0)})


class BrokenPool:
    """Sandbox that fails each job."""

    async def arun(self, job: Any) -> Outcome:
        return Outcome(Status.INFRA_ERROR, "The sandbox failed: no engine.")


def assistant(text: str) -> Message:
    return {"role": "assistant", "content": text}


def calls(*named: tuple[str, Any]) -> Message:
    """Return an assistant message with one call per (name, arguments); arguments that are text are not encoded."""
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": f"id{i}",
                "type": "function",
                "function": {"name": name, "arguments": given if isinstance(given, str) else json.dumps(given)},
            }
            for i, (name, given) in enumerate(named)
        ],
    }


def contents(messages: Sequence[Message]) -> list[Any]:
    return [message["content"] for message in messages]
