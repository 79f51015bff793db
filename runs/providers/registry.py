"""Registry of providers. To add one: a module in this folder and a section in docs/configuration.md."""

from hub.common.registry import Registry
from runs.providers.base import ModelSpec, Provider, ProviderOptions

PROVIDERS: Registry[type[Provider[ProviderOptions]]] = Registry(
    "provider", Provider, package="runs.providers", attribute="type"
)


def costs_money(spec: ModelSpec) -> bool:
    """Return whether calls of the model may cost something: it is called, and is not known to be free."""
    return PROVIDERS[spec.provider].live and not (spec.price is not None and spec.price.free)
