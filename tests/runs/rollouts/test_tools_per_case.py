"""Tools per case and the parameter for the state: upload, evaluation, episodes over REST, pages."""

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from rest_framework.test import APIClient

from hub.manifest.problems import BundleError
from hub.models import Environment
from hub.services import import_bundle
from runs.models import Response
from tests.endpoint import Answer, completion, endpoint
from tests.hub.bundle_files import lines, write_bundle
from tests.runs.capitals import config_text, start

pytestmark = pytest.mark.django_db(transaction=True)
TOOLS = '''
def reset(case, seed):
    return {"sent": []}


def ship(world, state: str) -> int:
    """Ship to a state."""
    world["sent"].append(state)
    return len(world["sent"])


def refund(amount: int) -> str:
    """Refund an amount."""
    return "done"
'''
CASES = [{"id": "a", "input": "Ship.", "tools": ["ship"]}, {"id": "b", "input": "Both.", "tools": ["ship", "refund"]}]


def shipping(folder: Path, cases: list[dict[str, Any]] = CASES, tools: str = TOOLS, **options: str) -> Path:
    harness = {"type": "tools", "tools": "tools.py", "state_parameter": "world", "offer": "{{ tools }}", **options}
    return write_bundle(
        folder,
        files={
            "cases.jsonl": lines(cases),
            "tools.py": tools,
            "check.py": "def check(case, state, transcript):\n    return state == {'sent': ['Ohio']}\n",
        },
        slug="shipping",
        category="tool-use",
        dataset={"path": "cases.jsonl"},
        harness=harness,
        scoring={"rules": [{"name": "sent", "type": "state", "path": "check.py"}]},
        gold=None,
        wrong=None,
    )


def call(name: str, arguments: str) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "type": "function", "function": function}]}


def names(tools: list[dict[str, Any]]) -> list[str]:
    return [tool["function"]["name"] for tool in tools]


def test_unknown_tool_of_a_case_is_reported_with_its_id_and_line(tmp_path: Path) -> None:
    cases = [*CASES, {"id": "c", "input": "Shop.", "tools": ["shop"]}]
    with pytest.raises(BundleError) as error:
        import_bundle(bundle=shipping(tmp_path / "shipping", cases))
    (problem,) = error.value.problems
    assert (problem.file, problem.line, problem.path) == ("cases.jsonl", 3, "harness.offer")
    assert "case 'c': there is no tool 'shop'; the tools are ship, refund" in problem.message


def test_tool_with_a_parameter_state_of_its_own_needs_another_name_for_the_state(tmp_path: Path) -> None:
    with pytest.raises(BundleError) as error:
        import_bundle(bundle=shipping(tmp_path / "shipping", state_parameter="state"))
    assert any("ship: parameter state has a scalar type" in item.message for item in error.value.problems)
    assert any("`state_parameter: world` below `harness:`" in item.message for item in error.value.problems)


def test_episode_over_rest_offers_the_tools_of_its_case(tmp_path: Path) -> None:
    import_bundle(bundle=shipping(tmp_path / "shipping"))
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)
    api = APIClient()
    api.force_authenticate(User.objects.create_user("trainer"))
    begun = {
        case: api.post("/api/v1/episodes/", {"environment": "shipping", "case": case}, format="json").json()
        for case in ("a", "b")
    }
    assert [names(begun[case]["observation"]["tools"]) for case in ("a", "b")] == [["ship"], ["ship", "refund"]]
    url = f"/api/v1/episodes/{begun['a']['id']}/step"
    refused = api.post(url, {"message": call("refund", '{"amount": 1}'), "turn": 0}, format="json").json()
    content = refused["observation"]["messages"][0]["content"]
    assert content == "error: there is no tool 'refund'; the tools are ship"
    api.post(url, {"message": call("ship", '{"state": "Ohio"}'), "turn": 1}, format="json")
    last = api.post(url, {"message": {"role": "assistant", "content": "Sent."}, "turn": 2}, format="json").json()
    assert (last["done"], last["reward"]) == (True, 1.0)


def test_evaluation_and_its_page_offer_the_tools_of_each_case(tmp_path: Path) -> None:
    shipping(tmp_path / "shipping")
    offered: dict[str, list[str]] = {}

    def reply(request: dict[str, Any], _: int = 0) -> Answer:
        question = request["messages"][1]["content"] if request["messages"][0]["role"] == "system" else ""
        question = question or request["messages"][0]["content"]
        offered[question] = names(request["tools"])
        if request["messages"][-1]["role"] == "tool":
            return completion("Sent.")
        return completion(None, tool_calls=call("ship", '{"state": "Ohio"}')["tool_calls"])

    with endpoint(reply) as model:
        start(tmp_path, config_text(model.url, environments=[{"path": "shipping"}]))
    assert offered == {"Ship.": ["ship"], "Both.": ["ship", "refund"]}
    assert set(Response.objects.values_list("status", flat=True)) == {"passed"}
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    page = client.get(f"/responses/{Response.objects.get(case__external_id='a').pk}/").content.decode()
    assert "Ship to a state." in page
    assert "Refund an amount." not in page
