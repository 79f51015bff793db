"""Changes and downloads that a page refuses with a message: the audit log leaves them out."""

from collections.abc import Callable, Iterator

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from hub.models import CaseDefect, Environment
from llmeval_site.models import AuditEntry
from runs.models import ModelEndpoint, Run
from tests.factories import stored_run, stored_version
from tests.review.pages import waiting_pairs
from tests.site.teams.world import stored_team

pytestmark = pytest.mark.django_db
Refusal = tuple[str, dict[str, object]]  # an address and the form that is posted to it


@pytest.fixture
def boss(client: Client) -> User:
    user = User.objects.create_superuser("boss")
    client.force_login(user)
    return user


def environment_actions(boss: User) -> Iterator[Refusal]:
    old = stored_version()
    Environment.objects.update(latest=stored_version(version="2.0.0"))
    page = f"/hub/{old.environment.slug}"
    yield f"{page}/1.0.0/publish/", {}
    yield f"{page}/2.0.0/publish/", {}
    yield f"{page}/2.0.0/retire/", {}
    yield f"{page}/2.0.0/team/", {"team": "unknown"}


def run_actions(boss: User) -> Iterator[Refusal]:
    ended, active = stored_run(stored_version()), stored_run(stored_version("other"), status=Run.Status.RUNNING)
    yield f"/runs/{ended.pk}/cancel/", {}
    yield f"/runs/{ended.pk}/rescore/", {}
    yield f"/runs/{ended.pk}/describe/", {"name": ""}
    yield f"/runs/{ended.pk}/team/", {"team": "unknown"}
    yield f"/runs/{ended.pk}/resume/", {"budget_usd": "much"}
    yield f"/runs/{active.pk}/resume/", {}
    yield f"/runs/{active.pk}/delete/", {}


def request_to_a_model_without_its_key(boss: User) -> Iterator[Refusal]:
    endpoint = ModelEndpoint.objects.create(name="small", model="m", api_key_env="FORBIDDEN")
    yield f"/endpoints/{endpoint.pk}/test/", {}


def member_actions(boss: User) -> Iterator[Refusal]:
    team = stored_team("vision", managers=(User.objects.create_user("ann"),))
    for act in ("remove", "promote", "demote"):
        yield f"/teams/{team.slug}/members/nobody/{act}/", {}


def delivery_of_a_disabled_webhook(boss: User) -> Iterator[Refusal]:
    hook = boss.webhooks.create(url="https://example.org/", events=["test"], disabled_at=timezone.now())
    now = timezone.now()
    delivery = hook.deliveries.create(event_id="0" * 32, event="test", body="{}", next_attempt_at=now)
    yield f"/account/webhooks/{hook.pk}/", {"again": str(delivery.pk)}


def admin_actions(boss: User) -> Iterator[Refusal]:
    version = stored_version()
    defect = CaseDefect.objects.create(case=version.cases.all()[0], description="Wrong.", status="accepted")
    active = stored_run(version, status=Run.Status.RUNNING)
    for model, action, pk in (
        ("hub/environment", "publish", version.environment_id),
        ("hub/environment", "retire", version.environment_id),
        ("hub/casedefect", "reject", defect.pk),
        ("runs/run", "delete_runs", active.pk),
        ("auth/user", "invite", boss.pk),
    ):
        yield f"/admin/{model}/", {"action": action, "_selected_action": [pk], "index": 0}


@pytest.mark.parametrize(
    "refusals",
    [
        environment_actions,
        run_actions,
        request_to_a_model_without_its_key,
        member_actions,
        delivery_of_a_disabled_webhook,
        admin_actions,
    ],
)
def test_refused_changes_are_not_recorded(
    client: Client, boss: User, refusals: Callable[[User], Iterator[Refusal]]
) -> None:
    for address, form in refusals(boss):
        answer = client.post(address, form)
        assert answer.status_code == 302, address
        assert not AuditEntry.objects.exists(), address
        shown = client.get(answer["Location"], follow=True).context["messages"]
        assert [message.level_tag in ("error", "warning") for message in shown] == [True], address


def test_refused_downloads_are_not_recorded(client: Client, boss: User) -> None:
    run = stored_run(stored_version())
    for address in (f"/runs/{run.pk}/failures", f"/runs/{run.pk}/rollouts", "/preferences/export/"):
        assert client.get(address, {"format": "nonsense"}).status_code == 302, address
        assert not AuditEntry.objects.exists(), address


def test_changes_of_the_admin_that_succeed_in_part_are_recorded(client: Client, boss: User) -> None:
    version = stored_version()
    ended, active = stored_run(version), stored_run(version, status=Run.Status.RUNNING)
    selected = {"action": "delete_runs", "_selected_action": [ended.pk, active.pk], "index": 0}
    client.post("/admin/runs/run/", selected)
    assert AuditEntry.objects.get().action == "admin:runs_run_changelist"


def test_refused_actions_of_reviewers_are_not_recorded(client: Client, boss: User) -> None:
    client.post("/review/undo/")
    pair, _ = waiting_pairs(2)
    assert not AuditEntry.objects.exists()
    for verdict in ("a", "b"):  # the second time, the pair is decided
        client.post(f"/review/{pair.pk}/decision/", {"verdict": verdict})
    client.post(f"/review/{pair.pk}/skip/")
    Run.objects.update(deleted_at=timezone.now())
    client.post("/review/undo/")
    for hidden in (pair.pk, 0):
        page = client.post(f"/review/{hidden}/skip/", follow=True).content.decode()
        assert "is not assigned to you, so it was not skipped" in page
    assert [entry.action for entry in AuditEntry.objects.all()] == ["review:decide"]
