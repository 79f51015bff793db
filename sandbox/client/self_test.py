"""Which isolation tier an engine really gives: what it claims, as far as attacks on it bear that out."""

from collections.abc import Sequence
from dataclasses import dataclass

from sandbox.connections.engine_connection import Ended, Engine
from sandbox.connections.engine_pair import Station
from sandbox.engine.protocol import codec
from sandbox.errors import EngineFailed
from sandbox.limits import Limits
from sandbox.verdicts import reports

_LIMITS = Limits(cpu_s=5, wall_s=10)

# What Landlock and the filter cannot keep from a run that sees the host's file system.
_ONLY_TIER_A = frozenset({"see that a host file exists"})

TIERS = {
    "A": "namespaces, Landlock and a system call filter",
    "B": "Landlock and a system call filter, without namespaces",
    "C": "separate processes, resource limits and an unprivileged user only",
}


@dataclass(frozen=True, slots=True)
class Attack:
    """One attempt to break out. `required` says for which tiers it has to be denied."""

    name: str
    denied: bool
    detail: str

    @property
    def required(self) -> str:
        return "A" if self.name in _ONLY_TIER_A else "AB"


@dataclass(frozen=True, slots=True)
class SelfTest:
    """What an engine claimed, what it lacks, and how the attacks on it went."""

    claimed: str
    missing: dict[str, str]
    attacks: Sequence[Attack]

    @property
    def tier(self) -> str:
        """The strongest tier, not above the claimed one, for which every required attack was denied."""
        for tier in "AB":
            if tier >= self.claimed and not self.breaches(tier):
                return tier
        return "C"

    def breaches(self, tier: str) -> list[Attack]:
        """Attacks that succeeded although the tier promises otherwise."""
        return [attack for attack in self.attacks if not attack.denied and tier in attack.required]

    def explain(self) -> str:
        """Why the tier is not A, in one clause; "" where it is."""
        reasons = [f"{what}: {why}" for what, why in self.missing.items()]
        reasons += [f"an attack succeeded: {attack.name}" for attack in self.breaches("A")][: 0 if self.missing else 3]
        return "; ".join(reasons) if self.tier != "A" else ""


def attack(engine: Engine) -> SelfTest:
    """Run the attacks in an engine. Raises EngineFailed when they cannot be run."""
    engine.start({"role": "attacks", "limits": _LIMITS.to_json()}, [], _LIMITS)
    report, end = None, None
    for event in Station(engine, lambda _: engine).events(_LIMITS.wall):
        if isinstance(event, Ended):
            end = event
        else:
            try:
                report = reports.parse(event.payload)["attacks"]
            except (codec.CodecError, KeyError) as error:
                raise EngineFailed("the self-test's report cannot be read.") from error
    if report is None:
        raise EngineFailed(f"the self-test did not run: {end.fault or end.code if end else 'no answer'}.")
    return SelfTest(engine.tier, dict(engine.missing), [Attack(*result) for result in report])
