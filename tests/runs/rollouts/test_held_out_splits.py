"""Held-out splits: their cases are evaluated, and neither trained on nor given to users without the permission."""

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from rest_framework.test import APIClient

from hub.manifest.problems import BundleError
from hub.models import Case, Environment
from hub.services import import_bundle
from runs.exports import RolloutSelection, export_run_rollouts
from runs.models import EpisodeSession, Response
from tests.endpoint import completion, endpoint
from tests.hub.bundle_files import lines, write_bundle
from tests.members import member
from tests.runs.capitals import config_text, start

pytestmark = pytest.mark.django_db(transaction=True)
ROWS = [
    {"id": "a", "input": "Say a.", "target": "a", "split": "train"},
    {"id": "b", "input": "Say b, the secret.", "target": "b", "metadata": {"split": "test"}},
    {"id": "c", "input": "Say c.", "target": "c"},
]
CASES = "/api/v1/environments/letters/versions/latest/cases/"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return letters(tmp_path / "letters")


def letters(folder: Path, splits: object = ("test",)) -> Path:
    return write_bundle(
        folder,
        files={"cases.jsonl": lines(ROWS)},
        slug="letters",
        dataset={"path": "cases.jsonl"},
        harness={"type": "single_turn"},
        held_out_splits=list(splits) if isinstance(splits, tuple) else splits,
        gold=None,
        wrong=None,
    )


@pytest.fixture
def published(folder: Path) -> None:
    import_bundle(bundle=folder)
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)


@pytest.fixture
def api() -> APIClient:
    client = APIClient()
    client.force_authenticate(User.objects.create_user("trainer"))
    return client


def permitted() -> User:
    user = member(name="permitted")
    user.user_permissions.add(Permission.objects.get(codename="view_held_out"))
    return user


def client_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.mark.parametrize("splits", [(), ("train",)], ids=["no split", "another split"])
def test_later_version_cannot_open_held_out_splits(folder: Path, splits: tuple[str, ...]) -> None:
    import_bundle(bundle=folder)
    changed = letters(folder.with_name("changed"), splits)
    manifest = changed / "environment.yaml"
    manifest.write_text(manifest.read_text().replace("1.0.0", "1.1.0"))
    later = import_bundle(bundle=changed)
    expected = {"a": "train" in splits, "b": True, "c": False}
    assert (later.version, dict(later.cases.values_list("external_id", "held_out"))) == ("1.1.0", expected)


@pytest.mark.usefixtures("published")
def test_only_users_with_the_permission_get_cases_of_held_out_splits() -> None:
    everybody, trusted = client_of(member(name="somebody")), client_of(permitted())
    found = everybody.get(CASES).json()["results"]
    assert [(case["id"], case["split"], case["held_out"]) for case in found] == [
        ("a", "train", False),
        ("c", "", False),
    ]
    assert everybody.get(f"{CASES}?q=secret").json()["results"] == []
    assert [(case["id"], case["held_out"]) for case in trusted.get(CASES).json()["results"]][1] == ("b", True)
    for url in ("/hub/letters/1.0.0/cases/b/", "/hub/letters/1.0.0/bundle", CASES.replace("cases/", "bundle")):
        assert (everybody.get(url).status_code, trusted.get(url).status_code) == (403, 200), url
    for url in ("/hub/letters/", "/search/?q=secret", "/api/v1/environments/letters/versions/1.0.0/"):
        assert "the secret" not in everybody.get(url).content.decode(), url


@pytest.mark.usefixtures("published")
def test_no_episode_is_started_on_a_case_of_a_held_out_split(api: APIClient) -> None:
    def post(path: str, **body: Any) -> Any:
        return api.post(f"/api/v1/{path}", {"environment": "letters", **body}, format="json")

    drawn = {post("episodes/", seed=seed).json()["case"] for seed in range(12)}
    assert drawn == {"a", "c"}
    refused = post("episodes/", case="b")
    assert (refused.status_code, refused.json()["errors"][0]["path"]) == (400, "case")
    assert "held out" in refused.json()["errors"][0]["message"]
    assert post("episodes/batch", cases=["a", "b"]).json()["errors"][0]["path"] == "cases[1]"
    assert post("episodes/batch", n=1, split="test").status_code == 400
    assert {group["case"] for group in post("episodes/batch", n=2).json()["groups"]} == {"a", "c"}
    listed = post("episodes/cases").json()
    assert (listed["total"], [case["case"] for case in listed["cases"]]) == (2, ["a", "c"])
    said = [{"role": "assistant", "content": "b"}]
    scored = post("score", items=[{"case": "b", "messages": said}, {"case": "a", "messages": said}]).json()["items"]
    assert [item["error"] and item["error"]["code"] for item in scored] == ["invalid", None]
    assert not EpisodeSession.objects.filter(case__external_id="b").exists()


def test_held_out_split_is_evaluated_and_left_out_of_exports_and_shown_to_nobody(folder: Path, tmp_path: Path) -> None:
    with endpoint(lambda request, _=0: completion("x")) as model:
        run, _ = start(tmp_path, config_text(model.url, environments=[{"path": "letters"}]))
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)
    assert Response.objects.filter(status="failed").count() == 3
    exported = export_run_rollouts(run, tmp_path / "out.jsonl", RolloutSelection())
    assert (exported.written, dict(exported.left_out)) == (2, {"of a held-out split": 1})
    assert client_of(member(name="somebody")).get(f"/runs/{run.pk}/rollouts?format=jsonl").status_code == 403
    response = Response.objects.get(case__external_id="b")
    page = client_of(member(name="other")).get(f"/responses/{response.pk}/").content.decode()
    assert "Held out: only the owner" in page


def test_later_version_without_the_key_stays_withheld(folder: Path, tmp_path: Path) -> None:
    import_bundle(bundle=folder)
    text = (folder / "environment.yaml").read_text().replace("1.0.0", "1.0.1").replace("held_out_splits", "tags")
    (folder / "environment.yaml").write_text(text)
    import_bundle(bundle=folder)
    assert Environment.objects.get().partly_held_out
    assert Case.objects.filter(held_out=True).count() == 2  # one of each version


def test_split_that_no_case_has_is_a_problem_of_the_bundle(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"held_out_splits.*no case has the split 'tset'") as error:
        import_bundle(bundle=letters(tmp_path / "letters", ("test", "tset")))
    assert "The splits of the cases are 'test', 'train'." in str(error.value.problems[0])
