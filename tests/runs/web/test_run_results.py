"""Result part of the page of a run: verdict, charts, groups of reasons, slices."""

import json
import re

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from hub.models import Case, Environment
from runs.models import Response, Run, RunResult
from runs.results.breakdown.reasons import pattern_regex, reason_pattern
from tests.factories import stored_outcomes, stored_run, stored_version
from tests.members import member

pytestmark = pytest.mark.django_db


@pytest.fixture
def user(client: Client) -> User:
    user = member("Runner")
    client.force_login(user)
    return user


def _run(outcomes: dict[str, str], **fields: object) -> Run:
    count = len(next(iter(outcomes.values())))
    cases = [
        {"id": f"c{i}", "metadata": {"level": "easy" if i < count / 2 else "hard", "tags": ["a", "b"][: 1 + i % 2]}}
        for i in range(count)
    ]
    version = stored_version("sums", cases=cases)
    Environment.objects.filter(slug="sums").update(latest=version, visibility=Environment.Visibility.PUBLISHED)
    run = stored_run(version, list(outcomes), price={"input": 1.0, "output": 1.0}, **fields)  # type: ignore[arg-type]
    for model, letters in outcomes.items():
        stored_outcomes(run, letters, model=model)
    Response.objects.update(latency_ms=120.0, cost_usd=0.01)
    return run


def body(client: Client, url: str, status: int = 200) -> str:
    answer = client.get(url)
    assert answer.status_code == status
    return answer.content.decode()


def test_verdict_names_the_better_model_with_difference_and_interval(client: Client, user: User) -> None:
    run = _run({"alpha": "p" * 18 + "ff", "beta": "p" * 5 + "f" * 15})
    page = body(client, f"/runs/{run.pk}/")
    found = re.search(r'verdict">(.*?)</p>', page)
    assert found and re.fullmatch(
        r"alpha is better than beta on sums by 65\.0 points \[\d+\.\d, \d+\.\d\] \(n = 20 cases\)\.", found[1]
    )


def test_headlines_of_many_models_are_the_best_ones(client: Client, user: User) -> None:
    run = _run({f"model-{i}": "p" * i + "f" * (10 - i) for i in range(10)} | {"little": "p" + "-" * 9})
    page = body(client, f"/runs/{run.pk}/")
    names = re.findall(r'<li>\s*<span class="who">([\w-]+)', page)
    assert names == [f"model-{i}" for i in range(9, 1, -1)]
    assert "These have the best accuracy. 3 more are in the <a href="  # environment-1">tables below</a>." in page


def test_headlines_of_few_models_keep_the_order_of_the_run(client: Client, user: User) -> None:
    run = _run({"alpha": "pfff", "beta": "pppp"})
    page = body(client, f"/runs/{run.pk}/")
    assert re.findall(r'<li>\s*<span class="who">([\w-]+)', page) == ["alpha", "beta"]
    assert "These have the best accuracy" not in page


def test_verdict_does_not_prefer_a_model_without_evidence(client: Client, user: User) -> None:
    run = _run({"alpha": "ppppppppff", "beta": "pppppppfff"})
    assert "No model is shown to be better on sums" in body(client, f"/runs/{run.pk}/")


def test_first_failing_transcript_is_one_click_away(client: Client, user: User) -> None:
    run = _run({"alpha": "ppfpf"})
    first = Response.objects.filter(status="failed").earliest("id")
    assert f'<a href="/responses/{first.pk}/">First failure</a>' in body(client, f"/runs/{run.pk}/")


def test_charts_have_titles_descriptions_and_a_table(client: Client, user: User) -> None:
    run = _run({"alpha": "ppfe", "beta": "pfff"})
    page = body(client, f"/runs/{run.pk}/")
    charts = re.findall(r'<svg class="chart".*?</svg>', page, re.S)
    assert len(charts) == 4
    for chart in charts:
        assert re.search(r"<title id=\"chart-\w+-title\">\w", chart) and re.search(r"<desc id=\"[\w-]+\">alpha", chart)
    assert page.count("<summary>Table</summary>") == 4
    assert "style=" not in "".join(charts)


@pytest.mark.parametrize("outcomes", [{"alpha": "-"}, {"alpha": "e"}, {"alpha": "p"}, {"a" * 120: "f"}])
def test_page_works_with_few_responses_and_long_names(client: Client, user: User, outcomes: dict[str, str]) -> None:
    run = _run(outcomes)
    body(client, f"/runs/{run.pk}/")
    body(client, f"/runs/{run.pk}/slices/")


def test_labels_of_models_are_escaped_in_charts(client: Client, user: User) -> None:
    run = _run({"<b>x": "pf"})
    assert "<b>x" not in body(client, f"/runs/{run.pk}/")


def test_reasons_that_differ_in_numbers_and_quotes_are_one_group_that_filters_the_list(
    client: Client, user: User
) -> None:
    run = _run({"alpha": "ffff"})
    reasons = ["Expected '4', got '5' (line 3).", "Expected 'x y', got '-2.5' (line 12).", "Timed out.", "Other (1)."]
    for response, reason in zip(Response.objects.order_by("id"), reasons, strict=True):
        Response.objects.filter(pk=response.pk).update(reason=reason)
    page = body(client, f"/runs/{run.pk}/")
    links = re.findall(r'<a href="(\?reason=.*?)#responses">(.*?)</a>', page)
    assert links[0][1] == "Expected &#x27;…&#x27;, got &#x27;…&#x27; (line #)."
    filtered = body(client, f"/runs/{run.pk}/{links[0][0].replace('&amp;', '&')}")
    assert re.findall(r'data-open class="mono".*?>(c\d)<', filtered) == ["c0", "c1"]


@pytest.mark.parametrize(
    "reason",
    [
        *("", "# of 3 rules", "  two\n lines 'a'  ", 'it\'s "5" and `x`', "a.b(c)[d]*", "long " * 100),
        *('cut "' + "x" * 500, "1.5.2, 3,4. #5 -6", "2026-11-28 from 1-2--3", "1,2,3"),
    ],
)
def test_every_reason_matches_its_own_pattern(reason: str) -> None:
    assert re.search(pattern_regex(reason_pattern(reason)), reason)


@pytest.mark.parametrize(
    ("pattern", "reason"), [("#" * 40, "1" * 200), ("#." * 40, "1." * 200), ("and" + " " * 100, "and" + " " * 300)]
)
def test_pattern_of_a_user_does_not_backtrack(pattern: str, reason: str) -> None:
    assert not re.search(pattern_regex(f"{pattern}x"), reason)  # took longer than a year


def test_database_filters_by_the_pattern_like_python(user: User) -> None:
    _run({"alpha": "f"})
    reasons = ["Expected '4', got \"5\" (line 3).", "a.b(c)[d]* {1} \\ ^$|?+", "x - y # 3", "1-2--3, 1.5.2."]
    for reason in reasons:
        Response.objects.update(reason=reason)
        assert Response.objects.filter(reason__regex=pattern_regex(reason_pattern(reason))).exists(), reason


def test_reasons_of_held_out_environments_are_not_grouped_for_others(client: Client, user: User) -> None:
    run = _run({"alpha": "ff"})
    Environment.objects.update(held_out=True)
    page = body(client, f"/runs/{run.pk}/")
    assert "Why responses did not pass" not in page and "It is wrong." not in page
    assert "No response matches" in body(client, f"/runs/{run.pk}/?reason=It+is+wrong.")
    assert "Held out" in body(client, f"/runs/{run.pk}/slices/")


def test_slices_show_the_accuracy_by_metadata_value_and_tag(client: Client, user: User) -> None:
    run = _run({"alpha": "ppppff", "beta": "pppfff"})
    page = body(client, f"/runs/{run.pk}/slices/?by=level")
    rows = re.findall(r'<th scope="row">(.*?)</th><td class="num">(.*?)</td><td class="num">(.*?)</td>', page)
    assert rows == [
        ("easy, alpha", "3", "100.0 %"),
        ("easy, beta", "3", "100.0 %"),
        ("hard, alpha", "3", "33.3 %"),
        ("hard, beta", "3", "0.0 %"),
    ]
    tags = body(client, f"/runs/{run.pk}/slices/?by=tags")
    assert re.findall(r'<th scope="row">(\w), alpha</th><td class="num">(\d)</td>', tags) == [("a", "6"), ("b", "3")]
    assert "cannot be grouped by other" in body(client, f"/runs/{run.pk}/slices/?by=other")


def test_slices_open_on_the_first_environment_with_metadata(client: Client, user: User) -> None:
    plain = stored_version("plain", cases=2)
    leveled = stored_version("leveled", cases=[{"id": f"c{i}", "metadata": {"level": str(i)}} for i in range(2)])
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)
    run = stored_run([plain, leveled])
    for version in (plain, leveled):
        stored_outcomes(run, "pf", version=version)
    assert "Accuracy by level" in body(client, f"/runs/{run.pk}/slices/")
    assert "Accuracy by level" not in body(client, f"/runs/{run.pk}/slices/?environment=plain")


def test_number_of_queries_does_not_depend_on_the_number_of_models(
    client: Client, user: User, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    run = _run({f"m{i}": "pf" * 3 for i in range(6)})
    body(client, f"/runs/{run.pk}/")
    assert RunResult.objects.count() == 6
    with django_assert_max_num_queries(35):
        body(client, f"/runs/{run.pk}/")
    with django_assert_max_num_queries(16):
        body(client, f"/runs/{run.pk}/slices/")


def test_slices_leave_out_keys_with_many_values(client: Client, user: User) -> None:
    run = _run({"alpha": "p" * 70})
    for case in Case.objects.all():
        Case.objects.filter(pk=case.pk).update(data={**case.data, "metadata": {**case.data["metadata"], "n": case.pk}})
    assert 'by=n"' not in body(client, f"/runs/{run.pk}/slices/")


def test_compare_page_shows_verdict_gate_and_matrix(client: Client, user: User) -> None:
    run = _run({"alpha": "p" * 20, "beta": "p" * 10 + "f" * 10, "gamma": "f" * 20})
    page = body(client, f"/compare/?a={run.pk}&b={run.pk}&gate=accuracy+%3E%3D+0.1&margin=2")
    assert "All models on sums" in page and "<strong>GO</strong>" in page
    assert "alpha is better than gamma on sums by 100.0 points" in page


def test_compare_page_lists_all_problems_and_keeps_what_was_typed(client: Client, user: User) -> None:
    run = _run({"alpha": "ppff", "beta": "pfff"})
    later = stored_run(run.environments.get().version, ["gamma"])
    query = f"a={run.pk}&b={run.pk}&model_a=beta&model_b=alpha&margin=-3&gate=speed"
    page = body(client, f"/compare/?{query}", 400)
    assert "position 1: expected one of accuracy, cost, latency" in page and "<code>margin</code>" in page
    assert page.count(f'<option value="{run.pk}" selected>') == 2 and f'<option value="{later.pk}">' in page
    assert "<option selected>beta</option>" in page and 'name="gate" value="speed"' in page


def test_compare_page_of_many_models_begins_with_differences_and_counts_the_other_comparisons(
    client: Client, user: User
) -> None:
    run = _run({f"m{i}": "p" * 20 for i in range(5)} | {"worse": "f" * 20})
    page = body(client, f"/compare/?a={run.pk}&b={run.pk}")
    sentences = re.findall(r'<p class="lead verdict">([^<]*)</p>', page)
    assert [" is better than worse " in sentence for sentence in sentences] == 5 * [True] + 7 * [False]
    assert "3 more comparisons are in the tables below." in page


def test_verdict_says_that_a_difference_is_shown_alone_but_not_after_the_correction(client: Client, user: User) -> None:
    run = _run({"alpha": "p" * 20, "beta": "p" * 14 + "f" * 6, "gamma": "p" * 14 + "f" * 6})
    page = body(client, f"/compare/?a={run.pk}&b={run.pk}")
    found = re.search(r"No difference between alpha and beta is shown on sums: ([^<]*)\.<", page)
    assert found and "80 % power before Holm" in found[1]
    assert re.search(r"p is 0\.0\d+, but 0\.0\d+ after Holm.*s correction for everything", found[1])


def test_regressions_are_exported_in_one_click(client: Client, user: User) -> None:
    run = _run({"alpha": "pffp", "beta": "ppff"})
    page = body(client, f"/compare/?a={run.pk}&model_a=alpha&b={run.pk}&model_b=beta")
    links = re.findall(r'href="(/compare/failures.*?)"', page)
    answer = client.get(links[0].replace("&amp;", "&"))
    assert answer.status_code == 200
    lines = b"".join(answer.streaming_content).decode().splitlines()  # type: ignore[attr-defined]
    assert len(lines) == 1 and '"c1"' in lines[0]


def exported_cases(client: Client, page: str, *, format: str = "jsonl") -> list[set[str]]:
    """Return the cases in the file of each link of *page* to an export in *format*."""
    links = re.findall(rf'href="(/[^"]*/failures\?format={format}[^"]*)"', page)
    files = [client.get(link.replace("&amp;", "&")) for link in links]
    assert [answer.status_code for answer in files] == [200] * len(files), links
    return [{json.loads(line)["case"] for line in answer.getvalue().splitlines()} for answer in files]


def test_slices_export_the_failing_cases_of_each_value(client: Client, user: User) -> None:
    run = _run({"alpha": "ffpf"})
    page = body(client, f"/runs/{run.pk}/slices/?by=level")
    assert exported_cases(client, page) == [{"c0", "c1"}, {"c3"}]
    wrong = client.get(f"/runs/{run.pk}/failures?environment=sums&by=level&value=7", follow=True)
    assert "No case of sums has level: 7 in its metadata." in wrong.content.decode()
    alone = client.get(f"/api/v1/runs/{run.pk}/failures?environment=sums&value=7")
    assert (alone.status_code, [error["path"] for error in alone.json()["errors"]]) == (400, ["by"])


def test_grid_exports_the_failing_cases_that_it_shows(client: Client, user: User) -> None:
    run = _run({"alpha": "pffp", "beta": "ppff"})
    assert exported_cases(client, body(client, f"/runs/{run.pk}/cases/")) == [{"c1", "c2", "c3"}]
    assert exported_cases(client, body(client, f"/runs/{run.pk}/cases/?solved=none")) == [{"c2"}]


def test_cases_that_differ_are_exported_for_each_side(client: Client, user: User) -> None:
    run = _run({"alpha": "pffp", "beta": "ppff"})
    address = f"/compare/cases/?a={run.pk}&model_a=alpha&b={run.pk}&model_b=beta&environment=sums"
    assert exported_cases(client, body(client, f"{address}&change=better_b")) == [{"c1"}]
    assert exported_cases(client, body(client, f"{address}&change=better_a")) == [{"c3"}]
