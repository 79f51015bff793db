"""Threads with a database connection of their own, which is opened again after it was lost."""

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar, TypeVarTuple, Unpack

from django.db import InterfaceError, OperationalError, connection, connections

logger = logging.getLogger(__name__)

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")
_RECONNECT_FOR_S = 45.0  # a restart of the server takes less; the lease on the run lapses after 60 s
_RECONNECT_EVERY_S = 0.5


def _close_connections() -> None:
    connections.close_all()


def retry_if_disconnected(function: Callable[[Unpack[Arguments]], T], *args: *Arguments) -> T:
    """Return `function(*args)`; repeat it if the connection to the database is lost, or after a deadlock.

    *function* must be safe to repeat. Its last error is raised if it has no success within _RECONNECT_FOR_S.
    """
    return _retry_for(_RECONNECT_FOR_S, partial(function, *args))


def _retry_for(seconds: float, function: Callable[[], T]) -> T:
    deadline = time.monotonic() + seconds
    while True:
        try:
            return function()
        except (OperationalError, InterfaceError) as error:
            if not _is_repeatable(error) or time.monotonic() > deadline:
                raise
            logger.warning("A statement of the database failed (%s); trying again on a new connection.", error)
            connection.close()
            time.sleep(_RECONNECT_EVERY_S)


def _is_repeatable(error: OperationalError | InterfaceError) -> bool:
    """Return whether the connection was lost or there was a deadlock, in contrast to an error such as a full disk."""
    import psycopg  # slow to import, and needed only after an error

    cause = error.__cause__
    if not isinstance(cause, psycopg.Error):
        return False
    # Of PostgreSQL's error codes: class 08 and 57P01 to 57P05 for connections, 40P01 for deadlocks. The client's own
    # errors have no code.
    return cause.sqlstate is None or cause.sqlstate.startswith(("08", "57P0", "40P01"))


class DatabaseThread:
    """Thread with a database connection of its own, closed with it. A connection that is lost is opened again."""

    def __init__(self, name: str, reconnect_for_s: float | None = None) -> None:
        self._reconnect_for_s = reconnect_for_s
        self._executor = ThreadPoolExecutor(1, thread_name_prefix=name)

    async def run(self, function: Callable[[Unpack[Arguments]], T], *args: *Arguments) -> T:
        call = partial(_retry_for, self._reconnect_for_s or _RECONNECT_FOR_S, partial(function, *args))
        return await asyncio.get_running_loop().run_in_executor(self._executor, call)

    async def close(self) -> None:
        await self.run(_close_connections)
        self._executor.shutdown()
