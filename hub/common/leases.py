"""Leases on database rows: one process at a time works on a row, and loses it if it stops renewing its lease.

A lease is taken, renewed and released by one UPDATE each that names the state it expects, so two processes never have
the same lease. An owner is a string `host:pid:token`. While its process lives, it also locks the file
`leases/token` in the data folder. If that lock is free, the process has ended and nobody needs to wait until its lease
lapses. The name of the host alone proves nothing: two containers may have the same one.

All times of leases are those of the database, so the clocks of the machines need not agree.
"""

import atexit
import fcntl
import logging
import os
import platform
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection, models
from django.db.models import Q
from django.db.models.expressions import CombinedExpression
from django.db.models.functions import Now

logger = logging.getLogger(__name__)

# On macOS, CLOCK_MONOTONIC goes on while the machine sleeps.
_CLOCK = time.CLOCK_BOOTTIME if sys.platform == "linux" else time.CLOCK_MONOTONIC
_locks: dict[str, int] = {}  # owner -> open lock file, for the owners in this process


class LeaseLost(Exception):
    """The lease lapsed and another process has taken the row."""


class Leased(models.Model):
    """Row that one process works on at a time."""

    lease_owner = models.CharField(max_length=100, blank=True, help_text="The process that executes it.")
    lease_until = models.DateTimeField(null=True, blank=True, help_text="When others may take it over.")

    class Meta:
        abstract = True


T = TypeVar("T", bound=Leased)


def new_owner() -> str:
    """Return a name for one holder of leases in this process, and lock its file until `end_owner`."""
    token = uuid.uuid4().hex
    owner = f"{platform.node()[:40]}:{os.getpid()}:{token}"
    path = _lock_file(owner)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    _locks[owner] = descriptor
    return owner


def end_owner(owner: str) -> None:
    """Remove the lock file of *owner*; call it when the owner's last lease is released."""
    descriptor = _locks.pop(owner, None)
    if descriptor is not None:
        _lock_file(owner).unlink(missing_ok=True)
        os.close(descriptor)


@atexit.register
def _end_owners() -> None:
    for owner in list(_locks):
        end_owner(owner)


def has_ended(owner: str) -> bool:
    """Return whether the process behind *owner* has certainly ended; False if this machine cannot tell."""
    if owner in _locks:
        return False
    try:
        descriptor = os.open(_lock_file(owner), os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def free() -> Q:
    """Return the condition under which a lease may be taken: it has no owner, or it has lapsed."""
    return Q(lease_owner="") | Q(lease_until=None) | lapsed()


def lapsed() -> Q:
    """Return the condition that a lease was not renewed in time."""
    return Q(lease_until__lt=Now())


def held() -> Q:
    """Return the condition that a lease has an owner and has not lapsed. The owner's process may have ended."""
    return ~Q(lease_owner="") & Q(lease_until__gte=Now())


def end_after(duration: timedelta) -> CombinedExpression:
    """Return when a lease ends that begins now, as an expression for `lease_until`."""
    return Now() + duration


def lease_clock() -> float:
    """Return seconds of a clock for measuring how long a lease has been held: nobody sets it, and it counts sleep."""
    return time.clock_gettime(_CLOCK)


def is_held(row: Leased) -> bool:
    """Return whether *row*, read from the database again, is leased to a process that may be alive."""
    owner = type(row)._default_manager.filter(held(), pk=row.pk).values_list("lease_owner", flat=True).first()
    return owner is not None and not has_ended(owner)


def take(
    row: T,
    owner: str,
    duration: timedelta,
    *,
    condition: Q | None = None,
    refresh: bool = True,
    **changes: object,
) -> bool:
    """Take the lease of *row* for *duration* and apply *changes* in the same statement.

    Returns False if it has another owner, or if the row does not meet *condition*. The row is then read again, unless
    *condition* proves that it is unchanged and *refresh* is False: then only its owner is set.
    """
    rows = type(row)._default_manager.filter(pk=row.pk)
    if condition is not None:
        rows = rows.filter(condition)
    taken = {**changes, "lease_owner": owner, "lease_until": end_after(duration)}
    if not rows.filter(free()).update(**taken):
        holder = rows.values_list("lease_owner", flat=True).first()
        if not holder or not has_ended(holder) or not rows.filter(lease_owner=holder).update(**taken):
            return False
    if refresh:
        row.refresh_from_db()
    else:
        row.lease_owner = owner
    return True


def renew(model: type[Leased], pk: int | uuid.UUID, owner: str, duration: timedelta, **changes: object) -> None:
    """Extend the lease by *duration* from now and apply *changes*. Raises LeaseLost if it has another owner."""
    owned = model._default_manager.filter(pk=pk, lease_owner=owner)
    if not owned.update(lease_until=end_after(duration), **changes):
        raise LeaseLost(f"{model._meta.verbose_name} {pk} was taken over by another process.")


@contextmanager
def renewed(row: Leased, owner: str, duration: timedelta, every_s: float) -> Iterator[None]:
    """Renew the lease of *row* in a thread, every *every_s* seconds, until the block ends or the lease is lost.

    After an error of the database it is tried again at the next time.
    """
    ended = threading.Event()

    def keep() -> None:
        while not ended.wait(every_s):
            try:
                renew(type(row), row.pk, owner, duration)
            except LeaseLost as error:
                logger.info("a lease is not renewed any more: %s", error)
                return
            except (OperationalError, InterfaceError) as error:
                logger.warning("the lease of %s %s could not be renewed: %s", row._meta.verbose_name, row.pk, error)
            finally:
                connection.close()  # many long blocks must not occupy the connections of the database

    thread = threading.Thread(target=keep, name="lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def release(row: Leased, owner: str, **changes: object) -> bool:
    """Give the lease of *row* back and apply *changes* in the same statement; False if it has another owner."""
    return _end(row, Q(lease_owner=owner), changes)


def expire(row: Leased, **changes: object) -> bool:
    """End the lease of *row* if it has lapsed, and apply *changes* in the same statement; False if it has not."""
    return _end(row, ~Q(lease_owner="") & lapsed(), changes)


def _end(row: Leased, condition: Q, changes: dict[str, object]) -> bool:
    """End the lease of *row* if it meets *condition*, and apply *changes* in the same statement."""
    rows = type(row)._default_manager.filter(condition, pk=row.pk)
    if not rows.update(lease_owner="", lease_until=None, **changes):
        return False
    row.lease_owner, row.lease_until = "", None
    return True


def _lock_file(owner: str) -> Path:
    token = owner.rpartition(":")[2]
    return Path(settings.VAR_DIR) / "leases" / (token if token.isalnum() else "unknown")
