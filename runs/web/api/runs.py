"""REST API of runs: create, list, show, cancel, resume, report."""

from collections.abc import Mapping
from typing import IO, cast

from django.contrib.auth.models import User
from django.db.models import QuerySet
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema, extend_schema_field
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
    """Parser of a config as text. It is read as YAML, JSON included, so that problems of both have line numbers."""

    media_type = "*/*"

    def parse(
        self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, object] | None = None
    ) -> dict[str, str]:
        body = stream.read(MAX_CONFIG + 1)
        if len(body) > MAX_CONFIG:
            raise TooLarge(f"The config is larger than {MAX_CONFIG:,} bytes.")
        try:
            return {"text": str(body, "utf-8")}
        except UnicodeDecodeError:
            raise UserError("The config is not UTF-8 text.") from None


class RunItem(serializers.ModelSerializer[Run]):
    """A run in a list."""

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
    """A run with its config and progress."""

    config = serializers.SerializerMethodField()
    progress = serializers.SerializerMethodField()

    @extend_schema_field(OpenApiTypes.ANY)
    def get_config(self, run: Run) -> object:
        """The config, for staff with the description of endpoints."""
        return shown_config(run, self.context["user"])

    def get_progress(self, run: Run) -> queries.RunProgressData:
        """Stored and expected responses, in total and for each environment and model."""
        return queries.get_progress(run)

    class Meta(RunItem.Meta):
        fields = [*RunItem.Meta.fields, "config", "progress"]


class RunList(ListAPIView[Run]):
    """List the runs that you may see, the latest first. POST creates a run and queues it."""

    serializer_class = RunItem
    permission_classes = [needs("runs.add_run")]
    write_scope = "run"
    filter_backends = ()
    ordering = "-id"
    parser_classes = [TextParser]

    def get_queryset(self) -> QuerySet[Run]:
        return queries.filter_runs(self.request.user, **RunsFilter(self.request.query_params).values())

    @extend_schema(operation_id="runs_list", parameters=text_parameters("q", "status", "environment", "model"))
    def get(self, request: Request, *args: object, **kwargs: object) -> Answer:
        return super().get(request, *args, **kwargs)

    @extend_schema(
        operation_id="runs_start",
        description="A config as JSON or YAML (docs/configuration.md). Models, roles and judges are registered names: "
        "paths, `${}` and endpoints are not allowed. The run is queued.",
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
    """Show one run with its config and progress."""

    @extend_schema(operation_id="runs_read", responses=RunDetails)
    def get(self, request: Request, pk: int) -> Answer:
        return Answer(RunDetails(queries.get_visible_run(request.user, pk), context={"user": request.user}).data)


class ChangeEndpoint(APIView):
    permission_classes = [needs("runs.change_run")]
    write_scope = "run"
    parser_classes = [TextParser]


class RunCancel(ChangeEndpoint):
    """Cancel a run: at once if it is queued, within seconds if it is running. A run that has ended is unchanged."""

    @extend_schema(operation_id="runs_cancel", request=None, responses=RunItem)
    def post(self, request: Request, pk: int) -> Answer:
        run = queries.get_visible_run(request.user, pk)
        cancel_run(run=run)
        return Answer(RunItem(run).data)


class RunResume(ChangeEndpoint):
    """Resume a run that has ended: request its missing and errored responses. A complete run is unchanged."""

    @extend_schema(operation_id="runs_resume", request=None, responses={200: RunItem, 409: ErrorBody})
    def post(self, request: Request, pk: int) -> Answer:
        run = queries.get_visible_run(request.user, pk)
        if is_run_complete(run):
            return Answer(RunItem(run).data)
        if not resume_run(run=run):
            raise Conflict("The run is already in progress.")
        dispatch_run(run=run)
        return Answer(RunItem(run).data)


class RunReport(APIView):
    """Return the results of a run, as `manage.py eval --json` writes them."""

    @extend_schema(operation_id="runs_report", responses=OpenApiTypes.OBJECT)
    def get(self, request: Request, pk: int) -> Answer:
        return Answer(results_json(queries.get_visible_run(request.user, pk)))
