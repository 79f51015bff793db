"""Form of a webhook."""

from django import forms

from llmeval_site.models import Webhook
from llmeval_site.webhooks.sending import MAX_URL


class WebhookForm(forms.Form):
    """Form that creates a webhook."""

    url = forms.CharField(label="Address", max_length=MAX_URL, help_text="Receives a POST request for each event.")
    events = forms.MultipleChoiceField(
        choices=Webhook.Event.choices,
        widget=forms.CheckboxSelectMultiple,
        initial=[Webhook.Event.COMPLETED, Webhook.Event.FAILED],
    )
