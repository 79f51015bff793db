"""REST API of runs: create, list, show, cancel, resume, report."""

from collections.abc import Mapping
from typing import IO, cast

from django.db import transaction
from django.db.models import QuerySet
from django.http import FileResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.generics import ListAPIView
from rest_framework.parsers import BaseParser, FormParser
from rest_framework.request import Request
from rest_framework.response import Response as Answer
from rest_framework.views import APIView

from hub.common.errors import TooLarge, UserError
from hub.common.rest.conditional import CONDITIONS, ConditionalView
from hub.common.rest.created import created
from hub.common.rest.errors import ErrorBody
from hub.common.rest.parsers import BoundedJSONParser
from hub.common.rest.permissions import needs
from hub.common.rest.serializers import StrictSerializer
from hub.common.web.users import signed_in_user
from hub.web.audited import record_move, record_nothing
from runs.config.registered import MAX_CONFIG, resolve_registered_text
from runs.description import MAX_TAGS, describe_run
from runs.execution.dispatch import dispatch_run
from runs.missing import is_run_complete
from runs.models import NOTE_LENGTH, Run, RunTag
from runs.reports import results_json
from runs.reports.files import REPORT_FILES
from runs.rescoring import create_rescoring
from runs.selectors import shown_config
from runs.services import RunInProgress, cancel_run, create_run, delete_run, move_run, resume_run
from runs.web import queries
from runs.web.api.parameters import text_parameters
from runs.web.downloads import download_report
from runs.web.forms import ReportFilter, RunsFilter
from runs.web.live import get_shared_progress
from runs.web.progress import RunProgressData


class YAMLParser(BaseParser):
    """Parser of a config as text. It is read as YAML, JSON included, so that problems of both have line numbers."""

    media_type = "application/yaml"

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


class JSONTextParser(YAMLParser):
    """Parser of a config that is sent as JSON."""

    media_type = "application/json"


class IgnoringParser(BaseParser):
    """Parser for actions that need no body: it ignores bodies of every type that no parser before it reads."""

    media_type = "*/*"

    def parse(
        self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, object] | None = None
    ) -> dict[str, str]:
        return {}


class RunItem(serializers.ModelSerializer[Run]):
    """A run in a list."""

    run = serializers.IntegerField(source="pk", help_text="The run's number.")
    created_by = serializers.CharField(
        source="created_by.username",
        default=None,
        allow_null=True,
        help_text="The user who created it; null for a run of a command.",
    )
    team = serializers.CharField(
        source="team.slug", default=None, allow_null=True, help_text="The team that owns it; null if it is shared."
    )
    tags = serializers.SlugRelatedField[RunTag](slug_field="name", many=True, read_only=True)
    retry_at = serializers.DateTimeField(
        read_only=True,
        allow_null=True,
        help_text="When a worker tries it again after an infrastructure fault; `message` has the reason.",
    )

    class Meta:
        model = Run
        fields = [
            "run",
            "name",
            "team",
            "tags",
            "note",
            "status",
            "message",
            "retry_at",
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
    budget_changes = serializers.JSONField(
        read_only=True,
        help_text="Changes of the budget when the run was resumed: `from`, `to`, `at` and `by`, a username or "
        "empty for the command line.",
    )
    progress = serializers.SerializerMethodField()

    @extend_schema_field(OpenApiTypes.ANY)
    def get_config(self, run: Run) -> object:
        """The config, for staff with the description of endpoints."""
        return shown_config(run, self.context["user"])

    def get_progress(self, run: Run) -> RunProgressData:
        """Stored and expected responses, in total and for each environment and model; a few seconds old at most."""
        return get_shared_progress(run)

    class Meta(RunItem.Meta):
        fields = [*RunItem.Meta.fields, "config", "budget_changes", "progress"]


class AmountField(serializers.FloatField):
    """Amount of money. true and false are no numbers, though Python would read them as 1 and 0."""

    def to_internal_value(self, data: float | str) -> float:
        if isinstance(data, bool):
            self.fail("invalid")
        return super().to_internal_value(data)


class Resumption(StrictSerializer):
    """How a run is resumed. The body may be left out."""

    budget_usd = AmountField(
        required=False,
        help_text="New budget of the run in US dollars, for a run that has one. It has to exceed what the run has "
        "spent. The run records the change.",
    )
    retry_too_long = serializers.BooleanField(
        required=False, help_text="Request responses again whose conversation was too long for the model."
    )


class Description(StrictSerializer):
    """Name, tags, note and team of a run. What is left out stays as it is; `tags` replace all that the run has."""

    name = serializers.CharField(required=False, max_length=120)
    tags = serializers.ListField(child=serializers.CharField(max_length=40), required=False, max_length=MAX_TAGS)
    note = serializers.CharField(required=False, allow_blank=True, max_length=NOTE_LENGTH)
    team = serializers.CharField(
        required=False, max_length=64, help_text="Slug of the team to move it to, or `shared`. Managers may."
    )


class StartParameters(StrictSerializer):
    """Parameters of the address that starts a run: none. `team` is a key of the config."""


class RunList(ListAPIView[Run]):
    """List the runs that you may see, the latest first. POST creates a run and queues it."""

    serializer_class = RunItem
    permission_classes = [needs("runs.add_run")]
    write_scope = "run"
    filter_backends = ()
    ordering = "-id"
    parser_classes = [JSONTextParser, YAMLParser]

    def get_queryset(self) -> QuerySet[Run]:
        return queries.filter_runs(
            self.request.user, **RunsFilter(self.request.query_params, user=self.request.user).values()
        )

    @extend_schema(
        operation_id="runs_list", parameters=text_parameters("q", "status", "environment", "model", "tag", "team")
    )
    def get(self, request: Request, *args: object, **kwargs: object) -> Answer:
        return super().get(request, *args, **kwargs)

    @extend_schema(
        operation_id="runs_start",
        description="A config as JSON or YAML (docs/configuration.md). Models, roles and judges are registered names: "
        "paths, `${}` and endpoints are not allowed. The run is queued.",
        request={"application/json": OpenApiTypes.OBJECT, "application/yaml": OpenApiTypes.STR},
        responses={201: RunDetails, 400: ErrorBody, 415: ErrorBody, 503: ErrorBody},
    )
    def post(self, request: Request) -> Answer:
        StartParameters.read_parameters(request)
        user = signed_in_user(request)
        resolved = resolve_registered_text(_text(request), user=user)
        run = create_run(config=resolved.config, environments=resolved.environments, user=user, team=resolved.team)
        dispatch_run(run=run)
        return created(RunDetails(run, context={"user": user}).data, "api-run", run.pk)


def _text(request: Request) -> str:
    return str(cast("dict[str, str]", request.data).get("text", ""))


class RunDetail(ConditionalView):
    """Show one run with its config and progress, change its name, tags and note, or delete it."""

    write_scope = "run"
    model = Run

    @extend_schema(operation_id="runs_read", responses={200: RunDetails, **CONDITIONS})
    def get(self, request: Request, pk: int) -> Answer:
        return Answer(RunDetails(queries.get_visible_run(request.user, pk), context={"user": request.user}).data)

    @extend_schema(
        operation_id="runs_describe",
        description="Change name, tags or note: the user who started the run may, and users who may cancel runs. "
        "Change the team of a run that has ended: managers of its team and superusers may.",
        request=Description,
        responses={200: RunItem, 400: ErrorBody, 403: ErrorBody, 409: ErrorBody, 412: ErrorBody},
    )
    def patch(self, request: Request, pk: int) -> Answer:
        run = queries.get_visible_run(request.user, pk)
        changes = dict(Description.read(request))
        team = changes.pop("team", None)
        target = None if team is None else queries.find_target(signed_in_user(request), run, team)
        with transaction.atomic():  # all changes or none
            if changes or team is None:
                queries.check_may_describe(request.user, run)
                describe_run(run=run, **changes)
            if team is not None:
                move_run(run=run, team=target)
        answer = Answer(RunItem(run).data)
        if team is not None:
            record_move(answer, request.path, target)
        return answer

    @extend_schema(
        operation_id="runs_delete",
        description="Hide the run everywhere; an administrator can restore it. Only its owner and staff may.",
        responses={204: None, 403: ErrorBody, 409: ErrorBody, 412: ErrorBody},
    )
    def delete(self, request: Request, pk: int) -> Answer:
        run = queries.get_visible_run(request.user, pk)
        queries.check_may_delete(request.user, run)
        delete_run(run=run, user=signed_in_user(request))
        return Answer(status=204)


class ChangeEndpoint(APIView):
    permission_classes = [needs("runs.change_run")]
    write_scope = "run"
    parser_classes = [IgnoringParser]


class RunCancel(ChangeEndpoint):
    """Cancel a run: at once if it is queued, within seconds if it is running. A run that has ended is unchanged."""

    @extend_schema(operation_id="runs_cancel", request=None, responses=RunItem)
    def post(self, request: Request, pk: int) -> Answer:
        run = queries.get_visible_run(request.user, pk)
        cancelled = cancel_run(run=run)
        answer = Answer(RunItem(run).data)
        return answer if cancelled else record_nothing(answer)


class RunResume(ChangeEndpoint):
    """Resume a run that has ended: request its missing and errored responses. A complete run is unchanged.

    Responses whose conversation was too long for the model are requested again only with `retry_too_long`.
    """

    parser_classes = [BoundedJSONParser, FormParser, IgnoringParser]  # curl sends forms by default

    @extend_schema(
        operation_id="runs_resume",
        description="409: the run has not ended. If it is being cancelled, `Retry-After` says when to send it again.",
        request={"application/json": Resumption},
        responses={200: RunItem, 400: ErrorBody, 409: ErrorBody, 503: ErrorBody},
    )
    def post(self, request: Request, pk: int) -> Answer:
        run = queries.get_visible_run(request.user, pk)
        body = Resumption.read(request)
        retry_too_long = body.get("retry_too_long", False)
        if is_run_complete(run, retry_too_long=retry_too_long):
            return record_nothing(Answer(RunItem(run).data))
        budget, user = body.get("budget_usd"), signed_in_user(request)
        if not resume_run(run=run, budget_usd=budget, user=user, retry_too_long=retry_too_long):
            raise RunInProgress(run)
        dispatch_run(run=run)
        return Answer(RunItem(run).data)


class RunRescore(APIView):
    """Queue a run that scores the stored responses of a run again, without asking a model."""

    permission_classes = [needs("runs.add_run")]
    write_scope = "run"
    parser_classes = [IgnoringParser]

    @extend_schema(
        operation_id="runs_rescore",
        description="409: the run has not ended.",
        request=None,
        responses={201: RunItem, 400: ErrorBody, 409: ErrorBody, 503: ErrorBody},
    )
    def post(self, request: Request, pk: int) -> Answer:
        run = queries.get_visible_run(request.user, pk)
        rescoring = create_rescoring(run=run, user=signed_in_user(request)).run
        dispatch_run(run=rescoring)
        return created(RunItem(rescoring).data, "api-run", rescoring.pk)


class RunReport(APIView):
    """Return the report of a run: as `manage.py eval --json` writes it, or as a file in another format."""

    sends_files = True

    @extend_schema(
        operation_id="runs_report",
        parameters=[OpenApiParameter("format", str, enum=["json", *REPORT_FILES], default="json")],
        description="`markdown` and `junit` have reasons, so they need access to held-out cases if the run has any.",
        responses={
            (200, "application/json"): OpenApiTypes.OBJECT,
            (200, "text/html"): OpenApiTypes.STR,
            (200, "text/markdown"): OpenApiTypes.STR,
            (200, "application/xml"): OpenApiTypes.STR,
            400: ErrorBody,
            403: ErrorBody,
        },
    )
    def get(self, request: Request, pk: int) -> Answer | FileResponse:
        format = ReportFilter(request.query_params).values()["format"] or "json"
        if format == "json":
            return Answer(results_json(queries.get_visible_run(request.user, pk), user=request.user))
        file = REPORT_FILES[format]
        return download_report(file, queries.get_reportable_run(request.user, pk, file), signed_in_user(request))
