"""REST of runs: start, follow, cancel, resume, responses, report, failing cases, comparison, registered models."""

from collections.abc import Mapping
from typing import Any, cast

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import FileResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.generics import ListAPIView
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response as Answer
from rest_framework.views import APIView

from hub.common.errors import Conflict, TooLarge, UserError
from hub.common.rest.errors import ErrorBody
from hub.common.rest.permissions import needs
from hub.common.web.filters import FilterError, FilterForm
from runs.config.registered import MAX_CONFIG, resolve_registered_text
from runs.execution.dispatch import dispatch_run
from runs.exports import FORMATS
from runs.models import ModelEndpoint, Response, Run, Score
from runs.reports import results_json
from runs.results.comparison import compare
from runs.selectors import REASON_WITHHELD, reasons_withheld, shown_config
from runs.services import cancel_run, create_run, resume_run
from runs.web import queries
from runs.web.downloads import failures_file
from runs.web.forms import CompareForm, FailuresFilter, ResponsesFilter, RunsFilter


class TextParser(BaseParser):
    """A config as text; YAML reads JSON too, and keeps line numbers for the problems of both."""

    media_type = "*/*"

    def parse(
        self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> dict[str, str]:
        body = stream.read(MAX_CONFIG + 1)
        if len(body) > MAX_CONFIG:
            raise TooLarge(f"A config has at most {MAX_CONFIG:,} bytes.")
        try:
            return {"text": str(body, "utf-8")}
        except UnicodeDecodeError:
            raise UserError("The config is not UTF-8 text.") from None


class RunItem(serializers.ModelSerializer[Run]):
    """A run as the list shows it."""

    run = serializers.IntegerField(source="pk", help_text="The run's number.")
    created_by = serializers.CharField(source="created_by.username", default=None)

    class Meta:
        model = Run
        fields = [
            "run",
            "name",
            "status",
            "message",
            "config_hash",
            "created_by",
            "created_at",
            "started_at",
            "finished_at",
            "seconds",
            "cost_usd",
        ]


class RunWhole(RunItem):
    """A run with its config, and how far it is."""

    config = serializers.SerializerMethodField()
    progress = serializers.SerializerMethodField()

    def get_config(self, run: Run) -> Any:
        """The config; what it says of endpoints is for staff."""
        return shown_config(run, self.context["user"])

    def get_progress(self, run: Run) -> dict[str, Any]:
        """`{"done", "expected", "cost_usd", "cells": [{"environment", "model", "passed", "failed", ...}]}`"""
        return queries.live_counts(run)

    class Meta(RunItem.Meta):
        fields = [*RunItem.Meta.fields, "config", "progress"]


class ScoreItem(serializers.ModelSerializer[Score]):
    """One rule's verdict."""

    class Meta:
        model = Score
        fields = ["rule", "type", "value", "weight", "required", "reason", "detail", "execution"]


class ResponseItem(serializers.ModelSerializer[Response]):
    """One play of one case by one model, whole."""

    environment = serializers.CharField(source="run_environment.version")
    model = serializers.CharField(source="run_model.label")
    case = serializers.CharField(source="case.external_id")
    scores = ScoreItem(many=True)
    messages = serializers.JSONField()

    def to_representation(self, instance: Response) -> dict[str, Any]:
        body: dict[str, Any] = super().to_representation(instance)
        if reasons_withheld(self.context["request"].user, instance):
            body["reason"] = body["reason"] and REASON_WITHHELD
            body["scores"] = [{**score, "reason": "", "detail": None, "execution": None} for score in body["scores"]]
        return body

    class Meta:
        model = Response
        fields = [
            "id",
            "environment",
            "model",
            "case",
            "attempt",
            "status",
            "score",
            "reason",
            "error_kind",
            "messages",
            "text",
            "finish_reason",
            "stop",
            "truncated",
            "refused",
            "turns",
            "input_tokens",
            "cached_input_tokens",
            "output_tokens",
            "reasoning_tokens",
            "latency_ms",
            "cost_usd",
            "role_cost_usd",
            "execution_status",
            "execution_ms",
            "sandbox_tier",
            "execution_trust",
            "scores",
        ]


class ModelItem(serializers.ModelSerializer[ModelEndpoint]):
    """A registered model. Its address and key are left out; `model`, its name there, is empty except for staff."""

    model = serializers.SerializerMethodField()

    def get_model(self, endpoint: ModelEndpoint) -> str:
        return endpoint.model if self.context["request"].user.is_staff else ""

    class Meta:
        model = ModelEndpoint
        fields = ["name", "provider", "model", "family", "price_input", "price_cached_input", "price_output"]


class Models(ListAPIView[ModelEndpoint]):
    """The models that a config may name."""

    serializer_class = ModelItem
    filter_backends: list[Any] = []
    ordering = "name"
    queryset = ModelEndpoint.objects.filter(enabled=True)

    def get_queryset(self) -> QuerySet[ModelEndpoint]:
        FilterForm(self.request.query_params).values()
        return super().get_queryset()


def _words(*names: str) -> list[OpenApiParameter]:
    return [OpenApiParameter(name, str) for name in names]


class Runs(ListAPIView[Run]):
    """The runs that you may see, the latest first; POST starts one."""

    serializer_class = RunItem
    permission_classes = [needs("runs.add_run")]
    write_scope = "run"
    filter_backends: list[Any] = []
    ordering = "-id"
    parser_classes = [TextParser]

    def get_queryset(self) -> QuerySet[Run]:
        return queries.filter_runs(self.request.user, **RunsFilter(self.request.query_params).values())

    @extend_schema(operation_id="runs_list", parameters=_words("q", "status", "environment", "model"))
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Answer:
        return super().get(request, *args, **kwargs)

    @extend_schema(
        operation_id="runs_start",
        description="A config as JSON or YAML (docs/configuration.md). Models, roles and judges are registered names: "
        "no paths, no `${}`, no endpoints. The run is queued at once.",
        request={"application/json": OpenApiTypes.OBJECT, "application/yaml": OpenApiTypes.STR},
        responses={201: RunWhole, 400: ErrorBody},
    )
    def post(self, request: Request) -> Answer:
        user = cast(User, request.user)
        resolved = resolve_registered_text(_text(request), user=user)
        run = create_run(config=resolved.config, environments=resolved.environments, user=user)
        dispatch_run(run=run)
        return Answer(RunWhole(run, context={"user": user}).data, status=201)


def _text(request: Request) -> str:
    return str(cast("dict[str, str]", request.data).get("text", ""))


class RunDetail(APIView):
    """One run: its config, and how far it is."""

    @extend_schema(operation_id="runs_read", responses=RunWhole)
    def get(self, request: Request, pk: int) -> Answer:
        return Answer(RunWhole(queries.run_of(request.user, pk), context={"user": request.user}).data)


class _Change(APIView):
    permission_classes = [needs("runs.change_run")]
    write_scope = "run"
    parser_classes = [TextParser]


class Cancel(_Change):
    """End a run: at once where it waits, within seconds where it goes on. One that has ended stays as it is."""

    @extend_schema(operation_id="runs_cancel", request=None, responses=RunItem)
    def post(self, request: Request, pk: int) -> Answer:
        run = queries.run_of(request.user, pk)
        cancel_run(run=run)
        return Answer(RunItem(run).data)


class Resume(_Change):
    """Let a run that has ended go on: what is missing or errored is asked for. One that is finished stays as it is."""

    @extend_schema(operation_id="runs_resume", request=None, responses={200: RunItem, 409: ErrorBody})
    def post(self, request: Request, pk: int) -> Answer:
        run = queries.run_of(request.user, pk)
        if queries.is_run_complete(run):
            return Answer(RunItem(run).data)
        if not resume_run(run=run):
            raise Conflict("The run is already in progress.")
        dispatch_run(run=run)
        return Answer(RunItem(run).data)


class Responses(ListAPIView[Response]):
    """A run's responses with transcripts and scores, in the order in which they came."""

    serializer_class = ResponseItem
    filter_backends: list[Any] = []
    ordering = "id"

    def get_queryset(self) -> QuerySet[Response]:
        if getattr(self, "swagger_fake_view", False):
            return Response.objects.none()
        run = queries.run_of(self.request.user, self.kwargs["pk"])
        chosen = ResponsesFilter(self.request.query_params).values()
        rows = queries.filter_responses(self.request.user, run, **chosen)
        return rows.defer(None).select_related("case").prefetch_related("scores")

    @extend_schema(operation_id="runs_responses", parameters=_words("status", "environment", "model", "flag", "q"))
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Answer:
        return super().get(request, *args, **kwargs)


class Report(APIView):
    """The document of `manage.py eval --json`."""

    @extend_schema(operation_id="runs_report", responses=OpenApiTypes.OBJECT)
    def get(self, request: Request, pk: int) -> Answer:
        return Answer(results_json(queries.run_of(request.user, pk)))


class Failures(APIView):
    """Failing cases as a file, to train on, to read or to play again."""

    @extend_schema(
        operation_id="runs_failures",
        parameters=[
            OpenApiParameter("format", str, enum=list(FORMATS), required=True),
            *_words("model", "environment", "q", "flag", "status"),
        ],
        responses={(200, "application/octet-stream"): OpenApiResponse(OpenApiTypes.BINARY), 400: ErrorBody},
    )
    def get(self, request: Request, pk: int) -> FileResponse:
        run = queries.downloadable_run(request.user, pk)
        asked = FailuresFilter(request.query_params).values()
        return failures_file(run, **asked)


class Compare(APIView):
    """Two runs, or two models of one run, case by case: the document of `manage.py compare --json`."""

    @extend_schema(
        operation_id="compare",
        parameters=[
            OpenApiParameter("a", int, required=True),
            OpenApiParameter("b", int, description="by default the same run"),
            *_words("model_a", "model_b"),
        ],
        responses={200: OpenApiTypes.OBJECT, 400: ErrorBody},
    )
    def get(self, request: Request) -> Answer:
        form = CompareForm(request.query_params)
        if not form.is_valid():
            raise FilterError(form.problems)
        given = form.cleaned_data
        run_a = queries.run_of(request.user, given["a"])
        run_b = queries.run_of(request.user, given["b"] or given["a"])
        found = compare(run_a, run_b, model_a=given["model_a"] or None, model_b=given["model_b"] or None)
        return Answer(found.to_json())
