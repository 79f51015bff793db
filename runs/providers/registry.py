"""Every provider by its type. To add one: a file in this folder and a line here.

The `openai` client takes most of a second to import, so that its module is loaded when a config first names it.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module

from runs.providers.base import Provider

_PLACES = {"openai": ("runs.providers.openai", "OpenAI"), "replay": ("runs.providers.replay", "Replay")}


class _Registry(Mapping[str, type[Provider]]):
    def __getitem__(self, name: str) -> type[Provider]:
        module, attribute = _PLACES[name]
        provider: type[Provider] = getattr(import_module(module), attribute)
        return provider

    def __iter__(self) -> Iterator[str]:
        return iter(_PLACES)

    def __len__(self) -> int:
        return len(_PLACES)


PROVIDERS: Mapping[str, type[Provider]] = _Registry()
