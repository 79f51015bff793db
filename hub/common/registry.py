"""Registry of named implementations: scorers, harnesses, providers, export formats, stages, benchmarks."""

import inspect
import pkgutil
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from functools import partial
from importlib import import_module
from threading import Lock
from types import ModuleType
from typing import ClassVar, TypeVar, cast, get_args, get_origin

from hub.common.errors import UserError
from hub.common.wording import suggest

T = TypeVar("T")

NOT_MEMBERS = frozenset({"base", "registry"})  # modules that each package of implementations has beside them


class UnknownName(UserError):
    """A name that is not in a registry; the message suggests the closest names."""


class InvalidMember(TypeError):
    """A module in a package of implementations that does not define what the registry expects."""


class Registry(MutableMapping[str, T]):
    """Implementations of one kind by name, imported when they are first used.

        SCORERS: Registry[Scorer] = Registry("scorer", Scorer, package="hub.scorers", attribute="type", create=True)
        SCORERS["choice"]            # imports hub/scorers/choice.py, creates its scorer, keeps it
        SCORERS.require("chioce")    # UnknownName: "Unknown scorer 'chioce'; did you mean 'choice'?"

    Each module of *package* is one implementation, except for `base` and `registry`. It defines one subclass of *base*,
    and its name is that of the implementation. What implementations share is in `base` or in a folder below the
    package. Listing the names reads the package's folder and imports no implementation.

    kind: singular noun for error messages.
    attribute: class attribute that repeats the name; a different value is an error.
    create: the item is an instance of the class rather than the class.
    hyphens: underscores of module names are hyphens in names.
    """

    def __init__(
        self,
        kind: str,
        base: type | None = None,
        *,
        package: str = "",
        attribute: str = "",
        create: bool = False,
        hyphens: bool = False,
    ) -> None:
        self.kind = kind
        self._base = base
        self._attribute = attribute
        self._create = create
        self._hyphens = hyphens
        self._items: dict[str, T] = {}
        self._known: dict[str, Callable[[], T]] = {}
        self._unread = [package] if package else []  # a package stays here until all its names are known
        self._lock = Lock()

    def register(self, name: str, item: T) -> None:
        """Add *item*. Raises ValueError if the name is taken."""
        self.register_loader(name, lambda: item)

    def register_loader(self, name: str, loader: Callable[[], T]) -> None:
        """Add an item that *loader* makes when it is first used. Raises ValueError if the name is taken."""
        self._add(name, loader, self._loaders)

    def register_package(self, package: str) -> None:
        """Add the implementations in the modules of another *package*, whose folder is read when names are needed."""
        self._unread.append(package)

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
            self._items.setdefault(name, self._loaders[name]())
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

    @property
    def _loaders(self) -> dict[str, Callable[[], T]]:
        for package in tuple(self._unread):
            modules = module_names(package)  # not while the lock is held, since this imports the package
            with self._lock:
                if package not in self._unread:
                    continue  # another thread has added them meanwhile
                for module in modules:
                    name = module.replace("_", "-") if self._hyphens else module
                    self._add(name, partial(self._load, name, f"{package}.{module}"), self._known)
                self._unread.remove(package)
        return self._known

    def _add(self, name: str, loader: Callable[[], T], known: dict[str, Callable[[], T]]) -> None:
        if name in known:
            raise ValueError(f"The {self.kind} {name!r} is registered twice.")
        known[name] = loader

    def _load(self, name: str, path: str) -> T:
        assert self._base is not None
        module = import_module(path)
        file = f"{path.replace('.', '/')}.py"
        found = defined_classes(module, self._base)
        if len(found) != 1:
            raise InvalidMember(
                f"{file} must define one subclass of {self._base.__name__}, the {self.kind} {name!r}; it defines "
                f"{_describe_classes(module, found, self._base)}. Code that several share belongs in a folder below "
                f"{file.rpartition('/')[0]}/."
            )
        member = found[0]
        stated = getattr(member, self._attribute, None) if self._attribute else name
        if stated != name:
            raise InvalidMember(
                f"{file}: {member.__name__}.{self._attribute} must be {name!r}, like the module, not {stated!r}."
            )
        _check_methods(file, member, self._base)
        _check_attributes(file, member, self._base)
        return cast(T, member() if self._create else member)


def module_names(package: str) -> list[str]:
    """Return the modules of *package* that are implementations, in alphabetical order. Imports only the package."""
    found = pkgutil.iter_modules(import_module(package).__path__)
    return sorted(item.name for item in found if not item.ispkg and item.name not in NOT_MEMBERS)


def defined_classes(module: ModuleType, base: type) -> list[type]:
    """Return the subclasses of *base* that *module* itself defines, without abstract ones."""
    return [item for item in _own_classes(module) if issubclass(item, base) and not inspect.isabstract(item)]


def _own_classes(module: ModuleType) -> list[type]:
    return [item for item in vars(module).values() if isinstance(item, type) and item.__module__ == module.__name__]


def _describe_classes(module: ModuleType, found: Sequence[type], base: type) -> str:
    """Return the names of the *found* classes, or why the classes of *module* are none."""
    if found:
        return ", ".join(item.__name__ for item in found)
    abstract = [item for item in _own_classes(module) if issubclass(item, base)]
    if abstract:
        return "; ".join(f"{item.__name__} without {' and '.join(_missing_methods(item))}" for item in abstract)
    others = ", ".join(item.__name__ for item in _own_classes(module))
    return f"none, only {others}" if others else "none"


def _missing_methods(item: type) -> list[str]:
    """Return the abstract methods that *item* does not define, sorted."""
    return sorted(getattr(item, "__abstractmethods__", ()))


def _check_methods(file: str, member: type, base: type) -> None:
    """Raise InvalidMember if a method of *member* is `async` and that of *base* is not, or the reverse."""
    for name, method in vars(base).items():
        own = inspect.getattr_static(member, name)
        if own is method or not inspect.isfunction(method) or not inspect.isfunction(own):
            continue
        if inspect.iscoroutinefunction(method) != inspect.iscoroutinefunction(own):
            right, wrong = ("async def", "def") if inspect.iscoroutinefunction(method) else ("def", "async def")
            raise InvalidMember(f"{file}: {member.__name__}.{name} must be `{right} {name}(...)`, not `{wrong}`.")


def _check_attributes(file: str, member: type, base: type) -> None:
    """Raise InvalidMember if *member* lacks a class variable that *base* declares.

    Of those that it has, a `ClassVar[type[X]]` must be a subclass of X, and a `ClassVar[str]` text.
    """
    for name, hint in inspect.get_annotations(base, eval_str=True).items():
        origin: object = get_origin(hint)
        if origin is not ClassVar:
            continue
        if not hasattr(member, name):
            raise InvalidMember(f"{file}: {member.__name__} must define {name}.")
        (wanted,), value = get_args(hint), getattr(member, name)
        if get_origin(wanted) is type:
            (parent,) = get_args(wanted)
            if not (isinstance(value, type) and issubclass(value, parent)):
                raise InvalidMember(f"{file}: {member.__name__}.{name} must be a subclass of {parent.__name__}.")
        elif wanted is str and not isinstance(value, str):
            raise InvalidMember(f"{file}: {member.__name__}.{name} must be text, not {value!r}.")
