"""REST API of episodes for trainers: create, list, show, step, delete."""

from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import APIException, NotFound, PermissionDenied, ValidationError
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from hub.common import wording
from hub.common.rest.errors import ErrorBody
from hub.common.rest.serializers import StrictSerializer
from hub.environments.episodes import Observation
from hub.models import EnvironmentVersion
from hub.selectors import VersionNotFound, get_version, list_visible_environments, may_see_content
from runs.models import EpisodeSession
from runs.providers.openai_replies import parse_usage
from runs.rollouts.roles import session_recordings
from runs.rollouts.services import (
    RolloutConflict,
    RolloutError,
    RolloutFailed,
    create_rollout,
    delete_rollout,
    get_session,
    list_sessions,
    step_rollout,
)
from runs.web.forms import EpisodesFilter


class Conflict(APIException):
    status_code = 409
    default_code = "conflict"


class Unavailable(APIException):
    status_code = 503
    default_code = "unavailable"


class NewEpisodeSerializer(StrictSerializer):
    """Body of a request for a new episode.

    `environment`: slug or slug@version. `case`: an id; without it, `seed` draws one. `roles`: role -> names of models.
    `model`: label that the trainer chooses, stored with the episode and exported. `recordings`: replies of role models
    in an earlier episode.
    """

    environment = serializers.CharField(max_length=160)
    case = serializers.CharField(max_length=200, required=False)
    seed = serializers.IntegerField(default=0, min_value=-(2**53), max_value=2**53)
    attempt = serializers.IntegerField(default=1, min_value=1, max_value=1_000_000)
    model = serializers.CharField(max_length=120, required=False, default="")
    roles = serializers.DictField(child=serializers.ListField(child=serializers.CharField()), required=False)
    recordings = serializers.ListField(child=serializers.JSONField(), required=False, max_length=10_000)


class UsageSerializer(serializers.Serializer[object]):
    """Tokens as chat completions report them."""

    prompt_tokens = serializers.IntegerField(min_value=0, max_value=2**31 - 1)
    completion_tokens = serializers.IntegerField(min_value=0, max_value=2**31 - 1)
    prompt_tokens_details = serializers.DictField(required=False, allow_null=True)
    completion_tokens_details = serializers.DictField(required=False, allow_null=True)


class StepSerializer(StrictSerializer):
    message = serializers.JSONField()
    usage = UsageSerializer(required=False, allow_null=True)


class EpisodeEndpoint(APIView):
    """View of episodes. Requests per minute are not limited; the number of open episodes of a user is."""

    throttle_classes = ()
    read_scope = write_scope = "train"


class EpisodeItem(serializers.ModelSerializer[EpisodeSession]):
    """An episode in a list."""

    environment = serializers.CharField(source="case.version")
    case = serializers.CharField(source="case.external_id")

    class Meta:
        model = EpisodeSession
        fields = [
            "id",
            "environment",
            "case",
            "attempt",
            "model",
            "done",
            "truncated",
            "reward",
            "created_at",
            "expires_at",
        ]


class EpisodeList(EpisodeEndpoint, ListAPIView[EpisodeSession]):
    """List your episodes, the latest first. POST starts an episode."""

    serializer_class = EpisodeItem
    filter_backends = ()
    ordering = "-created_at"

    def get_queryset(self) -> QuerySet[EpisodeSession]:
        return list_sessions(
            user=requesting_user(self.request), done=EpisodesFilter(self.request.query_params).done_value()
        )

    @extend_schema(operation_id="episodes_list", parameters=[OpenApiParameter("done", bool)])
    def get(self, request: Request, *args: object, **kwargs: object) -> Response:
        return super().get(request, *args, **kwargs)

    @extend_schema(request=NewEpisodeSerializer, responses={201: dict, 400: ErrorBody, 429: ErrorBody})
    def post(self, request: Request) -> Response:
        serializer = NewEpisodeSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        data = serializer.validated_data
        version = get_visible_version(request, data["environment"])
        if version.environment.held_out:
            raise PermissionDenied(f"{version.environment.slug} is held out: it must not be used for training.")
        try:
            rollout = create_rollout(
                user=requesting_user(request),
                version=version,
                case_id=data.get("case"),
                seed=data["seed"],
                attempt=data["attempt"],
                model=data["model"],
                roles=data.get("roles"),
                recordings=data.get("recordings"),
            )
        except RolloutError as error:
            raise ValidationError({error.path: str(error)} if error.path else str(error)) from None
        except RolloutFailed as error:
            raise Unavailable(str(error)) from None
        body = {"id": str(rollout.session.pk), "case": rollout.session.case.external_id, "done": rollout.session.done}
        return Response({**body, "observation": _observation(rollout.observation)}, status=201)


class EpisodeDetail(EpisodeEndpoint):
    """Show one of your episodes. DELETE deletes it."""

    @extend_schema(responses={200: dict})
    def get(self, request: Request, pk: UUID) -> Response:
        session = get_own_session(request, pk)
        return Response(
            {
                "id": str(session.pk),
                "environment": str(session.case.version),
                "case": session.case.external_id,
                "attempt": session.attempt,
                "model": session.model,
                "messages": session.state.get("messages", []),
                "tools": session.state.get("tools", []),
                "done": session.done,
                "truncated": session.truncated,
                "reward": session.reward,
                "score": session.score,
                "calls": session.calls,
                "recordings": session_recordings(session),
            }
        )

    @extend_schema(responses={204: None})
    def delete(self, request: Request, pk: UUID) -> Response:
        delete_rollout(session=get_own_session(request, pk))
        return Response(status=204)


class EpisodeStep(EpisodeEndpoint):
    """Step one of your episodes with an assistant message."""

    @extend_schema(request=StepSerializer, responses={200: dict})
    def post(self, request: Request, pk: UUID) -> Response:
        serializer = StepSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        usage = serializer.validated_data.get("usage")
        session = get_own_session(request, pk)
        try:
            step = step_rollout(
                session=session,
                message=serializer.validated_data["message"],
                usage=parse_usage(usage) if usage else None,
            )
        except RolloutError as error:
            raise ValidationError({"message": str(error)}) from None
        except RolloutConflict as error:
            raise Conflict(str(error)) from None
        except RolloutFailed as error:
            raise Unavailable(str(error)) from None
        info: dict[str, object] = dict(step.info)
        if step.score is not None:
            info["status"] = step.score.status
            # An environment may be held out, or made private, after the episode was started.
            readable = may_see_content(requesting_user(request), session.case.version.environment)
            info["rules"] = {
                rule.rule: {"value": rule.value, "reason": rule.reason if readable else ""} for rule in step.score.rules
            }
        return Response(
            {
                "observation": _observation(step.observation),
                "reward": step.reward,
                "done": step.done,
                "truncated": step.truncated,
                "info": info,
            }
        )


def get_visible_version(request: Request, name: str) -> EnvironmentVersion:
    """Return the version *name* of an environment that the user may see. Messages do not name other environments."""
    slug = name.partition("@")[0]
    visible = list_visible_environments(request.user)
    if not visible.filter(slug=slug).exists():
        known = wording.suggest(slug, visible.order_by("slug").values_list("slug", flat=True))
        raise ValidationError({"environment": f"There is no environment {slug!r}; {known or 'none is loaded yet'}."})
    try:
        return get_version(name)
    except VersionNotFound as error:
        raise ValidationError({"environment": f"{error}."}) from None


def get_own_session(request: Request, pk: UUID) -> EpisodeSession:
    """Return the session of the requesting user. Raises NotFound, also for episodes of other users."""
    session = get_session(user=requesting_user(request), pk=pk)
    if session is None:
        raise NotFound("You have no episode with this id.")
    return session


def requesting_user(request: Request) -> User:
    assert isinstance(request.user, User)  # IsAuthenticated is the default permission
    return request.user


def _observation(observation: Observation) -> dict[str, object]:
    return {"messages": observation.messages, "tools": observation.tools}
