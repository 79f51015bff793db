"""Pages of teams: those of the user, one with its members and quotas, and changes of its members."""

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from hub.common.errors import NotFound, UserError
from hub.common.web.users import signed_in_user
from hub.models import Team
from hub.teams import members
from hub.teams.membership import is_manager
from hub.teams.visibility import list_teams, sees_all_teams
from hub.web.audited import record_nothing, record_path
from llmeval_site.teams.forms import MemberForm
from llmeval_site.teams.overview import count_owned, get_visible_team, list_quota_uses


@require_safe
def teams(request: HttpRequest) -> HttpResponse:
    """List the teams of the user; all teams for a superuser."""
    user = signed_in_user(request)
    found = list_teams(user).annotate(member_count=Count("group__user")).order_by("slug")
    managed = set(Team.objects.filter(managers=user, group__user=user).values_list("pk", flat=True))
    own = set(Team.objects.filter(group__user=user).values_list("pk", flat=True))
    rows = [(team, "manager" if team.pk in managed else "member" if team.pk in own else "") for team in found]
    return render(request, "site/teams.html", {"teams": rows})


@require_safe
def team(request: HttpRequest, team: str) -> HttpResponse:
    """Show a team: its members, what it owns, and the use of its quotas."""
    return _show(request, get_visible_team(request.user, team), MemberForm())


@require_http_methods(["GET", "POST"])
def add(request: HttpRequest, team: str) -> HttpResponse:
    """Add a member to a team. GET, for example a reload of the form with its errors, redirects to the team."""
    found = get_visible_team(request.user, team)
    if request.method == "GET":
        return redirect("team", found.slug)
    form = MemberForm(request.POST)
    if form.is_valid():
        try:
            user = members.add_member(team=found, username=form.cleaned_data["user"], by=signed_in_user(request))
        except UserError as error:
            form.add_error("user", error.message)
        else:
            messages.success(request, f"{user} is a member of {found.name} now.")
            response = redirect("team", found.slug)
            record_path(response, f"{request.path}{user.username}/")
            return response
    elif not is_manager(request.user, found):
        raise PermissionDenied
    return _show(request, found, form)


@require_http_methods(["GET", "POST"])
def remove(request: HttpRequest, team: str, username: str) -> HttpResponse:
    """Ask whether a member is to be removed; POST removes the member."""
    found = get_visible_team(request.user, team)
    if request.method == "GET":
        return _ask(request, found, username, "remove")
    try:
        user = members.remove_member(team=found, username=username, by=signed_in_user(request))
    except UserError as error:
        messages.error(request, error.message)
        return record_nothing(redirect("team", found.slug))
    messages.success(request, f"{user} is no longer a member of {found.name}.")
    left = user == request.user and not sees_all_teams(request.user)
    return redirect("teams") if left else redirect("team", found.slug)


@require_POST
def promote(request: HttpRequest, team: str, username: str) -> HttpResponse:
    """Make a member a manager."""
    return _set_manager(request, team, username, manages=True)


@require_http_methods(["GET", "POST"])
def demote(request: HttpRequest, team: str, username: str) -> HttpResponse:
    """Ask whether a manager is to be a member without rights again; POST does it."""
    if request.method == "GET":
        return _ask(request, get_visible_team(request.user, team), username, "demote")
    return _set_manager(request, team, username, manages=False)


def _set_manager(request: HttpRequest, slug: str, username: str, *, manages: bool) -> HttpResponse:
    found = get_visible_team(request.user, slug)
    try:
        user = members.set_manager(team=found, username=username, manages=manages, by=signed_in_user(request))
    except UserError as error:
        messages.error(request, error.message)
        return record_nothing(redirect("team", found.slug))
    messages.success(request, f"{user} {'manages' if manages else 'no longer manages'} {found.name}.")
    return redirect("team", found.slug)


def _ask(request: HttpRequest, team: Team, username: str, act: str) -> HttpResponse:
    if not is_manager(request.user, team):
        raise PermissionDenied(f"Only managers of the team {team} and superusers may change its members.")
    try:
        member = members.get_member(team, username)
    except NotFound as error:
        messages.error(request, error.message)
        return redirect("team", team.slug)
    return render(request, "site/team_confirm.html", {"team": team, "member": member, "act": act})


def _show(request: HttpRequest, team: Team, form: MemberForm) -> HttpResponse:
    provider = settings.OPENID
    context = {
        "team": team,
        "members": members.list_members(team),
        "manages": is_manager(request.user, team),
        "owned": count_owned(request.user, team),
        "quotas": list_quota_uses(team),
        "provider": provider.label if provider and team.name in provider.groups.values() else "",
        "form": form,
    }
    return render(request, "site/team.html", context, status=422 if form.errors else 200)
