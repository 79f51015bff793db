"""REST of runs: start, follow, cancel, resume, responses, report, failing cases, comparison, registered models."""

from collections.abc import Mapping
from typing import Any, cast

from django.contrib.auth.models import User
from django.db.models import QuerySet
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.generics import ListAPIView
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response as Answer
from rest_framework.views import APIView

from hub.common.errors import Conflict, TooLarge, UserError
from hub.common.rest.errors import ErrorBody
from hub.common.rest.permissions import needs
from runs.config.registered import MAX_CONFIG, resolve_registered_text
from runs.execution.dispatch import dispatch_run
from runs.missing import is_run_complete
from runs.models import Run
from runs.reports import results_json
from runs.selectors import shown_config
from runs.services import cancel_run, create_run, resume_run
from runs.web import queries
from runs.web.api.parameters import text_parameters
from runs.web.forms import RunsFilter


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


class RunDetails(RunItem):
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


class RunList(ListAPIView[Run]):
    """The runs that you may see, the latest first; POST starts one."""

    serializer_class = RunItem
    permission_classes = [needs("runs.add_run")]
    write_scope = "run"
    filter_backends: list[Any] = []
    ordering = "-id"
    parser_classes = [TextParser]

    def get_queryset(self) -> QuerySet[Run]:
        return queries.filter_runs(self.request.user, **RunsFilter(self.request.query_params).values())

    @extend_schema(operation_id="runs_list", parameters=text_parameters("q", "status", "environment", "model"))
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Answer:
        return super().get(request, *args, **kwargs)

    @extend_schema(
        operation_id="runs_start",
        description="A config as JSON or YAML (docs/configuration.md). Models, roles and judges are registered names: "
        "no paths, no `${}`, no endpoints. The run is queued at once.",
        request={"application/json": OpenApiTypes.OBJECT, "application/yaml": OpenApiTypes.STR},
        responses={201: RunDetails, 400: ErrorBody},
    )
    def post(self, request: Request) -> Answer:
        user = cast(User, request.user)
        resolved = resolve_registered_text(_text(request), user=user)
        run = create_run(config=resolved.config, environments=resolved.environments, user=user)
        dispatch_run(run=run)
        return Answer(RunDetails(run, context={"user": user}).data, status=201)


def _text(request: Request) -> str:
    return str(cast("dict[str, str]", request.data).get("text", ""))


class RunDetail(APIView):
    """One run: its config, and how far it is."""

    @extend_schema(operation_id="runs_read", responses=RunDetails)
    def get(self, request: Request, pk: int) -> Answer:
        return Answer(RunDetails(queries.run_of(request.user, pk), context={"user": request.user}).data)


class ChangeEndpoint(APIView):
    permission_classes = [needs("runs.change_run")]
    write_scope = "run"
    parser_classes = [TextParser]


class RunCancel(ChangeEndpoint):
    """End a run: at once where it waits, within seconds where it goes on. One that has ended stays as it is."""

    @extend_schema(operation_id="runs_cancel", request=None, responses=RunItem)
    def post(self, request: Request, pk: int) -> Answer:
        run = queries.run_of(request.user, pk)
        cancel_run(run=run)
        return Answer(RunItem(run).data)


class RunResume(ChangeEndpoint):
    """Let a run that has ended go on: what is missing or errored is asked for. One that is finished stays as it is."""

    @extend_schema(operation_id="runs_resume", request=None, responses={200: RunItem, 409: ErrorBody})
    def post(self, request: Request, pk: int) -> Answer:
        run = queries.run_of(request.user, pk)
        if is_run_complete(run):
            return Answer(RunItem(run).data)
        if not resume_run(run=run):
            raise Conflict("The run is already in progress.")
        dispatch_run(run=run)
        return Answer(RunItem(run).data)


class RunReport(APIView):
    """The document of `manage.py eval --json`."""

    @extend_schema(operation_id="runs_report", responses=OpenApiTypes.OBJECT)
    def get(self, request: Request, pk: int) -> Answer:
        return Answer(results_json(queries.run_of(request.user, pk)))
