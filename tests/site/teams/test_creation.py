"""Who creates something chooses the team that owns it, and managers move it."""

import json
from pathlib import Path

import pytest
from django.contrib.auth.models import Permission, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import HttpResponse
from django.test import Client

from hub.models import Environment, Team, UploadDraft
from hub.services import import_bundle
from runs.management.config_file import load_config
from runs.models import ModelEndpoint, Run
from tests.factories import stored_run, stored_version
from tests.hub.bundle_files import write_bundle
from tests.hub.web.test_upload import zipped
from tests.members import member
from tests.site.teams.world import stored_team

pytestmark = pytest.mark.django_db
CONFIG = {"name": "by rest", "environments": ["capitals"], "models": ["small"]}


@pytest.fixture
def user(client: Client, tmp_path: Path) -> User:
    version = import_bundle(bundle=write_bundle(tmp_path / "capitals"))
    Environment.objects.filter(pk=version.environment_id).update(visibility=Environment.Visibility.PUBLISHED)
    ModelEndpoint.objects.create(name="small", model="m", base_url="http://127.0.0.1:9/v1", price_input=1)
    user = member("Runner", "Curator", name="ann", staff=True)
    client.force_login(user)
    return user


def start(client: Client, **changes: object) -> HttpResponse:
    config = json.dumps({**CONFIG, **changes})
    return client.post("/api/v1/runs/", config, content_type="application/json")


def owner_of(answer: HttpResponse) -> str | None:
    body = json.loads(answer.content)
    assert answer.status_code == 201, body
    team: str | None = body["team"]
    return team


def problem(answer: HttpResponse) -> str:
    assert answer.status_code == 400, answer.content
    (error,) = json.loads(answer.content)["errors"]
    assert error["path"] == "team"
    return str(error["message"])


def test_run_belongs_to_the_only_team_of_the_user(client: Client, user: User) -> None:
    assert owner_of(start(client)) is None
    stored_team("vision", user)
    assert owner_of(start(client)) == "vision"
    assert owner_of(start(client, team="shared")) is None


def test_user_of_several_teams_names_one(client: Client, user: User) -> None:
    for slug in ("vision", "speech"):
        stored_team(slug, user)
    stored_team("secret")
    assert "in several teams" in problem(start(client))
    assert owner_of(start(client, team="speech")) == "speech"
    assert problem(start(client, team="secret")) == problem(start(client, team="nobody")).replace("nobody", "secret")


def test_team_of_a_run_is_not_taken_from_the_address(client: Client, user: User) -> None:
    answer = client.post("/api/v1/runs/?team=vision", json.dumps(CONFIG), content_type="application/json")
    assert problem(answer) == "unknown key; remove it"
    assert not Run.objects.exists()


def test_run_belongs_to_the_team_of_its_environment_and_models(client: Client, user: User) -> None:
    vision, speech = stored_team("vision", user), stored_team("speech", user)
    ModelEndpoint.objects.update(team=vision)
    assert owner_of(start(client)) == "vision"
    assert "small belongs to the team vision" in problem(start(client, team="shared"))
    Environment.objects.update(team=speech)
    assert "Use only what one team owns" in problem(start(client))


def test_model_and_environment_of_another_team_are_unknown(client: Client, user: User) -> None:
    secret = stored_team("secret")
    Environment.objects.update(team=secret)
    ModelEndpoint.objects.update(team=secret)
    answer = start(client, environments=["capital"], models=["smal"]).json()
    assert {error["path"] for error in answer["errors"]} == {"environments[0]", "models[0]"}
    assert "capitals" not in str(answer) and "'small'" not in str(answer)


def test_form_of_a_new_run_offers_the_teams_of_the_user(client: Client, user: User) -> None:
    assert b'name="team"' not in client.get("/runs/new/").content
    stored_team("vision", user)
    page = client.get("/runs/new/?environment=capitals&model=small").content.decode()
    assert '<option value="vision" selected>Group vision</option>' in page and "team: vision" in page
    given = {"environment": "capitals", "model": "small", "cases": "all", "attempts": 1, "concurrency": 1}
    for team, expected in (("vision", "vision"), ("shared", None)):
        assert client.post("/runs/new/", {**given, "team": team, "do": "start"}).status_code == 302
        latest = Run.objects.latest("pk")
        assert (latest.team.slug if latest.team else None) == expected
    assert client.post("/runs/start/capitals/", {"cases": "all", "team": "vision"}).status_code == 302
    assert Run.objects.latest("pk").team is not None
    again = client.get(f"/runs/new/?run={Run.objects.latest('pk').pk}").content.decode()
    assert "team: vision" in again


def test_upload_belongs_to_the_chosen_team_and_keeps_it(client: Client, user: User, tmp_path: Path) -> None:
    stored_team("vision", user)
    content = zipped(write_bundle(tmp_path / "a", slug="flags"))
    file = SimpleUploadedFile("bundle.zip", content, content_type="application/zip")
    assert client.post("/hub/upload/", {"bundle": file, "team": "vision"}).status_code == 302
    newer = zipped(write_bundle(tmp_path / "b", slug="flags", version="1.1.0"))
    address = "/api/v1/environments/?team=shared"
    assert client.post(address, newer, content_type="application/zip").status_code == 201
    assert client.get("/api/v1/environments/flags/").json()["team"] == "vision"
    other = zipped(write_bundle(tmp_path / "c", slug="rivers"))
    for bundle in (newer, other):
        answer = client.post("/api/v1/environments/?team=nobody", bundle, content_type="application/zip")
        assert answer.status_code == 400 and answer.json()["errors"][0]["path"] == "team"
    assert client.post(address, other, content_type="application/zip").json()["environment"] == "rivers@1.0.0"
    assert Environment.objects.get(slug="rivers").team is None


def test_draft_remembers_the_team(client: Client, user: User, tmp_path: Path) -> None:
    stored_team("vision", user)
    folder = write_bundle(tmp_path / "a", slug="flags", category="nonsense")
    file = SimpleUploadedFile("bundle.zip", zipped(folder), content_type="application/zip")
    draft = client.post("/hub/upload/", {"bundle": file, "team": "vision"})["Location"]
    manifest = (folder / "environment.yaml").read_text().replace("nonsense", "reasoning")
    seen = client.get(f"{draft}?file=environment.yaml").context["file"].digest
    client.post(draft, {"path": "environment.yaml", "text": manifest, "seen": seen, "do": "check"})
    assert not UploadDraft.objects.exists()
    assert Environment.objects.get(slug="flags").team == Team.objects.get()


def test_draft_of_a_team_that_the_user_has_left_is_kept_with_the_corrections(
    client: Client, user: User, tmp_path: Path
) -> None:
    team = stored_team("vision", user)
    folder = write_bundle(tmp_path / "a", slug="flags", category="nonsense")
    file = SimpleUploadedFile("bundle.zip", zipped(folder), content_type="application/zip")
    draft = client.post("/hub/upload/", {"bundle": file, "team": "vision"})["Location"]
    user.groups.remove(team.group)
    manifest = (folder / "environment.yaml").read_text().replace("nonsense", "reasoning")
    seen = client.get(f"{draft}?file=environment.yaml").context["file"].digest
    answer = client.post(
        draft, {"path": "environment.yaml", "text": manifest, "seen": seen, "do": "check"}, follow=True
    )
    assert "cannot be stored: You are in no team &#x27;vision&#x27;" in answer.content.decode()
    assert client.get(f"{draft}?file=environment.yaml").context["file"].text == manifest
    assert not Environment.objects.filter(slug="flags").exists()


def test_slug_of_another_team_cannot_be_used(client: Client, user: User, tmp_path: Path) -> None:
    Environment.objects.update(team=stored_team("secret"))
    newer = zipped(write_bundle(tmp_path / "b", version="1.1.0"))
    answer = client.post("/api/v1/environments/", newer, content_type="application/zip")
    assert answer.status_code == 400 and "belongs to someone else" in str(answer.json()["errors"])


def test_registered_model_belongs_to_the_chosen_team(client: Client, user: User) -> None:
    stored_team("vision", user)
    given = {"name": "large", "provider": "openai", "model": "m", "parameters": "{}", "enabled": "on"}
    assert client.post("/endpoints/new/", {**given, "team": "vision"}).status_code == 302
    assert ModelEndpoint.objects.get(name="large").team == Team.objects.get()
    found = {item["name"]: item["team"] for item in client.get("/api/v1/models/").json()["results"]}
    assert found == {"large": "vision", "small": None}


def test_command_shares_unless_the_config_names_a_team(user: User, tmp_path: Path) -> None:
    stored_team("vision")
    config = tmp_path / "eval.yaml"
    for text, expected in (("", None), ("team: vision\n", "vision")):
        config.write_text("name: a\nenvironments: [capitals]\nmodels: [small]\n" + text)
        resolved = load_config(config, overrides=[], limit=None)
        assert (resolved.team.slug if resolved.team else None) == expected


def test_managers_move_what_their_team_owns(client: Client, user: User) -> None:
    vision, speech = stored_team("vision", managers=(user,)), stored_team("speech", user)
    run = stored_run(stored_version(), team=vision)
    Environment.objects.filter(slug="sums").update(visibility="published", team=vision)
    assert client.post(f"/runs/{run.pk}/team/", {"team": "speech"}).status_code == 302
    assert client.post("/hub/sums/1.0.0/team/", {"team": "speech"}).status_code == 302
    run.refresh_from_db()
    assert (run.team, Environment.objects.get(slug="sums").team) == (speech, speech)
    # as a member who does not manage it
    assert client.post(f"/runs/{run.pk}/team/", {"team": "vision"}).status_code == 403
    body = json.dumps({"team": "vision"})
    for address in (f"/api/v1/runs/{run.pk}/", "/api/v1/environments/sums/"):
        assert client.patch(address, body, content_type="application/json").status_code == 403
    speech.managers.add(user)
    for address in (f"/api/v1/runs/{run.pk}/", "/api/v1/environments/sums/"):
        assert client.patch(address, body, content_type="application/json").json()["team"] == "vision"
    answer = client.patch(f"/api/v1/runs/{run.pk}/", '{"team": "nobody"}', content_type="application/json")
    assert answer.status_code == 400


def test_user_in_no_team_who_created_a_run_is_told_so(client: Client, user: User) -> None:
    stored_team("vision")
    run = stored_run(stored_version())
    address, body = f"/api/v1/runs/{run.pk}/", json.dumps({"team": "vision"})
    Run.objects.update(created_by=user)
    answer = client.patch(address, body, content_type="application/json")
    assert answer.status_code == 400 and "You are in no team 'vision'" in answer.json()["detail"]
    Run.objects.update(created_by=None)
    answer = client.patch(address, body, content_type="application/json")
    assert answer.status_code == 403 and "Only the user who created it and superusers" in answer.json()["detail"]


def test_run_in_progress_is_not_moved(client: Client, user: User) -> None:
    run = stored_run(stored_version(), team=stored_team("vision", managers=(user,)), status="queued")
    Environment.objects.update(visibility="published")
    answer = client.patch(f"/api/v1/runs/{run.pk}/", '{"team": "shared"}', content_type="application/json")
    assert answer.status_code == 409


@pytest.mark.parametrize("moved", ["run", "model"])
def test_run_is_resumed_only_as_one_of_the_team_that_owns_its_model(client: Client, user: User, moved: str) -> None:
    vision = stored_team("vision", managers=(user,))
    run = stored_run(stored_version(), ["small"], team=vision if moved == "run" else None)
    Environment.objects.update(visibility="published")
    if moved == "run":
        ModelEndpoint.objects.update(team=vision)
        assert client.post(f"/runs/{run.pk}/team/", {"team": "shared"}).status_code == 302
    else:
        ModelEndpoint.objects.update(team=vision)
    answer = client.post(f"/api/v1/runs/{run.pk}/resume")
    assert (answer.status_code, "'small' belongs to the team vision" in answer.json()["message"]) == (400, True)
    client.force_login(member("Runner", name="stranger"))
    answer = client.post(f"/api/v1/runs/{run.pk}/resume")
    assert (answer.status_code, "No model is registered as 'small'" in answer.json()["message"]) == (400, True)
    assert "vision" not in answer.content.decode()
    page = client.post(f"/runs/{run.pk}/resume/", follow=True).content.decode()
    assert "No model is registered as" in page and "vision" not in page
    assert Run.objects.get(pk=run.pk).status == "completed"
    Run.objects.update(team=vision)
    client.force_login(user)
    assert client.post(f"/api/v1/runs/{run.pk}/resume").json()["status"] == "queued"


def test_run_is_resumed_only_as_one_of_the_team_that_owns_its_environment(client: Client, user: User) -> None:
    vision = stored_team("vision", managers=(user,))
    run = stored_run(stored_version(), ["small"], team=vision)
    Environment.objects.update(visibility="published", team=vision)
    page = client.post(f"/runs/{run.pk}/team/", {"team": "shared"}, follow=True)  # so its calls would count in no quota
    assert "sums belongs to the team vision, so only members of that team see the run" in page.content.decode()
    answer = client.post(f"/api/v1/runs/{run.pk}/resume")
    assert (answer.status_code, "'sums' belongs to the team vision" in answer.json()["message"]) == (400, True)
    assert "belongs to the team vision" in client.post(f"/runs/{run.pk}/resume/", follow=True).content.decode()
    Run.objects.update(team=vision)
    assert client.post(f"/api/v1/runs/{run.pk}/resume").json()["status"] == "queued"


def test_replayed_responses_of_a_model_of_another_team_are_scored_again(client: Client, user: User) -> None:
    ModelEndpoint.objects.update(team=stored_team("vision"))
    run = stored_run(stored_version(), ["small"], provider="replay")
    Environment.objects.update(visibility="published")
    assert client.post(f"/api/v1/runs/{run.pk}/resume").json()["status"] == "queued"


def test_staff_choose_among_their_teams_in_the_admin(client: Client, user: User) -> None:
    user.user_permissions.add(*Permission.objects.filter(codename__endswith="_modelendpoint"))
    add = "/admin/runs/modelendpoint/add/"
    form = {"name": "own", "provider": "openai", "model": "m", "base_url": "http://127.0.0.1:9/v1", "parameters": "{}"}
    stored_team("abuse"), stored_team("speech", user)
    vision = stored_team("vision")
    assert "selected>speech</option>" in client.get(add).content.decode()
    vision.group.user_set.add(user)
    page = client.get(add).content.decode()
    assert ">speech</option>" in page and ">vision</option>" in page and "abuse" not in page
    assert client.post(add, {**form, "team": vision.pk}).status_code == 302
    found = ModelEndpoint.objects.get(name="own")
    assert found.team == vision
    change = f"/admin/runs/modelendpoint/{found.pk}/change/"  # only managers move it, on its page
    assert client.post(change, {**form, "team": "", "model": "other"}).status_code == 302
    found.refresh_from_db()
    assert (found.model, found.team) == ("other", vision)
    refused = client.post(add, {**form, "name": "foreign", "team": Team.objects.get(slug="abuse").pk})
    assert refused.status_code == 200 and not ModelEndpoint.objects.filter(name="foreign").exists()
