"""Access to every URL: without sign-in, and for each group."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from hub.models import Environment, EnvironmentVersion
from llmeval_site.accounts.tokens import create_token
from llmeval_site.models import ApiToken
from runs.models import Run
from tests.factories import stored_archive, stored_outcomes, stored_run, stored_version
from tests.members import member
from tests.site.accounts.access_table import ROLES, SCOPES
from tests.site.accounts.addresses import addresses

pytestmark = pytest.mark.django_db

PUBLIC = {"/login/", "/logout/", "/favicon.ico", "/admin/login/", "/metrics"}  # /metrics checks a token of its own
PUBLIC |= {"/password/reset/", "/password/reset/sent/", "/password/new/1.0.0/1.0.0/", "/password/done/"}
PUBLIC |= {"/openid/start/", "/openid/callback/", "/openid/signed-out/"}  # 404 without a provider


@pytest.fixture
def run() -> Run:
    rules = {"rules": [{"type": "number"}]}
    version = stored_version(
        title="Sums", summary="Sums.", category="reasoning", dataset={"path": "cases.jsonl"}, scoring=rules
    )
    Environment.objects.update(latest=version, visibility=Environment.Visibility.PUBLISHED)
    stored_run(version).delete()  # or a new database would give the next run the number 1 again
    run = stored_run(version, pk=1)  # the number in the addresses; PostgreSQL does not start anew for each test
    stored_outcomes(run, "ppfe")
    return run


def test_addresses_include_pages_admin_and_rest() -> None:
    found = set(addresses())
    assert {"/hub/sums/1.0.0/cases/c0/", "/runs/1/", "/api/v1/runs/1/cancel", "/admin/hub/environment/"} <= found


@pytest.mark.parametrize("method", ["get", "post"])
def test_unauthenticated_requests_are_sent_to_sign_in(client: Client, run: Run, method: str) -> None:
    open_to_all = []
    for url in sorted(set(addresses()) - PUBLIC):
        answer = getattr(client, method)(url)
        if url.startswith("/api/"):
            refused = answer.status_code == 401
        else:
            refused = answer.status_code == 302 and "/login/?next=" in answer["Location"]
        if not refused:
            open_to_all.append(f"{url}: {answer.status_code}")
    assert open_to_all == []


def test_public_pages_show_no_navigation_and_no_data(client: Client, run: Run) -> None:
    page = client.get("/login/").content.decode()
    assert "Sign in" in page
    assert "/hub/" not in page and "sums" not in page
    assert client.get("/nothing-here/").status_code == 404


# What needs more than sign-in: who may, and what they then get.
CURATOR, RUNNER = {"curator"}, {"runner"}
DOES = [
    ("get", "/hub/upload/", CURATOR, 200),
    ("post", "/hub/upload/", CURATOR, 422),
    ("post", "/hub/sums/1.0.0/gates/", CURATOR, 302),
    ("post", "/api/v1/environments/", CURATOR, 400),
    ("get", "/runs/new/", RUNNER, 200),
    ("post", "/runs/new/", RUNNER, 302),  # to the address of what is chosen
    ("post", "/runs/{run}/cancel/", RUNNER, 302),
    ("post", "/runs/{run}/resume/", RUNNER, 302),
    ("post", "/api/v1/runs/", RUNNER, 415),
    ("post", "/api/v1/runs/{run}/cancel", RUNNER, 200),
    ("post", "/api/v1/runs/{run}/resume", RUNNER, 200),
]
LOOKS = [
    "/",
    "/search/?q=sums",
    "/account/",
    "/hub/",
    "/hub/sums/",
    "/hub/sums/1.0.0/",
    "/hub/sums/1.0.0/cases/",
    "/hub/sums/1.0.0/certificate/",
    "/hub/sums/1.0.0/changes/",
    "/hub/sums/1.0.0/cases/c0/",
    "/runs/",
    "/runs/{run}/",
    "/runs/{run}/report",
    "/runs/{run}/failures?format=jsonl",
    "/hub/sums/1.0.0/results/",
    "/models/",
    "/models/alpha/",
    "/compare/",
    "/api/v1/schema/",
    "/api/v1/docs/",
    "/api/v1/environments/",
    "/api/v1/environments/sums/",
    "/api/v1/environments/sums/versions/1.0.0/",
    "/api/v1/environments/sums/versions/1.0.0/cases/",
    "/api/v1/models/",
    "/api/v1/runs/",
    "/api/v1/runs/{run}/",
    "/api/v1/runs/{run}/responses/",
    "/api/v1/runs/{run}/report",
]


def people() -> dict[str, User]:
    return {
        "viewer": member(),
        "curator": member("Curator"),
        "runner": member("Runner"),
        "reviewer": member("Reviewer"),
    }


@pytest.mark.parametrize(("method", "url", "allowed", "status"), DOES)
def test_permissions_of_each_group(run: Run, method: str, url: str, allowed: set[str], status: int) -> None:
    for name, user in people().items():
        client = Client()
        client.force_login(user)
        answer = getattr(client, method)(url.format(run=run.pk))
        assert answer.status_code == (status if name in allowed else 403), name
        run.save()  # as it was


# The same by address, to the last one, as access_table.py has it.
HAVE = {
    "user": None,
    "staff": {"staff", "superuser"},
    "registrar": {"superuser"},
    "curator": {"curator", "superuser"},
    "superuser": {"superuser"},
    "runner": {"runner", "superuser"},
    "reviewer": {"reviewer", "curator", "superuser"},
}


def needed(method: str, url: str) -> set[str] | None:
    """The people who may; None: everybody who is signed in."""
    return HAVE[ROLES[url][method == "post"]]


def test_every_url_is_in_the_access_table() -> None:
    urls = {url for url in addresses() if not url.startswith("/admin/")}
    assert urls == set(ROLES)
    assert {url for url in urls if url.startswith("/api/")} == set(SCOPES)
    assert {url for url, roles in ROLES.items() if "anyone" in roles} | {"/admin/login/"} == PUBLIC


@pytest.mark.parametrize("method", ["get", "post"])
def test_every_url_requires_the_role_in_the_table(run: Run, method: str) -> None:
    stored_archive(EnvironmentVersion.objects.get())
    wrong = []
    everybody = people() | {
        "staff": member(name="staff", staff=True),
        "superuser": User.objects.create_superuser("root"),
    }
    for name, user in everybody.items():
        client = Client()
        client.force_login(user)
        for url in sorted(set(ROLES) - PUBLIC):
            status = getattr(client, method)(url).status_code
            allowed = needed(method, url)
            may = allowed is None or name in allowed
            if status >= 500 or (may and status == 403) or (not may and status not in (403, 405)):
                wrong.append(f"{method} {url} as {name}: {status}, is for {allowed}")
    assert wrong == []


@pytest.mark.parametrize("held", ApiToken.Scope.values)
def test_every_rest_url_requires_the_scope_in_the_table(run: Run, held: str) -> None:
    stored_archive(EnvironmentVersion.objects.get())
    root = User.objects.create_superuser("root")
    _, key = create_token(user=root, scopes=[held])
    client, signed_in = Client(headers={"Authorization": f"Token {key}"}), Client()
    signed_in.force_login(root)
    wrong = []
    for url, scopes in SCOPES.items():
        allowed = signed_in.options(url).headers["Allow"]
        for methods, scope in zip((["GET"], ["POST", "PATCH", "DELETE"]), scopes, strict=True):
            method = next((method for method in methods if method in allowed), None)
            if method is None:
                continue
            answer = client.generic(method, url)
            refused = answer.status_code == 403
            if answer.status_code >= 500 or refused is (scope == held):
                wrong.append(f"{method} {url} with {held}: {answer.status_code}, needs {scope}")
    assert wrong == []


@pytest.mark.parametrize("url", LOOKS)
def test_every_signed_in_user_may_view(run: Run, url: str) -> None:
    for name, user in people().items():
        client = Client()
        client.force_login(user)
        assert client.get(url.format(run=run.pk)).status_code == 200, name


def test_rest_errors_have_one_shape(run: Run) -> None:
    client = Client()
    client.force_login(member())
    body = client.post("/api/v1/runs/", {}, content_type="application/json").json()
    assert set(body) >= {"message", "code", "errors", "type", "title", "status", "detail"}
    assert "runs.add_run" in body["message"]


ADMIN = [
    ("/admin/hub/environment/", {"curator"}),
    ("/admin/hub/environmentversion/", {"curator"}),
    ("/admin/hub/casedefect/", {"curator"}),
    ("/admin/runs/modelendpoint/", {"curator", "runner"}),
    ("/admin/runs/modelendpoint/add/", {"curator", "runner"}),
    ("/admin/auth/user/", set()),
    ("/admin/llmeval_site/apitoken/", set()),
]


@pytest.mark.parametrize(("url", "allowed"), ADMIN)
def test_admin_shows_staff_the_models_of_their_groups(run: Run, url: str, allowed: set[str]) -> None:
    for name, group in {"curator": "Curator", "runner": "Runner", "reviewer": "Reviewer"}.items():
        client = Client()
        client.force_login(member(group, name=f"staff-{name}", staff=True))
        assert client.get(url).status_code == (200 if name in allowed else 403), name
        client.force_login(member(group, name=f"plain-{name}"))
        assert client.get(url).status_code == 302, name


def test_admin_requires_staff_status(run: Run) -> None:
    client = Client()
    client.force_login(member("Curator", "Runner", "Reviewer"))
    urls = [url for url in sorted(set(addresses()) - PUBLIC) if url.startswith("/admin/")]
    opened = [url for url in urls if url != "/admin/logout/" and client.get(url).status_code != 302]
    assert len(urls) > 40 and opened == []


# ---- private environments --------------------------------------------------------------------------------------------


def hidden(url: str) -> bool:
    """Whether *url* shows something of the environment, so that a private one must be as if it were not there."""
    return "sums" in url or "{run}" in url


@pytest.mark.parametrize("url", [url for url in LOOKS if hidden(url) and "search" not in url])
def test_private_environment_and_its_runs_get_404(run: Run, url: str) -> None:
    owner = member(name="owner")
    Environment.objects.update(visibility=Environment.Visibility.PRIVATE, owner=owner)
    for user, status in ((member(), 404), (member("Runner"), 404), (owner, 200), (member("Curator"), 200)):
        client = Client()
        client.force_login(user)
        assert client.get(url.format(run=run.pk)).status_code == status, user


def test_every_url_of_a_private_environment_gets_404(run: Run) -> None:
    stored_archive(EnvironmentVersion.objects.get())
    owner, client = member("Curator", "Runner", name="owner"), Client()
    Environment.objects.update(visibility=Environment.Visibility.PRIVATE, owner=owner)
    urls = [url for url in sorted(set(addresses())) if "sums" in url and "/teams/" not in url]
    answers = {}
    for user in (owner, member("Runner")):
        client.force_login(user)
        answers[user] = {url: client.get(url).status_code for url in urls}
    there, gone = answers.values()
    post_only = {url for url, status in there.items() if status == 405}
    assert len(urls) > 10 and {status for url, status in there.items() if url not in post_only} == {200}
    assert {url: status for url, status in gone.items() if status != 404 and url not in post_only} == {}


LISTS = ["/", "/search/?q=sums", "/hub/", "/runs/", "/models/", "/api/v1/environments/", "/api/v1/runs/"]


@pytest.mark.parametrize("url", LISTS)
def test_lists_omit_private_objects_of_others(run: Run, url: str) -> None:
    Environment.objects.update(visibility=Environment.Visibility.PRIVATE, owner=member(name="owner"))
    client = Client()
    client.force_login(member())
    page = client.get(url).content.decode()
    for trace in ("/hub/sums/", "test run", "alpha", '"slug":"sums"'):
        assert trace not in page


def test_response_and_comparison_of_a_private_run_get_404(run: Run) -> None:
    Environment.objects.update(visibility=Environment.Visibility.PRIVATE, owner=member(name="owner"))
    response = run.models.get().responses.all()[0]
    client = Client()
    client.force_login(member())
    urls = [f"/responses/{response.pk}/", f"/responses/{response.pk}/raw", f"/runs/{run.pk}/cases/{response.case_id}/"]
    urls += [f"/compare/?a={run.pk}", f"/api/v1/compare/?a={run.pk}", f"/runs/{run.pk}/progress/"]
    assert {url: client.get(url).status_code for url in urls} == dict.fromkeys(urls, 404)
