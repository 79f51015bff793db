"""REST API of the responses of a run."""

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response as Answer

from runs.exports.selection import find_run_environments, find_run_model
from runs.models import Response, Score
from runs.selectors import reason_without_target, sees_endpoints, withholds_reasons
from runs.web import queries
from runs.web.api.parameters import filter_parameters
from runs.web.forms import ResponsesFilter


class ScoreItem(serializers.ModelSerializer[Score]):
    """Result of one scoring rule."""

    class Meta:
        model = Score
        fields = ["rule", "type", "value", "weight", "required", "reason", "detail", "execution"]


class ResponseItem(serializers.ModelSerializer[Response]):
    """Response with its transcript and scores."""

    environment = serializers.CharField(source="run_environment.version")
    model = serializers.CharField(source="model_label")
    case = serializers.CharField(source="case_name")
    scores = ScoreItem(many=True)
    messages = serializers.JSONField()
    served_model = serializers.CharField(
        help_text="Name of the model that the endpoint reported; empty except for staff."
    )

    def to_representation(self, instance: Response) -> dict[str, object]:
        body = super().to_representation(instance)
        user = self.context["request"].user
        if not sees_endpoints(user):
            body["served_model"] = ""
        if withholds_reasons(user, instance):
            body["reason"] = reason_without_target(instance.reason, instance.status, instance.error_kind)
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
            "served_model",
            "request_id",
            "turns",
            "step_rewards",
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


class ResponseList(ListAPIView[Response]):
    """List the responses of a run with transcripts and scores, in the order in which they were stored."""

    serializer_class = ResponseItem
    filter_backends = ()
    ordering = "id"

    def get_queryset(self) -> QuerySet[Response]:
        if getattr(self, "swagger_fake_view", False):
            return Response.objects.none()
        run = queries.get_visible_run(self.request.user, self.kwargs["pk"])
        form = ResponsesFilter(self.request.query_params)
        filters = form.filters()
        if filters.model:
            find_run_model(run, filters.model)  # an unknown one is an error
        if filters.environment:
            find_run_environments(run, filters.environment)
        self._environments = queries.list_environments(run)
        rows = queries.filter_responses(self.request.user, run, self._environments, filters, form.values()["status"])
        return rows.defer(None).prefetch_related("scores")

    @extend_schema(
        operation_id="runs_responses",
        parameters=filter_parameters(ResponsesFilter),
    )
    def get(self, request: Request, *args: object, **kwargs: object) -> Answer:
        rows = self.paginate_queryset(self.get_queryset())
        assert rows is not None  # the list is always paginated
        queries.set_environments(rows, self._environments)
        return self.get_paginated_response(self.get_serializer(rows, many=True).data)
