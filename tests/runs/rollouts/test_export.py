"""Export of rollouts as JSONL: contents of a line, reasons for leaving rows out, access over REST."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.json
import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import call_command
from django.utils import timezone
from rest_framework.test import APIClient

from hub.models import Case, Environment, EnvironmentVersion
from hub.protocols.calls import Usage
from hub.services import import_bundle
from runs.exports import ExportError, RolloutSelection, export_episodes, export_run_rollouts
from runs.models import EpisodeSession, Response
from runs.rollouts.creation import RolloutOptions, create_rollout
from runs.rollouts.sessions import get_session
from runs.rollouts.steps import step_rollout
from tests.commands import run_command
from tests.factories import accepted_defect, stored_outcomes, stored_response, stored_run, stored_score, stored_version

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def user() -> User:
    return User.objects.create_user("trainer")


@pytest.fixture
def version(folder: Path) -> EnvironmentVersion:
    version = import_bundle(bundle=folder / "capitals")
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)
    return version


def play(user: User, version: EnvironmentVersion, case: str, answer: str, **which: Any) -> EpisodeSession:
    """Create an episode that is done; `usage` is the token count of its only step."""
    usage = which.pop("usage", None)
    options = RolloutOptions(user=user, version=version, model=which.pop("model", ""))
    session = create_rollout(options, case_id=case, **which).session
    step_rollout(session=session, message={"role": "assistant", "content": answer}, usage=usage)
    found = get_session(user=user, pk=session.pk)
    assert found is not None
    return found


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_line_contains_transcript_reward_rules_and_tokens(
    user: User, version: EnvironmentVersion, tmp_path: Path
) -> None:
    session = play(user, version, "france", "Paris", attempt=2, model="step-100", usage=Usage(7, 2))
    exported = export_episodes(tmp_path / "out.jsonl", RolloutSelection())
    (row,) = read(tmp_path / "out.jsonl")
    assert (row["rollout"], row["environment"], row["digest"]) == (str(session.pk), "capitals@1.0.0", version.digest)
    assert (row["case"], row["attempt"], row["model"], row["user"]) == ("france", 2, "step-100", "trainer")
    assert (row["reward"], row["status"], row["stop"]) == (1.0, "passed", "done")
    assert row["messages"] == [
        {"role": "user", "content": "Capital of France?"},
        {"role": "assistant", "content": "Paris"},
    ]
    assert row["usage"] == {"input": 7, "output": 2, "cached_input": 0, "reasoning": 0} == row["step_usage"][0]
    assert row["rules"][0]["value"] == 1.0
    assert exported.written == 1 and not exported.left_out


def test_tokens_without_reported_usage_are_null_not_zero(
    user: User, version: EnvironmentVersion, tmp_path: Path
) -> None:
    play(user, version, "france", "Paris")
    export_episodes(tmp_path / "out.jsonl", RolloutSelection())
    (row,) = read(tmp_path / "out.jsonl")
    assert (row["usage"], row["step_usage"]) == (None, [None])


def test_open_unscored_and_quarantined_episodes_are_left_out_with_reason(
    user: User, version: EnvironmentVersion, tmp_path: Path
) -> None:
    play(user, version, "france", "Rome")
    create_rollout(RolloutOptions(user=user, version=version), case_id="peru")
    unscored = play(user, version, "japan", "Tokyo")
    EpisodeSession.objects.filter(pk=unscored.pk).update(score={"status": "unscored", "value": None, "rules": []})
    play(user, version, "cuba", "Havana")
    accepted_defect(Case.objects.get(external_id="cuba"), hours_ago=1)
    exported = export_episodes(tmp_path / "out.jsonl", RolloutSelection())
    assert [row["case"] for row in read(tmp_path / "out.jsonl")] == ["france"]
    assert sorted((why.split(":")[0], count) for why, count in exported.left_out.items()) == [
        ("not over yet", 1),
        ("of a case that was found wrong", 1),
        ("unscored", 1),
    ]


def test_environment_held_out_since_is_left_out_and_rejected_by_name(
    user: User, version: EnvironmentVersion, tmp_path: Path
) -> None:
    play(user, version, "france", "Paris")
    Environment.objects.update(held_out=True)
    exported = export_episodes(tmp_path / "out.jsonl", RolloutSelection())
    assert exported.left_out == {"capitals@1.0.0 is held out": 1}
    assert not (tmp_path / "out.jsonl").exists()
    with pytest.raises(ExportError, match="held out"):
        export_episodes(tmp_path / "out.jsonl", RolloutSelection(environment="capitals"))
    with pytest.raises(ExportError, match="held out"):
        export_run_rollouts(stored_run(version), tmp_path / "out.jsonl", RolloutSelection())


@pytest.mark.parametrize(
    ("which", "cases"),
    [
        ({"model": "step-100"}, ["france"]),
        ({"environment": "capitals@1.0.0"}, ["france", "peru"]),
        ({"environment": "capitals@2.0.0"}, []),
        ({"since": timezone.now().date() + timedelta(days=2)}, []),
        ({"since": timezone.now().date() - timedelta(days=2)}, ["france", "peru"]),
    ],
)
def test_filters_restrict_export(
    user: User, version: EnvironmentVersion, tmp_path: Path, which: dict[str, Any], cases: list[str]
) -> None:
    play(user, version, "france", "Paris", model="step-100")
    play(user, version, "peru", "Lima")
    export_episodes(tmp_path / "out.jsonl", RolloutSelection(**which))
    found = read(tmp_path / "out.jsonl") if (tmp_path / "out.jsonl").exists() else []
    assert [row["case"] for row in found] == cases


def test_run_rollouts_have_same_keys_as_episodes(user: User, version: EnvironmentVersion, tmp_path: Path) -> None:
    play(user, version, "france", "Paris")
    export_episodes(tmp_path / "episodes.jsonl", RolloutSelection())
    run = stored_run(stored_version(cases=5), ["alpha", "beta"])
    stored_outcomes(run, "pfeu-", model="alpha")
    response = stored_response(run, Case.objects.get(external_id="c4"), "failed", model="beta", input_tokens=9)
    stored_score(response, reason="Expected 5.")
    exported = export_run_rollouts(run, tmp_path / "run.jsonl", RolloutSelection())
    rows = read(tmp_path / "run.jsonl")
    assert [(row["case"], row["model"], row["reward"]) for row in rows] == [
        ("c0", "alpha", 1.0),
        ("c1", "alpha", 0.0),
        ("c4", "beta", 0.0),
    ]
    assert sum(exported.left_out.values()) == 2
    assert (rows[0]["usage"], rows[2]["usage"]["input"], rows[2]["rules"][0]["reason"]) == (None, 9, "Expected 5.")
    assert set(rows[0]) == set(read(tmp_path / "episodes.jsonl")[0])
    export_run_rollouts(run, tmp_path / "beta.jsonl", RolloutSelection(model="beta"))
    assert [row["case"] for row in read(tmp_path / "beta.jsonl")] == ["c4"]


SCHEMAS = [
    {"type": "object", "properties": {"n": {"type": "integer", "default": 1}}},
    {"type": "object", "properties": {"n": {"type": ["string", "null"], "default": "x"}}},
]


def tool(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": "Does it.", "parameters": schema}}


def calling(arguments: Any) -> list[dict[str, Any]]:
    call = {"id": "1", "index": 0, "type": "function", "function": {"name": "f", "arguments": arguments}}
    return [
        {"role": "user", "content": "Do it."},
        {"role": "assistant", "content": None, "tool_calls": [call], "provider": {"any": arguments}},
        {"role": "tool", "tool_call_id": "1", "content": "done"},
    ]


def test_rollouts_with_different_tools_load_as_one_dataset(
    user: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Older versions of `datasets` read JSON with pyarrow only, which needs one type for each key in all rows."""
    version = stored_version(cases=2)
    for case, schema, arguments in zip(version.cases.all(), SCHEMAS, ({"n": 1}, '{"n": "x"}'), strict=True):
        EpisodeSession.objects.create(
            user=user,
            case=case,
            done=True,
            reward=1.0,
            score={"status": "passed", "value": 1.0, "rules": []},
            state={"messages": calling(arguments), "tools": [tool("f", schema)]},
            expires_at=timezone.now(),
        )
    export_episodes(tmp_path / "out.jsonl", RolloutSelection())
    rows = read(tmp_path / "out.jsonl")
    calls = [row["messages"][1]["tool_calls"][0]["function"]["arguments"] for row in rows]
    assert [json.loads(arguments) for arguments in calls] == [{"n": 1}, {"n": "x"}]
    assert [json.loads(row["tools"])[0]["function"]["parameters"] for row in rows] == SCHEMAS
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    import datasets  # seconds to import, which only this test should cost

    path, cache = str(tmp_path / "out.jsonl"), str(tmp_path / "cache")
    table = datasets.load_dataset("json", data_files=path, split="train", cache_dir=cache)
    assert pyarrow.json.read_json(path).num_rows == 2
    assert [row["messages"][1]["tool_calls"][0]["function"]["arguments"] for row in table] == calls


def test_run_rollouts_contain_offered_tools(tmp_path: Path) -> None:
    version = import_bundle(bundle=settings.BASE_DIR / "hub" / "catalog" / "order-desk")
    run = stored_run(version)
    stored_response(run, version.cases.order_by("position")[0], "failed")
    export_run_rollouts(run, tmp_path / "out.jsonl", RolloutSelection())
    (row,) = read(tmp_path / "out.jsonl")
    assert {"name", "description", "parameters"} <= json.loads(row["tools"])[0]["function"].keys()


def test_rest_export_contains_only_own_episodes(user: User, version: EnvironmentVersion) -> None:
    play(user, version, "france", "Paris", model="step-100")
    play(User.objects.create_user("other"), version, "peru", "Lima")
    client = APIClient()
    client.force_authenticate(user)
    answer: Any = client.get("/api/v1/episodes/export?model=step-100")
    rows = [json.loads(line) for line in b"".join(answer.streaming_content).splitlines()]
    assert [(row["case"], row["user"]) for row in rows] == [("france", "trainer")]
    message = client.get("/api/v1/episodes/export?model=step-10").json()["message"]
    assert message == "There is no model 'step-10'; did you mean 'step-100'?"
    message = client.get("/api/v1/episodes/export?model=step-100&since=2999-01-01").json()["message"]
    assert message == "There is no rollout to export, so nothing was written."  # the model exists
    for wrong in ("since=yesterday", "environment=atlantis"):
        assert client.get(f"/api/v1/episodes/export?{wrong}").status_code == 400


def test_rest_export_withholds_reasons_if_a_split_of_the_environment_is_held_out(
    user: User, version: EnvironmentVersion, tmp_path: Path
) -> None:
    play(user, version, "peru", "Cusco")
    client = APIClient()
    client.force_authenticate(user)

    def exported() -> str:
        answer: Any = client.get("/api/v1/episodes/export")
        return b"".join(answer.streaming_content).decode()

    assert "Lima" in exported()
    Environment.objects.update(partly_held_out=True)
    (row,) = map(json.loads, exported().splitlines())
    assert "Lima" not in json.dumps(row)
    assert (row["rules"][0]["value"], row["rules"][0]["reason"]) == (0.0, "")
    export_episodes(tmp_path / "out.jsonl", RolloutSelection(user=user))  # of an operator
    assert "Lima" in (tmp_path / "out.jsonl").read_text()
    Environment.objects.update(owner=user)
    assert "Lima" in exported()


def test_command_suggests_names_of_users_and_models(user: User, version: EnvironmentVersion, tmp_path: Path) -> None:
    play(user, version, "france", "Paris", model="step-100")
    for option, given, known in (("--user", "triner", "trainer"), ("--model", "stp-100", "step-100")):
        said = run_command("export_rollouts", "--out", tmp_path / "out.jsonl", option, given, code=2)
        assert f"{given!r}; did you mean {known!r}? (Option: {option}.)" in said


def test_rest_export_of_visible_run(user: User) -> None:
    run = stored_run(stored_version(cases=2), created_by=user)
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)
    stored_outcomes(run, "pf")
    client = APIClient()
    client.force_authenticate(user)
    answer: Any = client.get(f"/api/v1/runs/{run.pk}/rollouts")
    assert [json.loads(line)["reward"] for line in b"".join(answer.streaming_content).splitlines()] == [1.0, 0.0]
    assert "no model 'x'" in client.get(f"/api/v1/runs/{run.pk}/rollouts?model=x").json()["message"]
    assert client.get("/api/v1/runs/999/rollouts").status_code == 404
    Environment.objects.update(held_out=True)
    assert client.get(f"/api/v1/runs/{run.pk}/rollouts").status_code == 403
    Environment.objects.update(owner=user)
    refused = client.get(f"/api/v1/runs/{run.pk}/rollouts").json()
    assert "--" not in refused["message"] and refused["errors"][0]["path"] == "environment"


def test_episode_list_shows_own_episodes_and_filters_by_done(user: User, version: EnvironmentVersion) -> None:
    play(user, version, "france", "Paris")
    going_on = create_rollout(RolloutOptions(user=user, version=version), case_id="peru").session
    expired = create_rollout(RolloutOptions(user=user, version=version), case_id="cuba").session
    EpisodeSession.objects.filter(pk=expired.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    create_rollout(RolloutOptions(user=User.objects.create_user("other"), version=version))
    client = APIClient()
    client.force_authenticate(user)
    everything = client.get("/api/v1/episodes/").json()["results"]
    assert [(row["environment"], row["case"], row["done"]) for row in everything] == [
        ("capitals@1.0.0", "cuba", False),
        ("capitals@1.0.0", "peru", False),
        ("capitals@1.0.0", "france", True),
    ]
    (row,) = client.get("/api/v1/episodes/?done=false").json()["results"]
    assert row["id"] == str(going_on.pk)


def test_command_reports_written_and_left_out_rollouts(
    user: User, version: EnvironmentVersion, tmp_path: Path, capsys: Any
) -> None:
    out = tmp_path / "out.jsonl"
    with pytest.raises(SystemExit) as exit_:
        call_command("export_rollouts", "--out", str(out))
    assert exit_.value.code == 2 and not out.exists()
    assert capsys.readouterr().err.strip() == "There is no rollout to export, so nothing was written."
    play(user, version, "france", "Paris")
    create_rollout(RolloutOptions(user=user, version=version))
    call_command("export_rollouts", "--out", str(out), "--user", "trainer", "--environment", "capitals")
    output = capsys.readouterr()
    assert output.out.strip() == f"Wrote 1 rollout to {out}."
    assert output.err.strip() == "Left out 1: not over yet."
    run = stored_run(stored_version(cases=2))
    stored_outcomes(run, "pf")
    call_command("export_rollouts", "--run", str(run.pk), "--out", str(tmp_path / "run.jsonl"))
    assert "Wrote 2 rollouts" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--run", "999"], "no run 999"),
        (["--user", "nobody"], "no user 'nobody'"),
        (["--environment", "atlantis"], "no environment 'atlantis'"),
        (["--run", "{run}", "--user", "trainer"], "select episodes"),
        (["--run", "{run}", "--model", "x"], "no model 'x'"),
    ],
)
def test_unknown_run_or_environment_exits_with_code_2(
    user: User, tmp_path: Path, arguments: list[str], expected: str, capsys: Any
) -> None:
    run = stored_run(stored_version())
    given = [argument.format(run=run.pk) for argument in arguments]
    with pytest.raises(SystemExit) as left:
        call_command("export_rollouts", *given, "--out", str(tmp_path / "out"))
    assert left.value.code == 2
    assert expected in capsys.readouterr().err


def test_response_tested_in_one_process_by_fallback_is_left_out(tmp_path: Path) -> None:
    run = stored_run(stored_version(cases=3))
    stored_outcomes(run, "ppp")
    reasons = {"c0": "the tests patch the code", "c1": ""}
    for response in Response.objects.filter(run_environment__run=run).select_related("case"):
        if response.case.external_id in reasons:
            execution = {"trust": "in_process", "trust_reason": reasons[response.case.external_id]}
            stored_score(response, "tests", 1.0, execution=execution)
    exported = export_run_rollouts(run, tmp_path / "out.jsonl", RolloutSelection())
    assert [row["case"] for row in read(tmp_path / "out.jsonl")] == ["c1", "c2"]
    assert [(why.split(",")[0], count) for why, count in exported.left_out.items()] == [
        ("judged with code and tests in one process (trust: auto)", 1)
    ]
