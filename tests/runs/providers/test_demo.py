"""Provider `demo` on workspaces: it runs a solution, or a wrong script, as one command."""

import json

import pytest
from django.conf import settings

from hub.protocols.calls import CallKey, Reply
from runs.providers.base import ModelRequest, ModelSpec, ProviderContext
from runs.providers.demo import Demo, DemoOptions, demo_environments

CATALOG = settings.BASE_DIR / "hub" / "catalog"


async def reply(slug: str, case: str, turn: int = 0, attempt: int = 1) -> Reply:
    demo = Demo(ModelSpec(name="demo", provider="demo"), DemoOptions(), ProviderContext())
    key = CallKey(purpose="answer", environment=slug, case=case, model="demo", attempt=attempt, turn=turn)
    return await demo.complete(ModelRequest(key=key, messages=[], parameters={}))


@pytest.mark.parametrize("slug", ["shell-tasks", "repo-repair", "database-desk"])
async def test_demo_runs_a_solution_or_a_wrong_script_and_then_ends(slug: str) -> None:
    assert slug in demo_environments()
    case = json.loads((CATALOG / slug / "cases.jsonl").read_text().splitlines()[0])["id"]
    solution = (CATALOG / slug / "solution" / f"{case}.sh").read_text()
    commands = []
    for attempt in range(1, 21):
        first = await reply(slug, case, attempt=attempt)
        (call,) = first.message.get("tool_calls") or []
        assert call["function"]["name"] == "bash" and first.finish_reason == "tool_calls"
        commands.append(json.loads(call["function"]["arguments"])["command"])
    assert len(set(commands)) > 1 and commands.count(solution) > 10
    assert (await reply(slug, case, turn=1)).message.get("tool_calls") is None
