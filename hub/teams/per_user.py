"""Values that are read once for each instance of a user, as Django does with permissions."""

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from django.contrib.auth.models import AnonymousUser, User

Viewer = User | AnonymousUser
T = TypeVar("T")


def read_once(read: Callable[[Viewer], T]) -> Callable[[Viewer], T]:
    """Let *read* be called once for each instance of a user. A request has an instance of its own."""
    name = f"_{read.__module__.replace('.', '_')}_{read.__name__}"

    @wraps(read)
    def remembered(user: Viewer) -> T:
        if not hasattr(user, name):
            setattr(user, name, read(user))
        value: T = getattr(user, name)
        return value

    return remembered
