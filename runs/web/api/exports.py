"""REST API of exports: failing cases and rollouts as files."""

from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.views import APIView

from hub.common.rest.errors import ErrorBody
from hub.common.web.users import signed_in_user
from runs.exports import RolloutSelection
from runs.models import Response
from runs.web.api.episodes import EpisodeEndpoint, read_version
from runs.web.api.parameters import filter_parameters
from runs.web.downloads import download_episodes, download_failures, download_run_rollouts
from runs.web.forms import FailuresFilter, RolloutsFilter, RunRolloutsFilter
from runs.web.queries import get_exportable_run


class RunFailures(APIView):
    """Download failing cases to train on, to read, or as an environment to evaluate again."""

    sends_files = True

    @extend_schema(
        operation_id="runs_failures",
        parameters=[
            OpenApiParameter("status", str, enum=[Response.Status.FAILED]),
            *filter_parameters(FailuresFilter, but=("status",)),
        ],
        responses={
            (200, "application/octet-stream"): OpenApiResponse(OpenApiTypes.BINARY),
            (200, "application/zip"): OpenApiResponse(OpenApiTypes.BINARY, description="With `format=bundle`."),
            400: ErrorBody,
        },
    )
    def get(self, request: Request, pk: int) -> HttpResponseBase:
        run = get_exportable_run(request.user, pk)
        form = FailuresFilter(request.query_params)
        return download_failures(run, form.filters(), format=form.format_name).response


class EpisodeExport(EpisodeEndpoint):
    """Download your finished episodes with rewards and tokens, as JSON lines or in a format of trainers."""

    sends_files = True

    @extend_schema(
        operation_id="episodes_export",
        parameters=[
            *filter_parameters(RolloutsFilter, but=("since",)),
            OpenApiParameter("since", OpenApiTypes.DATE),
        ],
        responses={(200, "application/octet-stream"): OpenApiResponse(OpenApiTypes.BINARY), 400: ErrorBody},
    )
    def get(self, request: Request) -> HttpResponseBase:
        given = RolloutsFilter(request.query_params).values()
        if given["environment"]:
            read_version(request, given["environment"])
        selection = RolloutSelection(
            user=signed_in_user(request),
            environment=given["environment"],
            model=given["model"],
            since=given["since"],
            viewer=signed_in_user(request),
        )
        return download_episodes(selection, format=given["format"]).response


class RunRollouts(APIView):
    """Download the scored responses of a run in the formats of exported episodes."""

    sends_files = True

    @extend_schema(
        operation_id="runs_rollouts",
        parameters=filter_parameters(RunRolloutsFilter),
        responses={(200, "application/octet-stream"): OpenApiResponse(OpenApiTypes.BINARY), 400: ErrorBody},
    )
    def get(self, request: Request, pk: int) -> HttpResponseBase:
        run = get_exportable_run(request.user, pk)
        given = RunRolloutsFilter(request.query_params).values()
        selection = RolloutSelection(environment=given["environment"], model=given["model"])
        return download_run_rollouts(run, selection, format=given["format"]).response
