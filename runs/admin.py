"""Where staff register models: the only ones that the web and REST may name."""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin
from pydantic import ValidationError

from runs.config.registered import endpoint_spec
from runs.models import ModelEndpoint
from runs.providers.base import ModelSpec
from runs.providers.registry import PROVIDERS


class ModelEndpointForm(forms.ModelForm):
    """Refuses here what would otherwise fail in the middle of a run."""

    provider = forms.ChoiceField(help_text="How the endpoint is spoken to.")
    api_key_env = forms.ChoiceField(
        required=False,
        label="Key variable",
        help_text="The variable of the workers with the key; never the key itself.",
    )

    class Meta:
        model = ModelEndpoint
        fields = [
            "name",
            "enabled",
            "provider",
            "model",
            "base_url",
            "api_key_env",
            "parameters",
            "family",
            "price_input",
            "price_cached_input",
            "price_output",
        ]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        live = [(name, name) for name, provider in PROVIDERS.items() if provider.live]
        self.fields["provider"].choices = live  # type: ignore[attr-defined]
        given = self.instance.api_key_env
        # A variable that was taken off the list of allowed ones stays visible, to be changed.
        allowed = sorted({*settings.API_KEY_VARIABLES, *([given] if given else [])})
        self.fields["api_key_env"].choices = [("", "none"), *((name, name) for name in allowed)]  # type: ignore[attr-defined]

    def clean_parameters(self) -> dict[str, Any]:
        parameters = self.cleaned_data["parameters"] or {}
        if not isinstance(parameters, dict):
            raise forms.ValidationError('A JSON object, such as {"temperature": 0}.')
        return parameters

    def clean_api_key_env(self) -> str:
        name: str = self.cleaned_data["api_key_env"]
        if name and name not in settings.API_KEY_VARIABLES:
            raise forms.ValidationError(f"{name} is no longer allowed; LLMEVAL_API_KEY_VARIABLES lists what is.")
        return name

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        for name in ("price_input", "price_cached_input", "price_output"):
            if (data.get(name) or 0) < 0:
                self.add_error(name, "Not below nought.")
        if not self.errors:
            try:
                spec = ModelSpec.model_validate(endpoint_spec(ModelEndpoint(**data)))
                PROVIDERS[spec.provider].Options.model_validate(spec.options)
            except ValidationError as error:
                for item in error.errors():
                    field = str(item["loc"][0]) if item["loc"] else ""
                    self.add_error(field if field in self.fields else None, item["msg"].removeprefix("Value error, "))
        return data


@admin.register(ModelEndpoint)
class ModelEndpointAdmin(admin.ModelAdmin):
    form = ModelEndpointForm
    list_display = ["name", "provider", "model", "base_url", "api_key_env", "enabled"]
    list_filter = ["enabled", "provider"]
    search_fields = ["name", "model"]
    fieldsets = [
        (None, {"fields": ["name", "enabled", "provider", "model", "base_url", "api_key_env"]}),
        ("How it is asked", {"fields": ["parameters", "family"]}),
        ("What it costs", {"fields": ["price_input", "price_cached_input", "price_output"]}),
    ]
