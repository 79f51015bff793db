"""Runs against a real HTTP endpoint: storage, resume, cache, limits, budget and exit codes."""

import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings
from django.core import serializers
from django.core.management import call_command
from django.db import connection

from hub.models import Case
from llmeval_site.configuration.variables import EnvironmentVariables
from runs import stages as stages_module
from runs.config.parsed import ConfigError
from runs.config.parsing import read_config_text
from runs.config.resolve import config_hash, resolve_config, source_for_command
from runs.execution import runner
from runs.missing import is_run_complete
from runs.models import ModelCall, Response, Run, RunModel, Score
from runs.reports.document import results_json
from runs.results.warnings import warnings
from runs.selectors import stored_counts
from runs.services import resume_run
from runs.spending import BudgetError
from runs.stages import RunSize, Stage, StageConfig, StageContext, StageEstimate
from runs.web.progress import get_progress
from sandbox.errors import SandboxUnavailable
from tests.commands import run_command
from tests.endpoint import Answer, Endpoint, completion, endpoint
from tests.factories import accepted_defect, stored_outcomes, stored_run, stored_version
from tests.processes import database_environment, start_eval, wait_until
from tests.runs.capitals import (
    CAPITALS,
    MANIFEST,
    ONE,
    all_passed,
    answer_capital,
    config_text,
    load,
    resume,
    start,
    statuses,
)
from tests.runs.config.resolution import find_environments

pytestmark = pytest.mark.django_db(transaction=True)


def test_assistant_messages_in_the_prompt_are_no_turns(folder: Path) -> None:
    manifest = folder / "capitals" / "environment.yaml"
    examples = [
        {"role": "user", "content": "Capital of Italy?"},
        {"role": "assistant", "content": "Rome"},
        {"role": "user", "content": "{{ input }}"},
    ]
    harness = json.dumps({"type": "single_turn", "prompt": examples})
    manifest.write_text(f"{manifest.read_text()}harness: {harness}\n")
    with endpoint(answer_capital) as server:
        start(folder, config_text(server.url, environments=ONE))
    response = Response.objects.get()
    assert [message["role"] for message in response.messages] == ["user", "assistant", "user", "assistant"]
    assert (response.turns, response.prompt_messages, response.text) == (1, 3, "Paris")


def test_run_stores_transcript_scores_usage_and_cost_of_each_case(folder: Path) -> None:
    usage = {
        "prompt_tokens": 1000,
        "completion_tokens": 200,
        "prompt_tokens_details": {"cached_tokens": 400},
        "completion_tokens_details": {"reasoning_tokens": 150},
    }

    def script(request: dict[str, Any], _: int) -> Answer:
        answer = answer_capital(request)
        answer.body["usage"] = usage
        if "Peru" in request["messages"][-1]["content"]:
            answer.body["choices"][0]["message"]["content"] = "Cusco"
        return answer

    with endpoint(script) as server:
        run, _ = start(folder, config_text(server.url))
    assert run.status == "completed"
    assert statuses(run) == {c.lower(): "failed" if c == "Peru" else "passed" for c in CAPITALS}
    response = Response.objects.get(case__external_id="peru")
    assert response.messages == [
        {"role": "user", "content": "Capital of Peru?"},
        {"role": "assistant", "content": "Cusco"},
    ]
    assert (response.text, response.score, response.turns) == ("Cusco", 0.0, 1)
    assert "Lima" in response.reason
    assert (response.input_tokens, response.cached_input_tokens) == (1000, 400)
    assert (response.output_tokens, response.reasoning_tokens) == (200, 150)
    # 600 fresh at $1, 400 cached at $0.5 and 200 output at $10 per million; reasoning is part of the output.
    assert response.cost_usd == pytest.approx(0.0028)
    assert run.cost_usd == pytest.approx(6 * 0.0028)
    assert response.latency_ms is not None and response.latency_ms > 0
    assert [(score.rule, score.value) for score in response.scores.all()] == [("exact_match", 0.0)]


def test_run_stores_served_models_and_request_ids_and_warns_if_the_model_changed(folder: Path) -> None:
    def script(request: dict[str, Any], number: int) -> Answer:
        answer = answer_capital(request)
        answer.body["model"] = "small-1" if number < 4 else "small-2"
        answer.headers["x-request-id"] = f"req-{number}"
        return answer

    with endpoint(script) as server:
        run, _ = start(folder, config_text(server.url))
        again, _ = start(folder, config_text(server.url))
        assert len(server.requests) == len(CAPITALS)
    for one in (run, again):  # the second one has its replies from the cache
        rows = Response.objects.filter(run_environment__run=one).values_list("request_id", "served_model")
        assert sorted(rows) == [(f"req-{i}", "small-1" if i < 4 else "small-2") for i in range(6)]
        (note,) = [note for note in results_json(one)["warnings"] if "several models" in note]
        assert note.endswith("the figures mix them: small-1 (4), small-2 (2).")


class ObservingStage(Stage[StageConfig]):
    """Stage that reports the stored state of the run while it is executed."""

    key, title, order, Config, implicit = "observing", "Observing", 1, StageConfig, True

    def estimate(self, size: RunSize, config: StageConfig) -> StageEstimate:
        return StageEstimate()

    async def execute(self, context: StageContext, config: Any) -> dict[str, Any]:
        return await sync_to_async(self._read_state)(context.run.pk)

    def _read_state(self, pk: int) -> dict[str, Any]:
        try:
            run = Run.objects.get(pk=pk)
            stored = Response.objects.filter(run_environment__run=run).count()
        finally:
            connection.close()  # that of the thread
        return {"status": run.status, "evaluated": run.evaluated_at is not None, "stored": stored}


def test_responses_are_stored_and_evaluated_at_is_set_before_stages(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stages_module, "STAGES", {"observing": ObservingStage()})
    with endpoint(answer_capital) as server:
        run, _ = start(folder, config_text(server.url).replace('"tracking": {"mlflow": false}', '"seed": 0'))
        assert run.summaries["observing"] == {"status": "running", "evaluated": True, "stored": len(CAPITALS)}
        resume_run(run=run)
    run.refresh_from_db()
    assert run.evaluated_at is None


def test_time_of_a_run_is_the_stored_one_at_its_end(folder: Path) -> None:
    with endpoint(answer_capital) as server:
        run, _ = start(folder, config_text(server.url, limits={"budget_usd": 0.00013}, concurrency=1))
        assert run.seconds == Run.objects.get().seconds
        run, _ = resume(run, budget_usd=1.0)
    assert run.seconds == Run.objects.get().seconds


def test_interrupt_after_the_end_of_a_run_keeps_its_status(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def store_results(run: Run) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "store_results", store_results)
    with endpoint(answer_capital) as server, pytest.raises(KeyboardInterrupt):
        start(folder, config_text(server.url))
    run = Run.objects.get()
    assert (run.status, run.lease_owner) == ("completed", "")


def test_second_run_uses_the_cache_and_costs_nothing(folder: Path) -> None:
    with endpoint(answer_capital) as server:
        start(folder, config_text(server.url))
        run, _ = start(folder, config_text(server.url))
        assert len(server.requests) == len(CAPITALS)
    assert all_passed(run)
    responses = Response.objects.filter(run_environment__run=run)
    assert {(r.latency_ms, r.cost_usd) for r in responses} == {(None, 0.0)}
    assert responses[0].input_tokens == 10


def test_calls_that_a_killed_process_paid_count_in_the_responses_that_use_them(folder: Path) -> None:
    with endpoint(answer_capital) as server:
        run, _ = start(folder, config_text(server.url))
        cost = run.cost_usd
        assert cost and cost == pytest.approx(sum(Response.objects.values_list("cost_usd", flat=True)))
        # As if the process had been killed when all calls but only a part of the responses were stored.
        Response.objects.filter(case__external_id__in=["cuba", "peru"]).delete()
        Run.objects.update(status="interrupted", cost_usd=0.0)
        again, _ = resume(run)
        assert len(server.requests) == len(CAPITALS)
    assert again.cost_usd == pytest.approx(cost)
    assert sum(Response.objects.values_list("cost_usd", flat=True)) == pytest.approx(cost)


def test_budget_counts_calls_that_a_killed_process_paid(folder: Path) -> None:
    with endpoint(answer_capital) as server:
        run, _ = start(folder, config_text(server.url, limits={"budget_usd": 1.0}))
        Response.objects.all().delete()
        ModelCall.objects.filter(pk=ModelCall.objects.values("pk")[:1]).update(cost_usd=2.0)
        Run.objects.update(status="interrupted", cost_usd=0.0)
        again, _ = resume(run)
    assert (again.status, len(server.requests)) == ("stopped", len(CAPITALS))
    assert "of the budget of $1.00 is spent" in again.message


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1},
        {"models": [{"name": "s", "provider": "openai", "model": "other", "base_url": "URL"}]},
        {"models": [{"name": "s", "provider": "openai", "model": "m", "base_url": "URL", "parameters": {"top_p": 1}}]},
    ],
)
def test_cache_key_depends_on_seed_model_and_parameters(folder: Path, change: dict[str, Any]) -> None:
    with endpoint(answer_capital) as server:
        start(folder, config_text(server.url))
        start(folder, config_text(server.url, **json.loads(json.dumps(change).replace("URL", server.url))))
        assert len(server.requests) == 2 * len(CAPITALS)


def test_cache_key_does_not_depend_on_label_and_concurrency(folder: Path) -> None:
    with endpoint(answer_capital) as server:
        start(folder, config_text(server.url))
        model = {"name": "renamed", "provider": "openai", "model": "m", "base_url": server.url}
        start(folder, config_text(server.url, models=[model], concurrency=2))
        assert len(server.requests) == len(CAPITALS)


def test_role_model_that_is_asked_the_same_for_two_models_is_paid_once(folder: Path) -> None:
    """Both models give the same answer, so the judge's reply about the first answer is used for the second."""
    manifest = folder / "capitals" / "environment.yaml"
    rule = "{type: judge, criteria: [{name: right, text: It is right.}]}"
    manifest.write_text(manifest.read_text().replace("{type: exact_match}", f"{{type: exact_match}}, {rule}"))

    def answer(request: dict[str, Any], _: int) -> Answer:
        mark = '{"right": {"reason": "so", "score": 1}}'
        if request["model"] == "m2":
            time.sleep(1)  # until the judge's reply is in the cache
        return completion(mark) if request["model"] == "judge" else answer_capital(request)

    with endpoint(answer) as server:
        model = json.loads(config_text(server.url))["models"][0]
        text = config_text(
            server.url,
            environments=ONE,
            concurrency=1,
            models=[model, {**model, "name": "large", "model": "m2"}],
            roles={"rubric": [{**model, "name": "judge", "model": "judge"}]},
        )
        run, _ = start(folder, text)
        assert sorted(request["model"] for request in server.requests) == ["judge", "m", "m2"]
        each = 0.00006
        assert sorted(Response.objects.values_list("role_cost_usd", flat=True)) == [0.0, pytest.approx(each)]
        assert run.cost_usd == pytest.approx(3 * each)
        # As if the process had been killed before it stored any response: each reply counts where it was paid for.
        Response.objects.all().delete()
        Run.objects.update(status="interrupted", cost_usd=0.0)
        run, _ = resume(run)
        assert len(server.requests) == 3
    assert sorted(Response.objects.values_list("role_cost_usd", flat=True)) == [0.0, pytest.approx(each)]
    assert run.cost_usd == pytest.approx(3 * each)


def test_no_cache_requests_every_reply_again(folder: Path) -> None:
    with endpoint(answer_capital) as server:
        start(folder, config_text(server.url))
        start(folder, config_text(server.url), use_cache=False)
        assert len(server.requests) == 2 * len(CAPITALS)


def test_each_attempt_has_its_own_request_and_seed(folder: Path) -> None:
    with endpoint(answer_capital) as server:
        start(folder, config_text(server.url, attempts=3))
        assert len(server.requests) == 3 * len(CAPITALS)
    assert set(Response.objects.values_list("attempt", flat=True)) == {1, 2, 3}
    seeds = Response.objects.values_list("seed", flat=True)
    assert len(set(seeds)) == 3 * len(CAPITALS)


def test_concurrency_limits_requests_in_flight(folder: Path) -> None:
    full = threading.Semaphore(0)

    def script(request: dict[str, Any], number: int) -> Answer:
        # The first three requests wait for the third, so that the peak is certain to reach three.
        if number == 2:
            full.release(3)
        if number < 3:
            full.acquire(timeout=5)
        return answer_capital(request)

    with endpoint(script) as server:
        start(folder, config_text(server.url, concurrency=3))
        assert server.peak == 3


def test_resume_requests_only_errored_responses(folder: Path) -> None:
    broken = True

    def script(request: dict[str, Any], _: int) -> Answer:
        if broken and "Kenya" in request["messages"][-1]["content"]:
            return Answer({"error": {"message": "boom"}}, 500)
        if broken and "Cuba" in request["messages"][-1]["content"]:
            return Answer(b"<html>")
        return answer_capital(request)

    with endpoint(script) as server:
        run, _ = start(folder, config_text(server.url))
        assert statuses(run)["kenya"] == statuses(run)["cuba"] == "errored"
        kinds = Response.objects.filter(status="errored").order_by("case__external_id")
        assert [r.error_kind for r in kinds] == ["not_json", "http"]
        assert "boom" in kinds[1].reason
        requested = len(server.requests)
        broken = False
        run, _ = resume(run)
        assert len(server.requests) == requested + 2
    assert all_passed(run)


def test_resume_asks_a_simulated_user_again_that_gave_an_empty_reply(folder: Path) -> None:
    manifest = (
        MANIFEST + 'harness: {type: multi_turn, prompt: "", user: {role: user, prompt: "Ask about {{ country }}."}}\n'
    )
    (folder / "capitals" / "environment.yaml").write_text(manifest)
    said = ["", "Capital of France?", "Paris", "Thanks. ###"]  # the first is an error
    with endpoint(lambda request, number: completion(said[number])) as server:
        model = {"provider": "openai", "base_url": server.url, "price": {"input": 1.0, "output": 10.0}}
        roles = {"user": [{**model, "name": "person", "model": "person"}]}
        run, _ = start(folder, config_text(server.url, environments=ONE, roles=roles))
        assert "empty reply at turn 0" in Response.objects.get().reason
        run, _ = resume(run)
        response = Response.objects.get()
        assert (response.status, len(server.requests)) == ("passed", 4)
    assert run.cost_usd == pytest.approx(4 * 0.00006)  # the empty reply was paid, too


@pytest.mark.parametrize(
    ("answer", "flag"),
    [
        (completion("Par", finish="length"), "truncated"),
        (completion("", finish="content_filter"), "refused"),
        (completion(None, refusal="No."), "refused"),
    ],
)
def test_truncated_and_refused_answers_are_scored_and_flagged(folder: Path, answer: Answer, flag: str) -> None:
    with endpoint(lambda *_: answer) as server:
        run, _ = start(folder, config_text(server.url))
    assert set(statuses(run).values()) == {"failed"}
    assert all(getattr(response, flag) for response in Response.objects.all())


def test_characters_that_databases_reject_are_replaced(folder: Path) -> None:
    with endpoint(lambda *_: completion("Par\x00is \ud83d")) as server:
        run, _ = start(folder, config_text(server.url))
    assert set(statuses(run).values()) == {"failed"}
    response = Response.objects.all()[0]
    assert response.text == response.messages[-1]["content"] == "Par\ufffdis \ufffd"


def test_wrong_key_stops_only_its_model_after_one_request(folder: Path) -> None:
    def script(request: dict[str, Any], _: int) -> Answer:
        return (
            Answer({"error": {"message": "bad key"}}, 401) if request["model"] == "locked" else answer_capital(request)
        )

    with endpoint(script) as server:
        models = [
            {"name": name, "provider": "openai", "model": name, "base_url": server.url} for name in ("locked", "open")
        ]
        run, listener = start(folder, config_text(server.url, models=models, concurrency=1))
        refused = [request for request in server.requests if request["model"] == "locked"]
    assert len(refused) == 1
    assert len(listener.stopped) == 1 and "401" in listener.stopped[0]
    locked, opened = run.models.order_by("position")
    assert "check the key" in locked.stopped or "api_key_env" in locked.stopped
    assert locked.responses.count() == 1
    assert opened.responses.filter(status="passed").count() == len(CAPITALS)


def test_budget_requires_a_price_for_each_model(folder: Path) -> None:
    def problems(**limits: float) -> list[str]:
        config = json.loads(config_text("http://127.0.0.1:9/v1", limits=limits))
        del config["models"][0]["price"]
        try:
            resolve_config(read_config_text(json.dumps(config), source_for_command(folder, "c.yaml")))
        except ConfigError as error:
            return error.lines()
        return []

    assert problems(retries=1) == []
    (message,) = problems(budget_usd=1)
    assert message.startswith("line 1: models[0]: has no price, so the budget cannot be kept; add `price:")


def test_spent_budget_stops_the_run_until_it_is_raised(folder: Path) -> None:
    with endpoint(answer_capital) as server:  # each answer costs 10 x $1 + 5 x $10 per million
        text = config_text(server.url, limits={"budget_usd": 0.00013}, concurrency=1)
        run, _ = start(folder, text)
        assert run.status == "stopped" and "budget" in run.message
        assert len(server.requests) == Response.objects.count() == 3
        with pytest.raises(BudgetError):
            resume(run)
        run, _ = resume(run, budget_usd=1.0)
        assert len(server.requests) == len(CAPITALS)
    assert run.status == "completed" and all_passed(run)


def test_endpoint_without_answer_makes_the_response_errored(folder: Path) -> None:
    never = threading.Event()

    def script(request: dict[str, Any], number: int) -> Answer:
        never.wait(5)
        return answer_capital(request)

    try:
        with endpoint(script) as server:
            text = config_text(server.url, limits={"case_seconds": 1, "retries": 0}, environments=ONE)
            run, _ = start(folder, text)
            never.set()
    finally:
        never.set()
    response = Response.objects.get(run_environment__run=run)
    assert (response.status, response.error_kind) == ("errored", "timeout")
    assert "did not answer within 1 s (the episode's time limit)" in response.reason


@pytest.mark.exhaustive
def test_endpoint_down_longer_than_case_seconds_makes_the_response_errored(folder: Path) -> None:
    with endpoint(lambda *_: Answer({"error": {"message": "down"}}, 503, {"Retry-After": "1.2"})) as server:
        text = config_text(server.url, limits={"case_seconds": 1, "retries": 1}, environments=ONE)
        start(folder, text)
        assert len(server.requests) == 2
    assert [(r.status, r.error_kind) for r in Response.objects.all()] == [("errored", "http")]


@pytest.mark.exhaustive
def test_retries_and_waits_for_a_slot_do_not_count_as_episode_time(folder: Path) -> None:
    def script(request: dict[str, Any], number: int) -> Answer:
        time.sleep(0.3)
        return Answer({}, 503, {"Retry-After": "0.5"}) if number < 2 else answer_capital(request)

    with endpoint(script) as server:
        run, _ = start(folder, config_text(server.url, limits={"case_seconds": 1, "retries": 3}, concurrency=1))
    assert all_passed(run)


COUNTING = """\
import time


def reset(case, seed):
    return {"state": 0, "messages": [{"role": "user", "content": "Count to five."}]}


def step(state, message):
    time.sleep(SECONDS)
    if state == 4:
        return {"state": state, "done": True, "reward": 1.0}
    return {"state": state + 1, "messages": [{"role": "user", "content": "Go on."}]}
"""


def counting(folder: Path, *, step_seconds: float = 0.0) -> list[dict[str, str]]:
    """Write an environment of five turns whose `step` takes *step_seconds*, and return its entry in a config."""
    bundle = folder / "counting"
    bundle.mkdir()
    manifest = MANIFEST.replace("capitals", "counting").replace("Capitals", "Counting")
    manifest = manifest[: manifest.index("dataset:")] + "dataset: {path: cases.jsonl}\nharness: {type: custom}\n"
    (bundle / "environment.yaml").write_text(manifest)
    (bundle / "harness.py").write_text(COUNTING.replace("SECONDS", str(step_seconds)))
    (bundle / "cases.jsonl").write_text('{"id": "five", "input": "Count."}\n')
    return [{"path": "counting"}]


def answer_unmetered(request: dict[str, Any], _: int = 0) -> Answer:
    """Answer correctly, without token counts."""
    return completion(answer_capital(request).body["choices"][0]["message"]["content"], usage={})


def test_cost_of_replies_without_token_counts_is_unknown(folder: Path) -> None:
    with endpoint(
        lambda request, number: answer_unmetered(request) if number == 2 else answer_capital(request)
    ) as server:
        run, _ = start(folder, config_text(server.url, concurrency=1))
        again, _ = start(folder, config_text(server.url))  # from the cache, which costs nothing
    assert all_passed(run)
    run.refresh_from_db()
    assert run.cost_usd is None and again.cost_usd == 0.0
    costs = Response.objects.filter(run_environment__run=run).order_by("id").values_list("cost_usd", flat=True)
    assert [cost is None for cost in costs] == [False, False, True, False, False, False]
    document = results_json(run)
    assert (document["cost_usd"], document["results"][0]["cost_usd"]) == (None, None)
    assert document["results"][0]["cost_per_correct_usd"] is None
    assert any(
        "1 response of small on capitals@1.0.0 came without token counts" in line for line in document["warnings"]
    )
    assert get_progress(run)["cost_usd"] is None and stored_counts(run).cost_unknown


@pytest.mark.parametrize("usage", [{}, None, {"prompt_tokens": 10}, {"prompt_tokens": -1, "completion_tokens": 5}])
def test_run_with_budget_stops_at_first_reply_without_token_counts(folder: Path, usage: Any) -> None:
    def script(request: dict[str, Any], _: int) -> Answer:
        answer = answer_capital(request)
        answer.body["usage"] = usage
        return answer

    with endpoint(script) as server:
        run, _ = start(folder, config_text(server.url, concurrency=1, limits={"budget_usd": 5.0}))
        assert len(server.requests) == 1
    assert run.status == "stopped"
    assert "a reply of small carried no token counts" in run.message and "$5.00" in run.message
    assert list(statuses(run).values()) == ["passed"]


def test_tokens_of_a_reply_that_cannot_be_used_are_paid(folder: Path) -> None:
    with endpoint(lambda *_: Answer({**completion("Paris").body, "choices": []})) as server:
        # $0.00006 for each reply
        run, _ = start(folder, config_text(server.url, concurrency=1, limits={"budget_usd": 0.0001, "retries": 0}))
        assert len(server.requests) == 2
    assert run.status == "stopped" and "is spent" in run.message
    assert run.cost_usd == pytest.approx(0.00012)
    rows = Response.objects.filter(run_environment__run=run)
    assert [(row.error_kind, row.input_tokens, row.output_tokens) for row in rows] == [("empty", 10, 5)] * 2
    assert [row.cost_usd for row in rows] == [pytest.approx(0.00006)] * 2


def test_call_that_stops_a_model_is_paid_by_its_response(folder: Path) -> None:
    """The second reply of the judge that cannot be used stops it."""
    manifest = folder / "capitals" / "environment.yaml"
    rule = "{type: judge, criteria: [{name: right, text: It is right.}]}"
    manifest.write_text(manifest.read_text().replace("{type: exact_match}", rule))

    def answer(request: dict[str, Any], _: int) -> Answer:
        return Answer({**completion().body, "choices": []}) if request["model"] == "judge" else answer_capital(request)

    with endpoint(answer) as server:
        model = json.loads(config_text(server.url))["models"][0]
        roles = {"rubric": [{**model, "name": "judge", "model": "judge"}]}
        text = config_text(server.url, concurrency=1, roles=roles, limits={"retries": 0, "identical_errors": 2})
        run, listener = start(folder, text)
        judged = [request["model"] for request in server.requests].count("judge")
    assert judged == 2 and len(listener.stopped) == 1
    rows = Response.objects.filter(run_environment__run=run)
    assert sum(row.role_cost_usd or 0.0 for row in rows) == pytest.approx(2 * 0.00006)
    assert stored_counts(run).cost_usd == pytest.approx(run.cost_usd)


def test_cost_of_replaced_responses_is_stored_while_the_run_executes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runs.execution.session.session.RENEW_EVERY_S", 0.05)
    seen: list[float | None] = []

    def script(request: dict[str, Any], number: int) -> Answer:
        if number < 2:
            return Answer({**completion().body, "choices": []})
        if number == 5:  # three replies of the resumed run are paid, and two errored responses are replaced
            wait_until(lambda: (Run.objects.values_list("cost_usd", flat=True).get() or 0.0) > 0.00029)
            seen.append(Run.objects.values_list("cost_usd", flat=True).get())
            connection.close()
        return answer_capital(request)

    with endpoint(script) as server:
        run, _ = start(folder, config_text(server.url, concurrency=1, limits={"retries": 0, "identical_errors": 2}))
        assert len(server.requests) == 2
        run, _ = resume(run)
    assert seen == [pytest.approx(5 * 0.00006)]
    assert run.cost_usd == pytest.approx(8 * 0.00006)


def test_run_stopped_for_missing_token_counts_resumes_with_unknown_cost(folder: Path) -> None:
    broken = True
    with endpoint(lambda request, _: answer_unmetered(request) if broken else answer_capital(request)) as server:
        run, _ = start(folder, config_text(server.url, concurrency=1, limits={"budget_usd": 5.0}))
        broken = False
        run, _ = resume(run)
    assert run.status == "completed" and all_passed(run)
    assert run.cost_usd is None


def test_free_model_without_token_counts_costs_nothing(folder: Path) -> None:
    with endpoint(answer_unmetered) as server:
        model = {"name": "free", "provider": "openai", "model": "m", "base_url": server.url}
        model["price"] = {"input": 0, "output": 0}
        run, _ = start(folder, config_text(server.url, models=[model], limits={"budget_usd": 5.0}))
    assert all_passed(run) and run.cost_usd == 0.0


def test_cost_of_a_model_without_a_price_is_unknown(folder: Path) -> None:
    with endpoint(answer_capital) as server:
        model = {"name": "small", "provider": "openai", "model": "m", "base_url": server.url}
        run, _ = start(folder, config_text(server.url, models=[model]))
    assert all_passed(run)
    assert run.cost_usd is None
    assert results_json(run)["results"][0]["cost_usd"] is None


@pytest.mark.exhaustive
def test_episode_ended_by_case_seconds_after_slow_replies_is_scored(folder: Path) -> None:
    def script(request: dict[str, Any], number: int) -> Answer:
        time.sleep(0.4)
        return completion(str(number))

    with endpoint(script) as server:
        limits = {"case_seconds": 1, "retries": 0}
        start(folder, config_text(server.url, limits=limits, environments=counting(folder)))
    response = Response.objects.get()
    assert (response.status, response.stop, response.score) == ("failed", "time", 0.0)
    assert 1 < len(server.requests) < 5


def test_steps_of_the_environment_count_as_episode_time(folder: Path) -> None:
    with endpoint(lambda *_: completion("next")) as server:
        limits = {"case_seconds": 1, "retries": 0}
        start(folder, config_text(server.url, limits=limits, environments=counting(folder, step_seconds=0.6)))
    response = Response.objects.get()
    assert (response.status, response.stop, response.turns) == ("failed", "time", 2)


def test_endpoint_that_stops_answering_during_an_episode_makes_the_response_errored(folder: Path) -> None:
    never = threading.Event()

    def script(request: dict[str, Any], number: int) -> Answer:
        if number:
            never.wait(5)
        return completion("next")

    try:
        with endpoint(script) as server:
            model = {"name": "m", "provider": "openai", "model": "m", "base_url": server.url, "timeout_s": 1.5}
            limits = {"case_seconds": 1, "retries": 0}
            start(
                folder,
                config_text(server.url, limits=limits, models=[model], environments=counting(folder)),
            )
            never.set()
    finally:
        never.set()
    response = Response.objects.get()
    assert (response.status, response.error_kind, response.turns) == ("errored", "timeout", 1)


def test_prompt_refused_with_403_does_not_stop_the_other_cases(folder: Path) -> None:
    def script(request: dict[str, Any], _: int) -> Answer:
        if "Peru" in request["messages"][-1]["content"]:
            return Answer({"error": {"message": "Your input was flagged."}}, 403)
        return answer_capital(request)

    with endpoint(script) as server:
        run, listener = start(folder, config_text(server.url, concurrency=1))
        assert statuses(run) == {c.lower(): "errored" if c == "Peru" else "passed" for c in CAPITALS}
        run, again = resume(run)
    assert statuses(run)["peru"] == "errored" and len(statuses(run)) == len(CAPITALS)
    assert listener.stopped == again.stopped == []


def test_identical_errors_in_a_row_stop_the_model_until_resume(folder: Path) -> None:
    broken = True

    def script(request: dict[str, Any], number: int) -> Answer:
        if broken and "France" not in request["messages"][-1]["content"]:
            message = f"Unsupported parameter: 'top_q'. Request req_{number:012d}."
            return Answer({"error": {"message": message}}, 400)
        return answer_capital(request)

    with endpoint(script) as server:
        text = config_text(server.url, concurrency=1, limits={"retries": 0, "identical_errors": 3})
        run, listener = start(folder, text)
        assert len(server.requests) == 4  # France, and three of the others
        assert sorted(statuses(run).values()) == ["errored", "errored", "errored", "passed"]
        (message,) = listener.stopped
        assert (
            "same error occurred 3 times in a row" in message
            and "limits.identical_errors" in message
            and "top_q" in message
        )
        assert run.models.get().stopped in message
        run, listener = resume(run)
        assert len(listener.stopped) == 1 and len(server.requests) == 7
        broken = False
        run, listener = resume(run)
    assert all_passed(run) and not listener.stopped


def test_judge_with_a_wrong_key_stops_the_models_that_it_scores(folder: Path) -> None:
    rule = "{type: judge, role: rubric, criteria: [{name: right, weight: 1, scale: [0, 1], text: 'Right?'}]}"
    manifest = (folder / "capitals" / "environment.yaml").read_text().replace("{type: exact_match}", rule)
    (folder / "capitals" / "environment.yaml").write_text(manifest)

    def script(request: dict[str, Any], _: int) -> Answer:
        return (
            Answer({"error": {"message": "bad key"}}, 401) if request["model"] == "judge" else answer_capital(request)
        )

    with endpoint(script) as server:
        judge = {"name": "grader", "provider": "openai", "model": "judge", "base_url": server.url}
        text = config_text(server.url, roles={"rubric": [judge]}, concurrency=1)
        run, listener = start(folder, text)
        requested = [request["model"] for request in server.requests]
    assert requested.count("judge") == 1 and requested.count("m") < len(CAPITALS)
    assert len(listener.stopped) == 1 and listener.stopped[0].startswith("grader: ")
    assert "401" in run.models.get(role="rubric").stopped
    assert any(line.startswith("grader (rubric) was stopped: ") for line in warnings(run, []))
    assert set(statuses(run).values()) == {"errored"}


def test_refused_connections_stop_the_model_after_identical_errors(folder: Path) -> None:
    with endpoint(answer_capital) as server:
        url = server.url
    limits = {"retries": 0, "identical_errors": 2}
    run, listener = start(folder, config_text(url, concurrency=1, limits=limits))
    assert Response.objects.filter(run_environment__run=run, error_kind="transport").count() == 2
    assert len(listener.stopped) == 1 and "could not be reached" in listener.stopped[0]


def test_model_that_identical_errors_stop_is_called_for_every_other_conversation_again(folder: Path) -> None:
    def script(request: dict[str, Any], number: int) -> Answer:
        return Answer(b"Request Entity Too Large", 413)

    with endpoint(script) as server:
        text = config_text(server.url, concurrency=1, limits={"retries": 0, "identical_errors": 2})
        _, listener = start(folder, text)
    assert len(listener.stopped) == 1
    kinds = Response.objects.order_by("id").values_list("error_kind", flat=True)
    assert list(kinds) == ["too_long", "http"]  # the second may be of a call that waited


def test_different_or_interrupted_errors_do_not_stop_the_model(folder: Path) -> None:
    def script(request: dict[str, Any], number: int) -> Answer:
        if number % 3 == 2:
            return answer_capital(request)
        return Answer({"error": {"message": f"too long by {number} tokens"}}, 400)

    with endpoint(script) as server:
        text = config_text(server.url, concurrency=1, limits={"retries": 0, "identical_errors": 2})
        run, listener = start(folder, text)
    assert not listener.stopped and len(statuses(run)) == len(CAPITALS)


def test_cases_are_selected_by_limit_sample_and_id(folder: Path) -> None:
    def chosen(**how: Any) -> list[str]:
        with endpoint(answer_capital) as server:
            run, _ = start(folder, config_text(server.url, environments=[{"path": "capitals", **how}]))
        return sorted(statuses(run))

    assert chosen(limit=2) == ["france", "japan"]
    assert chosen(cases=["oslo", "cuba"][1:]) == ["cuba"]
    first = chosen(sample=3)
    assert len(first) == 3 and chosen(sample=3) == first


def test_config_hash_changes_only_with_settings_that_affect_results(folder: Path) -> None:
    def hash_of(**changes: Any) -> str:
        config = load(folder, config_text("http://x/v1", **changes))
        return config_hash(config, find_environments(config))

    same = hash_of()
    renamed = [{"name": "other", "provider": "openai", "model": "m", "base_url": "http://x/v1"}]
    assert hash_of(name="x", concurrency=1, models=renamed) == same
    model = [{"name": "small", "provider": "openai", "model": "m2", "base_url": "http://x/v1"}]
    changed = [{"seed": 1}, {"attempts": 2}, {"models": model}, {"environments": ONE}, {"limits": {"turns": 3}}]
    assert len({same, *(hash_of(**change) for change in changed)}) == 1 + len(changed)


def test_replay_costs_nothing_and_a_missing_recording_is_errored(folder: Path) -> None:
    recorded = [{"case": country.lower(), "content": city} for country, city in CAPITALS.items() if country != "Cuba"]
    (folder / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in recorded))
    model = {"name": "old", "provider": "replay", "responses": "answers.jsonl"}
    start(folder, config_text("http://x/v1", models=[model]))
    missing = Response.objects.get(status="errored")
    assert (missing.error_kind, missing.case.external_id) == ("no_recording", "cuba")
    assert "answers.jsonl has no answer for case 'cuba'" in missing.reason
    assert "Add it to the file and resume the run" in missing.reason
    assert Response.objects.filter(status="passed").count() == 5
    assert ModelCall.objects.count() == 0


# ---- the command, in its own process if that matters ---------------------------------------------------------------


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `eval` in this process use the database as it is, without the catalog."""
    monkeypatch.setattr("runs.management.commands.eval.call_command", lambda name, **_: None)


def interrupt_after(folder: Path, server: Endpoint, number: int, how: signal.Signals) -> subprocess.Popen[str]:
    """Start the command, and signal it once *number* responses are stored."""
    (folder / "run.yaml").write_text(config_text(server.url, concurrency=1))
    process = start_eval(folder, "--config", str(folder / "run.yaml"), "--json")
    wait_until(lambda: Response.objects.count() >= number or process.poll() is not None)
    process.send_signal(how)
    return process


@pytest.fixture
def terminal() -> Iterator[None]:
    """Let started commands be interrupted by the end of their terminal, also if the tests run under `nohup`."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize(
    "how",
    [
        signal.SIGINT,
        *(pytest.param(how, marks=pytest.mark.exhaustive) for how in (signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)),
    ],
)
def test_interrupted_run_keeps_stored_responses_and_resumes(folder: Path, how: signal.Signals) -> None:
    continue_replies = threading.Event()

    def script(request: dict[str, Any], number: int) -> Answer:
        if number == 3:
            continue_replies.wait(30)
        return answer_capital(request)

    try:
        with endpoint(script) as server:
            process = interrupt_after(folder, server, 3, how)
            _, errors = process.communicate(timeout=30)
            stored = Response.objects.count()
            assert stored == 3, errors
            run = Run.objects.get()
            if how != signal.SIGKILL:
                assert process.returncode == 130, errors
                assert f"--resume {run.pk}" in errors
                assert run.status == "interrupted"
            continue_replies.set()
            requested = len(server.requests)
            again = start_eval(folder, "--resume", str(run.pk), "--json")
            output, errors = again.communicate(timeout=60)
            assert again.returncode == 0, errors
            assert len(server.requests) - requested == len(CAPITALS) - 3
    finally:
        continue_replies.set()
    assert json.loads(output)["results"][0]["passed"] == len(CAPITALS)


def test_resuming_a_complete_run_makes_no_requests_and_no_changes(
    folder: Path, prepared: None, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded = [{"case": country.lower(), "content": city} for country, city in CAPITALS.items() if country != "Cuba"]
    (folder / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in recorded))
    model = {"name": "old", "provider": "replay", "responses": "answers.jsonl"}
    run, _ = start(folder, config_text("http://x/v1", models=[model]))
    assert not is_run_complete(run)
    with (folder / "answers.jsonl").open("a") as file:
        file.write(json.dumps({"case": "cuba", "content": "Havana"}) + "\n")
    resume(run)
    before = Run.objects.values().get()
    call_command("eval", "--resume", str(run.pk), "--json")
    output, errors = capsys.readouterr()
    assert json.loads(output)["results"][0]["passed"] == len(CAPITALS)
    assert f"Run {run.pk} is complete" in errors
    assert Run.objects.values().get() == before


@pytest.mark.parametrize(
    ("outcomes", "fields", "complete"),
    [
        ("pfu", {}, True),
        ("pfe", {}, False),
        ("pf-", {}, False),
        ("pfp", {"status": "interrupted"}, False),
        ("pfp", {"tracking_state": "pending"}, False),
        ("pfp", {"summaries": {"judge": {"pairs": 3, "error": "It was away."}}}, False),
        ("pfp", {"summaries": {"judge": {"pairs": 3}}, "tracking_state": "logged"}, True),
    ],
)
def test_run_is_complete_without_missing_or_errored_responses_and_failed_stages(
    outcomes: str, fields: dict[str, Any], complete: bool
) -> None:
    run = stored_run(stored_version(cases=3), **fields)
    stored_outcomes(run, outcomes)
    assert is_run_complete(run) == complete


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["eval", "--config", "configs/eval_v1.yaml"], id="eval", marks=pytest.mark.exhaustive),
        pytest.param(["runs", "list", "--json"], id="runs list"),
    ],
)
def test_unreachable_database_is_reported_in_one_line(folder: Path, words: list[str]) -> None:
    environment = {**os.environ, "DATABASE_URL": "postgres://nobody@127.0.0.1:1/none", "LLMEVAL_VAR": str(folder / "v")}
    command = [sys.executable, "manage.py", *words]
    done = subprocess.run(command, cwd=settings.BASE_DIR, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 3
    assert (json.loads(done.stdout)["message"] in done.stderr) if "--json" in words else done.stdout == ""
    assert done.stderr.startswith("The database cannot be reached (DATABASE_URL, LLMEVAL_VAR): connection failed")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(("value", "coloured"), [("1", False), ("", True)])
def test_no_color_disables_colours_on_a_terminal(folder: Path, value: str, coloured: bool) -> None:
    terminal, side = os.openpty()
    environment = {**database_environment(), "NO_COLOR": value, "TERM": "xterm-256color"}
    command = [sys.executable, "manage.py", "eval", "--config", "no-such.yaml"]
    done = subprocess.run(command, cwd=settings.BASE_DIR, env=environment, stdout=side, stderr=side, timeout=60)
    os.close(side)
    written = os.read(terminal, 100_000)
    os.close(terminal)
    assert done.returncode == 2 and b"There is no file no-such.yaml" in written
    assert (b"\x1b[" in written) == coloured


@pytest.mark.exhaustive
def test_closed_pipe_ends_the_command_without_output(folder: Path) -> None:
    (folder / "run.yaml").write_text(config_text("http://x/v1"))
    read, write = os.pipe()
    os.close(read)
    for command in (
        ["eval", "--config", str(folder / "run.yaml"), "--dry-run"],
        ["validate_bundle", "hub/catalog/word-problems", "--json"],
    ):
        words = [sys.executable, "manage.py", *command]
        environment = database_environment()
        environment.pop("PYTHONUNBUFFERED", None)  # it would write each line at once, unlike for most users
        done = subprocess.run(
            words, cwd=settings.BASE_DIR, env=environment, stdout=write, stderr=subprocess.PIPE, text=True, timeout=60
        )
        assert (done.returncode, done.stderr) == (141, "")
    os.close(write)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_full_disk_of_stdout_is_reported(folder: Path) -> None:
    (folder / "run.yaml").write_text(config_text("http://x/v1"))
    command = [sys.executable, "manage.py", "eval", "--config", str(folder / "run.yaml"), "--dry-run"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            command,
            cwd=settings.BASE_DIR,
            env=database_environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1] == "stdout cannot be written: No space left on device."


def test_closed_stdout_does_not_fail_a_command(folder: Path) -> None:
    command = f"{shlex.quote(sys.executable)} manage.py help >&-"
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=settings.BASE_DIR,
        env=database_environment(),
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_invalid_config_exits_2_and_stores_nothing(
    folder: Path, prepared: None, capsys: pytest.CaptureFixture[str]
) -> None:
    text = config_text("http://x/v1", environments=["no-such", {"path": "nowhere"}])
    (folder / "run.yaml").write_text(text)
    with pytest.raises(SystemExit) as exit_:
        call_command("eval", "--config", str(folder / "run.yaml"), "--json")
    output, errors = capsys.readouterr()
    assert exit_.value.code == 2
    paths = [problem["path"] for problem in json.loads(output)["errors"]]
    assert paths == ["environments[0]", "environments[1].path"]
    assert "nothing was stored" in errors
    assert not Run.objects.exists()


def test_dry_run_counts_responses_and_makes_no_requests(
    folder: Path, prepared: None, capsys: pytest.CaptureFixture[str]
) -> None:
    with endpoint(answer_capital) as server:
        (folder / "run.yaml").write_text(config_text(server.url, attempts=2))
        with pytest.raises(SystemExit) as exit_:
            call_command("eval", "--config", str(folder / "run.yaml"), "--dry-run", "--json")
        assert exit_.value.code == 0
        assert server.requests == []
    assert json.loads(capsys.readouterr().out)["responses"] == 2 * len(CAPITALS)
    assert not Run.objects.exists()


def test_dry_run_is_not_wrapped_in_a_file(folder: Path, prepared: None, capsys: pytest.CaptureFixture[str]) -> None:
    config = json.loads(config_text("http://localhost:1/v1"))
    config["models"] = [{**config["models"][0], "name": f"model-{number:02}"} for number in range(20)]
    (folder / "run.yaml").write_text(json.dumps(config))
    run_command("eval", "--config", folder / "run.yaml", "--dry-run")
    names = ", ".join(f"model-{number:02}" for number in range(20))
    assert f" responses by {names}; 1 attempt at each case\n" in capsys.readouterr().out


@pytest.mark.parametrize(("floor", "code"), [("0.8", 0), ("0.9", 4)])
def test_fail_under_decides_the_exit_code(folder: Path, prepared: None, floor: str, code: int) -> None:
    recorded = [{"case": c.lower(), "content": "?" if c == "Cuba" else city} for c, city in CAPITALS.items()]
    (folder / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in recorded))
    model = {"name": "old", "provider": "replay", "responses": "answers.jsonl"}
    (folder / "run.yaml").write_text(config_text("http://x/v1", models=[model]))
    run_command("eval", "--config", folder / "run.yaml", "--fail-under", floor, code=code)


def test_fail_under_names_models_without_a_scored_case(folder: Path, prepared: None) -> None:
    recorded = [{"case": c.lower(), "content": city} for c, city in CAPITALS.items()]
    (folder / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in recorded))
    model = {"name": "old", "provider": "replay", "responses": "answers.jsonl"}
    (folder / "run.yaml").write_text(config_text("http://x/v1", models=[model]))
    run_command("eval", "--config", folder / "run.yaml")
    for case in Case.objects.filter(version__environment__slug="capitals"):
        accepted_defect(case, hours_ago=1)
    said = run_command("eval", "--config", folder / "run.yaml", "--fail-under", "0.5", code=4)
    assert "old on capitals@1.0.0: no case was scored." in said


def test_missing_package_is_reported_before_the_first_request(folder: Path, settings: Any) -> None:
    settings.SANDBOX_PACKAGES = str(folder / "none")
    settings.SANDBOX_BACKEND = "local"
    manifest = MANIFEST.replace(
        "{rules: [{type: exact_match}]}", "{rules: [{type: python_tests, tests: 'assert f()'}]}"
    )
    (folder / "capitals" / "environment.yaml").write_text(manifest + "packages: [numpy]\n")
    with endpoint(answer_capital) as server:
        with pytest.raises(SandboxUnavailable, match=r"needs numpy.*sandbox_packages install"):
            start(folder, config_text(server.url, sandbox={"backend": "local", "accept": ["A", "B"]}))
        assert server.requests == []


def test_tests_that_patch_modules_are_judged_in_process(folder: Path) -> None:
    tests = "from unittest.mock import patch\\ndef test_f():\\n    with patch('random.random', return_value=5):"
    tests += " assert f() == 5"
    manifest = MANIFEST.replace(
        "{rules: [{type: exact_match}]}", f'{{rules: [{{type: python_tests, tests: "{tests}"}}]}}'
    )
    (folder / "capitals" / "environment.yaml").write_text(manifest)
    code = "```python\nimport random\ndef f(): return random.random()\n```"
    recorded = [{"case": c.lower(), "content": code} for c in CAPITALS]
    (folder / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in recorded))
    model = {"name": "old", "provider": "replay", "responses": "answers.jsonl"}
    text = config_text("http://x/v1", models=[model], sandbox={"backend": "local", "accept": ["A", "B", "C"]})
    run, _ = start(folder, text)
    response = Response.objects.filter(run_environment__run=run).first()
    assert response is not None
    assert (response.status, response.execution_trust) == ("passed", "in_process"), response.reason
    score = response.scores.get()
    assert score.detail["trust"] == "in_process" and "patch" in score.detail["trust_reason"]


SECRET = "sk-live-0123456789-abcdefghijklmnop"


@pytest.mark.parametrize(
    "echo",
    [
        lambda: Answer({"error": {"message": f"Incorrect API key provided: {SECRET}"}}, 400),
        lambda: Answer(f"Authorization: Bearer {SECRET} ".encode() * 9, 500),
        lambda: Answer({"error": {"message": "x" * 265 + SECRET}}, 400),
        lambda: Answer({"error": f"Bearer {SECRET}"}),
        lambda: Answer(b"no JSON: " + SECRET.encode()),
        lambda: completion(f"My key is {SECRET}."),
        lambda: completion("x", finish=f"x{SECRET}"),
        lambda: completion("x", reasoning_content=f"I was called with {SECRET}"),
        lambda: completion(
            "x",
            tool_calls=[
                {"id": "1", "type": "function", "function": {"name": "f", "arguments": json.dumps({"key": SECRET})}}
            ],
        ),
    ],
)
def test_echoed_key_is_neither_stored_nor_logged(
    folder: Path,
    echo: Callable[[], Answer],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(settings, "ENV", EnvironmentVariables({"OPENAI_API_KEY": SECRET}))
    with endpoint(lambda *_: echo()) as server:
        model = {"name": "small", "provider": "openai", "model": "m", "base_url": server.url}
        run, listener = start(
            folder,
            config_text(server.url, models=[{**model, "api_key_env": "OPENAI_API_KEY"}]),
            use_cache=True,
        )
    assert all(SECRET in headers["authorization"] for headers in server.headers)
    stored = [serializers.serialize("json", rows.objects.all()) for rows in (Run, Response, RunModel, Score, ModelCall)]
    seen = "".join([*stored, json.dumps(results_json(run)), str(listener.stopped), *capfd.readouterr()])
    assert "sk-live" not in seen and "abcdefghijklmnop" not in seen
    assert "[key" in seen
