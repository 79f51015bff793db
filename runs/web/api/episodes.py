"""REST API of episodes for trainers: create, list, show, step, finish, delete."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import cast, get_args
from uuid import UUID

from django.db.models import QuerySet
from django.urls import reverse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import APIException, NotFound, PermissionDenied, ValidationError
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from hub.common.rest.created import created
from hub.common.rest.errors import ErrorBody
from hub.common.rest.parsers import TranscriptJSONParser
from hub.common.rest.serializers import Body, StrictSerializer
from hub.common.web.users import signed_in_user
from hub.common.wording import end_sentence
from hub.environments.episodes import Observation
from hub.models import EnvironmentVersion
from hub.protocols.messages import JSON, Message, Tool
from hub.selectors import VersionNotFound, get_version, list_visible_environments, may_see_content
from runs.models import EpisodeSession
from runs.providers.openai_api.replies import parse_usage
from runs.rollouts.creation import RolloutOptions, create_rollout
from runs.rollouts.errors import (
    EpisodeEnded,
    EpisodeExpired,
    RolloutError,
    RolloutFailed,
    StepCrashed,
    StepRunning,
)
from runs.rollouts.roles import session_recordings
from runs.rollouts.sessions import delete_rollout, get_session, list_sessions, session_steps
from runs.rollouts.steps import FinishReason, StepAnswer, finish_rollout, step_rollout, wait_for_answer
from runs.rollouts.tokens import validate_tokens
from runs.web.api.prefer_header import parse_wait, requested_wait
from runs.web.forms import EpisodesFilter


class Unavailable(APIException):
    status_code = 503
    default_code = "unavailable"


class StepCrash(APIException):
    status_code = 500
    default_code = "server_error"


# Errors of requests that execute a part of an episode. 422: the environment is wrong. 503: a later attempt may succeed.
FAILURES = {400: ErrorBody, 422: ErrorBody, 429: ErrorBody, 503: ErrorBody}
PAYS = "Slug of the team whose spending quota pays for role models, or `shared`; by default as for a run."


class NewEpisodeSerializer(StrictSerializer):
    """Body of a request for a new episode.

    `environment`: slug or slug@version. `case`: an id; without it, `seed` draws one. `roles`: role -> names of models.
    `model`: label that the trainer chooses, stored with the episode and exported. `recordings`: replies of role models
    in an earlier episode. `attempt_seed`: `seed` of an exported rollout, instead of `seed`, to repeat it.
    """

    environment = serializers.CharField(max_length=160)
    case = serializers.CharField(max_length=200, required=False)
    seed = serializers.IntegerField(default=0, min_value=-(2**53), max_value=2**53)
    attempt_seed = serializers.IntegerField(required=False, min_value=0, max_value=2**63 - 1)
    attempt = serializers.IntegerField(default=1, min_value=1, max_value=1_000_000)
    model = serializers.CharField(max_length=120, required=False, default="")
    roles = serializers.DictField(child=serializers.ListField(child=serializers.CharField()), required=False)
    recordings = serializers.ListField(child=serializers.JSONField(), required=False, max_length=10_000)
    team = serializers.CharField(max_length=64, required=False, default="", help_text=PAYS)


class UsageSerializer(serializers.Serializer[object]):
    """Tokens as chat completions report them."""

    prompt_tokens = serializers.IntegerField(min_value=0, max_value=2**31 - 1)
    completion_tokens = serializers.IntegerField(min_value=0, max_value=2**31 - 1)
    prompt_tokens_details = serializers.DictField(required=False, allow_null=True)
    completion_tokens_details = serializers.DictField(required=False, allow_null=True)


class StepSerializer(StrictSerializer):
    """Body of a step. `turn`: number of earlier steps; with it, the request can be repeated."""

    message = serializers.JSONField()
    usage = UsageSerializer(required=False, allow_null=True)
    turn = serializers.IntegerField(required=False, min_value=0)
    tokens = serializers.JSONField(required=False, allow_null=True)


class FinishSerializer(StrictSerializer):
    """Body that ends an episode. `turn` is as in a step."""

    reason = serializers.ChoiceField(choices=get_args(FinishReason))
    turn = serializers.IntegerField(required=False, min_value=0)


class EpisodeEndpoint(APIView):
    """View of episodes. Requests per minute are not limited; the number of open episodes of a user is."""

    throttle_classes = ()
    read_scope = write_scope = "train"


_WAIT = OpenApiParameter(
    "wait", float, description="Seconds to wait for the answer, 0 to 30. A step that lasts longer is answered with 202."
)
_PREFER = OpenApiParameter(
    "Prefer", str, OpenApiParameter.HEADER, description="`respond-async` and optionally `wait=SECONDS` (RFC 7240)."
)


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
            "group",
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
        given = EpisodesFilter(self.request.query_params)
        return list_sessions(user=signed_in_user(self.request), done=given.done_value(), group=given.values()["group"])

    @extend_schema(
        operation_id="episodes_list", parameters=[OpenApiParameter("done", bool), OpenApiParameter("group", str)]
    )
    def get(self, request: Request, *args: object, **kwargs: object) -> Response:
        return super().get(request, *args, **kwargs)

    @extend_schema(request=NewEpisodeSerializer, responses={201: dict, **FAILURES})
    def post(self, request: Request) -> Response:
        data = NewEpisodeSerializer.read(request)
        options = read_options(request, data)
        with rollout_errors():
            rollout = create_rollout(
                options,
                case_id=data.get("case"),
                attempt=data["attempt"],
                recordings=data.get("recordings"),
                fixed_seed=data.get("attempt_seed"),
            )
        body: dict[str, object] = {
            "id": str(rollout.session.pk),
            "case": rollout.session.case.external_id,
            "attempt": rollout.session.attempt,
            "done": rollout.session.done,
            "turn": 0,
        }
        body["observation"] = observation_body(rollout.observation)
        return created(body, "api-episode", rollout.session.pk)


class EpisodeDetail(EpisodeEndpoint):
    """Show one of your episodes. DELETE deletes it."""

    @extend_schema(responses={200: dict})
    def get(self, request: Request, pk: UUID) -> Response:
        session = get_own_session(request, pk)
        environment = session.case.version.environment
        readable = _may_read_reasons(request, session)
        replies = readable or not environment.held_out  # those of judges quote what was expected
        return Response(
            {
                "id": str(session.pk),
                "environment": str(session.case.version),
                "case": session.case.external_id,
                "attempt": session.attempt,
                "model": session.model,
                "group": session.group or None,
                "messages": session.state.get("messages", []),
                "tools": session.state.get("tools", []),
                **({"parameters": session.state["parameters"]} if "parameters" in session.state else {}),
                "turn": session.revision,
                "done": session.done,
                "truncated": session.truncated,
                "reward": session.reward,
                "score": session.score if readable or session.score is None else _without_reasons(session.score),
                "steps": session_steps(session),
                "calls": session.calls if replies else [],
                "recordings": session_recordings(session) if replies else [],
            }
        )

    @extend_schema(responses={204: None, 409: ErrorBody})
    def delete(self, request: Request, pk: UUID) -> Response:
        delete_rollout(session=get_own_session(request, pk))
        return Response(status=204)


class EpisodeStep(EpisodeEndpoint):
    """Step one of your episodes with an assistant message. A repeated `turn` returns the stored answer."""

    parser_classes = [TranscriptJSONParser]

    @extend_schema(
        request=StepSerializer,
        parameters=[_WAIT, _PREFER],
        responses={200: dict, 202: dict, 409: ErrorBody, 410: ErrorBody, **FAILURES},
    )
    def post(self, request: Request, pk: UUID) -> Response:
        data = StepSerializer.read(request)
        usage = data.get("usage")
        with rollout_errors(unnamed="message"):
            tokens = None if data.get("tokens") is None else validate_tokens(data["tokens"])
        session = get_own_session(request, pk)
        try:
            with rollout_errors(unnamed="message"):
                answer = step_rollout(
                    session=session,
                    message=data["message"],
                    usage=parse_usage(usage) if usage else None,
                    tokens=tokens,
                    turn=data.get("turn"),
                    wait_s=requested_wait(request),
                )
        except StepRunning as running:
            return _running_response(session, running)
        return Response(_answer_body(request, session, answer))


class EpisodeFinish(EpisodeEndpoint):
    """End one of your episodes because of a limit of yours. It is scored, and counts as truncated."""

    @extend_schema(
        request=FinishSerializer,
        parameters=[_WAIT, _PREFER],
        responses={200: dict, 202: dict, 409: ErrorBody, 410: ErrorBody, **FAILURES},
    )
    def post(self, request: Request, pk: UUID) -> Response:
        data = FinishSerializer.read(request)
        session = get_own_session(request, pk)
        try:
            answer = finish_rollout(
                session=session, reason=data["reason"], turn=data.get("turn"), wait_s=requested_wait(request)
            )
        except StepRunning as running:
            return _running_response(session, running)
        except RolloutFailed as error:
            raise Unavailable(str(error)) from None
        return Response(_answer_body(request, session, answer))


class EpisodeTurn(EpisodeEndpoint):
    """Return the answer to the latest turn of one of your episodes, or 202 if it is still executed."""

    @extend_schema(
        operation_id="episodes_turn",
        parameters=[_WAIT],
        responses={200: dict, 202: dict, 404: ErrorBody, 409: ErrorBody, **FAILURES},
    )
    def get(self, request: Request, pk: UUID, turn: int) -> Response:
        session = get_own_session(request, pk)
        try:
            with rollout_errors(unnamed="message"):
                answer = wait_for_answer(session=session, turn=turn, wait_s=parse_wait(request) or 0.0)
        except StepRunning as running:
            return _running_response(session, running)
        except StepCrashed as error:
            raise StepCrash(str(error)) from None
        return Response(_answer_body(request, session, answer))


@contextmanager
def rollout_errors(unnamed: str = "") -> Iterator[None]:
    """Answer errors of a rollout with 400 or 503. unnamed: the key of errors that name none.

    EpisodeEnded, EpisodeExpired and EnvironmentFailed pass; their answers are 409, 410 and 422.
    """
    try:
        yield
    except (EpisodeEnded, EpisodeExpired):
        raise
    except RolloutError as error:
        path = error.path or unnamed
        raise ValidationError({path: str(error)} if path else str(error)) from None
    except RolloutFailed as error:
        raise Unavailable(str(error)) from None


def _running_response(session: EpisodeSession, running: StepRunning) -> Response:
    url = reverse("api-episode-turn", args=[session.pk, running.turn])
    headers = {"Retry-After": str(running.retry_after), "Preference-Applied": "respond-async"}
    body = {"status": "running", "turn": running.turn, "url": url}
    return created(body, "api-episode-turn", session.pk, running.turn, status=202, headers=headers)


def read_version(request: Request, name: str) -> EnvironmentVersion:
    """Return the version *name* of an environment that the user may see. Raises ValidationError if there is none.

    Messages do not name other environments.
    """
    try:
        return get_version(name, among=list_visible_environments(request.user))
    except VersionNotFound as error:
        raise ValidationError({"environment": end_sentence(str(error))}) from None


def _read_trainable_version(request: Request, name: str) -> EnvironmentVersion:
    """Return the version *name* of an environment that may be used for training. Raises PermissionDenied if not."""
    version = read_version(request, name)
    if version.environment.held_out:
        raise PermissionDenied(f"{version.environment.slug} is held out: it must not be used for training.")
    return version


def read_options(request: Request, data: Body) -> RolloutOptions:
    """Return the options that the body *data* gives all episodes of *request*. Raises PermissionDenied."""
    return RolloutOptions(
        user=signed_in_user(request),
        version=_read_trainable_version(request, data["environment"]),
        seed=data["seed"],
        model=data.get("model", ""),
        roles=data.get("roles", {}),
        team=data["team"],
    )


def get_own_session(request: Request, pk: UUID) -> EpisodeSession:
    """Return the session of the requesting user. Raises NotFound, also for episodes of other users."""
    session = get_session(user=signed_in_user(request), pk=pk)
    if session is None:
        raise NotFound("You have no episode with this id.")
    return session


def observation_body(observation: Observation) -> dict[str, object]:
    return _observation(observation.messages, observation.tools, observation.parameters)


def _observation(messages: list[Message], tools: list[Tool], parameters: Mapping[str, JSON]) -> dict[str, object]:
    body: dict[str, object] = {"messages": messages, "tools": tools}
    return {**body, "parameters": parameters} if parameters else body


def score_body(score: Mapping[str, object], *, readable: bool) -> dict[str, object]:
    """Return the status and rules of a stored score. *readable*: with the reasons of the rules."""
    shown = score if readable else _without_reasons(score)
    rules = {
        rule["rule"]: {"value": rule["value"], "reason": rule["reason"]}
        | ({"trust": rule["trust"]} if "trust" in rule else {})
        for rule in cast("list[dict[str, object]]", shown["rules"])
    }
    return {"status": score["status"], "rules": rules}


def _may_read_reasons(request: Request, session: EpisodeSession) -> bool:
    """Return whether the user may read the reasons of the score of *session*.

    Its environment may be held out since the episode was started.
    """
    return may_see_content(signed_in_user(request), session.case.version.environment)


def _without_reasons(score: Mapping[str, object]) -> dict[str, object]:
    rules = cast("list[dict[str, object]]", score["rules"])
    return {**score, "rules": [{**rule, "reason": ""} for rule in rules]}


def _answer_body(request: Request, session: EpisodeSession, answer: StepAnswer) -> dict[str, object]:
    info: dict[str, object] = dict(answer.info)
    if answer.score is not None:
        info |= score_body(answer.score, readable=_may_read_reasons(request, session))
    body = {
        "turn": answer.turn,
        "observation": _observation(answer.messages, answer.tools, answer.parameters),
        "reward": answer.reward,
        "done": answer.done,
        "terminated": answer.done and not answer.truncated,
        "truncated": answer.truncated,
        "stop": answer.stop,
        "info": info,
    }
    if answer.step_reward is not None:
        body["step_reward"] = answer.step_reward
    return {**body, "tools": answer.tools} if answer.tools_changed else body
