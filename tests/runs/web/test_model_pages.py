"""Models registered, changed and tested on the site."""

import html
from typing import Any

import pytest
from django.test import Client

from runs.models import ModelEndpoint
from runs.web.model_form import PRESETS
from tests.endpoint import Answer, completion, endpoint
from tests.members import member

pytestmark = pytest.mark.django_db


@pytest.fixture
def staff(client: Client) -> Client:
    client.force_login(member("Runner", staff=True))
    return client


def form(**changes: Any) -> dict[str, Any]:
    return {
        "name": "org/small:free",
        "enabled": "on",
        "provider": "openai",
        "model": "m",
        "parameters": "{}",
        **changes,
    }


def text(client: Client, url: str) -> str:
    return html.unescape(client.get(url).content.decode())


def test_only_staff_with_permission_may_register(client: Client) -> None:
    client.force_login(member("Runner"))
    assert client.get("/endpoints/new/").status_code == 403
    assert "/endpoints/new/" not in text(client, "/models/")
    client.force_login(member("Reviewer", staff=True))
    assert client.post("/endpoints/new/", form()).status_code == 403
    assert not ModelEndpoint.objects.exists()


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.key)
def test_preset_fills_in_address_and_key_variable(staff: Client, preset: Any) -> None:
    page = text(staff, f"/endpoints/new/?preset={preset.key}")
    assert '<option value="openai" selected>' in page
    assert f'value="{preset.base_url}"' in page
    assert not preset.api_key_env or f'<option value="{preset.api_key_env}" selected>' in page


def test_model_is_saved_and_tested_with_one_click(staff: Client) -> None:
    with endpoint(lambda *_: completion("ready")) as server:
        answer = staff.post("/endpoints/new/", form(base_url=server.url, price_input=1, price_output=2, test="1"))
        assert answer["Location"] == "/models/org/small:free/"
        page = text(staff, answer["Location"])
    assert len(server.requests) == 1 and server.requests[0]["model"] == "m"
    assert " ms, as m: “ready”." in page
    assert "this request (10 tokens in, 5 out) cost $0.00002." in page


def test_test_tells_why_costs_will_be_unknown(staff: Client) -> None:
    with endpoint(lambda *_: completion("ready", usage={})) as server:
        found = ModelEndpoint.objects.create(name="small", model="m", base_url=server.url)
        assert "It has no price" in html.unescape(
            staff.post(f"/endpoints/{found.pk}/test/", follow=True).content.decode()
        )
        ModelEndpoint.objects.update(price_input=1, price_output=1)
        page = staff.post(f"/endpoints/{found.pk}/test/", follow=True).content.decode()
    assert "reports no token counts" in page


def test_test_shows_error_of_endpoint_and_does_not_retry(staff: Client) -> None:
    with endpoint(lambda *_: Answer({"error": {"message": "unknown model"}}, status=404)) as server:
        found = ModelEndpoint.objects.create(name="small", model="m", base_url=server.url)
        page = html.unescape(staff.post(f"/endpoints/{found.pk}/test/", follow=True).content.decode())
    assert "The test request failed." in page and "unknown model" in page and len(server.requests) == 1


def test_test_respects_rules_for_addresses(staff: Client, settings: Any) -> None:
    settings.PRIVATE_ENDPOINTS = False
    with endpoint(lambda *_: completion("ready")) as server:
        found = ModelEndpoint.objects.create(name="small", model="m", base_url=server.url)
        page = html.unescape(staff.post(f"/endpoints/{found.pk}/test/", follow=True).content.decode())
    assert "Requests must not go to the endpoint" in page and server.requests == []


def test_state_of_key_is_shown_and_its_value_never(
    staff: Client, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    found = ModelEndpoint.objects.create(name="small", model="m", api_key_env="VLLM_API_KEY")
    monkeypatch.setattr(settings.ENV, "lookup", lambda name: None)
    assert "<strong>not set</strong> on this server" in text(staff, "/models/small/")
    page = html.unescape(staff.post(f"/endpoints/{found.pk}/test/", follow=True).content.decode())
    assert "No request was sent: the variable VLLM_API_KEY is not set" in page
    monkeypatch.setattr(settings.ENV, "lookup", lambda name: "sk-very-secret-value")
    for url in ("/models/", "/models/small/", f"/endpoints/{found.pk}/", "/endpoints/new/"):
        shown = text(staff, url)
        assert "very-secret" not in shown and ">set<" in shown.replace(" set", ">set<")


def test_errors_are_shown_at_their_fields_in_words_of_the_page(staff: Client) -> None:
    answer = staff.post("/endpoints/new/", form(base_url="https://host/v1?api_key=abc", price_input="-1"))
    assert answer.status_code == 422
    page = html.unescape(answer.content.decode())
    assert "Must be zero or greater." in page
    page = html.unescape(staff.post("/endpoints/new/", form(base_url="https://host/v1?api_key=abc")).content.decode())
    assert "put it into a variable and name that in the key variable" in page and "api_key_env" not in page.replace(
        'name="api_key_env"', ""
    ).replace("id_api_key_env", "")


def test_registration_is_changed(staff: Client) -> None:
    found = ModelEndpoint.objects.create(name="small", model="m")
    assert staff.post(f"/endpoints/{found.pk}/", form(name="renamed", model="n"))["Location"] == "/models/renamed/"
    found.refresh_from_db()
    assert (found.name, found.model) == ("renamed", "n")


def test_page_of_an_unknown_model_does_not_exist(staff: Client) -> None:
    assert staff.get("/models/no-such-model/").status_code == 404
    ModelEndpoint.objects.create(name="small", provider="demo", model="m")
    assert staff.get("/models/small/").status_code == 200
