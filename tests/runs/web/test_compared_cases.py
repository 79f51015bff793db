"""Pages of the cases that two models answered differently: list, filters, and one case side by side."""

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from hub.models import Case, Environment
from runs.models import Response, Run
from tests.factories import accepted_defect, stored_outcomes, stored_response, stored_run, stored_version
from tests.markup import markup
from tests.members import member

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(client: Client) -> Run:
    client.force_login(member("Reader"))
    run = stored_run(stored_version(cases=8), ["alpha", "beta"])
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)
    stored_outcomes(run, "pppffffe", model="alpha")
    stored_outcomes(run, "ppffffpp", model="beta")
    Response.objects.filter(case__external_id__in=["c4", "c5"]).update(text="7")
    Response.objects.filter(case__external_id="c3", run_model__label="alpha").update(text="It is <b>3</b>.")
    Response.objects.filter(case__external_id="c3", run_model__label="beta").update(text="It is <b>5</b>.")
    return run


def address(run: Run, more: str = "", page: str = "cases") -> str:
    return f"/compare/{page}/?a={run.pk}&b={run.pk}&model_a=alpha&model_b=beta&environment=sums{more}"


def listed(client: Client, url: str) -> list[str]:
    answer = client.get(url)
    assert answer.status_code == 200
    return [row.external_id for row in answer.context["page"].rows]


def test_cases_with_different_results_or_different_wrong_answers_are_listed(client: Client, run: Run) -> None:
    assert listed(client, address(run)) == ["c2", "c3", "c6"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("&change=better_a", ["c2"]),
        ("&change=better_b", ["c6"]),
        ("&change=both_wrong", ["c3"]),
        ("&q=C6", ["c6"]),
        ("&change=better_a&q=c6", []),
    ],
)
def test_list_is_filtered_by_change_and_case(client: Client, run: Run, query: str, expected: list[str]) -> None:
    assert listed(client, address(run, query)) == expected


def test_list_names_the_environment_and_the_versions_of_both_runs(client: Client, run: Run) -> None:
    page = markup(client.get(address(run)))
    assert "<h1>Cases that differ <small>sums</small></h1>" in page
    assert page.count("on sums@1.0.0.") == 2


@pytest.mark.parametrize(
    ("case", "sentence"),
    [
        ("c0", "The results of both sides are the same"),
        ("c2", "Better in A"),
        ("c7", "Left out of the figures, because one side is errored or unscored"),
    ],
)
def test_case_side_by_side_says_how_the_results_differ(client: Client, run: Run, case: str, sentence: str) -> None:
    assert sentence in markup(client.get(address(run, f"&case={case}", page="case")))


def test_long_list_has_pages_and_a_fixed_number_of_queries(client: Client) -> None:
    client.force_login(member("Reader"))
    counts = []
    for slug, cases in (("sums", 2), ("more", 60)):
        run = stored_run(stored_version(slug, cases=cases), ["alpha", "beta"])
        Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)
        stored_outcomes(run, "p" * cases, model="alpha")
        stored_outcomes(run, "f" * cases, model="beta")
        url = address(run).replace("environment=sums", f"environment={slug}")
        with CaptureQueriesContext(
            connection,
        ) as queries:
            assert len(listed(client, url)) == min(cases, 50)
        counts.append(len(queries))
    assert counts[0] == counts[1]
    after = client.get(url).context["page"].after
    assert listed(client, f"{url}&after={after}") == [f"c{i}" for i in range(50, 60)]


def test_cases_with_other_input_or_scoring_are_labelled(client: Client, run: Run) -> None:
    new = stored_version(cases=8, version="1.1.0")
    Case.objects.filter(version=new, external_id="c0").update(input_digest="x")
    Case.objects.filter(version=new, external_id="c1").update(scoring_digest="x")
    later = stored_run(new, ["alpha"])
    stored_outcomes(later, "ffpppppp")
    answer = client.get(f"/compare/cases/?a={run.pk}&b={later.pk}&environment=sums")
    differs = {name: flip.differs for name, flip in answer.context["flips"].items()}
    assert (differs["c0"], differs["c1"], differs["c3"]) == ("other input", "other scoring", "")
    shown = client.get(f"/compare/case/?a={run.pk}&b={later.pk}&environment=sums&case=c0").content.decode()
    assert "Not the same on both sides: other input." in shown


def test_quarantined_cases_are_not_listed(client: Client, run: Run) -> None:
    accepted_defect(Case.objects.get(external_id="c2"), hours_ago=1)
    assert listed(client, address(run)) == ["c3", "c6"]


def test_case_shows_both_answers_with_marked_words_and_links_to_neighbours(client: Client, run: Run) -> None:
    shown = client.get(address(run, "&case=c3", "case")).content.decode()
    assert "&lt;b&gt;<del>3</del>&lt;/b&gt;" in shown and "&lt;b&gt;<ins>5</ins>&lt;/b&gt;" in shown
    assert "<b>3" not in shown
    before, after = shown.partition("data-key-prev")[2], shown.partition("data-key-next")[2]
    assert "case=c2" in before[:300] and "case=c6" in after[:300]
    assert "case 2 of 3" in shown
    alone = client.get(address(run, "&change=both_wrong&case=c3", "case")).content.decode()
    assert "case 1 of 1" in alone and "data-key-next" not in alone and "data-key-prev" not in alone


def test_without_a_case_the_first_of_the_list_is_shown(client: Client, run: Run) -> None:
    assert client.get(address(run, page="case")).context["name"] == "c2"
    assert client.get(address(run, "&change=better_b", "case")).context["name"] == "c6"
    shown = client.get(address(run, "&q=none", "case"))
    assert shown.status_code == 200 and "Both sides have the same results" in shown.content.decode()


def test_comparison_links_to_its_cases_side_by_side(client: Client, run: Run) -> None:
    shown = client.get(f"/compare/?a={run.pk}").content.decode()
    pair = f"a={run.pk}&amp;b={run.pk}&amp;model_a=alpha&amp;model_b=beta&amp;environment=sums"
    assert f'href="/compare/case/?{pair}">First case that differs' in shown
    assert f'href="/compare/case/?change=better_a&amp;{pair}&amp;case=c2"' in shown
    assert f'href="/compare/case/?change=better_b&amp;{pair}&amp;case=c6"' in shown


def test_old_run_that_is_compared_with_itself_is_offered_once(client: Client, run: Run) -> None:
    for number in range(50):  # as many recent runs are offered
        stored_run(run.environments.get().version, ["alpha"], name=f"later {number}")
    shown = client.get(f"/compare/?a={run.pk}&model_a=alpha&model_b=beta")
    assert [item for item in shown.context["recent"] if item == run] == [run]


def test_case_opens_at_the_first_attempt_with_different_results(client: Client) -> None:
    client.force_login(member("Reader"))
    version = stored_version(cases=1)
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)
    run = stored_run(version, ["alpha", "beta"], attempts=2)
    case = Case.objects.get()
    for model, statuses in (("alpha", ("passed", "passed")), ("beta", ("passed", "failed"))):
        for attempt, status in enumerate(statuses, 1):
            stored_response(run, case, status, model=model, attempt=attempt)
    assert client.get(address(run, "&case=c0", "case")).context["attempt"] == 2
    assert client.get(address(run, "&case=c0&attempt=1", "case")).context["attempt"] == 1
    assert client.get(address(run, "&case=c0&attempt=3", "case")).status_code == 404


@pytest.mark.parametrize("page", ["cases", "case"])
@pytest.mark.parametrize(
    ("change", "status", "message"),
    [
        (("environment=sums", "environment=desk"), 400, "do not both have an environment"),
        (("model_a=alpha", "model_a=gamma"), 400, "has no model"),
        (("environment=sums", "environment=sums&change=worse"), 400, "Choose one of better_a"),
        (("b=", "b=9"), 404, "There is no run"),
    ],
)
def test_wrong_addresses_are_explained(
    client: Client, run: Run, page: str, change: tuple[str, str], status: int, message: str
) -> None:
    more = "&case=c2" if page == "case" else ""
    answer = client.get(address(run, more, page).replace(*change, 1))
    assert answer.status_code == status
    assert message in answer.content.decode()


def test_runs_of_private_environments_are_not_shown_to_others(client: Client, run: Run) -> None:
    owner = User.objects.create_user("owner")
    Environment.objects.update(visibility=Environment.Visibility.PRIVATE, owner=owner)
    assert client.get(address(run)).status_code == 404
    assert client.get(address(run, "&case=c2", "case")).status_code == 404


def test_comparison_links_to_the_cases_that_differ(client: Client, run: Run) -> None:
    shown = client.get(f"/compare/?a={run.pk}&b={run.pk}").content.decode()
    assert address(run).replace("&", "&amp;") in shown
