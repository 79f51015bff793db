"""Every provider by type. To add one: a module in this folder, a line here and a section in docs/configuration.md."""

from hub.common.registry import Registry
from runs.providers.base import Provider

PROVIDERS: Registry[type[Provider]] = Registry(
    "provider", {"openai": "runs.providers.openai:OpenAI", "replay": "runs.providers.replay:Replay"}
)
