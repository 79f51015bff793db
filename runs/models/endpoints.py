"""Registered models."""

from django.core.validators import MinValueValidator, RegexValidator
from django.db import models

from hub.common.fields import OrderedJSONField
from hub.models import TeamOwned

# The name is part of a URL path (/models/<name>/), so it must not contain empty or relative path segments.
endpoint_name_is_valid = RegexValidator(
    r"\A\w(?!.*(?://|/\.{1,2}(?:/|\Z)))[\w.:/@+~-]*(?<!/)\Z",
    "Enter a valid name such as gpt-4.1-mini or org/model:free: letters, digits and . : / @ + ~ _ -, a letter or digit "
    "first, and no slash at the end.",
)


class ModelEndpoint(TeamOwned):
    """A registered model. Runs that start on the web or over REST can only use registered models."""

    name = models.CharField(max_length=120, unique=True, validators=[endpoint_name_is_valid])
    provider = models.CharField(max_length=32, default="openai")
    model = models.CharField(max_length=200, help_text="Name of the model at the endpoint.")
    # Not a URLField: it rejects host names of one word, which services in a compose file have.
    base_url = models.CharField(
        max_length=300, blank=True, help_text="Leave empty for the default address of the provider."
    )
    api_key_env = models.CharField(
        max_length=64, blank=True, help_text="Name of the variable that holds the key, never the key itself."
    )
    family = models.CharField(
        max_length=64, blank=True, help_text="Verdicts of a judge model on models of its own family are marked."
    )
    parameters = OrderedJSONField(default=dict, blank=True)
    price_input = models.FloatField(null=True, blank=True, help_text="USD per million input tokens")
    price_cached_input = models.FloatField(null=True, blank=True, help_text="USD per million cached input tokens")
    price_output = models.FloatField(null=True, blank=True, help_text="USD per million output tokens")
    requests_per_minute = models.PositiveIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1)], help_text="Leave empty for no limit."
    )
    tokens_per_minute = models.PositiveIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1)], help_text="Leave empty for no limit."
    )
    enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name
