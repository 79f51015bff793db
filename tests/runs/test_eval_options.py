"""`manage.py eval --env SLUG --model NAME`: runs without a config."""

import json
import os
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.utils import timezone

from hub.common.leases import new_owner
from hub.services import import_bundle
from runs.management.commands import eval as eval_command
from runs.models import ModelEndpoint, Run
from runs.services import STORED_IS_KEPT, cancel_run, register_demo_models
from tests.commands import run_command
from tests.hub.bundle_files import write_bundle
from tests.runs import capitals as runs_capitals

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def installation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Provide demo models and two environments; `prepare` would load the whole catalog."""
    monkeypatch.setattr("runs.management.commands.eval.call_command", lambda name, **_: None)
    register_demo_models()
    for slug in ("changing-plans", "repair-desk"):
        import_bundle(bundle=settings.BASE_DIR / "hub" / "catalog" / slug)


def test_environments_and_registered_models_run_without_config(capsys: pytest.CaptureFixture[str]) -> None:
    words = "--env changing-plans --env repair-desk --model demo --model demo-hasty --limit 3 --json"
    call_command("eval", *words.split())
    run = Run.objects.get()
    assert run.status == "completed" and run.name == "changing-plans, repair-desk with demo, demo-hasty"
    rows = json.loads(capsys.readouterr().out)["results"]
    assert {(row["model"], row["cases"]) for row in rows} == {("demo", 3), ("demo-hasty", 3)}
    assert run.models.get(role="user").label == "demo"


def test_config_names_registered_models(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(
        "name: by name\nenvironments: [{environment: repair-desk, limit: 2}]\n"
        "models:\n- demo\n- {name: mine, provider: demo}\nroles: {user: demo}\n"
    )
    call_command("eval", config=str(path), json=True)
    run = Run.objects.get()
    assert run.status == "completed" and run.models.get(role="user").label == "demo"
    assert list(run.models.filter(role="").values_list("label", "provider")) == [("demo", "demo"), ("mine", "demo")]
    capsys.readouterr()
    path.write_text("name: x\nenvironments: [repair-desk]\nmodels:\n- demo\n- dem\nroles: {user: nobody}\n")
    with pytest.raises(SystemExit) as exit_:
        call_command("eval", config=str(path))
    said = " ".join(capsys.readouterr().err.split())
    assert exit_.value.code == 2 and "line 5: models[1]: no model is registered as 'dem'; did you mean 'demo'?" in said
    assert "line 6: roles.user: no model is registered as 'nobody'; known are demo, demo-hasty. Or describe it" in said


def test_config_in_the_home_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "run.yaml").write_text("name: x\n")
    assert "environments: missing" in run_command("eval", "--config=~/run.yaml", "--dry-run", code=2)


def test_empty_config_names_no_other_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.yaml"
    path.touch()
    (tmp_path / "rum.yaml").write_text("name: x\nenvironments: []\n")
    with pytest.raises(SystemExit) as exit_:
        call_command("eval", config=str(path))
    assert exit_.value.code == 2
    assert (
        capsys.readouterr().err.strip() == f"{path} is empty; a config is a mapping with name, environments and models."
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "Say what to evaluate: --config FILE, or --env SLUG --model NAME, or --resume RUN."),
        ({"env": ["changing-plans"]}, "Name the model"),
        ({"config": "x.yaml", "model": ["demo"]}, "--model belongs to --env"),
        ({"env": ["changing-plans"], "model": ["dem"]}, "No model is registered as 'dem'; did you mean 'demo'?"),
        ({"env": ["changing-plans"], "model": ["gpt"]}, "known are demo, demo-hasty. Use --config"),
        (
            {"env": ["changing-plan"], "model": ["dem"]},
            "No model is registered as 'dem'; did you mean 'demo'? Use --config for models that are not registered.\n"
            "There is no environment 'changing-plan'; did you mean 'changing-plans'?",
        ),
        ({"env": ["changing-plan"], "model": ["demo"]}, "did you mean 'changing-plans'?"),
    ],
)
def test_wrong_options_exit_with_2_and_name_the_remedy(
    options: dict[str, object], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        call_command("eval", **{"model": [], "set": [], **options})
    assert exit_.value.code == 2 and said in capsys.readouterr().err
    assert not Run.objects.exists()


def test_misspelt_option_is_named() -> None:
    with pytest.raises(CommandError, match="unrecognized arguments: --confg"):
        call_command("eval", "--confg", "run.yaml")


def test_unknown_provider_is_reported_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text("name: x\nenvironments: [changing-plans]\nmodels:\n- {name: small, provider: opnai, model: y}\n")
    said = run_command("eval", "--config", path, code=2)
    assert "line 4: models[0].provider: unknown provider 'opnai'; did you mean 'openai'?" in said


def test_problems_of_options_have_no_line(tmp_path: Path) -> None:
    import_bundle(bundle=write_bundle(tmp_path / "capitals"))
    said = run_command("eval", "--env", "capitals", "--model", "demo", code=2)
    assert "the options: 1 problem; nothing was stored.\n  models[0]: 'demo' has recorded answers only" in said


def test_accuracy_below_floor_exits_with_4_and_switched_off_models_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        call_command("eval", env=["changing-plans"], model=["demo-hasty"], limit=5, fail_under=1.0)
    assert exit_.value.code == 4
    ModelEndpoint.objects.update(enabled=False)
    with pytest.raises(SystemExit) as exit_:
        call_command("eval", env=["changing-plans"], model=["demo"])
    reason = "he model 'demo' is disabled; staff who register models can set it to 'In use' at /models/"
    assert exit_.value.code == 2 and f"T{reason}" in capsys.readouterr().err
    path = tmp_path / "run.yaml"
    path.write_text("name: x\nenvironments: [changing-plans]\nmodels: [demo]\n")
    with pytest.raises(SystemExit):
        call_command("eval", config=str(path))
    assert f"models[0]: t{reason}" in capsys.readouterr().err


def test_enqueue_says_that_no_worker_has_taken_the_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = 0.0

    def sleep(_: float) -> None:
        nonlocal clock
        clock += 5
        if clock == 400:
            Run.objects.update(status="running", lease_owner="elsewhere:1:a")
        if clock == 450:
            Run.objects.update(status="cancelled", lease_owner="")

    monkeypatch.setattr("runs.execution.dispatch._send", lambda *_: None)
    monkeypatch.setattr(eval_command, "time", SimpleNamespace(sleep=sleep, monotonic=lambda: clock))
    with pytest.raises(SystemExit):
        call_command("eval", "--env", "repair-desk", "--model", "demo", "--enqueue")
    said = " ".join(capsys.readouterr().out.split())
    run = Run.objects.get()
    notice = f"No worker has taken run {run.pk} yet. If none is running, start the site and its workers: "
    assert said.count(notice) == 2 and "manage.py serve" in said


@pytest.mark.parametrize("message", ["", STORED_IS_KEPT])
def test_enqueue_says_that_the_run_was_cancelled(
    message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def cancel(_: float) -> None:
        cancel_run(run=Run.objects.get())
        Run.objects.update(message=message)  # a run that a worker had started has one

    monkeypatch.setattr("runs.execution.dispatch._send", lambda *_: None)
    monkeypatch.setattr(eval_command, "time", SimpleNamespace(sleep=cancel, monotonic=lambda: 0.0))
    with pytest.raises(SystemExit) as exit_:
        call_command("eval", "--env", "repair-desk", "--model", "demo", "--enqueue", "--json")
    printed = capsys.readouterr()
    assert exit_.value.code == 1 and json.loads(printed.out)["status"] == "cancelled"
    assert "Cancelled. Continue with: " in printed.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("eval --env repair-desk --model demo --limit 0", "--limit must be 1 or more, not 0"),
        ("eval --env repair-desk --model demo --limit=-3", "--limit must be 1 or more, not -3"),
        ("eval --env repair-desk --model demo --fail-under nan", "--fail-under is an accuracy from 0 to 1, not nan"),
        ("eval --env repair-desk --model demo --processes 0", "--processes is a number from 1 to 256, not 0"),
        ("eval --env repair-desk --model demo --processes 99999", "--processes is a number from 1 to 256, not 99999"),
        ("eval --env repair-desk --model demo --set limits.turns=0", "limits.turns"),
        ("eval --env repair-desk --model demo --set limits.budget_usd=-1", "limits.budget_usd"),
        ("runs list --limit 0", "--limit is a number from 1, not 0"),
        ("compare 1 2 --margin nan", "--margin is a difference of accuracies between 0 and 1, not nan"),
        ("compare 1 2 --margin 5", "--margin is a difference of accuracies between 0 and 1, not 5"),
    ],
)
def test_numbers_without_sense_are_errors(words: str, said: str) -> None:
    assert said in run_command(*words.split(), code=2)
    assert not Run.objects.exists()


def test_demo_model_cannot_answer_a_bundle_of_your_own(tmp_path: Path) -> None:
    rules = [{"type": "judge", "criteria": [{"name": "right", "text": "Is it right?"}]}]
    write_bundle(tmp_path / "capitals", scoring={"rules": rules}, gold=None, wrong=None)
    path = tmp_path / "run.yaml"
    path.write_text(
        "name: x\nenvironments: [{path: capitals}]\nmodels:\n- {name: mine, provider: demo}\n"
        "roles:\n  rubric: {name: grader, provider: demo}\n"
    )
    said = run_command("eval", "--config", path, code=2)
    reason = "has recorded answers only for environments that ship with the product, and none for capitals"
    assert f"line 4: models[0]: 'mine' {reason}; name a model of another provider" in said
    assert f"roles.rubric[0]: 'grader' {reason}" in said
    assert not Run.objects.exists()


def test_recorded_answers_to_unknown_cases_are_reported_once_before_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs_capitals.write_bundle(tmp_path / "capitals")
    known = [{"case": country.lower(), "content": city} for country, city in runs_capitals.CAPITALS.items()]
    unknown = [{"case": f"old-{i}", "environment": "capitals", "content": "Paris"} for i in range(4)]
    elsewhere = [{"case": "c", "environment": "rivers", "content": "Nile"}]
    (tmp_path / "recorded.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in [*known, *unknown, *elsewhere]))
    path = tmp_path / "run.yaml"
    path.write_text(
        "name: x\nenvironments: [{path: capitals, limit: 2}]\nmodels:\n"
        "- {name: one, provider: replay, responses: recorded.jsonl}\n"
        "- {name: two, provider: replay, responses: recorded.jsonl}\n"
    )
    expected = (
        "Warning: recorded.jsonl has answers to 4 cases that capitals does not have: 'old-0', 'old-1', 'old-2' "
        "and 1 more. They are not used. Was it recorded with another version of capitals?\n"
    )
    for options in (["--dry-run"], []):
        with suppress(SystemExit):
            call_command("eval", *options, config=str(path))
        assert capsys.readouterr().err.count(expected) == 1
    (tmp_path / "recorded.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in [*known, *elsewhere]))
    call_command("eval", config=str(path))
    assert "Warning" not in capsys.readouterr().err


def test_cores_are_counted_on_systems_without_affinity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    assert eval_command._count_cores() == 3


def test_run_whose_process_was_killed_is_shown_as_interrupted_and_next_eval_names_how_to_continue_it() -> None:
    words = ("eval", "--env", "changing-plans", "--model", "demo", "--limit", "2")
    assert "was interrupted" not in run_command(*words) + run_command(*words, "--dry-run")
    run = Run.objects.get()
    owner = new_owner()
    until = timezone.now() + timedelta(minutes=1)
    alive = {"status": "running", "evaluated_at": None, "lease_owner": owner, "lease_until": until}
    Run.objects.update(**alive)
    assert "  running  " in run_command("runs", "list") and "was interrupted" not in run_command(*words, "--dry-run")
    (settings.VAR_DIR / "leases" / "killed").touch()  # the system unlocks the file when the process ends
    advice = f"Run {run.pk} was interrupted; its stored responses are kept. Continue it with: "
    for lease in [{"lease_owner": "here:1:killed"}, {"lease_until": timezone.now() - timedelta(seconds=1)}]:
        Run.objects.update(**alive | lease)
        assert "  interrupted  " in run_command("runs", "list")
        assert json.loads(run_command("runs", "list", "--json"))[0]["status"] == "running"  # workers continue it
        assert advice in run_command("runs", "show", run.pk)
        said = " ".join(run_command(*words, "--dry-run").split())
        assert advice in said and f"eval --resume {run.pk} Without --resume, a new run starts." in said
    assert "was interrupted" not in run_command(*words, "--dry-run", "--set", "seed=1")
    run_command("eval", "--resume", run.pk)
    assert "  completed  " in run_command("runs", "list") and "was interrupted" not in run_command(*words, "--dry-run")


def test_price_that_looks_like_one_per_token_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs_capitals.write_bundle(tmp_path / "capitals")
    path = tmp_path / "run.yaml"
    path.write_text(
        "name: x\nenvironments: [{path: capitals}]\nmodels:\n"
        "- {name: one, provider: openai, model: a, price: {input: 0.00000025, output: 0.000002}}\n"
        "- {name: two, provider: openai, model: b, price: {input: 0.25, output: 2}}\n"
        "- {name: free, provider: openai, model: c, price: {input: 0, output: 0}}\n"
    )
    with suppress(SystemExit):
        call_command("eval", "--dry-run", config=str(path))
    expected = (
        "Warning: one has a price of 2e-06 USD per million tokens. If this is per token, multiply it by 1,000,000."
    )
    assert [line for line in capsys.readouterr().err.splitlines() if "Warning" in line] == [expected]
