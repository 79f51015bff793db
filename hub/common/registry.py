"""Registry of named implementations: scorers, harnesses, providers, export formats, stages, benchmarks."""

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from functools import partial
from importlib import import_module
from typing import TypeVar, cast

from hub.common.errors import UserError
from hub.common.wording import suggest

T = TypeVar("T")


class UnknownName(UserError):
    """A name that is not in a registry; the message suggests the closest names."""


class Registry(MutableMapping[str, T]):
    """Implementations of one kind by name, imported when they are first used.

        SCORERS: Registry[Scorer] = Registry("scorer", {"choice": "hub.scorers.choice:Choice"}, create=True)
        SCORERS["choice"]            # imports the module, creates the scorer, keeps it
        SCORERS.require("chioce")    # UnknownName: "Unknown scorer 'chioce'; did you mean 'choice'?"

    kind: singular noun for error messages.
    paths: name -> "package.module:attribute". With create=True the attribute is called without arguments.
    Listing the names imports nothing.
    """

    def __init__(self, kind: str, paths: Mapping[str, str] | None = None, *, create: bool = False) -> None:
        self.kind = kind
        self._items: dict[str, T] = {}
        self._loaders: dict[str, Callable[[], T]] = {}
        for name, path in (paths or {}).items():
            self.register_loader(name, cast(Callable[[], T], partial(_load, path, create)))

    def register(self, name: str, item: T) -> None:
        """Add *item*. Raises ValueError if the name is taken."""
        self.register_loader(name, lambda: item)

    def register_loader(self, name: str, loader: Callable[[], T]) -> None:
        """Add an item that *loader* makes when it is first used. Raises ValueError if the name is taken."""
        if name in self._loaders:
            raise ValueError(f"The {self.kind} {name!r} is registered twice.")
        self._loaders[name] = loader

    def require(self, name: str) -> T:
        """Return the item called *name*. Raises UnknownName."""
        if name not in self._loaders:
            text = self.describe_unknown(name)
            raise UnknownName(f"{text[0].upper()}{text[1:]}{'' if text.endswith('?') else '.'}")
        return self[name]

    def describe_unknown(self, name: str) -> str:
        """Return `unknown scorer 'x'; did you mean 'y'?`, or the known names if none is close."""
        advice = suggest(name, sorted(self._loaders))
        return f"unknown {self.kind} {name!r}; {advice}" if advice else f"unknown {self.kind} {name!r}"

    def __getitem__(self, name: str) -> T:
        if name not in self._items:
            self._items[name] = self._loaders[name]()
        return self._items[name]

    def __setitem__(self, name: str, item: T) -> None:
        self._loaders[name] = lambda: item
        self._items.pop(name, None)

    def __delitem__(self, name: str) -> None:
        del self._loaders[name]
        self._items.pop(name, None)

    def __contains__(self, name: object) -> bool:
        return name in self._loaders

    def __iter__(self) -> Iterator[str]:
        return iter(self._loaders)

    def __len__(self) -> int:
        return len(self._loaders)


def _load(path: str, create: bool) -> object:
    module, _, attribute = path.partition(":")
    found = getattr(import_module(module), attribute)
    return found() if create else found
