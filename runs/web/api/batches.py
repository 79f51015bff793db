"""REST API for many episodes at a time: cases, batches of groups, and scores of whole conversations."""

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from hub.common.rest.parsers import TranscriptJSONParser
from hub.common.rest.serializers import StrictSerializer
from hub.selectors import may_see_content
from runs.rollouts.batches import MAX_EPISODES, RolloutGroup, create_batch
from runs.rollouts.conversations import MAX_ITEMS, Conversation, ConversationScore, score_conversations
from runs.rollouts.openings import MAX_CASES, CaseOpening, list_openings
from runs.web.api.episodes import (
    FAILURES,
    PAYS,
    EpisodeEndpoint,
    observation_body,
    read_options,
    rollout_errors,
    score_body,
)


class BatchSerializer(StrictSerializer):
    """Body of a batch. Give either `cases`, or `n` and optionally `split`; `group_size` is the attempts per case."""

    environment = serializers.CharField(max_length=160)
    cases = serializers.ListField(
        child=serializers.CharField(max_length=200), required=False, min_length=1, max_length=MAX_EPISODES
    )
    n = serializers.IntegerField(required=False, min_value=1, max_value=MAX_EPISODES)
    split = serializers.CharField(required=False, max_length=100, default="")
    group_size = serializers.IntegerField(default=1, min_value=1, max_value=MAX_EPISODES)
    seed = serializers.IntegerField(default=0, min_value=-(2**53), max_value=2**53)
    model = serializers.CharField(max_length=120, required=False, default="")
    roles = serializers.DictField(child=serializers.ListField(child=serializers.CharField()), required=False)
    team = serializers.CharField(max_length=64, required=False, default="", help_text=PAYS)

    def validate(self, attrs: dict[str, object]) -> dict[str, object]:
        if ("cases" in attrs) == ("n" in attrs):
            raise ValidationError({"cases": "Send either `cases`, or `n` to draw cases."})
        return attrs


class ConversationSerializer(StrictSerializer):
    """One conversation to score."""

    case = serializers.CharField(max_length=200)
    messages = serializers.JSONField()
    attempt = serializers.IntegerField(default=1, min_value=1, max_value=1_000_000)


class ScoreSerializer(StrictSerializer):
    """Body of a request to score conversations."""

    environment = serializers.CharField(max_length=160)
    items = serializers.ListField(child=ConversationSerializer(), min_length=1, max_length=MAX_ITEMS)
    seed = serializers.IntegerField(default=0, min_value=-(2**53), max_value=2**53)
    roles = serializers.DictField(child=serializers.ListField(child=serializers.CharField()), required=False)
    team = serializers.CharField(max_length=64, required=False, default="", help_text=PAYS)


class CasesSerializer(StrictSerializer):
    """Body of a request for cases. `opened`: with the first observation of each."""

    environment = serializers.CharField(max_length=160)
    split = serializers.CharField(required=False, max_length=100, default="")
    offset = serializers.IntegerField(default=0, min_value=0)
    limit = serializers.IntegerField(default=MAX_CASES, min_value=1, max_value=MAX_CASES)
    seed = serializers.IntegerField(default=0, min_value=-(2**53), max_value=2**53)
    roles = serializers.DictField(child=serializers.ListField(child=serializers.CharField()), required=False)
    team = serializers.CharField(max_length=64, required=False, default="", help_text=PAYS)
    opened = serializers.BooleanField(default=True)


class EpisodeCases(EpisodeEndpoint):
    """List the cases of an environment with their opening messages, tools and split. Nothing is stored."""

    @extend_schema(operation_id="episodes_cases", request=CasesSerializer, responses={200: dict, **FAILURES})
    def post(self, request: Request) -> Response:
        data = CasesSerializer.read(request)
        options = read_options(request, data)
        with rollout_errors():
            page = list_openings(
                options, split=data["split"], offset=data["offset"], limit=data["limit"], opened=data["opened"]
            )
        cases = [_case_body(item) for item in page.cases]
        return Response({"environment": str(options.version), "total": page.total, "cases": cases})


class EpisodeBatch(EpisodeEndpoint):
    """Start groups of episodes at once. If one cannot be started, none is."""

    @extend_schema(
        operation_id="episodes_batch",
        request=BatchSerializer,
        responses={201: dict, **FAILURES},
    )
    def post(self, request: Request) -> Response:
        data = BatchSerializer.read(request)
        options = read_options(request, data)
        with rollout_errors():
            groups = create_batch(
                options,
                cases=data.get("cases"),
                n=data.get("n"),
                split=data["split"],
                group_size=data["group_size"],
            )
        body = {"environment": str(options.version), "groups": [_group_body(group) for group in groups]}
        return Response(body, status=201)


class ConversationScores(EpisodeEndpoint):
    """Score whole conversations. An item that cannot be scored has an `error`, and does not affect the others."""

    parser_classes = [TranscriptJSONParser]

    @extend_schema(operation_id="score", request=ScoreSerializer, responses={200: dict, **FAILURES})
    def post(self, request: Request) -> Response:
        data = ScoreSerializer.read(request)
        options = read_options(request, data)
        with rollout_errors():
            scores = score_conversations(options, [Conversation(**item) for item in data["items"]])
        readable = may_see_content(options.user, options.version.environment)
        items = [_score_body(score, readable=readable) for score in scores]
        return Response({"environment": str(options.version), "items": items})


def _case_body(item: CaseOpening) -> dict[str, object]:
    observation = None if item.observation is None else observation_body(item.observation)
    return {"case": item.case, "split": item.split, "observation": observation}


def _group_body(group: RolloutGroup) -> dict[str, object]:
    episodes = [
        {
            "id": str(rollout.session.pk),
            "attempt": rollout.session.attempt,
            "done": rollout.session.done,
            "turn": 0,
            "observation": observation_body(rollout.observation),
        }
        for rollout in group.rollouts
    ]
    return {"group": group.id, "case": group.case, "episodes": episodes}


def _score_body(item: ConversationScore, *, readable: bool) -> dict[str, object]:
    body: dict[str, object] = {"case": item.case, "reward": item.reward}
    if item.score is None:
        return {**body, "error": {"code": item.code, "message": item.error}}
    ended = {"terminated": item.done and not item.truncated, "truncated": item.truncated, "stop": item.stop}
    return {**body, **ended, **score_body(item.score, readable=readable), "error": None}
