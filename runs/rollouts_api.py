"""REST for trainers: begin an episode, step it, end it. Access, validation, one service, an answer."""

from typing import Any

from django.contrib.auth.models import User
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import APIException, NotFound, PermissionDenied, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from hub.episodes import Observation
from hub.selectors import VersionNotFound, environments_visible, version_get
from runs.models import EpisodeSession
from runs.rollouts import (
    RolloutConflict,
    RolloutFailed,
    RolloutRefused,
    rollout_begin,
    rollout_end,
    rollout_step,
)


class Conflict(APIException):
    status_code = 409
    default_code = "conflict"


class Unavailable(APIException):
    status_code = 503
    default_code = "unavailable"


class BeginSerializer(serializers.Serializer[Any]):
    """`environment`: slug or slug@version. `case`: an id; left out, one is drawn by `seed`. `roles`: role -> names."""

    environment = serializers.CharField(max_length=160)
    case = serializers.CharField(max_length=200, required=False)
    seed = serializers.IntegerField(default=0, min_value=-(2**53), max_value=2**53)
    attempt = serializers.IntegerField(default=1, min_value=1, max_value=1_000_000)
    roles = serializers.DictField(child=serializers.ListField(child=serializers.CharField()), required=False)


class StepSerializer(serializers.Serializer[Any]):
    message = serializers.JSONField()


class EpisodeEndpoint(APIView):
    """Not throttled by the minute: trainers step as fast as they can; how many may be open is bounded instead."""

    throttle_classes: list[Any] = []


class EpisodesView(EpisodeEndpoint):
    """POST begins an episode."""

    @extend_schema(request=BeginSerializer, responses={201: dict})
    def post(self, request: Request) -> Response:
        asked = BeginSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        data = asked.validated_data
        try:
            version = version_get(data["environment"])
        except VersionNotFound as error:
            raise ValidationError({"environment": str(error)}) from None
        if not environments_visible(request.user).filter(pk=version.environment_id).exists():
            raise ValidationError({"environment": f"There is no environment {data['environment']!r}."})
        if version.environment.held_out:
            raise PermissionDenied(f"{version.environment.slug} is held out: it is never trained on.")
        try:
            begun = rollout_begin(
                user=_user(request),
                version=version,
                case_id=data.get("case"),
                seed=data["seed"],
                attempt=data["attempt"],
                roles=data.get("roles"),
            )
        except RolloutRefused as error:
            raise ValidationError(str(error)) from None
        except RolloutFailed as error:
            raise Unavailable(str(error)) from None
        body = {"id": str(begun.session.pk), "case": begun.session.case.external_id, "done": begun.session.done}
        return Response({**body, "observation": _observation(begun.observation)}, status=201)


class EpisodeView(EpisodeEndpoint):
    """GET shows an episode of one's own; DELETE ends it."""

    @extend_schema(responses={200: dict})
    def get(self, request: Request, pk: str) -> Response:
        session = own_session(request, pk)
        return Response(
            {
                "id": str(session.pk),
                "environment": str(session.case.version),
                "case": session.case.external_id,
                "messages": session.state.get("messages", []),
                "tools": session.state.get("tools", []),
                "done": session.done,
                "truncated": session.truncated,
                "reward": session.reward,
                "score": session.score,
                "calls": session.calls,
            }
        )

    @extend_schema(responses={204: None})
    def delete(self, request: Request, pk: str) -> Response:
        rollout_end(session=own_session(request, pk))
        return Response(status=204)


class StepView(EpisodeEndpoint):
    """POST answers with an assistant message."""

    @extend_schema(request=StepSerializer, responses={200: dict})
    def post(self, request: Request, pk: str) -> Response:
        asked = StepSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        try:
            step = rollout_step(session=own_session(request, pk), message=asked.validated_data["message"])
        except RolloutRefused as error:
            raise ValidationError({"message": str(error)}) from None
        except RolloutConflict as error:
            raise Conflict(str(error)) from None
        except RolloutFailed as error:
            raise Unavailable(str(error)) from None
        info: dict[str, Any] = dict(step.info)
        if step.score is not None:
            info["status"] = step.score.status
            info["rules"] = {rule.rule: {"value": rule.value, "reason": rule.reason} for rule in step.score.rules}
        return Response(
            {
                "observation": _observation(step.observation),
                "reward": step.reward,
                "done": step.done,
                "truncated": step.truncated,
                "info": info,
            }
        )


def own_session(request: Request, pk: str) -> EpisodeSession:
    """The session, if it is the user's own; what is not is not told apart from what is not there."""
    sessions = EpisodeSession.objects.select_related("case__version__environment")
    session = sessions.filter(pk=pk, user=_user(request)).first()
    if session is None:
        raise NotFound("There is no such episode of yours.")
    return session


def _user(request: Request) -> User:
    assert isinstance(request.user, User)  # IsAuthenticated is the default permission
    return request.user


def _observation(observation: Observation) -> dict[str, Any]:
    return {"messages": observation.messages, "tools": observation.tools}
