"""REST API of webhooks. Each user sees and changes only their own."""

from django.db.models import QuerySet
from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from hub.common.rest.created import created
from hub.common.rest.errors import ErrorBody
from hub.common.rest.serializers import StrictSerializer
from hub.common.web.filters import FilterForm
from hub.common.web.users import signed_in_user
from llmeval_site.models import Webhook, WebhookDelivery
from llmeval_site.webhooks.deliveries import create_webhook
from llmeval_site.webhooks.sending import MAX_URL


class WebhookItem(serializers.ModelSerializer[Webhook]):
    """A webhook without its secret. `disabled_at` is set if it was disabled after failed deliveries."""

    webhook = serializers.IntegerField(source="pk", help_text="The webhook's number.")
    events = serializers.ListField(child=serializers.ChoiceField(choices=Webhook.Event.choices))

    class Meta:
        model = Webhook
        fields = ["webhook", "url", "events", "created_at", "disabled_at"]


class CreatedWebhook(WebhookItem):
    """A new webhook with its secret, which is not shown again."""

    class Meta(WebhookItem.Meta):
        fields = [*WebhookItem.Meta.fields, "secret"]


class NewWebhook(StrictSerializer):
    """What a webhook is created from."""

    url = serializers.CharField(max_length=MAX_URL)
    events = serializers.MultipleChoiceField(choices=Webhook.Event.choices, allow_empty=False)


class DeliveryItem(serializers.ModelSerializer[WebhookDelivery]):
    """A delivery. `response_status` and `problem` are those of the last attempt."""

    class Meta:
        model = WebhookDelivery
        fields = ["event_id", "event", "status", "attempts", "attempted_at", "response_status", "problem", "created_at"]


class WebhookList(ListAPIView[Webhook]):
    """List your webhooks. POST creates one."""

    serializer_class = WebhookItem
    write_scope = "run"
    filter_backends = ()

    def get_queryset(self) -> QuerySet[Webhook]:
        FilterForm(self.request.query_params).values()
        return signed_in_user(self.request).webhooks.all()

    @extend_schema(
        operation_id="webhooks_create",
        request=NewWebhook,
        responses={201: CreatedWebhook, 400: ErrorBody, 409: ErrorBody},
    )
    def post(self, request: Request) -> Response:
        given = NewWebhook.read(request)
        webhook = create_webhook(user=signed_in_user(request), url=given["url"], events=given["events"])
        return created(CreatedWebhook(webhook).data, "api-webhook", webhook.pk)


class WebhookDetail(APIView):
    """Show or delete one of your webhooks."""

    write_scope = "run"

    @extend_schema(operation_id="webhooks_read", responses=WebhookItem)
    def get(self, request: Request, pk: int) -> Response:
        return Response(WebhookItem(_get_own_webhook(request, pk)).data)

    @extend_schema(operation_id="webhooks_delete", responses={204: None})
    def delete(self, request: Request, pk: int) -> Response:
        _get_own_webhook(request, pk).delete()
        return Response(status=204)


class DeliveryList(ListAPIView[WebhookDelivery]):
    """List the deliveries of one of your webhooks, the latest first."""

    serializer_class = DeliveryItem
    filter_backends = ()

    @extend_schema(operation_id="webhooks_deliveries")
    def get(self, request: Request, *args: object, **kwargs: object) -> Response:
        return super().get(request, *args, **kwargs)

    def get_queryset(self) -> QuerySet[WebhookDelivery]:
        FilterForm(self.request.query_params).values()
        return _get_own_webhook(self.request, self.kwargs["pk"]).deliveries.all()


def _get_own_webhook(request: Request, pk: int) -> Webhook:
    """Return the webhook of the requesting user. Raises Http404, also for webhooks of other users."""
    webhook = Webhook.objects.filter(user=signed_in_user(request), pk=pk).first()
    if webhook is None:
        raise Http404(f"You have no webhook {pk}.")
    return webhook
