"""Pools that are shared by all users of a process."""

import atexit
import os
import threading

from sandbox.client.options import PoolOptions
from sandbox.client.pool import Pool

_pools: dict[PoolOptions, Pool] = {}
_lock = threading.Lock()


def get_shared_pool(options: PoolOptions | None = None) -> Pool:
    """Return the process's pool with these options, opened at the first call. Raises SandboxUnavailable.

    It is closed when the process exits.
    """
    options = options or PoolOptions()
    with _lock:
        pool = _pools.get(options)
        if pool is None:
            pool = _pools[options] = Pool.open(options)
        return pool


def close_shared_pools() -> None:
    """Close each shared pool; `get_shared_pool` then opens a new one."""
    with _lock:
        pools = list(_pools.values())
        _pools.clear()
    for pool in pools:
        pool.close()


def _reset_after_fork() -> None:
    global _lock
    _lock = threading.Lock()


atexit.register(close_shared_pools)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
