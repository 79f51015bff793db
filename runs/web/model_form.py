"""Form of a registered model, in the admin and on the site, and its presets for common endpoints."""

from dataclasses import dataclass
from typing import cast

from django import forms
from django.conf import settings
from django.contrib.auth.models import User
from django.forms.fields import InvalidJSONInput
from django.http import QueryDict
from pydantic import ValidationError

from hub.common.rest.parsers import TOO_DEEP, find_problem
from hub.models import Team
from hub.protocols.messages import JSON
from hub.teams.choice import choose_team
from hub.teams.membership import list_targets
from hub.web.team_field import add_team_field
from runs.config.endpoints import endpoint_spec
from runs.models import ModelEndpoint
from runs.providers.registry import PROVIDERS


@dataclass(frozen=True, slots=True)
class Preset:
    """Values for the form of a model at a common endpoint. note: what the user must replace or know."""

    key: str
    title: str
    base_url: str
    api_key_env: str
    example: str
    note: str = ""


PRESETS = [
    Preset("openai", "OpenAI", "https://api.openai.com/v1", "OPENAI_API_KEY", "gpt-4.1-mini"),
    Preset(
        "azure",
        "Azure OpenAI",
        "https://RESOURCE.openai.azure.com/openai/v1",
        "AZURE_OPENAI_API_KEY",
        "the name of your deployment",
        "Replace RESOURCE by the name of your resource. The model is the name of the deployment.",
    ),
    Preset("anthropic", "Anthropic", "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY", "claude-sonnet-4-5"),
    Preset(
        "gemini",
        "Gemini",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        "GEMINI_API_KEY",
        "gemini-2.5-flash",
    ),
    Preset(
        "openrouter", "OpenRouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", "meta-llama/llama-3.3-70b"
    ),
    Preset(
        "vllm",
        "vLLM",
        "http://localhost:8000/v1",
        "VLLM_API_KEY",
        "Qwen/Qwen2.5-7B-Instruct",
        "Replace localhost by the host that runs vLLM, as the workers see it. Without --api-key it needs no key.",
    ),
    Preset(
        "ollama",
        "Ollama",
        "http://localhost:11434/v1",
        "",
        "llama3.2",
        "Replace localhost by the host that runs Ollama, as the workers see it.",
    ),
    Preset(
        "lmstudio",
        "LM Studio",
        "http://localhost:1234/v1",
        "",
        "the identifier that LM Studio shows",
        "Replace localhost by the host that runs LM Studio, as the workers see it.",
    ),
]


def _providers() -> list[tuple[str, str]]:
    """Return the providers of registered models, as choices of a form: those that call an endpoint, and the demo."""
    return [(name, name) for name, provider in PROVIDERS.items() if provider.live or name == "demo"]


def _key_variables(stored: str) -> list[tuple[str, str]]:
    """Return the variables that may hold a key, as choices of a form.

    stored: the variable of the registered model. It is included even if it is no longer allowed, so that the form can
    show it; saving it is an error.
    """
    names = {*settings.API_KEY_VARIABLES, *filter(None, [stored])}
    return [("", "none"), *((name, name) for name in sorted(names))]


def is_key_set(variable: str) -> bool:
    """Return whether the variable with a key is set on this server."""
    return settings.ENV.lookup(variable) is not None


class ParametersField(forms.JSONField):
    """JSON that nests no deeper than a request to REST may, without text that cannot be stored."""

    def to_python(self, value: object) -> object:  # type: ignore[override]  # JSON, not only text
        try:
            found: object = super().to_python(value)
        except RecursionError:
            raise forms.ValidationError(f"It {TOO_DEEP}.") from None
        if problem := find_problem(found):
            raise forms.ValidationError(f"It {problem}.")
        return found

    def bound_data(self, data: str | None, initial: object) -> object:
        try:
            self.to_python(data)
        except forms.ValidationError:
            return InvalidJSONInput(data)  # shown as it was typed
        return super().bound_data(data, initial)


class ModelEndpointForm(forms.ModelForm):  # type: ignore[type-arg]
    """Form of a registered model. It rejects values that would make a run fail."""

    provider = forms.ChoiceField(choices=_providers, initial="openai", help_text="Protocol of the endpoint.")
    api_key_env = forms.ChoiceField(
        required=False,
        label="Key variable",
        help_text="Name of the environment variable with the key, never the key itself.",
    )

    class Meta:
        model = ModelEndpoint
        labels = {
            "enabled": "In use",
            "model": "Model at the endpoint",
            "base_url": "Address of the endpoint",
            "price_input": "Price of input tokens",
            "price_cached_input": "Price of cached input tokens",
            "price_output": "Price of output tokens",
        }
        help_texts = {
            "enabled": "Runs can be started and resumed with the model.",
            "parameters": 'JSON object that is sent with each request, such as {"temperature": 0, "max_tokens": 2000}.',
            "price_input": "USD per million tokens. Without prices, costs of runs are unknown.",
            "price_cached_input": "USD per million tokens. Leave empty if cached tokens cost as much as others.",
            "price_output": "USD per million tokens",
        }
        error_messages = {
            "name": {"unique": "A model is registered under this name already. Choose another name."},
            "parameters": {"invalid": 'This is not JSON. Enter an object such as {"temperature": 0}.'},
        }
        field_classes = {"parameters": ParametersField}
        widgets = {"parameters": forms.Textarea(attrs={"rows": 3})}
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
            "requests_per_minute",
            "tokens_per_minute",
        ]

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        variable = cast(forms.ChoiceField, self.fields["api_key_env"])
        variable.choices = _key_variables(self.instance.api_key_env)

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
        for name, other in (("price_input", "price_output"), ("price_output", "price_input")):
            if data.get(other) is not None and data.get(name) is None and name not in self.errors:
                self.add_error(name, "Give both prices, or none. Enter 0 for tokens that cost nothing.")
        if not self.errors:
            try:
                spec = endpoint_spec(ModelEndpoint(**{key: value for key, value in data.items() if key != "team"}))
                PROVIDERS[spec.provider].Options.model_validate(spec.options)
            except ValidationError as error:
                for item in error.errors():
                    field = str(item["loc"][0]) if item["loc"] else ""
                    message = item["msg"].removeprefix("Value error, ").replace("api_key_env", "the key variable")
                    self.add_error(field if field in self.fields else None, message)
        return data


class SiteModelEndpointForm(ModelEndpointForm):
    """The form on the site, with a choice of the team. In the admin the team is a field of the admin."""

    def __init__(
        self,
        data: QueryDict | None = None,
        *,
        user: User,
        instance: ModelEndpoint | None = None,
        initial: dict[str, str] | None = None,
    ) -> None:
        super().__init__(data, instance=instance, initial=initial)
        self._user = user
        if instance is None:
            add_team_field(self, user)
        elif targets := list_targets(user, instance):
            team = instance.team.slug if instance.team else Team.SHARED
            self.fields["team"] = forms.ChoiceField(
                choices=targets, initial=team, help_text="Only its members will see it."
            )

    def save(self, commit: bool = True) -> ModelEndpoint:
        if team := self.cleaned_data.get("team"):
            self.instance.team = choose_team(self._user, team)
        found: ModelEndpoint = super().save(commit)
        return found
