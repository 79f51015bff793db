"""REST API of registered models."""

from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.generics import ListAPIView

from hub.common.web.filters import FilterForm
from runs.models import ModelEndpoint


class ModelItem(serializers.ModelSerializer[ModelEndpoint]):
    """A registered model. Its address and key are left out; `model`, its name there, is empty except for staff."""

    model = serializers.SerializerMethodField()

    def get_model(self, endpoint: ModelEndpoint) -> str:
        return endpoint.model if self.context["request"].user.is_staff else ""

    class Meta:
        model = ModelEndpoint
        fields = ["name", "provider", "model", "family", "price_input", "price_cached_input", "price_output"]


class ModelList(ListAPIView[ModelEndpoint]):
    """The models that a config may name."""

    serializer_class = ModelItem
    filter_backends: list[Any] = []
    ordering = "name"
    queryset = ModelEndpoint.objects.filter(enabled=True)

    def get_queryset(self) -> QuerySet[ModelEndpoint]:
        FilterForm(self.request.query_params).values()
        return super().get_queryset()
