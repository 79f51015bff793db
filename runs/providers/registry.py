"""Registry of providers. To add one: a module in this folder, a line here and a section in docs/configuration.md."""

from hub.common.registry import Registry
from runs.providers.base import Provider, ProviderOptions

PROVIDERS: Registry[type[Provider[ProviderOptions]]] = Registry(
    "provider", {"openai": "runs.providers.openai:OpenAI", "replay": "runs.providers.replay:Replay"}
)
