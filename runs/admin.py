"""Admin of registered models."""

from django import forms
from django.conf import settings
from django.contrib import admin
from pydantic import ValidationError

from hub.protocols.messages import JSON
from runs.config.endpoints import endpoint_spec
from runs.models import ModelEndpoint
from runs.providers.registry import PROVIDERS


def _live_providers() -> list[tuple[str, str]]:
    """Return the providers that call an endpoint, as choices of a form."""
    return [(name, name) for name, provider in PROVIDERS.items() if provider.live]


def _key_variables() -> list[tuple[str, str]]:
    """Return the variables that may hold a key, as choices of a form.

    Variables that registered models use are included even if they are no longer allowed, so that the form can show
    them; saving such a variable is an error.
    """
    stored = ModelEndpoint.objects.exclude(api_key_env="").values_list("api_key_env", flat=True)
    return [("", "none"), *((name, name) for name in sorted({*settings.API_KEY_VARIABLES, *stored}))]


class ModelEndpointForm(forms.ModelForm):
    """Form of a registered model. It rejects values that would make a run fail."""

    provider = forms.ChoiceField(choices=_live_providers, help_text="Protocol of the endpoint.")
    api_key_env = forms.ChoiceField(
        choices=_key_variables,
        required=False,
        label="Key variable",
        help_text="Name of the environment variable with the key, never the key itself.",
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

    def clean_parameters(self) -> dict[str, JSON]:
        parameters = self.cleaned_data["parameters"] or {}
        if not isinstance(parameters, dict):
            raise forms.ValidationError('Enter a JSON object such as {"temperature": 0}.')
        return parameters

    def clean_api_key_env(self) -> str:
        name: str = self.cleaned_data["api_key_env"]
        if name and name not in settings.API_KEY_VARIABLES:
            raise forms.ValidationError(f"{name} is no longer allowed; LLMEVAL_API_KEY_VARIABLES lists what is.")
        return name

    def clean(self) -> dict[str, object]:
        data = super().clean() or {}
        for name in ("price_input", "price_cached_input", "price_output"):
            if (data.get(name) or 0) < 0:
                self.add_error(name, "Must be zero or greater.")
        if not self.errors:
            try:
                spec = endpoint_spec(ModelEndpoint(**data))
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
        ("Requests", {"fields": ["parameters", "family"]}),
        ("Price", {"fields": ["price_input", "price_cached_input", "price_output"]}),
    ]
