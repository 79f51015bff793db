"""The backends and tiers that the table runs on, each a pool beside a host with something to steal."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from sandbox.pool import Pool, PoolOptions
from sandbox.transports import TransportOptions
from tests.sandbox import containers
from tests.sandbox.conformance.host import Host
from tests.services import unavailable


@dataclass(frozen=True, slots=True)
class Setup:
    """One backend at one tier."""

    backend: str
    tier: str

    @property
    def name(self) -> str:
        return f"{self.backend}-{self.tier}"


SETUPS = [Setup("local", "A"), Setup("local", "B"), Setup("local", "C"), Setup("docker", "B"), Setup("socket", "B")]


@dataclass(frozen=True, slots=True)
class Bench:
    """A pool and the host that it must protect."""

    setup: Setup
    pool: Pool
    host: Host


@contextmanager
def bench(setup: Setup) -> Iterator[Bench]:
    """Open a bench; the running test is skipped where this machine has no Docker engine, or does not give the tier."""
    with ExitStack() as stack:
        transport = TransportOptions()
        if setup.backend == "docker":
            transport = TransportOptions(image=containers.image())
        if setup.backend == "socket":
            transport = TransportOptions(socket=stack.enter_context(containers.service()))
        host = stack.enter_context(Host())
        options = PoolOptions(
            backend=setup.backend, strongest=setup.tier, accept=frozenset("ABC"), workers=2, transport=transport
        )
        with Pool.open(options) as pool:
            if pool.tier != setup.tier:
                unavailable(
                    f"tier-{setup.tier}", f"this machine gives tier {pool.tier} with the {setup.backend} backend"
                )
            host.belong_to(engine_user())
            yield Bench(setup, pool, host)


def engine_user() -> int:
    """The user of the local engine that this process has started; 65534, the containers' user, where there is none."""
    for entry in Path("/proc").iterdir():
        try:
            if (
                entry.name.isdigit()
                and _parent(entry) == os.getpid()
                and b"sandbox/engine" in (entry / "cmdline").read_bytes()
            ):
                return entry.stat().st_uid
        except OSError:
            continue  # gone since it was listed
    return 65534


def _parent(entry: Path) -> int:
    return int((entry / "stat").read_text().rpartition(")")[2].split()[1])
