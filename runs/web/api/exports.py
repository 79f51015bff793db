"""REST API of exports: failing cases and rollouts as files."""

from typing import Any

from django.http import FileResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.views import APIView

from hub.common.rest.errors import ErrorBody
from runs.exports import FORMATS, RolloutSelection
from runs.web.api.episodes import EpisodeEndpoint, requesting_user, visible_version
from runs.web.api.parameters import text_parameters
from runs.web.downloads import episodes_file, failures_file, run_rollouts_file
from runs.web.forms import FailuresFilter, RolloutsFilter
from runs.web.queries import downloadable_run


class RunFailures(APIView):
    """Download failing cases to train on, to read, or as an environment to evaluate again."""

    @extend_schema(
        operation_id="runs_failures",
        parameters=[
            OpenApiParameter("format", str, enum=list(FORMATS), required=True),
            *text_parameters("model", "environment", "q", "flag", "status"),
        ],
        responses={(200, "application/octet-stream"): OpenApiResponse(OpenApiTypes.BINARY), 400: ErrorBody},
    )
    def get(self, request: Request, pk: int) -> FileResponse:
        run = downloadable_run(request.user, pk)
        asked = FailuresFilter(request.query_params).values()
        return failures_file(run, **asked)


class EpisodeExport(EpisodeEndpoint):
    """Download your finished episodes with rewards and token counts as JSON lines."""

    @extend_schema(
        operation_id="episodes_export",
        parameters=[*text_parameters("environment", "model"), OpenApiParameter("since", OpenApiTypes.DATE)],
        responses={(200, "application/octet-stream"): OpenApiResponse(OpenApiTypes.BINARY), 400: ErrorBody},
    )
    def get(self, request: Request) -> FileResponse:
        given = _export_filter(request)
        if given["environment"]:
            visible_version(request, given["environment"])
        return episodes_file(RolloutSelection(user=requesting_user(request), **given))


class RunRollouts(APIView):
    """Download the scored responses of a run as JSON lines with the keys of exported episodes."""

    @extend_schema(
        operation_id="runs_rollouts",
        parameters=text_parameters("environment", "model"),
        responses={(200, "application/octet-stream"): OpenApiResponse(OpenApiTypes.BINARY), 400: ErrorBody},
    )
    def get(self, request: Request, pk: int) -> FileResponse:
        run = downloadable_run(request.user, pk)
        given = _export_filter(request)
        return run_rollouts_file(run, RolloutSelection(environment=given["environment"], model=given["model"]))


def _export_filter(request: Request) -> dict[str, Any]:
    """Return the given filters. Raises FilterError."""
    return RolloutsFilter(request.query_params).values()
