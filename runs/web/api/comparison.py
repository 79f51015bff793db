"""REST API of the comparison of runs or models."""

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response as Answer
from rest_framework.views import APIView

from hub.common.rest.errors import ErrorBody
from hub.common.web.filters import FilterError
from runs.reports.comparison.document import comparison_json
from runs.results.comparison.gate import decide_gate
from runs.results.comparison.several import compare_all
from runs.web import queries
from runs.web.api.parameters import text_parameters
from runs.web.forms import CompareForm


class CompareRuns(APIView):
    """Compare runs, or models of one run, case by case. The body is the document of `manage.py compare --json`."""

    @extend_schema(
        operation_id="compare",
        parameters=[
            OpenApiParameter("a", int, required=True),
            OpenApiParameter("b", int, description="by default the same run"),
            *text_parameters("model_a", "model_b"),
            OpenApiParameter("also", str, description="numbers of more runs, separated by commas"),
            OpenApiParameter("margin", float, description="equivalence margin in percentage points"),
            OpenApiParameter("gate", str, description="conditions such as `accuracy >= -0.01; cost <= 1.2x`"),
        ],
        responses={200: OpenApiTypes.OBJECT, 400: ErrorBody},
    )
    def get(self, request: Request) -> Answer:
        form = CompareForm(request.query_params)
        if not form.is_valid():
            raise FilterError(form.problems)
        given = form.cleaned_data
        numbers = (given["a"], given["b"] or given["a"], *form.more_runs)
        runs = [queries.get_visible_run(request.user, pk) for pk in numbers]
        found = compare_all(runs, model_a=given["model_a"] or None, model_b=given["model_b"] or None)
        gate = decide_gate(given["gate"], found) if given["gate"] else None
        return Answer(comparison_json(found, gate=gate, margin=form.margin_share))
