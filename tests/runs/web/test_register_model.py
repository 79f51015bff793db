"""Registration of models in the admin: invalid endpoints are rejected, and keys are never stored."""

import html
import re
from typing import Any

import pytest
from django.test import Client

from runs.models import ModelEndpoint
from tests.members import member

pytestmark = pytest.mark.django_db
ADD = "/admin/runs/modelendpoint/add/"


@pytest.fixture(params=["Runner", "Curator"])
def staff(request: pytest.FixtureRequest, client: Client) -> Client:
    client.force_login(member(request.param, staff=True))
    return client


def form(**changes: Any) -> dict[str, Any]:
    return {"name": "small", "enabled": "on", "provider": "openai", "model": "m", "parameters": "{}", **changes}


def test_model_is_registered_with_single_label_host(staff: Client) -> None:
    given = form(base_url="http://vllm:8000/v1", api_key_env="VLLM_API_KEY", price_input="0.25", price_output="2")
    assert staff.post(ADD, given).status_code == 302
    model = ModelEndpoint.objects.get()
    assert (model.base_url, model.api_key_env, model.price_output) == ("http://vllm:8000/v1", "VLLM_API_KEY", 2.0)


@pytest.mark.parametrize(
    "name", ["gpt-4.1-mini", "org/model:free", "ft:gpt-4o:org::abc", "us.anthropic.claude-v2:0", "qwen2.5:7b", "größer"]
)
def test_model_is_registered_under_name_of_provider(staff: Client, name: str) -> None:
    assert staff.post(ADD, form(name=name)).status_code == 302
    assert ModelEndpoint.objects.get().name == name
    links = re.findall(r'href="(/models/[^"]+)"', staff.get("/models/").content.decode())
    assert len(links) == 1
    shown = staff.get(html.unescape(links[0]))
    assert shown.status_code == 200 and f"<h1>{name}" in shown.content.decode()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"base_url": "ftp://x/"}, "must start with http"),
        *[({"base_url": f"http://{host}/v1"}, "must name a host") for host in ("", "host:99999", "host:0", "host:x")],
        *[
            ({"base_url": f"http://{host}/v1"}, "must be a valid address")
            for host in ("0177.0.0.1", "[v1.x]", "\u2488")
        ],
        ({"base_url": "https://me:hunter22secret@host/v1"}, "must not contain a user name or password"),
        ({"base_url": "https://host/v1?api_key=hunter22secret"}, "must not contain a key (the parameter `api_key`)"),
        ({"api_key_env": "sk-0123456789abcdef0123456789"}, "is not one of the available choices"),
        ({"api_key_env": "DATABASE_URL"}, "is not one of the available choices"),
        ({"provider": "replay"}, "is not one of the available choices"),
        ({"parameters": "[1]"}, "Enter a JSON object"),
        ({"parameters": "temperature: 0"}, "This is not JSON."),
        ({"parameters": '{"a":' * 200_000}, "more than 100 levels deep"),
        ({"parameters": '{"a":' * 200 + "1" + "}" * 200}, "more than 100 levels deep"),
        ({"parameters": '{"stop": "\\u0000"}'}, "U+0000, which cannot be stored"),
        ({"parameters": '{"stop": "\\ud800"}'}, "U+D800, which cannot be stored"),
        ({"price_input": "1"}, "Give both prices, or none."),
        ({"price_cached_input": "1", "price_output": "0"}, "Give both prices, or none."),
        ({"price_input": "-1"}, "Must be zero or greater"),
        *[({"name": name}, "Enter a valid name") for name in ("with space", "/a", "a/", "a//b", "a/../b", "a/.")],
        ({"name": "a#1"}, "must not contain"),
        ({"model": ""}, "required"),
    ],
)
def test_invalid_endpoint_is_rejected(staff: Client, changes: dict[str, str], expected: str) -> None:
    answer = staff.post(ADD, form(**changes))
    assert answer.status_code == 200
    assert expected in answer.content.decode()
    assert ModelEndpoint.objects.count() == 0


def test_key_variable_that_is_no_longer_allowed_is_reported(staff: Client) -> None:
    model = ModelEndpoint.objects.create(name="old", model="m", api_key_env="OLD_KEY")
    page = f"/admin/runs/modelendpoint/{model.pk}/change/"
    assert "OLD_KEY" in staff.get(page).content.decode()
    for other in (ADD, "/endpoints/new/"):  # the model may belong to another team
        assert "OLD_KEY" not in staff.get(other).content.decode()
    answer = staff.post(page, form(name="old", api_key_env="OLD_KEY"))
    assert "no longer allowed" in answer.content.decode()


def test_models_are_disabled_instead_of_deleted(staff: Client) -> None:
    model = ModelEndpoint.objects.create(name="old", model="m")
    assert staff.post(f"/admin/runs/modelendpoint/{model.pk}/delete/", {"post": "yes"}).status_code == 403
    staff.post(f"/admin/runs/modelendpoint/{model.pk}/change/", form(name="old", enabled=""))
    assert ModelEndpoint.objects.get().enabled is False
