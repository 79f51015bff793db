"""Tests of the pages that show responses: texts, source, target, tools, lines that raised errors, earlier runs."""

import re
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from hub.models import Environment
from hub.protocols.calls import quoting
from runs.models import Response
from runs.reports import render_html
from runs.web import queries
from tests.factories import stored_response, stored_run, stored_score, stored_version
from tests.members import member

pytestmark = pytest.mark.django_db

TEXT = "<think>Let me **see**.</think>It is *four*:\n\n```python\ndef f(x):\n    return x / 0\n```\n"
CALL = {"id": "1", "type": "function", "function": {"name": "look_up", "arguments": '{"country":"Spain"}'}}


@pytest.fixture
def user(client: Client) -> User:
    found = member(name="ann")
    client.force_login(found)
    return found


def answered(text: str = TEXT, status: str = "failed", *, held_out: bool = False, **fields: Any) -> Response:
    version = stored_version(cases=[{"id": "c0", "input": "2 + 2?", "target": "the target"}], held_out=held_out)
    Environment.objects.update(visibility="published")
    run = stored_run(version, provider="openai")
    messages = [{"role": "user", "content": "2 + 2?"}, {"role": "assistant", "content": text}]
    return stored_response(run, version.cases.get(), status, text=text, messages=messages, **fields)


def page(client: Client, url: str) -> str:
    answer = client.get(url)
    assert answer.status_code == 200
    return answer.content.decode()


def words(html: str) -> str:
    return unescape(re.sub(r"<template.*?</template>|<[^>]*>", "", html, flags=re.DOTALL))


def test_pages_and_report_render_markdown_code_and_reasoning(client: Client, user: User) -> None:
    response = answered()
    run = response.run_environment.run
    for shown in (
        page(client, f"/responses/{response.pk}/"),
        page(client, f"/runs/{run.pk}/cases/{response.case_id}/"),
        render_html(run),
    ):
        assert "It is <em>four</em>" in shown
        assert '<span class="k">def</span>' in shown
        assert "<summary>Reasoning, 15 characters</summary>" in shown
        assert "&lt;think&gt;" not in re.sub(r"<template.*?</template>", "", shown, flags=re.DOTALL)


def test_long_reason_is_folded_and_a_reason_is_not_repeated_below_scores(client: Client, user: User) -> None:
    reason = "It says Bergen, and the capital is Oslo. " * 40
    response = answered(reason=reason)
    stored_score(response, reason=reason)
    stored_score(response, rule="style", reason="It is long.")
    shown = page(client, f"/responses/{response.pk}/")
    assert shown.count(reason.strip()) == 1
    assert "Show all 1,640 characters" in shown
    assert "It is long." in shown
    Response.objects.update(reason="It is long.")
    shown = page(client, f"/responses/{response.pk}/")
    assert shown.count("It is long.") == 1
    assert "Show all" not in shown[: shown.index("Transcript")]


def test_source_is_shown_by_url_and_by_cookie(client: Client, user: User) -> None:
    url = f"/responses/{answered().pk}/"
    assert "It is *four*" in words(page(client, f"{url}?view=source"))
    client.cookies["view"] = "source"
    assert "It is *four*" in words(page(client, url))
    assert "It is *four*" not in words(page(client, f"{url}?view=rendered"))


def test_tool_calls_are_cards_with_indented_arguments(client: Client, user: User) -> None:
    response = answered()
    response.messages = [
        {"role": "user", "content": "Where?"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "1", "content": '{"capital":"Madrid"}'},
    ]
    response.save()
    shown = words(page(client, f"/responses/{response.pk}/"))
    assert '{\n  "country": "Spain"\n}' in shown
    assert '{\n  "capital": "Madrid"\n}' in shown
    assert re.search(r"result of\s+look_up", shown)


def test_failed_test_and_error_line_are_shown(client: Client, user: User) -> None:
    response = answered()
    message = "The code raised ZeroDivisionError (line 2)"
    failure = {"test": "f(1) == 2", "line": 1, "expected": "2", "got": ""}
    ran = {"status": "exception", "message": message, "failure": failure}
    stored_score(response, "tests", 0.0, reason=message, detail={"code": "fence"}, execution=ran)
    shown = page(client, f"/responses/{response.pk}/")
    assert "first failed test" in shown
    marked = re.findall(r'<mark class="error-line"[^>]*>(.*?)</mark>', shown)
    assert unescape(re.sub(r"<[^>]*>", "", "".join(marked))) == "    return x / 0"
    assert 'data-note="f(1) == 2' in shown


@pytest.mark.parametrize(("trust", "held_out"), [("in_process", False), ("in_process", True), ("isolated", False)])
def test_scores_that_a_model_can_forge_are_marked(client: Client, user: User, trust: str, held_out: bool) -> None:
    response = answered(held_out=held_out)
    stored_score(response, "tests", 1.0, detail={"trust": trust})
    marked = "The tests share a process with what the model wrote" in page(client, f"/responses/{response.pk}/")
    assert marked == (trust == "in_process")


def test_target_is_shown_unless_held_out(client: Client, user: User) -> None:
    assert "the target" in page(client, f"/responses/{answered().pk}/")


def test_target_that_begins_like_deeply_nested_json_is_shown_as_text(client: Client, user: User) -> None:
    response = answered()
    response.case.data = {**response.case.data, "target": "[" * 100_000}
    response.case.save()
    assert "[" * 1000 in page(client, f"/responses/{response.pk}/")


def test_held_out_target_and_failed_test_are_withheld(client: Client, user: User) -> None:
    response = answered(held_out=True)
    failure = {"test": "f(1) == 2", "line": 1, "expected": "2", "got": ""}
    ran = {"status": "exception", "message": "It raised (line 2)", "failure": failure}
    stored_score(response, "tests", 0.0, detail={"code": "fence"}, execution=ran)
    shown = page(client, f"/responses/{response.pk}/")
    assert "the target" not in shown and "f(1) == 2" not in shown
    assert "Held out" in shown


def test_reply_of_an_endpoint_is_withheld_where_the_target_is(client: Client, user: User) -> None:
    reason = quoting("The endpoint of judge answered 400.", "prompt: the target")
    response = answered(held_out=True, status="errored", error_kind="http", reason=reason)
    run = response.run_environment.run
    addresses = [
        f"/responses/{response.pk}/",
        f"/runs/{run.pk}/cases/{response.case_id}/",
        f"/runs/{run.pk}/",
        f"/api/v1/runs/{run.pk}/responses/",
    ]
    for address in addresses:
        shown = page(client, address)
        assert "The endpoint of judge answered 400." in shown and "the target" not in shown, address
    assert "prompt: the target" not in render_html(run, user=user)
    client.force_login(member("Curator", name="curator"))
    for address in addresses:
        assert "prompt: the target" in page(client, address), address


def test_id_in_mlflow_is_withheld_where_the_target_is(client: Client, user: User) -> None:
    run = answered(held_out=True).run_environment.run
    run.tracking, run.tracking_state = {"parent": "1d0f", "cells": {"a": "2e1a"}, "experiment_id": "1"}, "logged"
    run.save()
    pages = [f"/runs/{run.pk}/", f"/api/v1/runs/{run.pk}/report"]
    assert all("1d0f" not in page(client, address) for address in pages)
    client.force_login(member("Curator", name="curator"))
    assert all("1d0f" in page(client, address) for address in pages)


def test_parameters_are_shown_without_endpoint_to_users_who_are_not_staff(client: Client, user: User) -> None:
    response = answered()
    response.run_model.spec |= {
        "parameters": {"temperature": 0.25},
        "base_url": "http://secret",
        "api_key_env": "K_E_Y",
    }
    response.run_model.save()
    shown = page(client, f"/responses/{response.pk}/")
    assert "0.25" in shown
    assert "secret" not in shown and "K_E_Y" not in shown


def test_earlier_responses_to_the_case_are_listed_and_bounded(client: Client, user: User, monkeypatch: Any) -> None:
    monkeypatch.setattr(queries, "OTHER_RUNS", 2)
    first = answered()
    version = first.case.version
    later = [stored_response(stored_run(version), first.case) for _ in range(4)]
    shown = page(client, f"/responses/{later[-1].pk}/")
    assert [f"/responses/{item.pk}/" in shown for item in [first, *later[:-1]]] == [False, False, True, True]
    assert "No earlier run" in page(client, f"/responses/{first.pk}/")


def test_responses_of_runs_that_the_user_may_not_see_are_not_listed(client: Client, user: User) -> None:
    hidden = answered()
    version = hidden.case.version
    Environment.objects.update(visibility="private", owner=member(name="other"))
    public = stored_version("open", [{"id": "c0", "input": "2 + 2?"}])
    Environment.objects.filter(pk=public.environment_id).update(visibility="published")
    shown = stored_response(stored_run(public), public.cases.get())
    assert queries.list_responses_of_other_runs(user, shown) == []
    assert queries.list_responses_of_other_runs(user, stored_response(stored_run(version), version.cases.get())) == []


def test_response_page_shows_request_id_and_served_model_to_staff_only(client: Client, user: User) -> None:
    response = answered(served_model="small-<1>", request_id="req-1")
    shown = page(client, f"/responses/{response.pk}/")
    assert "small-" not in shown and "req-1" in shown
    User.objects.update(is_staff=True)
    shown = page(client, f"/responses/{response.pk}/")
    assert "small-&lt;1&gt;" in shown and "req-1" in shown
    Response.objects.update(served_model="", request_id="")
    assert "Request id" not in page(client, f"/responses/{response.pk}/")


@pytest.mark.parametrize("harness", [{"type": "tools", "source": "tools.py"}, {"type": "custom", "path": 1}])
def test_response_is_shown_if_the_environment_cannot_be_compiled(
    client: Client, user: User, harness: dict[str, object]
) -> None:
    version = stored_version(cases=[{"id": "c0", "input": "2 + 2?"}], harness=harness)  # without an archive
    Environment.objects.update(visibility="published")
    response = stored_response(stored_run(version), version.cases.get(), "passed")
    assert "an answer" in page(client, f"/responses/{response.pk}/")


def test_hidden_response_is_reported_as_one_that_does_not_exist(client: Client, user: User) -> None:
    response = answered()
    Environment.objects.update(visibility=Environment.Visibility.PRIVATE)
    for path in ("/responses/{}/", "/responses/{}/raw", "/review/responses/{}/"):
        texts = []
        for pk in (response.pk, response.pk + 1):
            answer = client.get(path.format(pk))
            assert answer.status_code == 404
            texts.append(re.sub(r"\d+", "N", words(answer.content.decode())))
        assert texts[0] == texts[1]
        assert f"run {response.run_environment.run_id}" not in words(
            client.get(path.format(response.pk)).content.decode()
        )


def test_score_of_a_failed_response_is_not_rounded_to_the_highest_one(client: Client, user: User) -> None:
    response = answered(score=0.9996)
    stored_score(response, "tests", 0.9996, type="python_tests")
    shown = unescape(page(client, f"/responses/{response.pk}/"))
    assert "<dt>Score</dt><dd>> 0.999</dd>" in shown
    assert '<strong class="num">> 0.99</strong>' in shown
    assert '<td class="num" data-label="score">> 0.99</td>' in unescape(
        page(client, f"/runs/{response.run_environment.run_id}/")
    )
