"""Registry of providers. To add one: a module in this folder and a section in docs/configuration.md."""

from hub.common.registry import Registry
from runs.providers.base import Provider, ProviderOptions

PROVIDERS: Registry[type[Provider[ProviderOptions]]] = Registry(
    "provider", Provider, package="runs.providers", attribute="type"
)
