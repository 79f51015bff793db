"""The catalogue page: filters, sorting and pagination."""

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext

from hub.common.web.pagination import Page, keyset_page, order_of
from hub.models import Case, Environment, EnvironmentVersion
from runs.models import Response, Run
from tests.factories import stored_response, stored_run, stored_version
from tests.members import member

pytestmark = pytest.mark.django_db
Visibility = Environment.Visibility


def environment(slug: str, **fields: object) -> EnvironmentVersion:
    version = stored_version(slug)
    changes = {"latest": version, "visibility": Visibility.PUBLISHED, **fields}
    Environment.objects.filter(slug=slug).update(**changes)
    return version


def listed(client: Client, query: str = "") -> list[str]:
    page = client.get(f"/hub/{query}").content.decode()
    return [slug for slug in Environment.objects.values_list("slug", flat=True) if f'href="/hub/{slug}/"' in page]


def test_filters_by_text_category_tag_and_state(client: Client, user: User) -> None:
    environment("sums", title="Adding up", category="reasoning", tags=["arithmetic"])
    environment("desk", title="Order desk", category="tool-use", tags=["agentic", "stateful"])
    environment("old", title="Old desk", visibility=Visibility.RETIRED)
    assert listed(client) == ["sums", "desk"]
    assert listed(client, "?q=DESK") == ["desk"]
    assert listed(client, "?q=order+desk") == ["desk"]
    assert listed(client, "?category=reasoning") == ["sums"]
    assert listed(client, "?tag=agentic") == ["desk"]
    assert listed(client, "?tag=agent") == []
    assert listed(client, "?state=retired") == ["old"]
    assert listed(client, "?category=tool-use&tag=stateful&q=zebra") == []


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("?category=nonsense", 400),
        ("?tag=%22%5D--", 400),
        ("?q=%00&state=x", 400),
        ("?after=%00", 400),
        ("?before=x&after=y", 200),
    ],
)
def test_only_invalid_filters_are_rejected(client: Client, user: User, query: str, status: int) -> None:
    environment("sums")
    assert client.get(f"/hub/{query}").status_code == status


def test_empty_catalogue_names_the_command_that_fills_it(client: Client, user: User) -> None:
    assert "manage.py prepare" in client.get("/hub/").content.decode()
    client.force_login(member("Curator"))
    assert "/hub/upload/" in client.get("/hub/").content.decode()


def test_htmx_gets_the_partial_and_vary_header(client: Client, user: User) -> None:
    environment("sums")
    part = client.get("/hub/", headers={"HX-Request": "true", "HX-Target": "environments"})
    assert part.content.decode().strip().startswith('<div id="environments">')
    assert "HX-Target" in part["Vary"]
    assert "<html" in client.get("/hub/").content.decode()


def test_certificate_badge(client: Client, user: User) -> None:
    version = environment("sums")
    assert "gates not run" in client.get("/hub/").content.decode()
    gate = {
        "name": "gold",
        "what": "Gold passes.",
        "status": "passed",
        "checked": 4,
        "failed": 0,
        "failures": [],
        "note": "",
    }
    EnvironmentVersion.objects.filter(pk=version.pk).update(certificate={"gates": [gate]})
    assert "gates passed" in client.get("/hub/").content.decode()
    EnvironmentVersion.objects.filter(pk=version.pk).update(certificate={"gates": [{**gate, "status": "failed"}]})
    assert "failed: gold" in client.get("/hub/").content.decode()


# ---- paging ----------------------------------------------------------------------------------------------------------


def walk(descending: bool) -> tuple[list[list[int]], list[list[int]]]:
    """All pages of ten cases forwards, and from the last one back."""
    version = stored_version(cases=10)
    rows, request = Case.objects.filter(version=version), RequestFactory()
    forwards, backwards = [], []
    query = ""
    while True:
        page = keyset_page(rows, request.get(f"/?{query}"), by="position", size=4, descending=descending)
        forwards.append([case.position for case in page.rows])
        if not page.after:
            break
        query = f"after={page.after}"
    while True:
        backwards.append([case.position for case in page.rows])
        if not page.before:
            break
        page = keyset_page(rows, request.get(f"/?before={page.before}"), by="position", size=4, descending=descending)
    return forwards, backwards


@pytest.mark.parametrize("descending", [False, True])
def test_pages_in_both_directions_are_complete(descending: bool) -> None:
    forwards, backwards = walk(descending)
    order = list(range(10))[:: -1 if descending else 1]
    assert forwards == [order[:4], order[4:8], order[8:]]
    assert backwards == [order[8:], order[4:8], order[:4]]


def test_page_after_the_last_is_empty() -> None:
    version = stored_version(cases=3)
    rows = Case.objects.filter(version=version)
    page = keyset_page(rows, RequestFactory().get("/?after=999"), by="position", size=4)
    assert (page.rows, page.after, page.before) == ([], "", "")


# ---- order -----------------------------------------------------------------------------------------------------------


def scored_run(scores: list[float | None]) -> Run:
    run = stored_run(stored_version(cases=len(scores)))
    for case, score in zip(Case.objects.order_by("position"), scores, strict=True):
        stored_response(run, case, score=score)
    return run


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("sort", ["score", "-score"])
def test_pages_in_any_order_are_complete_with_empty_values_last(sort: str, descending: bool) -> None:
    scored_run([0.5, None, 1.0, 0.5, 0.0, None, 0.5, 1.0, None])
    rows, request = Response.objects.all(), RequestFactory()

    def read(query: str) -> Page[Response]:
        asked = request.get(f"/?sort={sort}&{query}")
        order = order_of(asked, {"score": "score"})
        return keyset_page(rows, asked, by="id", size=2, descending=descending, order=order)

    sign, tie = (-1 if sort.startswith("-") else 1), (-1 if descending else 1)
    expected = sorted(rows, key=lambda row: (row.score is None, sign * (row.score or 0), tie * row.pk))
    page = read("")
    forwards = [page.rows]
    while page.after:
        page = read(f"after={page.after}")
        forwards.append(page.rows)
    assert [row.pk for rows_of in forwards for row in rows_of] == [row.pk for row in expected]
    backwards = [page.rows]
    while page.before:
        page = read(f"before={page.before}")
        backwards.append(page.rows)
    assert backwards == forwards[::-1]


def test_column_headings_sort_the_catalogue_and_keep_filters(client: Client, user: User) -> None:
    for slug, title, cases in (("a", "zebra", 2), ("b", "Yak", 9), ("c", "ant", 5)):
        version = stored_version(slug, cases=cases)
        Environment.objects.filter(slug=slug).update(latest=version, visibility=Visibility.PUBLISHED, title=title)

    def order(query: str) -> str:
        page = client.get(f"/hub/?{query}").content.decode()
        return "".join(sorted("abc", key=lambda slug: page.index(f'href="/hub/{slug}/"')))

    assert [order(f"sort={sort}") for sort in ("", "environment", "-cases", "cases")] == ["abc", "cba", "bca", "acb"]
    Environment.objects.filter(slug="c").update(featured=True)
    assert [order(""), order("sort=environment")] == ["cab", "cba"]
    page = client.get("/hub/?category=reasoning&sort=-cases&after=b").content.decode()
    assert 'href="?category=reasoning&amp;sort=cases"' in page
    assert 'aria-sort="descending"' in page
    assert '<input type="hidden" name="sort" value="-cases" form="filters">' in page


def test_environments_are_filtered_and_sorted_by_harness(client: Client, user: User) -> None:
    for slug, harness in (("a", {"type": "tools"}), ("b", None), ("c", {"type": "multi_turn"})):
        version = stored_version(slug, **({"harness": harness} if harness else {}))
        Environment.objects.filter(slug=slug).update(latest=version, visibility=Visibility.PUBLISHED)
    assert listed(client, "?harness=tools") == ["a"]
    assert listed(client, "?harness=single_turn") == ["b"]
    assert "single_turn (1)" in client.get("/hub/").content.decode()
    assert client.get("/hub/?harness=nonsense").status_code == 400
    page = client.get("/hub/?sort=harness").content.decode()
    assert sorted("abc", key=lambda slug: page.index(f'href="/hub/{slug}/"')) == ["c", "b", "a"]
    found = client.get("/api/v1/environments/?harness=tools").json()["results"]
    assert [environment["slug"] for environment in found] == ["a"]


# ---- many environments -----------------------------------------------------------------------------------------------


def test_catalogue_needs_as_many_queries_for_500_environments_as_for_one(client: Client, user: User) -> None:
    environment("first")
    client.get("/hub/")
    with CaptureQueriesContext(connection) as few:
        assert "1 environment<" in client.get("/hub/").content.decode()
    for i in range(499):
        environment(f"e{i:03}", category="tool-use" if i % 2 else "reasoning")
    with CaptureQueriesContext(connection) as many:
        page = client.get("/hub/").content.decode()
    assert len(many) == len(few)
    assert "500 environments" in page and page.count("data-open href") == 30
    assert "tool-use <small>249</small>" in page and "reasoning <small>251</small>" in page
