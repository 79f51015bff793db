"""`pytest.raises` and `pytest.approx`."""

import math
import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from types import TracebackType
from typing import Any

from ..proxies.proxy import Proxy, plain_value, state_of


class Failed(AssertionError):
    """Raised by `pytest.raises` and `pytest.fail`."""


ExceptionTypes = type[BaseException] | tuple[type[BaseException], ...]


class ExceptionInfo:
    """`info` in `with pytest.raises(...) as info`."""

    def __init__(self) -> None:
        self.error: BaseException | None = None

    @property
    def value(self) -> BaseException:
        if self.error is None:
            raise AttributeError("The `with` block of pytest.raises has not ended.")
        return self.error

    @property
    def type(self) -> type[BaseException]:
        return type(self.value)

    @property
    def typename(self) -> str:
        return self.type.__name__

    @property
    def tb(self) -> TracebackType | None:
        return self.value.__traceback__

    def match(self, pattern: str | re.Pattern[str]) -> bool:
        """Assert that the text of the exception contains a match of the pattern."""
        text = str(self.value)
        if not re.search(pattern, text):
            raise Failed(f"Regex pattern did not match. Regex: {pattern!r}. Input: {text!r}")
        return True

    def errisinstance(self, kinds: ExceptionTypes) -> bool:
        return isinstance(self.value, kinds)


class Raises:
    """The context manager of `pytest.raises`.

    count  called with False when the block ends, and with True if the exception was as expected
    """

    def __init__(
        self,
        count: Callable[[bool], None],
        kinds: ExceptionTypes,
        match: str | re.Pattern[str] | None,
        check: Callable[[BaseException], object] | None,
    ) -> None:
        self._count, self._kinds, self._match, self._check = count, kinds, match, check
        self._info = ExceptionInfo()

    def __enter__(self) -> ExceptionInfo:
        return self._info

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        self._count(False)
        if error is None:
            raise Failed(f"DID NOT RAISE {self._kinds!r}")
        if not isinstance(error, self._kinds):
            return False
        self._info.error = error
        if self._match is not None:
            self._info.match(self._match)
        if self._check is not None and not self._check(error):
            raise Failed(f"{self._check!r} did not return True for {error!r}")
        self._count(True)
        return True


# ---- approx ---------------------------------------------------------------------------------------------------------

_NUMBERS = (int, float, complex, bool, Decimal, Fraction)


class approx:
    """`pytest.approx`: a number, or a sequence or mapping of numbers, up to a tolerance."""

    __hash__ = None  # type: ignore[assignment]
    __array_ufunc__ = None  # has numpy leave comparisons to this class
    __array_priority__ = 100

    def __init__(self, expected: object, rel: Any = None, abs: Any = None, nan_ok: bool = False) -> None:
        self._expected, self._rel, self._abs, self._nan_ok = expected, rel, abs, nan_ok
        for name, value in (("rel", rel), ("abs", abs)):
            if value is not None and not value >= 0:
                raise ValueError(f"{name} of approx must not be negative: {value}")

    def __eq__(self, actual: object) -> bool:
        return self._near(_plain(actual), _plain(self._expected))

    def __ne__(self, actual: object) -> bool:
        return not self == actual

    def __bool__(self) -> bool:
        raise AssertionError("approx() is not supported in a boolean context. Did you mean: assert a == approx(b)?")

    def __repr__(self) -> str:
        return f"approx({self._expected!r})"

    def _near(self, actual: object, expected: object) -> bool:
        if isinstance(expected, dict):
            return (
                isinstance(actual, dict)
                and actual.keys() == expected.keys()
                and all(self._near(_plain(actual[key]), _plain(expected[key])) for key in expected)
            )
        if isinstance(expected, list | tuple):
            return (
                isinstance(actual, list | tuple)
                and type(actual) in (list, tuple)
                and len(actual) == len(expected)
                and all(self._near(_plain(a), _plain(e)) for a, e in zip(actual, expected, strict=True))
            )
        if type(expected) not in _NUMBERS or type(actual) not in _NUMBERS or isinstance(expected, bool):
            return bool(actual == expected)
        return self._is_close(actual, expected)

    def _is_close(self, actual: Any, expected: Any) -> bool:
        if actual == expected:
            return True
        if actual != actual or expected != expected:
            return self._nan_ok and actual != actual and expected != expected
        if type(expected) is not complex and math.isinf(expected):
            return False
        exact = Decimal if Decimal in (type(expected), type(actual)) else None
        if exact and not all(type(v) in (int, bool, Decimal) for v in (actual, expected)):
            actual, expected, exact = float(actual), float(expected), None
        size = abs(expected)
        absolute = self._abs if self._abs is not None else 1e-12
        relative = self._rel if self._rel is not None else (1e-6 if self._abs is None else 0)
        if exact:
            absolute, relative = Decimal(str(absolute)), Decimal(str(relative))
        return bool(abs(actual - expected) <= max(relative * size, absolute))


def _plain(value: object) -> object:
    """Return the value of exactly a built-in type, if there is one for it."""
    if isinstance(value, Proxy):
        return plain_value(value) if state_of(value).base else value
    to_list = getattr(value, "tolist", None) if type(value).__module__ == "numpy" else None
    return to_list() if callable(to_list) else value
