"""REST API of preferences: filtered list, exports, agreement."""

from functools import cached_property

from django.db.models import QuerySet
from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response as Answer
from rest_framework.views import APIView

from hub.common.rest.errors import ErrorBody
from preferences.evidence import Withholding
from preferences.exporters import FORMATS
from preferences.exporters.records import preference_record
from preferences.insight.stored import get_agreement
from preferences.models import Preference
from preferences.selectors import PreferenceFilters, filter_preferences, visible_preferences, with_related_objects
from preferences.web.downloads import download_preferences
from preferences.web.forms import ExportForm, PreferencesFilter
from runs.exports.protocol import JSONObject

FILTERS = [
    OpenApiParameter("source", str, description="human, llm or execution"),
    OpenApiParameter("verdict", str, description="first, second, tie or both_bad"),
    OpenApiParameter("run", int),
    OpenApiParameter("environment", str, description="An environment's slug."),
    OpenApiParameter("reviewer", str, description="A reviewer's user name."),
    OpenApiParameter("since", OpenApiTypes.DATE),
]
# Described here because the serializer has no fields, so that the schema does not recognize a list.
PAGES = [
    OpenApiParameter("cursor", str, description="The pagination cursor value."),
    OpenApiParameter("page_size", int, description="Number of results to return per page."),
]


def _filters(request: Request) -> PreferenceFilters:
    """Return the given filters. Raises FilterError."""
    return PreferencesFilter(request.query_params, user=request.user).filters()


class PreferenceItem(serializers.BaseSerializer[Preference]):
    """Preference with issues, evidence and provenance, as in `export?format=jsonl` but without the messages."""

    def to_representation(self, instance: Preference) -> JSONObject:
        return preference_record(self._withhold(instance))

    @cached_property
    def _withhold(self) -> Withholding:
        return Withholding(self.context["request"].user)


@extend_schema(parameters=[*FILTERS, *PAGES], responses=OpenApiTypes.OBJECT)
class Preferences(ListAPIView[Preference]):
    """List the preferences in force, newest first."""

    serializer_class = PreferenceItem
    filter_backends = []

    def get_queryset(self) -> QuerySet[Preference]:
        rows = filter_preferences(visible_preferences(self.request.user), **_filters(self.request))
        return with_related_objects(rows).prefetch_related("issues__category")


class PreferencesExport(APIView):
    """Download an export as a .zip with data, dataset card, provenance and ties, linted as on the command line."""

    sends_files = True

    @extend_schema(
        parameters=[*FILTERS, OpenApiParameter("format", str, required=True, enum=list(FORMATS))],
        responses={(200, "application/zip"): OpenApiTypes.BINARY, 400: OpenApiResponse(ErrorBody)},
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        form = ExportForm(request.query_params, user=request.user)
        filters = form.filters()
        return download_preferences(request.user, filters, format=form.format_name)


class AgreementFigures(APIView):
    """Return the agreement of judge, reviewers and execution: each figure with n and interval, or why it has none."""

    @extend_schema(parameters=FILTERS, responses=OpenApiTypes.OBJECT)
    def get(self, request: Request) -> Answer:
        stored = get_agreement(request.user, _filters(request))
        return Answer(stored.figures.to_json() | {"computed_at": stored.computed_at})
