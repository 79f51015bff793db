"""The manual: every page of docs/ is shown, its links and images work, and pages of the site link to its sections."""

import re
from posixpath import dirname, join, normpath

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from llmeval_site.pages.manual import FOLDER, get_page, list_pages
from tests.members import member

pytestmark = pytest.mark.django_db

PAGES = sorted(str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.md"))
TEMPLATES = sorted((settings.BASE_DIR / "templates").rglob("*.html"))
# Pages that must lead to a section about them, by their template.
MUST_LINK = (
    "hub/catalogue",
    "hub/upload",
    "hub/draft",
    "hub/environment",
    "runs/run",
    "runs/new",
    "runs/compare",
    "runs/models",
    "runs/model_form",
    "review/pair",
    "preferences/list",
    "site/account",
    "site/webhooks",
)


@pytest.fixture
def reader(client: Client) -> User:
    user = member()
    client.force_login(user)
    return user


def ids(path: str) -> set[str]:
    return {heading.id for heading in get_page(path).headings}


def problem(address: str, page: str = "index.md") -> str:
    """Return what is wrong with an address in *page* of the manual; "" if it leads to a file and heading."""
    target, _, heading = address.partition("#")
    path = normpath(join(dirname(page), target)) if target else page
    if not (FOLDER / path).is_file():
        return f"{page}: there is no {path}"
    if heading and heading not in ids(path):
        return f"{page}: {path} has no heading {heading}"
    return ""


@pytest.mark.parametrize("page", PAGES)
def test_every_page_is_shown_and_its_links_lead_to_headings(client: Client, reader: User, page: str) -> None:
    answer = client.get(f"/docs/{page}")
    assert answer.status_code == 200
    html = str(get_page(page).html)
    found = re.findall(r'(?:href|src)="([^"]*)"', html)
    addresses = [address for address in found if not address.startswith(("http://", "https://", "mailto:"))]
    assert [wrong for address in addresses if (wrong := problem(address, page))] == []
    assert "style=" not in html and "<th></th>" not in html
    assert len(ids(page)) == len(get_page(page).headings)
    for address in {address.partition("#")[0] for address in addresses} - {""}:
        assert client.get(normpath(join(dirname(f"/docs/{page}"), address))).status_code == 200, address


def test_links_of_all_templates_lead_to_existing_headings() -> None:
    found = {
        str(path.relative_to(settings.BASE_DIR)): re.findall(r'\{% manual "([^"]*)" %\}', path.read_text("utf-8"))
        for path in TEMPLATES
    }
    assert {file: wrong for file, links in found.items() if (wrong := [*filter(None, map(problem, links))])} == {}
    missing = [name for name in MUST_LINK if not found[f"templates/{name}.html"]]
    assert missing == []
    assert "rl.md#rollouts-as-a-file" in found["templates/runs/run.html"]


def test_header_leads_to_the_section_about_the_page(client: Client, reader: User) -> None:
    assert '<a href="/docs/web.md#the-hub">Manual</a>' in client.get("/hub/").content.decode()
    assert '<a href="/docs/rest.md#webhooks">Manual</a>' in client.get("/account/webhooks/").content.decode()
    assert '<a href="/docs/">Manual</a>' in client.get("/docs/web.md").content.decode()


def test_contents_list_every_page_of_the_index_and_the_sections_of_this_one(client: Client, reader: User) -> None:
    listed = [path for path, _ in list_pages()]
    assert set(listed) == {path.name for path in FOLDER.glob("*.md")}
    page = client.get("/docs/scorers.md").content.decode()
    assert all(f'href="{reverse("manual", args=[path])}"' in page for path in listed)
    assert '<a href="/docs/scorers.md" aria-current="page">' in page
    for heading in get_page("scorers.md").sections:
        assert f'href="#{heading.id}"' in page and f'id="{heading.id}"' in page


def test_headings_get_the_ids_that_code_hosts_give_them() -> None:
    assert {"environmentyaml", "gold-wrong-recordings", "gates-checks-before-publishing"} <= ids("bundles.md")
    assert "single_turn" in ids("harnesses.md")


def test_examples_and_images_are_served(client: Client, reader: User) -> None:
    image = client.get("/docs/images/run.png")
    assert image["Content-Type"] == "image/png" and b"".join(image).startswith(b"\x89PNG")
    page = client.get("/docs/examples/bug-fix/environment.yaml").content.decode()
    assert "Fix a reported bug in a small repository" in page


@pytest.mark.parametrize("path", ["nothing.md", "../README.md", "%2e%2e/README.md", "images", "/etc/passwd"])
def test_files_outside_the_manual_do_not_exist(client: Client, reader: User, path: str) -> None:
    assert client.get(f"/docs/{path}").status_code == 404


def test_links_to_files_that_are_not_served_are_text() -> None:
    html = str(get_page("rl.md").html)
    assert "clients/python" in html and 'href="../clients' not in html


def test_manual_requires_sign_in(client: Client) -> None:
    assert "/login/" in client.get("/docs/")["Location"]
