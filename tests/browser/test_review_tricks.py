"""Browser tests that a hundred malicious texts are shown as plain text on every page."""

from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import User
from playwright.sync_api import Page

from hub.models import CaseDefect, Environment, EnvironmentVersion
from hub.web.reading.characters import visible
from preferences.models import IssueCategory, Preference
from preferences.services import NewIssue
from preferences.spans import span_at
from review.models import Assignment, Guideline, Pair
from review.queue import assignments
from runs.models import Run, RunModel
from tests.browser.review_fixtures import SignIn, browser, sign_in
from tests.browser.tricks import TRICKS
from tests.review.pages import reviewer, suggest, waiting_pairs

__all__ = ["browser", "sign_in"]
pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

ALL = "\n".join(TRICKS)


def watch(page: Page) -> list[str]:
    """Return a list to which each request to another host, dialog and error of *page* is added."""
    seen: list[str] = []
    page.on("request", lambda r: seen.append(r.url) if "example.invalid" in r.url or "/logout" in r.url else None)
    page.on("dialog", lambda d: (seen.append(d.message), d.dismiss()))
    page.on("pageerror", lambda e: seen.append(str(e)))
    return seen


def test_corpus_has_100_texts() -> None:
    assert len(set(TRICKS)) >= 100


INJECTED = """() => {
    const all = [...document.querySelectorAll("*")];
    const known = [
        "iframe, object, embed, marquee, base, video, audio, math, xmp, meta[http-equiv], img[src=x], [formaction]",
        "[hx-get='/logout/'], [data-hx-post], [action*='example.invalid'], [href*='example.invalid']",
        "a[href^='javascript' i], input[type=hidden][name=verdict], input[name=accept]",
        ":is(#content, main) form[action='/logout/']",
    ];
    const found = [
        ...document.querySelectorAll(known.join(", ")),
        ...all.filter((e) => [...e.attributes].some((attribute) => /^on/i.test(attribute.name))),
        ...all.filter((e) => e.tagName === "SCRIPT" && e.textContent.includes("tricked")),
        ...all.filter((e) => e.tagName === "STYLE" && e.textContent.includes("display:none}")),
        ...all.filter((e) => e.matches("pre.answer") && e.textContent === "x"),
        ...all.filter((e) => e.matches("mark") && e.textContent === "not the judge's"),
    ];
    return found.map((e) => e.outerHTML.slice(0, 200));
}"""


@pytest.fixture
def tricky(monkeypatch: Any) -> Preference:
    """Store malicious texts in every field that a model, a person or a bundle fills; return the only preference."""
    monkeypatch.setattr(assignments, "_draw", lambda what, pair, user: 0.99)
    category = IssueCategory.objects.get_or_create(slug="style", defaults={"title": "style"})[0]
    (pair,) = waiting_pairs(1, texts=(ALL, ALL + "."), prompt=ALL)
    call = {"id": "1", "type": "function", "function": {"name": ALL, "arguments": ALL}}
    for side in (pair.first, pair.second):
        side.messages = [*side.messages, {"role": "assistant", "content": "", "tool_calls": [call]}]
        side.messages += [{"role": "tool", "tool_call_id": "1", "content": ALL}]
        side.reason = ALL
        side.save()
    failure = {"test": ALL, "expected": ALL, "got": ALL, "line": 1}
    ran = {"status": "assertion", "message": ALL, "passed": 0, "total": 1, "failure": failure}
    pair.second.scores.update(reason=ALL, value=0.0, execution=ran, detail={"found": ALL})
    issue = NewIssue(response=pair.first, category=category, note=ALL, span=span_at(ALL, 0, 4000, 1))
    preference = suggest(pair, "first", critique=ALL, issues=[issue])
    short = TRICKS[4]
    Run.objects.update(name=short, message=ALL, summaries={"judge": {"error": ALL}})
    RunModel.objects.filter(label="alpha").update(label=short)
    Environment.objects.update(title=short, summary=ALL, latest=preference.version)
    EnvironmentVersion.objects.update(readme=ALL)
    CaseDefect.objects.create(case=pair.case, description=ALL)
    Guideline.objects.create(title=short, text=ALL)
    return preference


def addresses(preference: Preference) -> list[str]:
    """Return the addresses of all pages that show the texts, with those of the admin for every registered model."""
    run, response, case = preference.run, preference.first, preference.case
    site = [
        f"/review/{Pair.objects.get().pk}/",
        f"/review/runs/{run.pk}/",
        f"/review/responses/{response.pk}/",
        "/preferences/",
        f"/preferences/{preference.pk}/",
        "/agreement/",
        "/ranking/",
        "/",
        "/search/?q=script",
        "/runs/",
        f"/runs/{run.pk}/",
        f"/runs/{run.pk}/cases/{case.pk}/",
        f"/responses/{response.pk}/",
        f"/compare/?a={run.pk}&b={run.pk}",
        f"/hub/{preference.version.environment.slug}/",
        f"/hub/{preference.version}/cases/{case.external_id}/".replace("@", "/"),
    ]
    for model in filter(admin.site.is_registered, apps.get_models()):
        place = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
        site += [place, *(f"{place}{row.pk}/change/" for row in model._default_manager.all()[:1])]
    return site


@pytest.mark.exhaustive
def test_texts_are_shown_as_text_on_every_page(sign_in: SignIn, tricky: Preference) -> None:
    holder = sign_in(reviewer())  # who holds the pair sees no preference of it
    everyone_else = sign_in(User.objects.create_superuser("root"))
    seen = [watch(holder), watch(everyone_else)]
    holder.goto("/review/")
    Assignment.objects.update(skip_reason=TRICKS[4], draft={"critique": ALL})
    visited = addresses(tricky)
    assert {"assignment", "casedefect", "guideline", "preference"} <= {
        a.split("/")[3] for a in visited if "/admin/" in a
    }
    for address in visited:
        page = holder if address == f"/review/{Pair.objects.get().pk}/" else everyone_else
        answer = page.goto(address)
        assert answer is not None
        assert answer.status == 200, address
        assert page.evaluate("window.tricked") is None, address
        assert page.evaluate(INJECTED) == [], address
        assert page.locator("main, #content").first.is_visible(), address
    assert seen == [[], []]


@pytest.mark.exhaustive
def test_response_is_shown_character_by_character(sign_in: SignIn, tricky: Preference) -> None:
    page = sign_in(reviewer())
    page.goto(f"/review/{Pair.objects.get().pk}/?view=source")
    shown = page.evaluate("document.querySelector('.answer[data-side=a] pre').textContent")
    assert shown == visible(ALL)
    assert len(shown) >= len(ALL)
    for hidden in ("\u202e", "\x1b", "\u200b"):
        assert hidden not in page.locator("#responses").inner_html()
