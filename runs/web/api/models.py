"""REST API of registered models."""

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from runs.models import ModelEndpoint
from runs.selectors import sees_endpoints
from runs.web.api.parameters import text_parameters
from runs.web.forms import ModelsFilter
from runs.web.queries import filter_models


class ModelItem(serializers.ModelSerializer[ModelEndpoint]):
    """A registered model without its URL and key. `model`, its name at the endpoint, is empty except for staff."""

    model = serializers.SerializerMethodField()
    team = serializers.CharField(
        source="team.slug", default=None, allow_null=True, help_text="The team that owns it; null if it is shared."
    )

    def get_model(self, endpoint: ModelEndpoint) -> str:
        return endpoint.model if sees_endpoints(self.context["request"].user) else ""

    class Meta:
        model = ModelEndpoint
        fields = ["name", "team", "provider", "model", "family", "price_input", "price_cached_input", "price_output"]


class ModelList(ListAPIView[ModelEndpoint]):
    """List the models that a config may name."""

    serializer_class = ModelItem
    filter_backends = ()
    ordering = "name"

    def get_queryset(self) -> QuerySet[ModelEndpoint]:
        filters = ModelsFilter(self.request.query_params, user=self.request.user).values()
        return filter_models(self.request.user, **filters).filter(enabled=True)

    @extend_schema(operation_id="models_list", parameters=text_parameters("team"))
    def get(self, request: Request, *args: object, **kwargs: object) -> Response:
        return super().get(request, *args, **kwargs)
