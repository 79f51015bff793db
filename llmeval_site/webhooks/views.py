"""Pages of webhooks: those of the user, and one with its deliveries."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from hub.common.errors import UserError
from hub.common.web.users import signed_in_user
from hub.web.audited import record_nothing
from llmeval_site.models import Webhook, WebhookDelivery
from llmeval_site.webhooks.deliveries import DISABLE_AFTER, create_webhook, enable_webhook, send_again, send_test_event
from llmeval_site.webhooks.forms import WebhookForm

_SHOWN = 100


@never_cache  # the page may show a secret
@require_http_methods(["GET", "POST"])
def webhooks(request: HttpRequest) -> HttpResponse:
    """List the user's webhooks; create one. Its secret is shown once."""
    user = signed_in_user(request)
    form = WebhookForm(request.POST if request.method == "POST" else None)
    created: Webhook | None = None
    if form.is_valid():
        try:
            created = create_webhook(user=user, url=form.cleaned_data["url"], events=form.cleaned_data["events"])
        except UserError as error:
            form.add_error("url", error.message)
        else:
            form = WebhookForm()
    context = {"webhooks": user.webhooks.all(), "form": form, "created": created}
    return render(request, "site/webhooks.html", context, status=422 if form.errors else 200)


@require_http_methods(["GET", "POST"])
def webhook(request: HttpRequest, pk: int) -> HttpResponse:
    """Show a webhook with its latest deliveries; send a test event or a delivery again, enable or delete it."""
    user = signed_in_user(request)
    hook = get_object_or_404(user.webhooks, pk=pk)
    if "delete" in request.POST:
        hook.delete()
        messages.success(request, f"The webhook to {hook.url} is deleted.")
        return redirect("webhooks")
    if request.method == "POST":
        return _change(request, hook)
    context = {"webhook": hook, "deliveries": hook.deliveries.order_by("-id")[:_SHOWN], "limit": DISABLE_AFTER}
    return render(request, "site/webhook.html", context)


def _change(request: HttpRequest, hook: Webhook) -> HttpResponse:
    try:
        if "again" in request.POST:
            send_again(_delivery(hook, request.POST["again"]))
            messages.success(request, "The delivery will be sent again.")
        elif "test" in request.POST:
            send_test_event(hook)
            messages.success(request, "A test event will be sent.")
        elif "enable" in request.POST:
            enable_webhook(hook)
            messages.success(request, "The webhook is enabled.")
    except UserError as error:
        messages.error(request, error.message)
        return record_nothing(redirect("webhook", pk=hook.pk))
    return redirect("webhook", pk=hook.pk)


def _delivery(hook: Webhook, number: str) -> WebhookDelivery:
    if not (number.isascii() and number.isdigit() and len(number) < 19):
        raise Http404
    return get_object_or_404(hook.deliveries, pk=int(number))
