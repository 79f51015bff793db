"""The tab "Cases" of an environment: metadata, target, pass rates over runs, filters, order, who sees what."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from hub.models import Case, CaseDefect, Environment, EnvironmentVersion
from runs.models import Run
from tests.factories import stored_outcomes, stored_response, stored_run, stored_version
from tests.markup import markup
from tests.members import member

pytestmark = pytest.mark.django_db
ADDRESS = "/hub/sums/1.0.0/cases/"


def public(cases: int | list[dict[str, Any]] = 4, slug: str = "sums") -> EnvironmentVersion:
    version = stored_version(slug, cases)
    Environment.objects.filter(pk=version.environment_id).update(
        latest=version, visibility=Environment.Visibility.PUBLISHED
    )
    return version


@pytest.fixture
def user(client: Client) -> User:
    user = member()
    client.force_login(user)
    return user


def page(client: Client, query: str = "", status: int = 200) -> str:
    answer = client.get(f"{ADDRESS}{query}")
    assert answer.status_code == status
    return markup(answer)


def listed(client: Client, query: str = "") -> list[str]:
    return re.findall(r'data-open class="mono"[^>]*>([^<]+)</a>', page(client, query))


def graded(*levels: object) -> list[dict[str, Any]]:
    return [{"id": f"c{i}", "input": f"{i} + 1?", "metadata": {"level": level}} for i, level in enumerate(levels)]


# ---- content ---------------------------------------------------------------------------------------------------------


def test_version_without_cases_says_so(client: Client, user: User) -> None:
    public(0)
    shown = page(client)
    assert "0 cases" in shown and "No more cases." in shown


def test_one_case_is_listed_with_target_and_without_rate(client: Client, user: User) -> None:
    public([{"id": "only", "input": "1 + 1?", "target": {"answer": 2}}])
    shown = page(client)
    assert "1 case<" in shown and "1 + 1?" in shown and "answer" in shown
    assert "No scored response is stored for this case." in shown


def test_column_of_targets_is_left_out_without_targets(client: Client, user: User) -> None:
    public(2)
    assert "<th>Target</th>" not in page(client)


def test_metadata_are_columns_in_alphabetical_order(client: Client, user: User) -> None:
    metadata = {"level": "hard", "tags": ["a", "b"], "nested": {"x": 1}, "checked": True, "long": "x" * 81}
    public(
        [{"id": "c0", "input": "x", "metadata": metadata}, {"id": "c1", "input": "y", "metadata": {"level": "easy"}}]
    )
    shown = page(client)
    assert re.findall(r'id="sort-meta\.([^"]+)"', shown) == ["checked", "level", "tags"]
    assert ">a, b<" in shown and ">true<" in shown


def test_pass_rate_counts_scored_responses_of_all_visible_runs(client: Client, user: User) -> None:
    version, private = public(4), stored_version("private", 1)
    stored_outcomes(stored_run(version, ["alpha", "beta"]), "pfe-")
    stored_outcomes(stored_run(version, ["gamma"]), "pppu")
    stored_outcomes(stored_run([version, private], ["hidden"]), "ffff", version=version)
    stored_outcomes(stored_run(version, ["deleted"], deleted_at=timezone.now()), "ffff")
    shown = page(client)
    rates = re.findall(r"([\d.]+ %) <small>(\d+ of \d+)</small>", shown)
    assert rates == [("100.0 %", "2 of 2"), ("50.0 %", "1 of 2"), ("100.0 %", "1 of 1")]
    assert "in 2 runs on this version" in shown
    client.force_login(member("Curator"))
    assert "2 of 3" in page(client) and "in 3 runs on this version" in page(client)


def test_reported_cases_are_marked(client: Client, user: User) -> None:
    public(2)
    CaseDefect.objects.create(case=Case.objects.get(external_id="c1"), description="Wrong.")
    assert page(client).count('badge incomplete">reported') == 1
    CaseDefect.objects.update(status=CaseDefect.Status.REJECTED)
    assert "reported</span>" not in page(client)


# ---- filters and order -----------------------------------------------------------------------------------------------


def test_text_searches_ids_and_inputs(client: Client, user: User) -> None:
    public(30)
    assert listed(client, "?q=c29") == ["c29"]
    assert listed(client, "?q=7+%2B+1") == ["c7", "c17", "c27"]
    assert "No case matches" in page(client, "?q=zebra")


@pytest.mark.parametrize(
    ("levels", "value", "expected"),
    [
        (["easy", "hard", "easy"], "easy", ["c0", "c2"]),
        ([1, 2, 12], "1", ["c0"]),
        ([True, False, True], "true", ["c0", "c2"]),
        ([["a", "b"], ["ab"], ["b"]], "b", ["c0", "c2"]),
        (['say "hi"', "hi", "say"], 'say "hi"', ["c0"]),
        ([["é", "b"], ["e"], "é"], "é", ["c0", "c2"]),
        (["a:b", "a", "b"], "a:b", ["c0"]),
    ],
)
def test_metadata_filter_finds_equal_values_and_items_of_lists(
    client: Client, user: User, levels: list[object], value: str, expected: list[str]
) -> None:
    public(graded(*levels))
    answer = client.get(ADDRESS, {"meta": f"level:{value}"})
    assert re.findall(r'data-open class="mono"[^>]*>([^<]+)</a>', answer.content.decode()) == expected


def test_metadata_filter_offers_values_of_the_version(client: Client, user: User) -> None:
    public(graded("easy", "hard"))
    shown = page(client)
    assert '<option value="level:easy">level: easy</option>' in shown
    assert "<option selected>level:hard</option>" in page(client, "?meta=level:hard")
    public([{"id": "c0", "input": "x"}], "plain")
    assert "id_meta" not in client.get("/hub/plain/1.0.0/cases/").content.decode()


def test_invalid_filters_are_explained(client: Client, user: User) -> None:
    public(graded("easy"))
    assert "with a colon: level:hard" in page(client, "?meta=level", 400)
    assert "nonsense is not known" in page(client, "?solved=nonsense", 400)
    assert "colour is not a parameter" in page(client, "?colour=red", 400)


def test_cases_are_filtered_and_sorted_by_pass_rate(client: Client, user: User) -> None:
    version = public(5)
    stored_outcomes(stored_run(version, ["alpha"]), "pff-p")
    stored_outcomes(stored_run(version, ["beta"]), "ppfe-")
    assert listed(client, "?sort=passed") == ["c2", "c1", "c0", "c4", "c3"]
    assert listed(client, "?sort=-passed") == ["c0", "c4", "c1", "c2", "c3"]
    found = {solved: listed(client, f"?solved={solved}") for solved in ("none", "some", "all", "unknown")}
    assert found == {"none": ["c2"], "some": ["c1"], "all": ["c0", "c4"], "unknown": ["c3"]}
    assert listed(client, "?solved=all&q=c4&sort=passed") == ["c4"]


@pytest.mark.parametrize(
    ("levels", "order"),
    [(["b", "a", "c"], ["c1", "c0", "c2"]), ([10, 9, 100], ["c1", "c0", "c2"]), (["b", None, "a"], ["c2", "c0", "c1"])],
)
def test_metadata_columns_sort_cases(client: Client, user: User, levels: list[object], order: list[str]) -> None:
    cases = [case | ({"metadata": {}} if case["metadata"]["level"] is None else {}) for case in graded(*levels)]
    public(cases)
    assert listed(client, "?sort=meta.level") == order
    assert "sort: this list cannot" in page(client, "?sort=meta.unknown", status=400)


@pytest.mark.parametrize("sort", ["", "-case", "passed", "-meta.level"])
def test_pages_have_every_case_once_in_any_order(client: Client, user: User, sort: str) -> None:
    version = public(graded(*(i % 7 for i in range(60))))
    stored_outcomes(stored_run(version), ("ppf-" * 15))
    found, query = [], f"?sort={sort}"
    while True:
        found += listed(client, query)
        after = re.search(r'rel="next" href="([^"]+)"', page(client, query))
        if not after:
            break
        query = after.group(1).replace("&amp;", "&")
    assert len(found) == 60 and len(set(found)) == 60


# ---- queries ---------------------------------------------------------------------------------------------------------


def test_queries_do_not_grow_with_cases_and_runs(client: Client, user: User) -> None:
    counts = []
    for slug, cases, runs in (("few", 1, 1), ("many", 300, 5)):
        version = public(graded(*("ab" * cases)[:cases]), slug)
        for _ in range(runs):
            stored_response(stored_run(version), Case.objects.filter(version=version)[0])
        for query in ("", "?sort=passed&solved=all", "?sort=meta.level&meta=level:a"):
            client.get(f"/hub/{slug}/1.0.0/cases/{query}")
            with CaptureQueriesContext(connection) as queries:
                assert client.get(f"/hub/{slug}/1.0.0/cases/{query}").status_code == 200
            counts.append(len(queries))
            sql = " ".join(item["sql"] for item in queries)
            assert "LIMIT 26" in sql and "OFFSET" not in sql and '"runs_response"."messages"' not in sql
    assert counts[:3] == counts[3:]


# ---- access ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("flag", ["held_out", "partly_held_out"])
def test_cases_of_held_out_environments_are_withheld(client: Client, flag: str) -> None:
    version = public([{"id": "secret-case", "input": "secret-input", "metadata": {"level": "secret-level"}}])
    stored_outcomes(stored_run(version), "p")
    owner = member(name="owner")
    Environment.objects.update(owner=owner, **{flag: True})
    for user, may in ((member(), False), (owner, True), (member("Curator"), True)):
        client.force_login(user)
        for query in ("", "?q=secret", "?meta=level:secret-level", "?sort=meta.level"):
            shown = page(client, query)
            assert ("secret-case" in shown) is ("secret-input" in shown) is may, (user, query)
            assert ("is held out" in shown) is not may


def test_part_for_htmx_has_no_head(client: Client, user: User) -> None:
    public(2)
    part = client.get(ADDRESS, headers={"HX-Target": "cases"})
    assert part.content.decode().strip().startswith('<div id="cases">') and "HX-Target" in part["Vary"]
    assert Run.objects.count() == 0
