"""The module `pytest` that tests import: fixtures, parameters, `raises` and `approx`, on the standard library alone.

The package collects and runs tests in its own way, and is not installed in every sandbox. So tests get this module,
whether or not the package is installed. Names that it does not have are the package's, if it is installed.
"""

import importlib
import re
import sys
import types
from collections.abc import Callable, Sequence

from .pytest_checks import ExceptionInfo, ExceptionTypes, Failed, Raises, approx
from .pytest_marks import Marks, Unsupported, fixture, param


class _Module(types.ModuleType):
    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        found: object = getattr(_package(), name, None)
        if found is None:
            raise Unsupported(f"the tests use pytest.{name}, which the sandbox does not have")
        return found


_NOT_USED = frozenset({"skip", "xfail", "exit"})  # they raise exceptions that only pytest's own runner handles


def _package() -> types.SimpleNamespace | None:
    """Return the names of the installed package, or None."""
    ours = sys.modules.pop("pytest", None)
    try:
        found = importlib.import_module("pytest")
    except ImportError:
        return None
    finally:
        if ours is not None:
            sys.modules["pytest"] = ours
    return types.SimpleNamespace(**{name: value for name, value in vars(found).items() if name not in _NOT_USED})


def install(count: Callable[[bool], None]) -> None:
    """Make `import pytest` return this implementation. `count` is called for each check by `raises`, see `Raises`."""

    def raises(
        expected: ExceptionTypes,
        *args: object,
        match: str | re.Pattern[str] | None = None,
        check: Callable[[BaseException], object] | None = None,
        **kwargs: object,
    ) -> Raises | ExceptionInfo:
        context = Raises(count, expected, match, check)
        if not args:
            return context
        function, *rest = args
        if not callable(function):
            raise TypeError(f"{function!r} is not callable")
        with context as info:
            function(*rest, **kwargs)
        return info

    def fail(reason: str = "", pytrace: bool = True) -> None:
        raise Failed(reason)

    module = _Module("pytest", "Fixtures, parameters, `raises` and `approx`, as pytest has them.")
    own: dict[str, object] = {"fixture": fixture, "param": param, "mark": Marks(), "approx": approx}
    module.__dict__.update(own, raises=raises, fail=fail, ExceptionInfo=ExceptionInfo)
    sys.modules["pytest"] = module


def uses_pytest(*sources: str | Sequence[str]) -> bool:
    """Return whether any of these texts mentions pytest."""
    return any("pytest" in text for source in sources for text in ([source] if isinstance(source, str) else source))
