"""Page that starts a run: choosing, errors at fields, and runs that a worker executes."""

import json
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from hub.models import Environment
from hub.services import import_bundle
from runs.models import ModelEndpoint, Run
from runs.services import register_demo_models
from runs.tasks import execute_queued_runs
from runs.web.new_run.choices import PER_PAGE
from tests.endpoint import Endpoint, completion, endpoint
from tests.factories import stored_version
from tests.hub.bundle_files import write_bundle
from tests.markup import markup
from tests.members import member

CAPITALS = {"France": "Paris", "Spain": "Madrid", "Norway": "Oslo"}
URL = "/runs/new/"


def capital(request: dict[str, Any], _: int) -> Any:
    """Reply correctly, except for Norway."""
    text = request["messages"][-1]["content"]
    return completion(
        next((city for country, city in CAPITALS.items() if country in text and city != "Oslo"), "Bergen")
    )


@pytest.fixture
def server() -> Iterator[Endpoint]:
    with endpoint(capital) as running:
        yield running


@pytest.fixture
def runner(client: Client, tmp_path: Path, server: Endpoint, db: None) -> User:
    version = import_bundle(bundle=write_bundle(tmp_path / "capitals"))
    Environment.objects.filter(pk=version.environment_id).update(visibility=Environment.Visibility.PUBLISHED)
    ModelEndpoint.objects.create(name="small", model="m", base_url=server.url, price_input=1, price_output=2)
    ModelEndpoint.objects.create(name="unpriced", model="m", base_url=server.url)
    user = member("Runner")
    client.force_login(user)
    return user


def publish(slug: str, **manifest: Any) -> Environment:
    version = stored_version(slug, **manifest)
    Environment.objects.filter(pk=version.environment_id).update(visibility="published", latest=version)
    return Environment.objects.get(pk=version.environment_id)


def form(**changes: Any) -> dict[str, Any]:
    given = {
        "name": "from the site",
        "environment": ["capitals"],
        "model": ["small"],
        "cases": "all",
        "attempts": 1,
        "concurrency": 16,
        "seed": 7,
        "do": "start",
        **changes,
    }
    return {key: value for key, value in given.items() if value is not None}


def show(client: Client, address: str) -> str:
    page = client.get(address)
    assert page.status_code == 200
    return unescape(page.content.decode())


def error_of(page: str, field: str) -> str:
    """Return the text of the place for errors of a field."""
    found = re.search(rf'id="id_{field}_error"[^>]*>(.*?)</div>', page, re.DOTALL)
    assert found is not None, field
    return unescape(re.sub(r"<[^>]+>", " ", found[1])).strip()


def swapped(page: str) -> set[str]:
    """Return the ids of the elements that htmx replaces."""
    return set(re.findall(r'id="([a-z_-]+)"\s+hx-swap-oob="true"', page))


def chosen(page: str, kind: str = "environments") -> list[str]:
    """Return the titles in the list of what is chosen."""
    found = re.search(rf'aria-label="Chosen {kind}">(.*?)</ul>', page, re.DOTALL)
    assert found is not None
    items = re.findall(r"<li.*?</li>", found[1], re.DOTALL)
    return [" ".join(re.sub(r"<[^>]+>", " ", item).replace("×", "").split()) for item in items]


def checked(page: str) -> list[str]:
    return re.findall(r'name="environment" value="([^"]+)" checked', page)


# ---- choosing


def test_lists_have_environments_and_models_that_user_may_run(client: Client, runner: User) -> None:
    page = show(client, URL)
    assert "Capitals" in page and 'value="small"' in page and ">m</small>" not in page
    Environment.objects.update(visibility=Environment.Visibility.PRIVATE, owner=member(name="owner"))
    assert 'value="capitals"' not in show(client, URL)


def test_address_preselects_and_fills_fields(client: Client, runner: User) -> None:
    page = show(client, f"{URL}?environment=capitals&model=small&limit=2&attempts=3&budget=1.5&name=x")
    assert (chosen(page), chosen(page, "models"), checked(page)) == (["Capitals"], ["small"], ["capitals"])
    assert '<option value="limit" selected>' in page and 'name="count" value="2"' in page
    assert 'name="attempts" value="3"' in page and 'name="budget" value="1.5"' in page
    assert "2 in 1 environment" in page and "<dd>6</dd>" in page


def test_search_keeps_what_is_chosen_and_shows_one_page(client: Client, runner: User) -> None:
    for i in range(50):
        publish(f"sums-{i:02}")
    page = markup(show(client, f"{URL}?q=sums&environment=capitals&environment=sums-40"))
    assert page.count('type="checkbox" id="environment-') == PER_PAGE
    assert f"50 environments found, 1 to {PER_PAGE} shown" in page
    assert chosen(page) == ["Capitals", "sums-40"] and checked(page) == []
    assert page.count('type="hidden" name="environment"') == 2
    fourth = show(client, f"{URL}?q=sums&page=4&environment=capitals&environment=sums-40")
    assert checked(fourth) == ["sums-40"] and fourth.count('type="hidden" name="environment"') == 1
    last = show(client, f"{URL}?q=sums&page=99&environment=capitals")
    assert last.count('type="checkbox" id="environment-') == 50 % PER_PAGE


def test_submitted_search_redirects_to_address_of_the_state(client: Client, runner: User) -> None:
    answer = client.post(URL, form(do="search", q="sums", name="", seed=0, cases="sample", count=5))
    assert answer.status_code == 302
    assert answer["Location"] == f"{URL}?environment=capitals&model=small&sample=5&q=sums"
    assert Run.objects.count() == 0


def test_category_filters_and_returns_to_first_page(client: Client, runner: User) -> None:
    publish("sums")
    page = show(client, f"{URL}?category=reasoning")
    assert 'value="sums"' in page and 'value="capitals"' not in page
    answer = client.post(URL, form(do="search", category="reasoning", page="3", listed=" "))
    assert "page=3" not in answer["Location"] and "category=reasoning" in answer["Location"]
    answer = client.post(URL, form(do="search", category="reasoning", page="3", listed="reasoning "))
    assert "page=3" in answer["Location"]
    assert "page=2" in client.post(URL, form(do="search", page="1", listed=" ", go="2"))["Location"]


def test_buttons_remove_one_remove_all_and_choose_all_found(client: Client, runner: User) -> None:
    for i in range(30):
        publish(f"sums-{i:02}")
    two = ["capitals", "sums-01"]
    answer = client.post(URL, form(environment=two, do=None, drop="environment=capitals"))
    assert "environment=sums-01" in answer["Location"] and "capitals" not in answer["Location"]
    assert "environment" not in client.post(URL, form(environment=two, do="clear-environment"))["Location"]
    assert "model=" not in client.post(URL, form(do="clear-model"))["Location"]
    answer = client.post(URL, form(do="add-found", q="sums"))
    assert answer["Location"].count("environment=") == 31


def test_selection_too_long_for_an_address_stays_in_the_form(client: Client, runner: User) -> None:
    many = [f"environment-with-a-long-name-{i:03}" for i in range(150)]
    Environment.objects.bulk_create(
        Environment(slug=slug, title=slug, summary=slug, category="c", visibility="published") for slug in many
    )
    answer = client.post(URL, form(environment=many, do="search"))
    page = answer.content.decode()
    assert answer.status_code == 200 and "too long for the address" in page and "150 chosen" in page
    assert page.count('name="environment"') - page.count('type="checkbox" id="environment-') == 150
    answer = client.post(URL, form(environment=many, do=None), headers={"HX-Request": "true"})
    assert answer["HX-Replace-Url"] == "false"


def test_htmx_gets_parts_and_the_address(client: Client, runner: User) -> None:
    answer = client.post(URL, form(do=None, name="", seed=0, attempts=0), headers={"HX-Request": "true"})
    page = answer.content.decode()
    assert "<html" not in page and answer["HX-Replace-Url"].startswith(f"{URL}?environment=capitals&model=small")
    parts = {"chosen-environments", "chosen-models", "roles", "needs", "yaml", "id_attempts_error"}
    assert parts <= swapped(page)
    assert "greater than or equal to 1" in error_of(page, "attempts")


def test_choice_in_a_list_leaves_the_lists_alone(client: Client, runner: User) -> None:
    shown = {"do": None, "q": "cap", "listed": " cap", "page": "1", "model_listed": "", "model_page": "1"}
    lists = {"found-environments", "found-models"}
    for changes, changed in (
        ({}, False),
        ({"q": "capit"}, True),
        ({"category": "reasoning"}, True),
        ({"go": "2"}, True),
        ({"model_q": "s"}, True),
        ({"model_go": "2"}, True),
        ({"drop": "model=small"}, True),
        ({"do": "add-found"}, True),
    ):
        answer = client.post(URL, form(**{**shown, **changes}), headers={"HX-Request": "true"})
        assert (lists <= swapped(answer.content.decode())) == changed, changes


def test_htmx_never_starts_a_run(client: Client, runner: User) -> None:
    assert client.post(URL, form(), headers={"HX-Request": "true"}).status_code == 200
    assert Run.objects.count() == 0


def test_models_are_searched_and_staff_search_their_names_at_endpoints(client: Client, runner: User) -> None:
    for i in range(45):
        ModelEndpoint.objects.create(name=f"large-{i:02}", model=f"provider/secret-{i:02}")
    page = show(client, f"{URL}?model_q=large&model=small")
    assert page.count('type="checkbox" id="model-') == PER_PAGE and chosen(page, "models") == ["small"]
    assert "No model matches" in show(client, f"{URL}?model_q=secret-07")
    runner.is_staff = True
    runner.save()
    assert 'value="large-07"' in show(client, f"{URL}?model_q=secret-07")


@pytest.mark.parametrize("method", ["get", pytest.param("post", marks=pytest.mark.exhaustive)])
def test_number_of_queries_is_fixed_with_hundreds_of_environments(client: Client, runner: User, method: str) -> None:
    def count(chosen: list[str]) -> int:
        given = form(environment=chosen, do=None)
        with CaptureQueriesContext(connection) as queries:
            if method == "get":
                assert client.get(URL, given).status_code == 200
            else:
                assert client.post(URL, given, headers={"HX-Request": "true"}).status_code == 200
        return len(queries)

    publish("sums")
    count(["capitals"])
    few = count(["capitals", "sums@1.0.0"])
    many = [publish(f"sums-{i:03}", version="1.0.0").slug for i in range(500)]
    ModelEndpoint.objects.bulk_create(ModelEndpoint(name=f"large-{i:03}", model="m") for i in range(200))
    assert count(["capitals", "sums@1.0.0", *many[:300]]) == few <= 20


# ---- starting


def test_submitted_form_queues_and_dispatches_run(
    client: Client, runner: User, monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any
) -> None:
    sent: list[int] = []
    monkeypatch.setattr("runs.execution.dispatch._send", sent.append)
    with django_capture_on_commit_callbacks(execute=True):
        answer = client.post(URL, form(cases="sample", count=2, budget="1.5", attempts=3, concurrency=4))
    run = Run.objects.get()
    assert answer["Location"] == f"/runs/{run.pk}/"
    assert (run.status, run.created_by, sent) == (Run.Status.QUEUED, runner, [run.pk])
    assert run.environments.get().case_count == 2
    assert run.config["limits"]["budget_usd"] == 1.5 and run.config["attempts"] == 3 and run.config["concurrency"] == 4
    assert "Waiting for a worker" in client.get(answer["Location"]).content.decode()


def test_run_without_a_name_is_named_after_its_environments_and_models(client: Client, runner: User) -> None:
    client.post(URL, form(name=""))
    assert Run.objects.get().name == "capitals; small"


def test_environment_has_its_own_version_and_cases(client: Client, runner: User) -> None:
    client.post(URL, form(environment=["capitals@1.0.0:sample=1"], cases="limit", count=2))
    environment = Run.objects.get().environments.get()
    assert (environment.case_count, environment.selection) == (1, {"sample": 1})


def test_other_settings_are_part_of_the_config(client: Client, runner: User) -> None:
    client.post(URL, form(budget="2", other="limits: {turns: 4}\njudge: {model: small, max_pairs: 7}\n"))
    config = Run.objects.get().config
    assert (config["limits"]["turns"], config["limits"]["budget_usd"], config["judge"]["max_pairs"]) == (4, 2.0, 7)


@pytest.mark.parametrize(
    ("changes", "field", "expected"),
    [
        ({"environment": ["capitols"]}, "environment", "There is no environment 'capitols' that you may run. Did you"),
        ({"environment": None}, "environment", "Choose at least one environment."),
        ({"environment": ["capitals@9.9.9"]}, "environment", "Capitals has no version 9.9.9."),
        ({"environment": ["capitals", "capitals@1.0.0"]}, "environment", "Capitals is chosen twice."),
        ({"environment": ["empty"]}, "environment", "Empty has no version yet"),
        ({"environment": ["invalid"]}, "environment", "invalid cannot be used: its stored manifest is not valid"),
        ({"environment": ["secret"]}, "environment", "There is no environment 'secret' that you may run."),
        ({"environment": [f"e{i}" for i in range(501)]}, "environment", "at most 500 environments"),
        ({"model": ["smal"]}, "model", "No model is registered as 'smal'; did you mean 'small'?"),
        (
            {"model": ["off"]},
            "model",
            "The model 'off' is disabled; staff who register models can set it to",
        ),
        ({"model": None}, "model", "Choose at least one model."),
        ({"model": ["keyless"]}, "model", "The key of 'keyless' is not set on this server. Ask an operator to set it."),
        ({"model": ["demo"]}, "model", "has recorded answers only for environments that ship"),
        ({"model": [f"m{i}" for i in range(201)]}, "model", "at most 200 models"),
        ({"cases": "sample"}, "count", "Enter the number of cases."),
        ({"cases": "limit", "count": "0"}, "count", "greater than or equal to 1"),
        ({"attempts": 0}, "attempts", "greater than or equal to 1"),
        ({"attempts": 1001}, "attempts", "less than or equal to 1000"),
        ({"attempts": ""}, "attempts", "This field is required."),
        ({"concurrency": 1025}, "concurrency", "less than or equal to 1024"),
        ({"concurrency": "many"}, "concurrency", "Enter a whole number."),
        ({"budget": "-1"}, "budget", "greater than or equal to 0.01"),
        ({"model": ["unpriced"], "budget": "1"}, "budget", "The budget cannot be kept: unpriced has no price."),
        ({"name": "${HOME}"}, "name", "Variables (${...}) cannot be used here."),
        ({"name": "x" * 121}, "name", "at most 120 characters"),
        ({"other": "limits: ["}, "other", "Line 1"),
        ({"other": "- a"}, "other", "must be keys with values"),
        ({"other": "limits: {turns: 2}\nattempts: 3"}, "other", "Line 2: attempts has a field of its own."),
        ({"other": "limits:\n  budget_usd: 3"}, "other", "Line 2: enter the budget in its own field."),
        ({"other": "\nlimits: {turns: 0}"}, "other", "Line 2, limits.turns: "),
        ({"other": "jugde: {}"}, "other", "Line 1, jugde: unknown key; did you mean 'judge'?"),
    ],
)
def test_errors_are_at_their_fields_and_entries_are_kept(
    client: Client, runner: User, changes: dict[str, Any], field: str, expected: str
) -> None:
    Environment.objects.create(slug="empty", title="Empty", summary="", category="c", visibility="published")
    Environment.objects.create(slug="secret", title="Secret", summary="", category="c")
    ModelEndpoint.objects.create(name="keyless", model="m", api_key_env="OPENAI_API_KEY", price_input=0)
    ModelEndpoint.objects.create(name="off", model="m", enabled=False)
    register_demo_models()
    publish("invalid")
    given = form(**changes)
    answer = client.post(URL, given)
    page = answer.content.decode()
    assert answer.status_code == 422 and Run.objects.count() == 0
    assert expected in error_of(page, field)
    assert "The run was not started." in page
    shown = unescape(page)
    for name in ("name", "attempts", "concurrency", "budget", "seed", "count"):
        if given.get(name):
            assert re.search(rf'name="{name}" value="{re.escape(str(given[name]))}"', shown), name
    assert given.get("other", "").strip() in shown
    for name in [*given.get("environment", [])[:40], *given.get("model", [])[:40]]:
        assert f'value="{name}"' in shown


def test_draft_shows_errors_of_what_is_entered_but_not_of_what_is_missing(client: Client, runner: User) -> None:
    page = show(client, f"{URL}?model=nobody&budget=-1")
    assert "No model is registered as 'nobody'" in error_of(page, "model")
    assert "greater than" in error_of(page, "budget")
    assert error_of(page, "environment") == "" and "The run was not started" not in page


def test_page_estimates_needs_and_compares_cost_with_the_budget(client: Client, runner: User) -> None:
    page = markup(show(client, f"{URL}?environment=capitals&model=small&model=unpriced&attempts=100"))
    assert "<dd>600</dd>" in page and "without unpriced: no price" in page and "unknown: no earlier run" in page
    assert "From the length of the cases, because no earlier run has results, and the prices" in page
    warning = "This is more than the budget."
    assert warning in show(client, f"{URL}?environment=capitals&model=small&attempts=100&budget=0.01")
    assert warning not in show(client, f"{URL}?environment=capitals&model=small&attempts=100&budget=5")
    assert "free" not in page and "Choose environments and models to see" in show(client, f"{URL}?model=small")


def test_roles_of_chosen_environments_have_fields(client: Client, runner: User) -> None:
    publish("essay", scoring={"rules": [{"type": "judge"}]})
    assert "role_rubric" not in show(client, f"{URL}?environment=capitals")
    page = show(client, f"{URL}?environment=essay&role_rubric=small")
    assert 'name="role_rubric" value="small"' in page and "Needed by essay." in page
    answer = client.post(URL, form(environment=["essay"]))
    assert answer.status_code == 422 and "Choose a model. Needed by essay." in answer.content.decode()
    answer = client.post(URL, form(environment=["essay"], role_rubric="nobody"))
    assert answer.status_code == 422 and "No model is registered as" in answer.content.decode()
    answer = client.post(URL, form(environment=["essay"], role_rubric="unpriced", budget="1"))
    assert "The budget cannot be kept: unpriced" in error_of(answer.content.decode(), "budget")


def test_staff_is_told_which_key_is_missing(client: Client, runner: User) -> None:
    ModelEndpoint.objects.create(name="keyless", model="m", api_key_env="OPENAI_API_KEY", price_input=0)
    runner.is_staff = True
    runner.save()
    page = show(client, f"{URL}?model=keyless")
    assert "An operator sets OPENAI_API_KEY." in error_of(page, "model")


def test_new_run_page_without_registered_models_explains_registration(client: Client, runner: User) -> None:
    ModelEndpoint.objects.all().delete()
    page = client.get(URL).content.decode()
    assert "Ask a member of staff to register one" in page and "Start the run" not in page
    runner.is_staff = True
    runner.save()
    assert 'href="/endpoints/new/"' in client.get(URL).content.decode()


def test_new_run_page_without_environments_shows_prepare_command(client: Client, runner: User) -> None:
    Environment.objects.update(visibility=Environment.Visibility.RETIRED)
    page = client.get(URL).content.decode()
    assert "manage.py prepare" in page and "Start the run" not in page


def test_page_needs_the_permission_to_start_runs(client: Client, runner: User) -> None:
    client.force_login(member())
    assert client.get(URL).status_code == 403
    assert client.post(URL, form()).status_code == 403
    assert Run.objects.count() == 0


@pytest.mark.django_db(transaction=True)
def test_run_from_site_is_executed_and_page_shows_results(client: Client, runner: User) -> None:
    config = {"name": "x", "environments": ["capitals"], "models": ["small"], "tracking": {"mlflow": False}}
    client.post(URL, {"config": json.dumps(config), "do": "start-yaml"})
    execute_queued_runs()
    run = Run.objects.get()
    assert run.status == Run.Status.COMPLETED, run.message
    page = client.get(f"/runs/{run.pk}/").content.decode()
    assert "66.7 %" in page and ">Norway</a>" in page
    page = markup(show(client, f"{URL}?environment=capitals&model=small"))
    assert "From the tokens of 3 responses of earlier runs" in page


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", ["gpt-4.1-mini", "org/model:free"])
def test_model_name_with_special_characters_is_accepted_by_site_and_rest(
    client: Client, runner: User, server: Endpoint, name: str
) -> None:
    ModelEndpoint.objects.create(name=name, model=name, base_url=server.url)
    config = {"name": "r", "environments": ["capitals"], "models": [name], "tracking": {"mlflow": False}}
    started = client.post("/api/v1/runs/", json.dumps(config), content_type="application/json")
    assert started.status_code == 201, started.content
    assert client.post(URL, form(model=[name])).status_code == 302
    assert name in [item["name"] for item in client.get("/api/v1/models/").json()["results"]]
    while Run.objects.filter(status="queued").exists():
        execute_queued_runs()
    for run in Run.objects.all():
        assert run.status == "completed", run.message
        responses = client.get(f"/api/v1/runs/{run.pk}/responses/", {"model": name}).json()["results"]
        assert len(responses) == 3 and {item["model"] for item in responses} == {name}
        assert f'href="/models/{name}/"' in client.get(f"/runs/{run.pk}/").content.decode()
    assert "capitals@1.0.0" in client.get(f"/models/{name}/").content.decode()
