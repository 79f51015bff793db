"""REST API of teams: those of the user, the use of their quotas, and their members."""

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from hub.common.rest.created import created
from hub.common.rest.errors import ErrorBody
from hub.common.rest.serializers import StrictSerializer
from hub.common.web.users import signed_in_user
from hub.models import Team
from hub.teams import members
from hub.teams.visibility import list_teams
from hub.web.audited import record_path
from llmeval_site.teams.forms import ROLES, MembersFilter, TeamsFilter
from llmeval_site.teams.overview import count_owned, get_visible_team, list_quota_uses

_WORDS = OpenApiParameter("q", str, description="a part of the name")
_NO_LIMIT = "Null if there is no limit."


class TeamItem(serializers.ModelSerializer[Team]):
    """A team in a list."""

    team = serializers.CharField(source="slug", help_text="Its slug, as configs and other addresses name it.")
    name = serializers.CharField()

    class Meta:
        model = Team
        fields = ["team", "name", "created_at"]


class UseItem(serializers.Serializer[object]):
    """Use of a quota in its unit."""

    used = serializers.FloatField()
    quota = serializers.FloatField(allow_null=True, help_text=_NO_LIMIT)
    unit = serializers.ChoiceField(choices=["USD", "runs", "bytes"])
    resets_at = serializers.DateTimeField(allow_null=True, help_text="When it begins anew; null if it never does.")


class QuotasItem(serializers.Serializer[object]):
    """Use of each quota of a team."""

    spend_usd_per_month = UseItem()
    runs_per_day = UseItem()
    storage_bytes = UseItem()


class OwnedItem(serializers.Serializer[object]):
    """Numbers of what a team owns that you may see."""

    environments = serializers.IntegerField()
    runs = serializers.IntegerField()
    models = serializers.IntegerField()


class TeamDetails(TeamItem):
    """A team with what it owns and the use of its quotas."""

    owns = serializers.SerializerMethodField()
    quotas = serializers.SerializerMethodField()

    class Meta(TeamItem.Meta):
        fields = [*TeamItem.Meta.fields, "owns", "quotas"]

    @extend_schema_field(OwnedItem)
    def get_owns(self, team: Team) -> object:
        return OwnedItem(count_owned(self.context["user"], team)).data

    @extend_schema_field(QuotasItem)
    def get_quotas(self, team: Team) -> object:
        return {
            item.name: {
                "used": item.use.used,
                "quota": item.use.quota,
                "unit": item.unit,
                "resets_at": item.use.resets_at.isoformat() if item.use.resets_at else None,
            }
            for item in list_quota_uses(team)
        }


class MemberItem(serializers.Serializer[User]):
    """A member of a team."""

    user = serializers.CharField(source="username")
    role = serializers.SerializerMethodField()
    active = serializers.BooleanField(source="is_active", help_text="Whether the account is enabled.")

    @extend_schema_field(serializers.ChoiceField(choices=ROLES))
    def get_role(self, member: User) -> str:
        return "manager" if getattr(member, "manages", False) else "member"


class NewMember(StrictSerializer):
    """An account that will be a member."""

    user = serializers.CharField(max_length=150, help_text="Its user name.")
    role = serializers.ChoiceField(choices=ROLES, default="member")


class Role(StrictSerializer):
    """Role of a member."""

    role = serializers.ChoiceField(choices=ROLES)


class TeamList(ListAPIView[Team]):
    """List your teams; all teams for a superuser."""

    serializer_class = TeamItem
    filter_backends = ()
    ordering = "slug"

    def get_queryset(self) -> QuerySet[Team]:
        words = TeamsFilter(self.request.query_params).values()["q"]
        teams = list_teams(self.request.user)
        return teams.filter(Q(slug__icontains=words) | Q(group__name__icontains=words)) if words else teams

    @extend_schema(operation_id="teams_list", parameters=[_WORDS])
    def get(self, request: Request, *args: object, **kwargs: object) -> Response:
        return super().get(request, *args, **kwargs)


class TeamDetail(APIView):
    """Show one of your teams with the use of its quotas."""

    @extend_schema(operation_id="teams_read", responses=TeamDetails)
    def get(self, request: Request, team: str) -> Response:
        found = get_visible_team(request.user, team)
        return Response(TeamDetails(found, context={"user": request.user}).data)


class MemberList(ListAPIView[User]):
    """List the members of one of your teams. POST adds one: managers of the team and superusers may."""

    serializer_class = MemberItem
    write_scope = "teams"
    filter_backends = ()
    ordering = "username"

    def get_queryset(self) -> QuerySet[User]:
        if getattr(self, "swagger_fake_view", False):
            return User.objects.none()
        team = get_visible_team(self.request.user, self.kwargs["team"])
        given = MembersFilter(self.request.query_params).values()
        managers = given["role"] == "manager" if given["role"] else None
        return members.list_members(team, managers=managers).filter(username__icontains=given["q"])

    @extend_schema(
        operation_id="teams_members",
        parameters=[_WORDS, OpenApiParameter("role", str, enum=[role for role, _ in ROLES])],
    )
    def get(self, request: Request, *args: object, **kwargs: object) -> Response:
        return super().get(request, *args, **kwargs)

    @extend_schema(
        operation_id="teams_add_member",
        request=NewMember,
        responses={201: MemberItem, 400: ErrorBody, 403: ErrorBody, 404: ErrorBody, 409: ErrorBody},
    )
    def post(self, request: Request, team: str) -> Response:
        found, by = get_visible_team(request.user, team), signed_in_user(request)
        given = NewMember.read(request)
        added = members.add_member(team=found, username=given["user"], manages=given["role"] == "manager", by=by)
        body = MemberItem(members.get_member(found, added.username)).data
        response = created(body, "api-team-member", found.slug, added.username)
        record_path(response, f"{response.headers['Location']}?role={given['role']}")
        return response


class MemberDetail(APIView):
    """Show a member, change the role, or remove the member: managers of the team and superusers may."""

    write_scope = "teams"

    @extend_schema(operation_id="teams_member", responses={200: MemberItem, 404: ErrorBody})
    def get(self, request: Request, team: str, username: str) -> Response:
        return Response(MemberItem(members.get_member(get_visible_team(request.user, team), username)).data)

    @extend_schema(
        operation_id="teams_set_role",
        description="Make a member a manager, or a manager a member. The last manager stays one.",
        request=Role,
        responses={200: MemberItem, 400: ErrorBody, 403: ErrorBody, 404: ErrorBody, 409: ErrorBody},
    )
    def patch(self, request: Request, team: str, username: str) -> Response:
        found, by = get_visible_team(request.user, team), signed_in_user(request)
        role = Role.read(request)["role"]
        members.set_manager(team=found, username=username, manages=role == "manager", by=by)
        response = Response(MemberItem(members.get_member(found, username)).data)
        record_path(response, f"{request.path}?role={role}")
        return response

    @extend_schema(
        operation_id="teams_remove_member",
        description="Remove a member, also from the managers. The last manager cannot be removed.",
        responses={204: None, 403: ErrorBody, 404: ErrorBody, 409: ErrorBody},
    )
    def delete(self, request: Request, team: str, username: str) -> Response:
        found, by = get_visible_team(request.user, team), signed_in_user(request)
        members.remove_member(team=found, username=username, by=by)
        return Response(status=204)
