"""Registered models as model specs."""

from runs.models import ModelEndpoint
from runs.providers.base import ModelSpec, Price


def endpoint_spec(endpoint: ModelEndpoint) -> ModelSpec:
    """Return the spec of a registered model, as if a config described it. Raises ValidationError."""
    options = {"model": endpoint.model, "base_url": endpoint.base_url, "api_key_env": endpoint.api_key_env}
    priced = endpoint.price_input is not None or endpoint.price_output is not None
    price = Price(
        input=endpoint.price_input or 0.0,
        cached_input=endpoint.price_cached_input,
        output=endpoint.price_output or 0.0,
    )
    return ModelSpec(
        name=endpoint.name,
        provider=endpoint.provider,
        family=endpoint.family,
        parameters=endpoint.parameters,
        price=price if priced else None,
        requests_per_minute=endpoint.requests_per_minute,
        tokens_per_minute=endpoint.tokens_per_minute,
        **{key: value for key, value in options.items() if value},
    )
