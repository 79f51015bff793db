"""Browser tests of the site: browse, filter, upload and run, with the mouse, the keyboard, and without JavaScript."""

import json
import re
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.template.loader import render_to_string
from django.utils import timezone
from playwright.sync_api import Page, Request, expect

from hub.models import Environment, EnvironmentVersion
from llmeval_site.models import ApiToken, Webhook
from runs.models import ModelEndpoint, Run
from tests.browser.conftest import Visit, execute_queue
from tests.browser.looks.full_site import FullSite
from tests.endpoint import endpoint
from tests.factories import stored_outcomes, stored_run, stored_version
from tests.hub.bundle_files import ROWS, lines, write_bundle
from tests.hub.web.test_upload import zipped
from tests.members import member
from tests.runs.web.new_run.test_new_run import capital
from tests.site.teams.world import stored_team

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def environment(slug: str, cases: int = 4, **fields: object) -> Environment:
    version = stored_version(slug, cases=cases)
    visible = Environment.Visibility.PUBLISHED
    Environment.objects.filter(slug=slug).update(latest=version, visibility=visible, **fields)
    return Environment.objects.get(slug=slug)


def rows(page: Page, part: str) -> list[str]:
    return page.locator(f"#{part} tbody a[data-open]").all_inner_texts()


def test_sign_in_redirects_to_requested_page(visit: Visit) -> None:
    User.objects.create_user("ann", password="a long enough one")
    page = visit("/hub/?category=reasoning")
    page.get_by_label("Username").fill("ann")
    page.get_by_label("Password").fill("a long enough one")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Hub")).to_be_visible()
    assert page.url.endswith("/hub/?category=reasoning")


@pytest.mark.exhaustive
def test_reload_after_a_secret_is_shown_creates_no_second_one(visit: Visit) -> None:
    page = visit("/account/", member())
    page.get_by_role("button", name="Create token").click()
    expect(page.get_by_text("It is not shown again")).to_be_visible()
    page.reload()
    expect(page.get_by_text("It is not shown again")).to_be_hidden()
    page.goto("/account/webhooks/")
    page.get_by_label("Address").fill("https://hooks.test/")
    page.get_by_role("button", name="Create webhook").click()
    expect(page.get_by_text("It is not shown again")).to_be_visible()
    page.reload()
    expect(page.get_by_text("It is not shown again")).to_be_hidden()
    assert (ApiToken.objects.count(), Webhook.objects.count()) == (1, 1)


@pytest.mark.exhaustive
def test_second_click_while_the_server_works_sends_no_form_again(visit: Visit) -> None:
    page = visit("/account/", User.objects.create_user("ann"))
    sent: list[Request] = []
    page.on("request", lambda request: sent.append(request) if request.method == "POST" else None)
    page.route("**/account/", lambda route: None)  # the server does not answer
    page.get_by_label("Name").fill("laptop")
    button = page.get_by_role("button", name="Create token")
    twice = """async (button) => {
        button.click();
        await new Promise((resolve) => setTimeout(resolve, 200));
        button.click();
        return button.ariaDisabled;
    }"""
    assert button.evaluate(twice) == "true"
    page.wait_for_timeout(300)
    assert len(sent) == 1


@pytest.mark.exhaustive
def test_button_of_long_work_shows_it_and_can_be_pressed_again_after_a_minute(visit: Visit) -> None:
    page = visit("/endpoints/new/", User.objects.create_superuser("ann"))
    page.route("**/endpoints/new/", lambda route: None)  # the server does not answer
    hundred_times_faster = """async (button) => {
        const start = window.setTimeout;
        window.setTimeout = (work, ms) => start(work, ms / 100);
        const state = () => [button.textContent, button.ariaDisabled];
        button.form.noValidate = true;
        button.click();
        await new Promise((resolve) => start(resolve, 300));
        const busy = state();
        await new Promise((resolve) => start(resolve, 600));
        return [busy, state()];
    }"""
    states = page.locator("button[name=test]").evaluate(hundred_times_faster)
    assert states == [["Saving and testing…", "true"], ["Save and test", None]]


def test_filters_of_all_kinds_are_in_line(visit: Visit) -> None:
    page = visit("/preferences/", member("Reviewer"))
    heights = "labels => labels.map((label) => label.querySelector('input, select').offsetHeight)"
    assert len(set(page.locator(".filters").first.locator("label").evaluate_all(heights))) == 1


def test_catalogue_filters_while_typing_and_updates_the_url(visit: Visit) -> None:
    environment("sums", title="Adding up", category="reasoning")
    environment("desk", title="Order desk", category="tool-use")
    page = visit("/hub/", member())
    assert rows(page, "environments") == ["Adding up", "Order desk"] or rows(page, "environments") == [
        "Order desk",
        "Adding up",
    ]
    page.locator("#id_q").press_sequentially("desk")
    expect(page.locator("#environments tbody tr")).to_have_count(1)
    expect(page.locator("#announce")).to_have_text("1 environment matches")
    expect(page.locator("#id_q")).to_be_focused()
    page.locator("#id_q").fill("")
    expect(page.locator("#environments tbody tr")).to_have_count(2)
    page.get_by_label("Category").select_option("reasoning")
    expect(page.locator("#environments tbody tr")).to_have_count(1)
    assert "category=reasoning" in page.url
    page.reload()
    assert rows(page, "environments") == ["Adding up"]
    expect(page.get_by_label("Category")).to_have_value("reasoning")


def test_cases_are_paged_searched_and_opened_with_working_back_button(visit: Visit) -> None:
    environment("sums", cases=60)
    page = visit("/hub/sums/", member())
    expect(page.locator("#past")).to_contain_text("No completed run")
    page.get_by_role("link", name="Cases 60").click()
    page.get_by_role("link", name="Next").click()
    expect(page.locator("#cases tbody tr").first).to_contain_text("c25")
    page.get_by_role("link", name="Previous").click()
    expect(page.locator("#cases tbody tr").first).to_contain_text("c0")
    page.get_by_label("Id or text of the input").fill("c59")
    expect(page.locator("#cases tbody tr")).to_have_count(1)
    page.get_by_role("link", name="c59", exact=True).click()
    expect(page.get_by_role("heading", name="c59")).to_be_visible()
    page.go_back()
    expect(page.locator("#cases tbody tr")).to_have_count(1)


def test_pages_work_without_javascript(visit: Visit) -> None:
    environment("sums", cases=60, category="reasoning")
    environment("desk", category="tool-use")
    page = visit("/hub/", member(), script=False)
    page.get_by_label("Category").select_option("reasoning")
    page.get_by_role("button", name="Filter").click()
    expect(page.locator("#environments tbody a[data-open]")).to_have_text(["sums"])
    page.get_by_role("link", name="sums").click()
    page.get_by_role("link", name="Cases 60").click()
    page.get_by_role("link", name="Next").click()
    expect(page.locator("#cases tbody a[data-open]").first).to_have_text("c25")
    page.get_by_label("Passed").select_option("by all")
    page.get_by_role("button", name="Filter").click()
    expect(page.locator("#cases")).to_contain_text("No case matches")
    page.get_by_role("link", name="Overview").click()
    page.get_by_role("link", name="Open as a page").click()
    expect(page.get_by_role("heading", name="Leaderboard")).to_be_visible()


@pytest.mark.parametrize("script", [True, pytest.param(False, marks=pytest.mark.exhaustive)])
def test_invalid_bundle_is_corrected_on_the_page_and_stored(
    visit: Visit, everything: User, tmp_path: Path, script: bool
) -> None:
    bad, gold = tmp_path / "bad.zip", tmp_path / "missing.jsonl"
    bad.write_bytes(zipped(write_bundle(tmp_path / "bad", category="nonsense", gold="missing.jsonl")))
    gold.write_text(lines([{"case": row["country"], "content": row["capital"]} for row in ROWS]))
    page = visit("/hub/upload/", everything, script=script)
    page.get_by_label("Bundle (.zip)").set_input_files(bad)
    page.get_by_role("button", name="Check and store").click()
    expect(page.get_by_role("heading", name="2 problems")).to_be_visible()
    expect(page.locator(".found")).to_contain_text("missing.jsonl")
    text = page.get_by_label("environment.yaml", exact=True)
    text.fill(text.input_value().replace("nonsense", "reasoning"))
    # Opening a file keeps the text, and selects the line with the problem.
    page.get_by_role("button", name="wrong.jsonl").click()
    expect(page.get_by_label("wrong.jsonl", exact=True)).to_be_visible()
    page.locator(".found button").nth(1).click()
    expect(text).to_have_value(re.compile("category: reasoning"))
    if script:
        selected = text.evaluate("field => field.value.slice(field.selectionStart, field.selectionEnd)")
        assert selected == "gold: missing.jsonl"
        expect(text).to_be_focused()
    page.get_by_role("button", name="Check again").first.click()
    expect(page.get_by_role("heading", name="1 problem", exact=True)).to_be_visible()
    page.get_by_label("File from your computer").set_input_files(gold)
    page.get_by_role("button", name="Check again").last.click()
    expect(page.get_by_role("heading", name="Capitals", exact=True)).to_be_visible()
    expect(page.get_by_role("status")).to_contain_text("3 cases")
    with page.expect_download() as download:
        page.get_by_role("link", name="Export .zip").click()
    assert download.value.suggested_filename == "capitals-1.0.0.zip"


def test_run_is_started_followed_and_read_down_to_one_response(
    visit: Visit, everything: User, capitals: Environment
) -> None:
    with endpoint(capital) as server:
        ModelEndpoint.objects.create(name="small", model="m", base_url=server.url)
        page = visit("/hub/capitals/", everything)
        page.get_by_role("link", name="More settings").click()
        page.get_by_label("Name").fill("by hand")
        page.get_by_role("checkbox", name="small").check()
        expect(page.get_by_role("checkbox", name="Capitals")).to_be_checked()
        page.get_by_role("button", name="Start the run").click()
        expect(page.locator("#progress")).to_contain_text("Waiting for a worker")
        execute_queue()
    # The page asks for its progress by itself. It loads anew when all responses are stored and when the run has ended.
    expect(page.get_by_text("small passes 66.7 %")).to_be_visible()
    expect(page.locator("#progress")).to_have_count(0)
    assert Run.objects.get().status == Run.Status.COMPLETED
    page.get_by_role("cell", name="1", exact=True).get_by_role("link").first.click()
    expect(page.locator("#responses tbody tr")).to_have_count(1)
    page.locator("#responses a[data-open]").click()
    expect(page.locator(".transcript")).to_contain_text("Bergen")
    page.get_by_role("link", name="Responses of all models to this case").click()
    expect(page.get_by_role("heading", name="small")).to_be_visible()


def test_run_is_cancelled_after_confirmation(visit: Visit, everything: User) -> None:
    run = stored_run(environment("sums").latest, status=Run.Status.QUEUED, finished_at=None, started_at=None)
    page = visit(f"/runs/{run.pk}/", everything)
    page.once("dialog", lambda dialog: dialog.dismiss())
    page.get_by_role("button", name="Cancel the run").click()
    assert Run.objects.get().status == Run.Status.QUEUED
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Cancel the run").click()
    expect(page.get_by_role("status")).to_contain_text("cancelled")
    assert Run.objects.get().status == Run.Status.CANCELLED


@pytest.mark.exhaustive
@pytest.mark.parametrize("focused", ["#counts", "#progress .recent a", "#responses tbody a"])
def test_focus_is_kept_when_the_page_of_a_running_run_updates_itself(
    visit: Visit, everything: User, focused: str
) -> None:
    run = stored_run(environment("sums").latest, status=Run.Status.RUNNING, finished_at=None)
    stored_outcomes(run, "pf--")
    page = visit(f"/runs/{run.pk}/", everything)
    page.locator(focused).first.focus()
    before = page.evaluate("document.activeElement.outerHTML.slice(0, 80)")
    stored_outcomes(run, "--p-")
    expect(page.locator("#progress")).to_contain_text("3 of 4")
    expect(page.locator("#responses tbody tr")).to_have_count(3)
    assert page.evaluate("document.activeElement.outerHTML.slice(0, 80)") == before


@pytest.mark.exhaustive
def test_description_of_a_running_run_is_kept_if_the_session_or_the_run_ends(visit: Visit, everything: User) -> None:
    run = stored_run(environment("sums").latest, created_by=everything, status=Run.Status.RUNNING, finished_at=None)
    page = visit(f"/runs/{run.pk}/", everything)
    note = page.get_by_label("Note", exact=True)
    kept = page.get_by_text("You entered this before, and it is not stored yet.")

    def sign_in_again() -> None:
        expect(page.get_by_label("Username")).to_be_visible()
        page.context.add_cookies(cookies)
        page.goto(f"/runs/{run.pk}/")

    page.get_by_text("Rename, tag or note").click()
    note.fill("The endpoint is slow today.")
    cookies = page.context.cookies()
    page.context.clear_cookies(name=settings.SESSION_COOKIE_NAME)  # the page finds out when it asks for the progress
    sign_in_again()
    expect(note).to_have_value("The endpoint is slow today.")
    expect(kept).to_be_visible()

    note.fill("The endpoint is slow.")
    page.context.clear_cookies(name=settings.SESSION_COOKIE_NAME)
    page.get_by_role("button", name="Store").click()
    sign_in_again()
    expect(note).to_have_value("The endpoint is slow.")

    Run.objects.filter(pk=run.pk).update(status=Run.Status.COMPLETED, finished_at=timezone.now())
    expect(page.get_by_role("button", name="Cancel the run")).to_have_count(0)
    expect(note).to_have_value("The endpoint is slow.")
    page.get_by_role("button", name="Store").click()
    expect(page.get_by_text("Name, tags and note are stored.")).to_be_visible()
    expect(kept).to_be_hidden()
    run.refresh_from_db()
    assert run.note == "The endpoint is slow."

    page.get_by_text("Rename, tag or note").click()
    note.fill("Never mind.")
    page.reload()
    page.get_by_role("button", name="Discard it").click()
    expect(note).to_have_value("The endpoint is slow.")
    page.reload()
    expect(kept).to_be_hidden()
    assert not page.evaluate("Object.keys(sessionStorage).some((name) => name.startsWith('kept:'))")


@pytest.mark.parametrize(
    ("url", "label", "text", "button"),
    [
        pytest.param("/runs/new/", "Config as YAML or JSON", "name: mine", "Start the YAML as it is", id="run"),
        pytest.param("/endpoints/new/", "Name", "mine", "Save", id="endpoint", marks=pytest.mark.exhaustive),
        pytest.param(
            "/account/webhooks/",
            "Address",
            "https://hooks.test/",
            "Create webhook",
            id="webhook",
            marks=pytest.mark.exhaustive,
        ),
        pytest.param("/teams/vision/", "User name", "bob", "Add to the team", id="team", marks=pytest.mark.exhaustive),
    ],
)
def test_form_that_is_sent_after_the_session_ended_is_filled_again(
    visit: Visit, url: str, label: str, text: str, button: str
) -> None:
    User.objects.create_superuser("ann", password="a long enough one")
    environment("capitals")
    ModelEndpoint.objects.create(name="small", model="m")
    stored_team("vision")
    page = visit(url, User.objects.get())
    if url == "/runs/new/":
        page.get_by_text("From YAML", exact=True).click()
    page.get_by_label(label, exact=True).fill(text)
    Session.objects.all().delete()
    send = "button => { button.form.noValidate = true; button.click(); }"
    page.get_by_role("button", name=button, exact=True).evaluate(send)
    page.get_by_label("Username").fill("ann")
    page.get_by_label("Password").fill("a long enough one")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("You entered this before")).to_be_visible()
    expect(page.get_by_label(label, exact=True)).to_have_value(text)


@pytest.mark.exhaustive
def test_boxes_and_choices_are_filled_again_after_the_session_ended(visit: Visit) -> None:
    user = User.objects.create_user("ann", password="a long enough one")
    page = visit("/account/", user)
    page.get_by_label("Name").fill("laptop")
    page.get_by_label("read: environments").uncheck()
    page.get_by_label("run: start").check()
    page.get_by_label("Expires").select_option("365")
    Session.objects.all().delete()
    page.get_by_role("button", name="Create token").click()
    page.get_by_label("Username").fill("ann")
    page.get_by_label("Password").fill("a long enough one")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("You entered this before")).to_be_visible()
    expect(page.get_by_label("Name")).to_have_value("laptop")
    expect(page.get_by_label("read: environments")).not_to_be_checked()
    expect(page.get_by_label("run: start")).to_be_checked()
    expect(page.get_by_label("Expires")).to_have_value("365")
    page.get_by_role("button", name="Create token").click()
    expect(page.get_by_text("It is not shown again")).to_be_visible()
    page.goto("/account/")
    expect(page.get_by_text("You entered this before")).to_be_hidden()
    expect(page.get_by_label("Expires")).to_have_value("90")


@pytest.mark.exhaustive
def test_form_that_has_expired_is_filled_again(visit: Visit) -> None:
    page = visit("/account/webhooks/", member())
    page.get_by_label("Address").fill("https://hooks.test/")
    page.context.clear_cookies(name=settings.CSRF_COOKIE_NAME)  # as after a sign-in in another tab
    page.get_by_role("button", name="Create webhook").click()
    expect(page.get_by_role("heading", name="The form has expired")).to_be_visible()
    page.goto("/account/webhooks/")
    expect(page.get_by_text("You entered this before")).to_be_visible()
    expect(page.get_by_label("Address")).to_have_value("https://hooks.test/")


@pytest.mark.exhaustive
def test_form_that_met_an_error_of_the_server_is_filled_again(visit: Visit) -> None:
    page = visit("/account/webhooks/", member())
    page.get_by_label("Address").fill("https://hooks.test/")
    broken = render_to_string("site/broken.html", {"status": 500})
    page.route("**/webhooks/", lambda route: route.fulfill(body=broken, content_type="text/html"), times=1)
    page.get_by_role("button", name="Create webhook").click()
    expect(page.get_by_role("heading", name="Server error")).to_be_visible()
    page.get_by_role("link", name="Dashboard").click()
    page.goto("/account/webhooks/")
    expect(page.get_by_text("You entered this before")).to_be_visible()
    expect(page.get_by_label("Address")).to_have_value("https://hooks.test/")


def test_column_headings_sort_and_filters_keep_the_order(visit: Visit) -> None:
    for slug, cases in (("ants", 2), ("bees", 9), ("cats", 5)):
        environment(slug, cases=cases, category="reasoning", title=slug)
    page = visit("/hub/", member())
    page.get_by_role("link", name="Cases", exact=True).click()
    expect(page.locator("#environments tbody tr").first).to_contain_text("bees")
    assert rows(page, "environments") == ["bees", "cats", "ants"]
    expect(page.locator("#sort-cases")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#environments tbody tr").first).to_contain_text("ants")
    page.get_by_label("Category").select_option("reasoning")
    page.wait_for_url("**category=reasoning**")
    assert rows(page, "environments") == ["ants", "cats", "bees"]
    page.reload()
    assert rows(page, "environments") == ["ants", "cats", "bees"]


@pytest.mark.exhaustive
def test_defect_is_reported_on_response_and_resolved_by_curator(visit: Visit) -> None:
    run = stored_run(environment("sums").latest)
    stored_outcomes(run, "pppf")
    page = visit(f"/runs/{run.pk}/?status=failed", member())
    page.locator("#responses a[data-open]").click()
    page.get_by_role("link", name="Report a defect of this case").click()
    page.get_by_label("What is wrong").fill("3 + 1 is 4.")
    page.get_by_role("button", name="Send the report").click()
    expect(page.get_by_role("status")).to_contain_text("A curator will accept or reject it")
    page = visit("/", member("Curator", name="cara", staff=True))
    page.get_by_role("link", name="1 report of a wrong case").click()
    page.get_by_role("checkbox", name="Select this object").check()
    page.get_by_label("Action:").select_option(label="Accept: later reports leave the case out")
    page.get_by_role("button", name="Run the selected action").or_(page.get_by_role("button", name="Go")).click()
    page.goto("/hub/sums/1.0.0/cases/c3/")
    expect(page.locator("main")).to_contain_text(
        "Accepted as wrong; reports of later runs leave this case out. 3 + 1 is 4."
    )


def test_curator_retires_and_publishes_on_the_page_after_one_question(visit: Visit, capitals: Environment) -> None:
    version = capitals.versions.get()
    EnvironmentVersion.objects.update(certificate={"digest": version.digest, "gates": []})
    page = visit("/hub/capitals/", member("Curator", name="cara"))
    page.once("dialog", lambda dialog: dialog.dismiss())
    page.get_by_role("button", name="Retire").click()
    assert Environment.objects.get().visibility == "published"
    for action, state in (("Retire", "retired"), ("Publish", "published")):
        questions: list[str] = []
        page.once("dialog", lambda dialog, asked=questions: (asked.append(dialog.message), dialog.accept()))
        page.get_by_role("button", name=action, exact=True).click()
        expect(page.get_by_role("status")).to_contain_text(f"Capitals is {state}")
        assert len(questions) == 1 and questions[0].startswith(f"{action} Capitals?")
        assert Environment.objects.get().visibility == state


@pytest.mark.exhaustive
def test_curator_features_publishes_and_retires_but_cannot_edit_content(visit: Visit, capitals: Environment) -> None:
    Environment.objects.update(visibility=Environment.Visibility.PRIVATE)
    gate = {"name": "gold", "what": "Gold passes.", "status": "passed", "checked": 3, "failed": 0, "note": ""}
    EnvironmentVersion.objects.update(certificate={"gates": [gate]})
    page = visit("/hub/capitals/", member("Curator", name="cara", staff=True))
    page.get_by_role("link", name="Edit").click()
    expect(page.locator("#content")).to_contain_text("3 checked, 0 failed")
    page.get_by_label("Title").fill("Capital cities")
    page.get_by_label("Tags").fill("geography, short")
    page.get_by_role("button", name="Save", exact=True).click()
    for action, said in (("Publish", "is published"), ("Feature", "Featured."), ("Retire", "is retired")):
        page.get_by_role("checkbox", name="Select this object").check()
        choices = page.get_by_label("Action:").locator("option").all_inner_texts()
        page.get_by_label("Action:").select_option(label=next(text for text in choices if text.startswith(action)))
        page.get_by_role("button", name="Go").click()
        expect(page.locator(".messagelist")).to_contain_text(said)
        if action == "Feature":
            shown = visit("/hub/?tag=geography", member(name=f"reader-{action}"))
            expect(shown.locator("#environments tbody tr")).to_contain_text("Capital cities")
            expect(shown.locator("#environments .badge.featured")).to_be_visible()
    page.get_by_role("link", name="Environment versions").first.click()
    page.get_by_role("link", name="capitals@1.0.0").click()
    expect(page).to_have_title(re.compile("^capitals@1.0.0"))
    fields = page.locator("#content").locator("input:not([type=hidden], [type=submit]), textarea, select")
    expect(fields).to_have_count(1)
    expect(fields).to_have_attribute("name", "deprecated")
    assert Environment.objects.get().visibility == Environment.Visibility.RETIRED


def test_comparison_links_to_single_cases(visit: Visit) -> None:
    run = stored_run(environment("sums").latest, ["alpha", "beta"])
    stored_outcomes(run, "pppf", model="alpha")
    stored_outcomes(run, "pffp", model="beta")
    page = visit(f"/compare/?a={run.pk}", member())
    expect(page.locator("main")).to_contain_text("+25.0")
    page.get_by_text("sums: 2 better in A").click()
    page.get_by_role("link", name="c1").click()
    expect(page.get_by_role("region", name="Response A")).to_contain_text("alpha")
    expect(page.get_by_role("region", name="Response B")).to_contain_text("beta")


def test_pages_are_usable_with_keyboard_only(visit: Visit) -> None:
    environment("desk")
    environment("sums")
    page = visit("/", member())
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("g")
    page.keyboard.press("h")
    expect(page.get_by_role("heading", name="Hub")).to_be_visible()
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator("a[data-open]").nth(1)).to_be_focused()
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="desk", level=1)).to_be_visible()
    page.get_by_role("link", name="Cases 4").press("Enter")
    expect(page.locator("#case-search")).to_be_visible()
    page.keyboard.press("/")
    expect(page.locator("#case-search")).to_be_focused()
    page.keyboard.type("g h ?")
    expect(page.locator("#case-search")).to_have_value("g h ?")
    page.locator("h1").click()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.get_by_role("button", name="Turn single keys off").click()
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_hidden()


def test_theme_follows_system_until_switched(visit: Visit) -> None:
    page = visit("/", member(), scheme="dark")
    colour = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(colour)
    page.get_by_role("button", name="Switch between light and dark").click()
    light = page.evaluate(colour)
    assert light != dark
    page.reload()
    assert page.evaluate(colour) == light


def test_markup_of_models_and_datasets_is_not_executed(visit: Visit) -> None:
    evil = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
    version = stored_version(
        "evil", cases=[{"id": "c0", "input": evil, "target": evil}], harness={"type": "single_turn"}
    )
    shown = {"latest": version, "visibility": Environment.Visibility.PUBLISHED, "title": evil, "summary": evil}
    Environment.objects.update(**shown)
    run = stored_run(version, name=evil)
    stored_outcomes(run, "f")
    response = run.models.get().responses.get()
    response.messages, response.reason = [{"role": "assistant", "content": evil}], evil
    response.save()
    version.readme = f"{evil}\n\n[x](javascript:document.title='owned')\n\n```{evil}\n{json.dumps(evil)}\n```"
    version.save()
    user = member()
    for url in (
        "/",
        "/hub/",
        "/hub/evil/",
        "/hub/evil/1.0.0/cases/c0/",
        f"/runs/{run.pk}/",
        f"/responses/{response.pk}/",
    ):
        page = visit(url, user)
        page.wait_for_load_state("networkidle")
        assert page.title() != "owned"
        assert page.locator("img").count() == 0


def open_runs(visit: Visit) -> Page:
    version = stored_version("sums")
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)
    for i in range(32):
        stored_run(version, name=f"nightly {i:02}")
    stored_run(version, name="other")
    page = visit("/runs/", member())
    expect(page.locator("tbody tr")).to_have_count(30)
    return page


def search(page: Page, text: str) -> None:
    page.get_by_label("Name").press_sequentially(text)
    page.wait_for_url(re.compile(f"q={text}"))


@pytest.mark.exhaustive
def test_back_button_restores_rows_with_their_filters(visit: Visit) -> None:
    page = open_runs(visit)
    search(page, "other")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_label("Name").fill("")
    page.wait_for_url(re.compile("q=&"))
    expect(page.locator("tbody tr")).to_have_count(30)
    page.go_back()
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.get_by_label("Name")).to_have_value("other")
    page.go_back()
    expect(page.locator("tbody tr")).to_have_count(30)
    expect(page.get_by_label("Name")).to_have_value("")


def test_order_and_filter_are_kept_while_paging(visit: Visit) -> None:
    page = open_runs(visit)
    search(page, "nightly")
    page.get_by_role("link", name="Run", exact=True).click()
    expect(page.locator("tbody th").first).to_contain_text("nightly 00")
    page.get_by_role("link", name="Next").click()
    expect(page.locator("tbody th").first).to_contain_text("nightly 30")
    expect(page).to_have_url(re.compile("q=nightly.*sort=run.*after="))


@pytest.mark.exhaustive
def test_leaving_a_search_field_does_not_load_the_rows_again(visit: Visit) -> None:
    page = open_runs(visit)
    search(page, "other")
    expect(page.locator("tbody tr")).to_have_count(1)
    asked: list[str] = []

    def note(request: Request) -> None:
        if "/runs/" in request.url:
            asked.append(request.url)

    page.on("request", note)
    page.get_by_label("Name").press("Tab")
    page.wait_for_timeout(600)
    assert asked == []
    page.get_by_label("Status").select_option("running")
    expect(page.locator("#runs .empty")).to_be_visible()
    assert len(asked) == 1


@pytest.mark.exhaustive
def test_filter_with_ended_session_opens_the_sign_in_page(visit: Visit) -> None:
    page = open_runs(visit)
    page.context.clear_cookies(name=settings.SESSION_COOKIE_NAME)
    page.get_by_label("Name").press_sequentially("other")
    page.wait_for_url("**/login/?next=/runs/**")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_filter_and_order_of_responses_are_announced(visit: Visit) -> None:
    run = stored_run(environment("sums").latest)
    stored_outcomes(run, "pppf")
    page = visit(f"/runs/{run.pk}/", member())
    page.get_by_label("Status").select_option("passed")
    expect(page.locator("#announce")).to_have_text("3 rows are shown.")
    page.get_by_label("Status").select_option("errored")
    expect(page.locator("#announce")).to_have_text("No response matches. Show all.")


@pytest.mark.exhaustive
def test_focus_stays_on_the_button_that_opened_a_file_of_a_draft(visit: Visit, site: FullSite) -> None:
    page = visit(f"/hub/upload/{site.draft.pk}/", site.user)
    page.locator("#file-1").press("Enter")
    page.wait_for_url("**file=cases.jsonl**")
    expect(page.locator("#file-1")).to_be_focused()
    page.locator("#check").press("Enter")
    expect(page.locator("#check")).to_be_focused()


def test_answers_and_search_are_in_view_with_400_percent_zoom(visit: Visit, site: FullSite) -> None:
    page = visit(f"/review/{site.pair.pk}/", site.user, width=320)
    page.set_viewport_size({"width": 320, "height": 256})
    assert page.locator("#responses .side").first.evaluate("side => side.getBoundingClientRect().height") > 60
    answer = page.locator("#responses .side").first
    answer.scroll_into_view_if_needed()
    expect(answer).to_be_in_viewport()
    assert page.locator("#site-search").evaluate("field => field.offsetWidth") >= 100


@pytest.mark.exhaustive
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_printed_in_light_colours(visit: Visit, scheme: str) -> None:
    page = visit("/", member(), scheme="dark")
    page.evaluate("scheme => { document.documentElement.dataset.theme = scheme; }", scheme)
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(29, 29, 27)"


@pytest.mark.exhaustive
def test_wide_tables_fit_on_paper_and_buttons_are_not_printed(visit: Visit, site: FullSite) -> None:
    a4 = 718  # pixels between the margins of a sheet
    for path in (f"/runs/{site.run.pk}/", f"/compare/?a={site.run.pk}&b={site.run.pk}", "/models/"):
        page = visit(path, site.user, width=a4)
        page.emulate_media(media="print")
        assert page.evaluate("document.documentElement.scrollWidth") == a4, path
        expect(page.locator(".actions:visible")).to_have_count(0)


@pytest.mark.exhaustive
def test_sorting_a_scrolled_list_keeps_its_headings_in_view(visit: Visit) -> None:
    page = open_runs(visit)
    page.evaluate("document.querySelector('#sort-run').scrollIntoView()")
    page.locator("#sort-run").press("Enter")
    expect(page.locator("tbody th").first).to_contain_text("nightly 00")
    expect(page.locator("#sort-run")).to_be_in_viewport()
