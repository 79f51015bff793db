"""Copies of the code's values in the process of the tests, to notice tests that rely on sharing them with the code.

A list that the code keeps (`log`, `account.history`) reaches the tests as a copy. If the tests change the copy and use
the code again, or the code changes its variable, tests in one process with the code could see something else.
"""

from collections import deque
from collections.abc import Callable

from ..protocol import codec
from ..protocol.graph import SMALL

_MUTABLE = (list, dict, set, bytearray, deque)
_KEPT = 8  # attributes whose values are compared at each request

Encode = Callable[[object], object]


class Copies:
    """Values of variables of the code and of attributes of its objects, as the tests received them."""

    def __init__(self, encode: Encode) -> None:
        self._encode = encode
        self._attributes: dict[tuple[int, str], tuple[object, bytes]] = {}  # the last _KEPT by object and name
        self._variables: dict[str, tuple[object, bytes]] = {}

    def add_attribute(self, handle: int, name: str, value: object) -> None:
        """Record the value of an attribute, if the tests can change it and it may be compared at each request."""
        if not isinstance(value, _MUTABLE):
            return
        encoded = self._encoded(value)
        if len(encoded) > SMALL:
            return
        self._attributes.pop((handle, name), None)
        if len(self._attributes) == _KEPT:
            del self._attributes[next(iter(self._attributes))]
        self._attributes[handle, name] = value, encoded

    def add_variable(self, name: str, value: object) -> None:
        """Record the value of a variable, if all of it could cross to this process."""
        encoded = self._encoded(value)
        if codec.OPAQUE not in encoded:
            self._variables[name] = value, encoded

    @property
    def variables(self) -> list[str]:
        """The names of the variables."""
        return list(self._variables)

    def is_variable_equal(self, name: str, value: object) -> bool:
        """Return whether a variable of the code still has the value that the tests received."""
        return self._encoded(value) == self._variables[name][1]

    def changed_by_tests(self) -> str:
        """Return the name of a variable or an attribute whose copy the tests have changed; "" if there is none.

        Large values are not compared: a table that the tests look into would slow down every request.
        """
        copies = [(name, copy) for (_, name), copy in self._attributes.items()]
        for name, (value, encoded) in [*copies, *self._variables.items()]:
            if isinstance(value, _MUTABLE) and len(encoded) <= SMALL and self._encoded(value) != encoded:
                return name
        return ""

    def _encoded(self, value: object) -> bytes:
        return codec.dumps([self._encode(value)])
