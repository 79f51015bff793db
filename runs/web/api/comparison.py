"""REST API of the comparison of two runs or two models."""

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response as Answer
from rest_framework.views import APIView

from hub.common.rest.errors import ErrorBody
from hub.common.web.filters import FilterError
from runs.results.comparison.pair import compare
from runs.web import queries
from runs.web.api.parameters import text_parameters
from runs.web.forms import CompareForm


class CompareRuns(APIView):
    """Compare two runs, or two models of one run, case by case. The body is that of `manage.py compare --json`."""

    @extend_schema(
        operation_id="compare",
        parameters=[
            OpenApiParameter("a", int, required=True),
            OpenApiParameter("b", int, description="by default the same run"),
            *text_parameters("model_a", "model_b"),
        ],
        responses={200: OpenApiTypes.OBJECT, 400: ErrorBody},
    )
    def get(self, request: Request) -> Answer:
        form = CompareForm(request.query_params)
        if not form.is_valid():
            raise FilterError(form.problems)
        given = form.cleaned_data
        run_a = queries.get_visible_run(request.user, given["a"])
        run_b = queries.get_visible_run(request.user, given["b"] or given["a"])
        comparison = compare(run_a, run_b, model_a=given["model_a"] or None, model_b=given["model_b"] or None)
        return Answer(comparison.to_json())
