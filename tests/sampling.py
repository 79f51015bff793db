"""Parameters of tests of which the default suite tries only some."""

from collections.abc import Iterable

import pytest


def sampled(argument: str, names: Iterable[str], *, each: int) -> pytest.MarkDecorator:
    """Parametrize *argument* by *names*: one in *each* in the default suite, all others in the exhaustive tests."""
    marks = (pytest.mark.exhaustive,)
    return pytest.mark.parametrize(
        argument, [pytest.param(name, marks=marks if number % each else ()) for number, name in enumerate(names)]
    )
