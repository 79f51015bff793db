"""Tests of the preference pages: links, filters and empty pages."""

import io
import re
import zipfile
from html import unescape

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from hub.models import Environment
from preferences.insight.agreement import Agreement, NamedFigure
from preferences.insight.agreement_statistics import Figure, share_figure
from preferences.insight.calibration import Bin
from preferences.insight.reviewers import ReviewerPair, ReviewerRow
from preferences.insight.stored import Stored
from preferences.models import Preference
from runs.models import Run
from tests.factories import stored_response, stored_run, stored_score, stored_version
from tests.markup import markup
from tests.preferences.exporters.test_exports import record, responses

pytestmark = pytest.mark.django_db


@pytest.fixture
def visitor(client: Client) -> Client:
    client.force_login(User.objects.create_user("visitor"))
    return client


@pytest.fixture
def two() -> Preference:
    record(*responses("one", "two", statuses="pf"), by="judge")
    preference = record(*responses("three", "four"))
    Environment.objects.update(visibility="published")
    return preference


def test_preference_page_links_to_responses_run_version_and_case(visitor: Client, two: Preference) -> None:
    page = visitor.get(f"/preferences/{two.pk}/").content.decode()
    version = two.version
    for address in (
        f"/responses/{two.first_id}/",
        f"/responses/{two.second_id}/",
        f"/runs/{two.run_id}/",
        f"/hub/{version.environment.slug}/{version.version}/",
        two.case.external_id,
        "/models/m0/",
        "/models/m1/",
    ):
        assert address in page
    assert "not logged" in page


def test_preference_page_of_a_deleted_run_has_no_link_that_leads_nowhere(visitor: Client, two: Preference) -> None:
    Run.objects.update(deleted_at=timezone.now())
    page = visitor.get(f"/preferences/{two.pk}/").content.decode()
    assert f"test run (run {two.run_id}), deleted" in page
    linked = {path for path in re.findall(r'href="(/[^"#?]+)', page) if not path.startswith("/static/")}
    assert [path for path in linked if visitor.get(path).status_code == 404] == []


def test_preference_page_links_to_mlflow(visitor: Client, two: Preference) -> None:
    Run.objects.update(tracking={"uri": "http://mlflow:5000", "experiment_id": "3", "parent": "abc"})
    assert (
        'href="http://mlflow:5000/#/experiments/3/runs/abc"' in visitor.get(f"/preferences/{two.pk}/").content.decode()
    )
    Run.objects.update(tracking={"uri": "sqlite:///mlflow.sqlite3", "experiment_id": "3", "parent": "abc"})
    assert "<code>abc</code>" in visitor.get(f"/preferences/{two.pk}/").content.decode()


def test_stored_scoring_results_are_shown(visitor: Client) -> None:
    first, second = responses("one", "two", statuses="pf")
    stored_score(first, "sum", 1.0, reason="It is right.")
    score = stored_score(second, "sum", 0.0, reason="<b>2</b> is not 1.")
    stored_score(second, "tone", 0.25, reason="Curt.", position=1)
    preference = record(first, second)
    Environment.objects.update(visibility="published")
    score.delete()
    page = markup(visitor.get(f"/preferences/{preference.pk}/"))
    assert "<td>1 It is right.</td><td>0 &lt;b&gt;2&lt;/b&gt; is not 1.</td>" in page
    assert "<td>-</td><td>0.25 Curt.</td>" in page


def test_list_is_filtered_and_export_uses_same_filters(visitor: Client, two: Preference) -> None:
    assert visitor.get("/preferences/").content.decode().count("data-open href") == 2
    page = visitor.get("/preferences/?source=human").content.decode()
    assert page.count("data-open href") == 1
    packed = visitor.get("/preferences/export/?source=human&format=trl").getvalue()
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        assert b'"chosen": "three"' in archive.read("data.jsonl")
        assert "README.md" in archive.namelist()


def test_empty_export_reports_message(visitor: Client) -> None:
    page = visitor.get("/preferences/export/?format=trl", follow=True).content.decode()
    assert "There are no preferences yet, so nothing was written." in page


def test_agreement_and_ranking_show_figures_with_tables(visitor: Client, two: Preference) -> None:
    page = visitor.get("/agreement/").content.decode()
    assert "Agreement of the judge with the tests, judged blind" in page
    cells = re.findall(r'<td class="num"[^>]*>', page)
    assert cells and all("data-label=" in cell for cell in cells)  # on narrow screens a dash alone would say nothing
    page = visitor.get("/ranking/").content.decode()
    assert "<svg" in page
    assert "m0" in page
    assert 'data-label="comparisons"' in page and 'data-label="of"' not in page  # cells may wrap to separate lines


def test_ranking_page_lists_unconnected_groups_of_models(visitor: Client) -> None:
    version = stored_version("sums", 1)
    for labels in (["a", "b"], ["c", "<d>"]):
        run = stored_run(version, labels)
        record(*(stored_response(run, version.cases.get(), model=label) for label in labels))
    Environment.objects.update(visibility="published")
    page = visitor.get("/ranking/").content.decode()
    assert "no comparison connects them: &lt;d&gt;, c; a, b." in page
    assert "<svg" not in page


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("/preferences/", "No preferences.</strong>"),
        ("/preferences/?source=llm", "No preferences match these filters.</strong>"),
        ("/agreement/", "There are no preferences yet.</strong>"),
        ("/agreement/?run=1", "No preferences match these filters.</strong>"),
        ("/ranking/", "No comparisons of two models yet.</strong>"),
        ("/ranking/?source=human", "No comparisons of two models match these filters.</strong>"),
    ],
)
def test_empty_pages_explain_what_they_show(visitor: Client, address: str, says: str) -> None:
    page = visitor.get(address).content.decode()
    assert page.count('class="empty"') == 1
    assert says in page


def test_preferences_of_private_environments_are_not_shown(visitor: Client, two: Preference) -> None:
    Environment.objects.update(visibility="private")
    assert "data-open href" not in visitor.get("/preferences/").content.decode()
    assert visitor.get(f"/preferences/{two.pk}/").status_code == 404
    assert "No preference matches" in visitor.get("/preferences/export/?format=trl", follow=True).content.decode()


@pytest.mark.parametrize("wrong", ["run=x", "since=yesterday", "source=nobody", "environment=%2E%2E"])
def test_invalid_filter_is_reported_and_exports_nothing(visitor: Client, two: Preference, wrong: str) -> None:
    page = visitor.get(f"/preferences/?{wrong}")
    assert page.status_code == 400
    assert f"<code>{wrong.partition('=')[0]}</code>: " in page.content.decode()
    assert "data-open href" not in page.content.decode()
    answer = visitor.get(f"/preferences/export/?format=trl&{wrong}", follow=True)
    assert answer.redirect_chain
    assert f"{wrong.partition('=')[0]}: " in "".join(map(str, answer.context["messages"]))


def test_unknown_format_is_reported(visitor: Client, two: Preference) -> None:
    answer = visitor.get("/preferences/export/?format=csv", follow=True)
    assert "format: csv is not known. Choose one of " in "".join(map(str, answer.context["messages"]))


def test_nearly_all_is_not_shown_as_all(visitor: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    figure = share_figure([[True]] * 2_990 + [[False]] * 10)
    kappa = Figure(value=0.2, n=50, low=0.003, high=0.41)
    none = Figure(value=None, n=0)
    both = ReviewerPair(names=("ann", "bob"), blind=figure, blind_kappa=kappa, final=none, final_kappa=none)
    agreement = Agreement(
        verdicts=400,
        reviewers=[
            ReviewerRow(name="ann", decided=9, median_seconds=None, accepted=0, suggested=0, checks=0, checks_failed=0)
        ],
        reviewer_pairs=[both],
        figures=[
            NamedFigure("judge_execution", "Agreement with the tests", figure),
            NamedFigure("people_alpha", "Alpha of reviewers", kappa),
        ],
        bins=[Bin(confidence=0.9, correct=199 / 200, n=200)],
    )
    stored = Stored(figures=agreement, computed_at=timezone.now())
    monkeypatch.setattr("preferences.web.views.get_agreement", lambda user, filters: stored)
    page = unescape(visitor.get(reverse("preferences:agreement")).content.decode())
    assert '<td class="num" data-label="value">> 0.99</td>' in page
    assert "[0.99, 0.998]" in page
    shown = re.findall(r'data-label="(?:same verdict, blind|95 % interval)">\s*(.*?)\s*</td>', page)
    assert shown[-2:] == ["99.7 %", "[99.4, 99.8]"]  # in the same unit
    assert "[0.003, 0.41]" in page
    assert "confidence 0.90: 99.5 % correct of 200" in page


@pytest.mark.parametrize("path", ["/preferences/", "/agreement/", "/ranking/"])
def test_link_to_the_current_page_is_marked(visitor: Client, path: str) -> None:
    page = visitor.get(path).content.decode()
    assert page.count(f'<a href="{path}" aria-current="page">') == 1
