"""REST API of registered models."""

from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.generics import ListAPIView

from hub.common.web.filters import FilterForm
from runs.models import ModelEndpoint
from runs.selectors import visible_models


class ModelItem(serializers.ModelSerializer[ModelEndpoint]):
    """A registered model without its URL and key. `model`, its name at the endpoint, is empty except for staff."""

    model = serializers.SerializerMethodField()
    team = serializers.CharField(
        source="team.slug", default=None, allow_null=True, help_text="The team that owns it; null if it is shared."
    )

    def get_model(self, endpoint: ModelEndpoint) -> str:
        return endpoint.model if self.context["request"].user.is_staff else ""

    class Meta:
        model = ModelEndpoint
        fields = ["name", "team", "provider", "model", "family", "price_input", "price_cached_input", "price_output"]


class ModelList(ListAPIView[ModelEndpoint]):
    """List the models that a config may name."""

    serializer_class = ModelItem
    filter_backends = ()
    ordering = "name"

    def get_queryset(self) -> QuerySet[ModelEndpoint]:
        FilterForm(self.request.query_params).values()
        return visible_models(self.request.user).filter(enabled=True)
