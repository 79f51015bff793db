"""Pages of an environment: description, cases, changes between versions, README without scripts, bundle."""

from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client

from hub.bundles.changes import version_changes
from hub.bundles.stored import open_stored_bundle
from hub.gates.runner import run_gates
from hub.models import Case, CaseDefect, Environment, EnvironmentVersion
from hub.services import import_bundle, set_certificate
from hub.web.reading.markdown import markdown_html
from hub.web.reading.transcripts import code_html
from tests.factories import stored_version
from tests.hub.bundle_files import ROWS, lines, write_bundle
from tests.markup import markup
from tests.members import member
from tests.site.teams.world import stored_team

pytestmark = pytest.mark.django_db


def publish(version: EnvironmentVersion) -> EnvironmentVersion:
    Environment.objects.filter(pk=version.environment_id).update(
        latest=version, visibility=Environment.Visibility.PUBLISHED
    )
    return version


@pytest.fixture
def capitals(tmp_path: Path) -> EnvironmentVersion:
    folder = write_bundle(tmp_path / "capitals", files={"README.md": "# Capitals\n\nMade **by hand**."})
    return publish(import_bundle(bundle=folder))


def page(client: Client, url: str) -> str:
    answer = client.get(url)
    assert answer.status_code == 200
    return answer.content.decode()


def test_page_shows_harness_rules_and_version(client: Client, user: User, capitals: EnvironmentVersion) -> None:
    shown = page(client, "/hub/capitals/")
    for part in (
        "capitals@1.0.0",
        "single_turn",
        "exact_match",
        "<strong>by hand</strong>",
        capitals.digest,
    ):
        assert part in shown
    assert 'hx-get="/hub/capitals/1.0.0/results/"' in shown
    assert "/hub/capitals/1.0.0/bundle" in shown
    assert "/runs/start/" not in shown
    client.force_login(member("Runner"))
    assert 'hx-get="/runs/start/capitals/"' in page(client, "/hub/capitals/")


def test_case_page_shows_prompt_target_and_scoring(client: Client, user: User, capitals: EnvironmentVersion) -> None:
    shown = page(client, "/hub/capitals/1.0.0/cases/Spain/")
    for part in (
        "Answer with the name alone.",
        "What is the capital of Spain?",
        "Madrid",
        "exact_match",
        "Case 2 of 3",
    ):
        assert part in shown
    assert "/cases/France/" in shown and "/cases/Norway/" in shown
    assert client.get("/hub/capitals/1.0.0/cases/Nowhere/").status_code == 404


def test_case_id_with_slashes_has_a_page(client: Client, user: User) -> None:
    publish(stored_version(cases=[{"id": "HumanEval/0", "input": "x"}, {"id": "a?b#c d", "input": "y"}]))
    shown = page(client, "/hub/sums/1.0.0/cases/")
    assert "/hub/sums/1.0.0/cases/HumanEval/0/" in shown
    assert "/hub/sums/1.0.0/cases/a%3Fb%23c%20d/" in shown
    assert page(client, "/hub/sums/1.0.0/cases/HumanEval/0/")
    assert page(client, "/hub/sums/1.0.0/cases/a%3Fb%23c%20d/")


def test_report_of_a_wrong_case_is_shown_on_its_page(client: Client, user: User, capitals: EnvironmentVersion) -> None:
    case = Case.objects.get(external_id="Spain")
    CaseDefect.objects.create(case=case, description="There are two capitals.")
    assert "There are two capitals." in page(client, "/hub/capitals/1.0.0/cases/Spain/")


def test_user_can_report_a_visible_case_once(client: Client, user: User, capitals: EnvironmentVersion) -> None:
    url = "/hub/capitals/1.0.0/defects/Spain/"
    assert f'href="{url}"' in page(client, "/hub/capitals/1.0.0/cases/Spain/")
    assert client.post(url, {"description": "  "}).status_code == 422
    assert client.post(url, {"description": "x" * 2001}).status_code == 422
    assert not CaseDefect.objects.exists()
    told = client.post(url, {"description": "There are <b>two</b>."}, follow=True).content.decode()
    assert "A curator will accept or reject it" in told and "There are &lt;b&gt;two&lt;/b&gt;." in told
    again = client.post(url, {"description": "Once more."})
    assert again.status_code == 422 and "already" in again.content.decode()
    defect = CaseDefect.objects.get()
    assert (defect.case.external_id, defect.reported_by, defect.status) == ("Spain", user, "open")
    assert "report of a wrong case" not in page(client, "/hub/capitals/")
    client.force_login(member("Curator", staff=True))
    assert "1 report of a wrong case is open" in page(client, "/hub/capitals/")
    assert f"/admin/hub/casedefect/{defect.pk}/change/" in page(client, "/hub/capitals/1.0.0/cases/Spain/")


def test_case_cannot_be_reported_without_access(client: Client, user: User, capitals: EnvironmentVersion) -> None:
    Environment.objects.update(visibility=Environment.Visibility.PRIVATE, owner=member(name="owner"))
    assert client.post("/hub/capitals/1.0.0/defects/Spain/", {"description": "Wrong."}).status_code == 404
    assert not CaseDefect.objects.exists()


def test_dataset_content_is_escaped(client: Client, user: User) -> None:
    evil = "<script>alert(1)</script><img src=x onerror=alert(1)>\u202egnp.exe"
    version = publish(stored_version(cases=[{"id": "<b>c", "input": evil, "target": evil, "files": {"<i>.py": evil}}]))
    Environment.objects.update(title=evil[:40], summary=evil[:40], tags=['"><script>'])
    EnvironmentVersion.objects.update(readme=evil)
    for url in (
        "/hub/",
        "/hub/sums/",
        "/hub/sums/1.0.0/cases/?meta=k:v&q=b",
        f"/hub/sums/{version.version}/cases/%3Cb%3Ec/",
        "/",
        "/search/?q=script",
    ):
        shown = page(client, url)
        assert (
            "<script>alert" not in shown and "<img src=x" not in shown and "<b>c" not in shown and "<i>.py" not in shown
        )
    assert "\u202e" not in page(client, f"/hub/sums/{version.version}/cases/%3Cb%3Ec/")


@pytest.mark.parametrize(
    ("text", "absent"),
    [
        ("<script>alert(1)</script>", "<script"),
        ("[x](javascript:alert(1))", "href"),
        ("[x](data:text/html;base64,PHNjcmlwdD4=)", "href"),
        ("![x](https://evil.example/track.png)", "<img"),
        ("<a href='https://x' onclick='y()'>x</a>", "<a"),
        ("```<script>\nx\n```", "<script"),
        ("```python\n'</code><script>'\n```", "<script"),
        ("| a |\n| --- |\n| <b>x</b> |", "<b>"),
    ],
)
def test_markdown_has_no_scripts_or_external_content(text: str, absent: str) -> None:
    assert absent not in markdown_html(text)


def test_markdown_renders_tables_links_and_code() -> None:
    shown = markdown_html("# T\n\n| a |\n| - |\n| 1 |\n\n```python\nx = 1\n```\n[docs](https://example.org)")
    for part in ("<h2>T</h2>", "<td>1</td>", '<span class="m">1</span>', 'href="https://example.org"'):
        assert part in shown


def test_code_in_an_unknown_language_is_plain_and_escaped() -> None:
    assert code_html("<b>", "no-such-language") == "&lt;b&gt;"
    assert "&lt;" in code_html("a < b", "python")


# ---- versions --------------------------------------------------------------------------------------------------------


def test_changes_between_versions_are_listed_by_case(
    client: Client, user: User, capitals: EnvironmentVersion, tmp_path: Path
) -> None:
    rows = [
        {"country": "France", "capital": "Paris"},
        {"country": "Norway", "capital": "Christiania"},
        {"country": "Peru", "capital": "Lima"},
    ]
    second = import_bundle(
        bundle=write_bundle(tmp_path / "two", version="1.1.0", wrong=None, files={"cases.jsonl": lines(rows)})
    )
    found = {change.title: (change.count, change.examples) for change in version_changes(capitals, second).cases}
    assert found == {
        "added": (1, ["Peru"]),
        "removed": (1, ["Spain"]),
        "with the same input but scored differently": (1, ["Norway"]),
        "unchanged": (1, []),
    }
    shown = page(client, "/hub/capitals/1.1.0/changes/")
    assert "version: 1.0.0" in shown and "version: 1.1.0" in shown
    assert "/hub/capitals/1.0.0/cases/Spain/" in shown
    assert "first version" in page(client, "/hub/capitals/1.0.0/changes/")
    assert client.get("/hub/capitals/1.1.0/changes/?from=9.9.9").status_code == 404
    part = markup(client.get("/hub/capitals/1.1.0/changes/", headers={"HX-Target": "changed"}))
    assert "1.1.0 against 1.0.0: 1 added, 1 removed, 1 with the same input but scored differently, 1 unchanged" in part
    assert "<html" not in part
    assert 'id="changed"' in page(client, "/hub/capitals/1.1.0/")
    assert 'id="changed"' not in page(client, "/hub/capitals/1.0.0/")


def test_changed_prompt_changes_every_case(capitals: EnvironmentVersion, tmp_path: Path) -> None:
    harness = {"type": "single_turn", "system": "Answer in one word."}
    second = import_bundle(bundle=write_bundle(tmp_path / "two", version="2.0.0", harness=harness))
    changes = version_changes(capitals, second).cases
    assert [(change.title, change.count) for change in changes] == [("with a different input", len(ROWS))]


def test_older_version_links_to_the_latest(
    client: Client, user: User, capitals: EnvironmentVersion, tmp_path: Path
) -> None:
    newer = import_bundle(bundle=write_bundle(tmp_path / "two", version="2.0.0"))
    import_bundle(bundle=write_bundle(tmp_path / "patch", version="0.9.0"))
    waits = "It becomes the latest version when it has passed its gates"
    assert waits in page(client, "/hub/capitals/2.0.0/")
    assert waits not in page(client, "/hub/capitals/0.9.0/")  # imported later, but older
    set_certificate(version=newer, certificate={"digest": newer.digest, "gates": []})
    EnvironmentVersion.objects.filter(version="1.0.0").update(deprecated="Use 2.0.0.")
    shown = page(client, "/hub/capitals/1.0.0/")
    assert "becomes the latest" not in shown
    assert "the latest is" in shown and "Use 2.0.0." in shown
    assert "the latest is" not in page(client, "/hub/capitals/")


def test_newer_version_that_failed_its_gates_does_not_announce_that_it_becomes_the_latest(
    client: Client, user: User, capitals: EnvironmentVersion, tmp_path: Path
) -> None:
    newer = import_bundle(bundle=write_bundle(tmp_path / "two", version="2.0.0", gold={"content": "Lyon"}))
    with open_stored_bundle(newer) as bundle:
        set_certificate(version=newer, certificate=run_gates(bundle, pool=None))
    shown = page(client, "/hub/capitals/2.0.0/")
    assert "It becomes the latest" not in shown
    assert "It does not become the latest version, because it failed gold. Correct it" in shown


def test_downloaded_bundle_has_the_same_bytes(client: Client, user: User, capitals: EnvironmentVersion) -> None:
    answer = client.get("/hub/capitals/1.0.0/bundle")
    assert answer["Content-Type"] == "application/zip"
    assert 'filename="capitals-1.0.0.zip"' in answer["Content-Disposition"]
    with capitals.archive.open("rb") as file:
        assert b"".join(answer.streaming_content) == file.read()  # type: ignore[attr-defined]


def test_curator_publishes_certified_version_from_its_page(client: Client, capitals: EnvironmentVersion) -> None:
    Environment.objects.update(visibility="private")
    curator = member("Curator")
    client.force_login(curator)
    shown = page(client, "/hub/capitals/")
    assert "/publish/" not in shown and "<button disabled" in shown
    assert "capitals@1.0.0 cannot be published: its gates have not been run. Run them on the page of its" in shown
    refused = client.post("/hub/capitals/1.0.0/publish/", follow=True).content.decode()
    assert "its gates have not been run" in refused
    gates = [{"name": "gold", "what": "", "status": "failed", "checked": 3, "failed": 1, "note": ""}]
    EnvironmentVersion.objects.update(certificate={"digest": capitals.digest, "gates": gates})
    shown = page(client, "/hub/capitals/")
    assert "/publish/" not in shown and "cannot be published: it failed gold." in shown
    EnvironmentVersion.objects.update(certificate={"digest": capitals.digest, "gates": []})
    shown = page(client, "/hub/capitals/")
    assert "/hub/capitals/1.0.0/publish/" in shown and "Only its owner and curators see it" in shown
    published = client.post("/hub/capitals/1.0.0/publish/", follow=True).content.decode()
    assert "is published: everybody who signs in can see and run it" in published
    Environment.objects.update(team=stored_team("vision", curator))
    published = client.post("/hub/capitals/1.0.0/publish/", follow=True).content.decode()
    assert "is published: the members of Group vision can see and run it" in published
    assert Environment.objects.get().visibility == "published"
    assert "curators see it" not in page(client, "/hub/capitals/")


def test_owner_reads_what_publishing_needs(client: Client, user: User, capitals: EnvironmentVersion) -> None:
    Environment.objects.update(visibility="private", owner=user)
    shown = page(client, "/hub/capitals/")
    assert "its gates have not been run" in shown and "Publish</button>" not in shown
    EnvironmentVersion.objects.update(certificate={"digest": capitals.digest, "gates": []})
    assert "so a curator can publish it" in page(client, "/hub/capitals/")


# ---- retiring --------------------------------------------------------------------------------------------------------


def test_curator_retires_a_published_environment_and_can_publish_it_again(
    client: Client, capitals: EnvironmentVersion
) -> None:
    EnvironmentVersion.objects.update(certificate={"digest": capitals.digest, "gates": []})
    client.force_login(member("Curator"))
    shown = markup(page(client, "/hub/capitals/"))
    assert 'action="/hub/capitals/1.0.0/retire/" data-confirm="Retire Capitals?' in shown and "/publish/" not in shown
    assert "is retired" in client.post("/hub/capitals/1.0.0/retire/", follow=True).content.decode()
    assert Environment.objects.get().visibility == "retired"
    assert "/hub/capitals/" not in page(client, "/hub/") and "/hub/capitals/" in page(client, "/hub/?state=retired")
    shown = page(client, "/hub/capitals/")
    assert "/hub/capitals/1.0.0/publish/" in shown and "/retire/" not in shown
    client.post("/hub/capitals/1.0.0/publish/")
    assert Environment.objects.get().visibility == "published"


def test_private_environment_is_not_retired_because_it_would_become_visible(
    client: Client, capitals: EnvironmentVersion
) -> None:
    Environment.objects.update(visibility="private")
    client.force_login(member("Curator"))
    assert "/retire/" not in page(client, "/hub/capitals/")
    answer = client.post("/hub/capitals/1.0.0/retire/", follow=True).content.decode()
    assert "only a published environment can be retired" in answer
    assert Environment.objects.get().visibility == "private"


@pytest.mark.parametrize("action", ["publish", "retire", "gates"])
def test_readers_and_owners_neither_publish_nor_retire(
    client: Client, capitals: EnvironmentVersion, action: str
) -> None:
    owner = member(name="owner")
    Environment.objects.update(owner=owner)
    for user in (member(), owner):
        client.force_login(user)
        for tab in ("", "cases/", "files/", "changes/", "results/", "certificate/"):
            assert f"/{action}/" not in page(client, f"/hub/capitals/1.0.0/{tab}")
        assert client.post(f"/hub/capitals/1.0.0/{action}/").status_code == 403
    assert Environment.objects.get().visibility == "published"


# ---- certificate -----------------------------------------------------------------------------------------------------


def test_certificate_lists_gates_with_their_failures(client: Client, user: User, capitals: EnvironmentVersion) -> None:
    address = "/hub/capitals/1.0.0/certificate/"
    assert "The gates have not been run for this version" in page(client, address)
    failure = {"case": "Spain", "message": "Madrid <b>failed</b>"}
    gates = [
        {
            "name": "gold",
            "what": "Gold passes.",
            "status": "failed",
            "checked": 1200,
            "failed": 1,
            "failures": [failure],
        },
        {"name": "leak", "what": "No leak.", "status": "not_run", "checked": 0, "failed": 0, "failures": []},
    ]
    certificate = {"digest": capitals.digest, "gates": gates, "date": "2026-01-02", "sandbox": None}
    EnvironmentVersion.objects.update(certificate=certificate)
    shown = page(client, address)
    for part in ("1,200", "Gold passes.", "failed: gold", "2026-01-02", "Madrid &lt;b&gt;failed", capitals.digest):
        assert part in shown
    owner = member(name="owner")
    Environment.objects.update(held_out=True, owner=owner)
    for reader, may in ((user, False), (owner, True), (member("Curator"), True)):
        client.force_login(reader)
        shown = page(client, address)
        assert "1,200" in shown and ("Madrid" in shown) is may, reader


def test_version_that_does_not_exist_is_404_on_every_tab(
    client: Client, user: User, capitals: EnvironmentVersion
) -> None:
    for tab in ("", "cases/", "files/", "file", "changes/", "results/", "certificate/"):
        assert client.get(f"/hub/capitals/9.9.9/{tab}").status_code == 404
        assert client.get(f"/hub/missing/1.0.0/{tab}").status_code == 404
