"""Parameters of tests of which the default suite tries only some."""

from collections.abc import Iterable

import pytest


def every_third(argument: str, names: Iterable[str]) -> pytest.MarkDecorator:
    """Parametrize *argument* by *names*: every third in the default suite, all others in the exhaustive tests."""
    marks = (pytest.mark.exhaustive,)
    return pytest.mark.parametrize(
        argument, [pytest.param(name, marks=marks if number % 3 else ()) for number, name in enumerate(names)]
    )
