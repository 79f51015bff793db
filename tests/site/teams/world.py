"""A team with one of everything, and shared things beside it. All texts of the team contain SECRET."""

import uuid
from dataclasses import dataclass
from datetime import timedelta

from django.contrib.auth.models import Group, Permission, User
from django.utils import timezone

from hub.models import CaseDefect, Environment, Team
from preferences.models import Preference
from review.models import Assignment, Pair
from runs.models import EpisodeSession, ModelEndpoint, Response, Run, RunTag
from runs.results.stored import get_results
from tests.factories import stored_archive, stored_response, stored_run, stored_score, stored_version
from tests.members import member
from tests.site.accounts.addresses import SAMPLES

SECRET = "obsidian"
KEY = 7001  # primary key of every row of the team that an address names
OPEN = 5001  # the same for shared rows
EPISODE = uuid.UUID(int=KEY)
ROLES = ("Curator", "Runner", "Reviewer")


def stored_team(slug: str, *members: User, managers: tuple[User, ...] = (), **quotas: float) -> Team:
    """Create a team with a group of its own."""
    group = Group.objects.create(name=f"Group {slug}")
    group.user_set.add(*members, *managers)
    team = Team.objects.create(group=group, slug=slug, **quotas)
    team.managers.set(managers)
    return team


def privileged_member(name: str) -> User:
    """Create a user who has every permission that a person without superuser status usually has."""
    user = member(*ROLES, name=name, staff=True)
    user.user_permissions.add(*Permission.objects.filter(codename__in=["view_run", "view_held_out"]))
    return user


@dataclass(frozen=True, slots=True)
class World:
    """insider: a member of the team. outsider: of another team, with the same permissions."""

    team: Team
    insider: User
    outsider: User
    case: int
    shared_case: int

    @property
    def shared(self) -> dict[str, object]:
        """Values for the parameters of addresses that lead to shared things."""
        return {**SAMPLES, "int": OPEN, "int:case": self.shared_case, "path:name": "alpha", "path:object_id": OPEN}

    @property
    def samples(self) -> dict[str, object]:
        """Values for the parameters of addresses that lead to the team's things."""
        return {
            "int": KEY,
            "int:case": self.case,
            "slug": f"slug-{SECRET}",
            "slug:team": self.team.slug,
            "str": "1.0.0",
            "str:username": f"person-{SECRET}",
            "path": f"case-{SECRET}",
            "path:object_id": KEY,
            "path:name": f"model-{SECRET}",
            "uuid": EPISODE,
        }


MISSING: dict[str, object] = {
    "int": 9009,
    "int:case": 9009,
    "slug": "nothing",
    "slug:team": "nothing",
    "str": "1.0.0",
    "str:username": "nobody",
    "path": "nothing",
    "path:object_id": 9009,
    "path:name": "nothing",
    "uuid": uuid.UUID(int=9009),
}


def make_world() -> World:
    """Store the team's environment, runs on it and on a shared one, and everything that belongs to these."""
    insider, outsider = privileged_member(f"person-{SECRET}"), privileged_member("stranger")
    team = stored_team(f"team-{SECRET}", managers=(insider,))
    stored_team("others", managers=(outsider,))
    Environment.objects.create(
        pk=KEY, slug=f"slug-{SECRET}", title=f"Title {SECRET}", summary=f"Summary {SECRET}", category="reasoning"
    )
    case = {"id": f"case-{SECRET}", "input": f"Input {SECRET}", "target": f"Target {SECRET}"}
    secret, shared = stored_version(f"slug-{SECRET}", [case]), stored_version("sums", 2)
    for version in (secret, shared):
        stored_archive(version)
        Environment.objects.filter(pk=version.environment_id).update(latest=version, visibility="published")
    Environment.objects.filter(pk=KEY).update(team=team, owner=insider, tags=[f"tag-{SECRET}"])
    ModelEndpoint.objects.create(pk=KEY, name=f"model-{SECRET}", model="m", family=SECRET, team=team)
    ModelEndpoint.objects.create(name="alpha", model="m")
    first = secret.cases.get()
    run = _run_of_team(team, secret, insider, pk=KEY, note=f"Note {SECRET}")
    RunTag.objects.create(run=run, name=f"tag-{SECRET}")
    elsewhere = _run_of_team(team, shared, insider)
    for model in (f"model-{SECRET}", f"other-{SECRET}"):
        for owner, asked, pk in ((run, first, KEY), (elsewhere, shared.cases.all()[0], None)):
            key = {"pk": pk} if pk and model.startswith("model") else {}
            response = stored_response(
                owner, asked, "failed", model=model, text=f"Text {SECRET}", reason=f"Reason {SECRET}", **key
            )
            stored_score(response, reason=f"Reason {SECRET}")
    open_run = stored_run(shared, ["alpha"], name="open run", pk=OPEN)
    for asked, key in zip(shared.cases.all(), ({"pk": OPEN}, {}), strict=True):
        stored_response(open_run, asked, "failed", **key)
    for item in (run, elsewhere, open_run):
        get_results(item)
    _stored_review(run, insider)
    CaseDefect.objects.create(pk=KEY, case=first, description=f"Defect {SECRET}", reported_by=insider)
    for user, pk in ((outsider, EPISODE), (insider, uuid.UUID(int=KEY + 1))):  # the outsider has left the team
        EpisodeSession.objects.create(
            pk=pk,
            user=user,
            case=first,
            state={"messages": [{"role": "user", "content": f"Input {SECRET}"}], "turns": 0},
            expires_at=timezone.now() + timedelta(hours=1),
        )
    return World(team, insider, outsider, first.pk, shared.cases.all()[0].pk)


def _run_of_team(team: Team, version, user: User, **fields) -> Run:  # type: ignore[no-untyped-def]
    models = [f"model-{SECRET}", f"other-{SECRET}"]
    return stored_run(version, models, name=f"Run {SECRET}", team=team, created_by=user, **fields)


def _stored_review(run: Run, user: User) -> None:
    first, second = Response.objects.filter(run_model__run=run).order_by("run_model__position")
    pair = Pair.objects.create(
        pk=KEY, run=run, case=first.case, first=first, second=second, kind="both_fail", position=1, overlap=2, free=1
    )
    Assignment.objects.create(pair=pair, reviewer=user, slot=0, state="done", swapped=False)
    Preference.objects.create(
        pk=KEY,
        first=first,
        second=second,
        verdict="first",
        source="human",
        critique=f"Critique {SECRET}",
        reviewer=user,
        run=run,
        version=first.case.version,
        case=first.case,
    )
