"""Backends and tiers that the table runs on: each is a pool with a host that has secrets."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from unittest.mock import patch

from sandbox.client.options import PoolOptions
from sandbox.client.pool import Pool
from sandbox.connections.transports import Transport, TransportOptions
from sandbox.connections.transports.docker import DockerTransport
from sandbox.verdicts.jobs import FunctionJob, Job
from sandbox.verdicts.literal.plans import plan_job
from sandbox.verdicts.results import Status
from tests.sandbox import containers
from tests.sandbox.conformance.case import ADD_TESTS, Case, function_job
from tests.sandbox.conformance.host import Host
from tests.services import unavailable


@dataclass(frozen=True, slots=True)
class Setup:
    """One backend at one tier.

    relayed       engines that cannot meet, as under gVisor: what candidate and judge say to each other goes over the pool
    landlock_abi  the highest Landlock version that engines use, as if the kernel were older
    """

    backend: str
    tier: str
    relayed: bool = False
    landlock_abi: int | None = None

    @property
    def name(self) -> str:
        capped = "" if self.landlock_abi is None else f"-landlock-{self.landlock_abi}"
        return f"{self.backend}-{self.tier}{'-relayed' if self.relayed else ''}{capped}"


CORRECT = function_job("def add(a, b): return a + b\n", ADD_TESTS["literal"])
SOME_FOLDER = "/usr/share"
"""Offered as if packages lay in it: what is in a folder makes no difference to how its engines limit memory."""

SETUPS = [
    Setup("local", "A"),
    Setup("local", "B"),
    Setup("local", "C"),
    Setup("docker", "B"),
    Setup("docker", "B", relayed=True),
    Setup("socket", "B"),
    *(Setup("local", "B", landlock_abi=version) for version in (1, 2, 4, 5)),
]


@dataclass(frozen=True, slots=True)
class Bench:
    """A pool and the host that it must protect."""

    setup: Setup
    pool: Pool
    host: Host
    closing: ExitStack
    offering: list[Pool] = field(default_factory=list)

    def pool_for(self, case: Case) -> Pool:
        """The pool that a row runs in; the one that offers packages is opened when it is first wanted."""
        if not case.packages:
            return self.pool
        if not self.offering:
            options = replace(self.pool.options, packages=(SOME_FOLDER,))
            self.offering.append(self.closing.enter_context(Pool.open(options)))
        return self.offering[0]


@contextmanager
def bench(setup: Setup) -> Iterator[Bench]:
    """Open a bench; the running test is skipped where this machine has no Docker engine, or does not give the tier."""
    with ExitStack() as stack:
        transport = TransportOptions()
        if setup.backend == "docker":
            transport = TransportOptions(image=containers.image())
        if setup.relayed:
            stack.enter_context(
                patch.object(DockerTransport, "create_test_judge_transport", Transport.create_test_judge_transport)
            )
        if setup.backend == "socket":
            transport = TransportOptions(socket=stack.enter_context(containers.service()))
        host = stack.enter_context(Host())
        options = PoolOptions(
            backend=setup.backend,
            strongest=setup.tier,
            landlock_abi=setup.landlock_abi,
            accept=frozenset("ABC"),
            workers=2,
            transport=transport,
        )
        with Pool.open(options) as pool:
            if pool.tier != setup.tier:
                unavailable(
                    f"tier-{setup.tier}", f"this machine gives tier {pool.tier} with the {setup.backend} backend"
                )
            host.belong_to(engine_user())
            yield Bench(setup, pool, host, stack)


def why_left_out(case: Case, setup: Setup, host: Host) -> str | None:
    """The reason why a row is not tried on *setup*, or None where it is."""
    reason = case.why_not_on(setup.backend, setup.tier)
    if reason is None and setup.relayed and not _has_judge(case.job(host)):
        reason = "No judge speaks with its code, so that nothing is passed on."
    return reason


def _has_judge(job: Job) -> bool:
    return isinstance(job, FunctionJob) and job.trust == "isolated" and plan_job(job) is None


def complaint_of(case: Case, engines: Bench) -> str | None:
    """Why a row's promise is broken, by what came of it or by the run after it; None where it is kept."""
    pool = engines.pool_for(case)
    if case.before:
        pool.run(case.before(engines.host))
    job = case.job(engines.host)
    engines.host.begin_row()
    outcome = pool.run(job)
    complaint = case.complaint(outcome, engines.host)
    after = pool.run(CORRECT)
    if complaint is None and (outcome.tier, outcome.backend) != (engines.setup.tier, engines.setup.backend):
        complaint = f"It says that it ran on {outcome.backend} at tier {outcome.tier}."
    if complaint is None and after.status is not Status.PASSED:
        complaint = f"After it a correct solution did not pass: {after!r}"
    return complaint


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
