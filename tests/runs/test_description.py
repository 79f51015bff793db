"""Name, tags and note of a run: on its page, over REST, and by `manage.py runs` and `eval --tag`."""

import json

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from hub.common.errors import UserError
from hub.models import Environment
from hub.services import import_bundle
from llmeval_site.accounts.tokens import create_token
from runs.description import add_tags, describe_run, tags_of
from runs.models import Run
from runs.reports import render_html
from runs.selectors import RunNotFound, get_run
from runs.services import delete_run, register_demo_models
from tests.commands import run_command
from tests.factories import stored_outcomes, stored_run, stored_version
from tests.members import member

pytestmark = pytest.mark.django_db


@pytest.fixture
def run() -> Run:
    version = stored_version()
    Environment.objects.update(latest=version, visibility=Environment.Visibility.PUBLISHED)
    run = stored_run(version, ["alpha"], name="first", created_by=member("Runner", name="owner"))
    stored_outcomes(run, "ppff", model="alpha")
    return run


def client_of(run: Run) -> Client:
    client = Client()
    client.force_login(run.created_by)
    return client


def test_page_stores_name_tags_and_note_and_the_list_filters_by_tag(run: Run) -> None:
    other = stored_run(run.environments.get().version, ["alpha"], name="second")
    client = client_of(run)
    given = {"name": " better  name ", "tags": "Nightly, release/1.2 nightly", "note": "First line.\n<b>Second</b>"}
    page = client.post(f"/runs/{run.pk}/describe/", given, follow=True).content.decode()
    run.refresh_from_db()
    assert run.name == "better name" and tags_of(run) == ["nightly", "release/1.2"]
    assert '<a class="tag" href="/runs/?tag=release%2F1.2">release/1.2</a>' in page
    assert "First line.<br>&lt;b&gt;Second&lt;/b&gt;" in page
    listed = client.get("/runs/?tag=NIGHTLY").context["page"].rows
    assert listed == [run] and other not in listed
    assert b"No run matches" in client.get("/runs/?tag=unknown").content
    report = render_html(run)
    assert "Tags: nightly, release/1.2." in report and "&lt;b&gt;Second&lt;/b&gt;" in report


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"tags": "a b! c"}, "&#x27;b!&#x27; is not a tag."),
        ({"tags": " ".join(f"t{i}" for i in range(21))}, "21 tags are too many; a run has at most 20."),
        ({"name": "  "}, "Name: This field is required."),
        ({"note": "x" * 4001}, "Note: Ensure this value has at most 4000 characters"),
    ],
)
def test_invalid_description_changes_nothing(run: Run, change: dict[str, str], said: str) -> None:
    add_tags(run=run, add=["kept"])
    given = {"name": "new", "tags": "other", "note": "", **change}
    client = client_of(run)
    page = client.post(f"/runs/{run.pk}/describe/", given, follow=True).content.decode()
    run.refresh_from_db()
    assert said in page and "Nothing was changed." in page
    assert '<details class="describe" open>' in page and f'value="{given["tags"]}"' in page  # what was typed is kept
    assert '<details class="describe">' in client.get(f"/runs/{run.pk}/").content.decode()
    assert run.name == "first" and tags_of(run) == ["kept"]


def test_adding_tags_keeps_those_that_somebody_else_has_added_meanwhile(run: Run) -> None:
    read_before = Run.objects.prefetch_related("tags").get()
    add_tags(run=run, add=["theirs", "old"])
    add_tags(run=read_before, add=["mine"], remove=["old"])
    assert tags_of(run) == ["mine", "theirs"]
    with pytest.raises(UserError, match="a run has at most 20"):
        add_tags(run=run, add=[f"t{i}" for i in range(19)])
    assert tags_of(run) == ["mine", "theirs"]


def test_users_who_neither_started_the_run_nor_may_cancel_runs_cannot_describe_it(run: Run) -> None:
    client = Client()
    client.force_login(member())
    assert client.post(f"/runs/{run.pk}/describe/", {"name": "taken"}).status_code == 403
    assert b"Rename, tag or note" not in client.get(f"/runs/{run.pk}/").content
    run.refresh_from_db()
    assert run.name == "first"


def test_rest_changes_what_is_given_and_filters_by_tag(run: Run) -> None:
    _, key = create_token(user=run.created_by, name="ci", scopes=["read", "run"])
    client = Client(headers={"Authorization": f"Token {key}"})

    def patch(**body: object) -> tuple[int, dict[str, object]]:
        answer = client.patch(f"/api/v1/runs/{run.pk}/", json.dumps(body), content_type="application/json")
        return answer.status_code, answer.json()

    describe_run(run=run, note="kept")
    status, item = patch(tags=["b", "A"])
    assert status == 200 and (item["name"], item["tags"], item["note"]) == ("first", ["a", "b"], "kept")
    status, item = patch(name="renamed", tags=[])
    assert status == 200 and (item["name"], item["tags"]) == ("renamed", [])
    status, problem = patch(tags=["no spaces"])
    assert status == 400 and "is not a tag" in str(problem)
    add_tags(run=run, add=["ci"])
    assert [item["run"] for item in client.get("/api/v1/runs/?tag=ci").json()["results"]] == [run.pk]
    assert client.get("/api/v1/runs/?tag=other").json()["results"] == []
    assert client.get(f"/api/v1/runs/{run.pk}/").json()["tags"] == ["ci"]


def test_commands_rename_tag_and_note_a_run(run: Run) -> None:
    assert "[ci] [nightly]" in run_command("runs", "tag", "latest", "nightly", "CI")
    run_command("runs", "tag", run.pk, "x", "--remove", "ci")
    assert f"Run {run.pk} has no tag 'cj'." in run_command("runs", "tag", run.pk, "--remove", "cj")
    run_command("runs", "rename", run.pk, "a", "new", "name")
    assert "why it failed" in run_command("runs", "note", run.pk, "why it failed")
    assert "why it failed" in run_command("runs", "show", run.pk)
    shown = json.loads(run_command("runs", "list", "--tag", "NIGHTLY", "--json"))
    assert [(row["name"], row["tags"], row["note"]) for row in shown] == [
        ("a new name", ["nightly", "x"], "why it failed")
    ]
    assert "No run has the tag ci." in run_command("runs", "list", "--tag", "ci")
    assert "why it failed" not in run_command("runs", "note", run.pk, "")


def test_latest_with_a_tag_is_the_latest_run_that_has_it(run: Run) -> None:
    add_tags(run=run, add=["main"])
    newer = stored_run(run.environments.get().version)
    assert get_run("latest") == newer
    assert get_run("latest:main") == get_run("latest:MAIN") == run
    assert "[main]" in run_command("runs", "show", "latest:main")
    with pytest.raises(RunNotFound, match=r"^No run has the tag nightly\.$"):
        get_run("latest:nightly")
    delete_run(run=run)
    with pytest.raises(RunNotFound, match="No run has the tag main"):
        get_run("latest:main")


def test_cancelling_a_run_that_has_ended_says_so(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(finished_at=timezone.now())
    assert "has ended; there is nothing to cancel" in run_command("runs", "cancel", run.pk)


def test_missing_action_is_the_only_missing_argument() -> None:
    with pytest.raises(CommandError, match=r"the following arguments are required: action$"):
        call_command("runs")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["tag", "latest"], "Name tags to add, `runs tag 12 nightly`"),
        (["tag", "latest", "a b"], "'a b' is not a tag"),
        (["rename", "latest"], "Give the new name"),
        (["note", "latest"], "Write the note"),
        (["show", "latest", "nightly"], "`runs show` takes no further text: nightly"),
        (["show", "latest", "--remove", "x"], "--remove belongs to `runs tag`"),
        (["cancel", "latest", "--tag", "x"], "--tag belongs to `runs list`"),
    ],
)
def test_wrong_words_name_the_remedy(run: Run, words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        call_command("runs", *words)
    assert exit_.value.code == 2 and said in capsys.readouterr().err


@pytest.mark.django_db(transaction=True)
def test_eval_tags_the_new_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("runs.management.commands.eval.call_command", lambda name, **_: None)
    register_demo_models()
    import_bundle(bundle=settings.BASE_DIR / "hub" / "catalog" / "changing-plans")
    words = "--env changing-plans --model demo --limit 1 --tag CI --tag x --json"
    run_command("eval", *words.split())
    assert tags_of(Run.objects.get()) == ["ci", "x"]
    with pytest.raises(SystemExit):
        call_command("eval", "--env", "changing-plans", "--model", "demo", "--tag", "no spaces")
    assert Run.objects.count() == 1 and "'no spaces' is not a tag" in capsys.readouterr().err


def test_command_prints_no_terminal_sequences_of_names_and_notes_and_json_has_them(run: Run) -> None:
    name, note = "a\x1b]0;title\x07\x1b[2Jb\x9bc\u202ed", "first line\x1b[31m\nsecond"
    describe_run(run=run, name=name, note=note)
    for words in (["list"], ["show", run.pk]):
        assert "  abcd  (" in run_command("runs", *words)
    assert run_command("runs", "show", run.pk).endswith("\nfirst line\nsecond\n")
    printed = json.loads(run_command("runs", "show", run.pk, "--json"))
    assert (printed["name"], printed["note"]) == (name, note)
    assert "\x1b" not in run_command("runs", "show", "1\x1b[2J", code=2)
