"""The self-test: the isolation tier that an engine claims, checked by attacks on it."""

from collections.abc import Sequence
from dataclasses import dataclass

from sandbox.connections.engine_connection import EngineConnection
from sandbox.connections.engine_pair import EnginePair
from sandbox.connections.events import RunEnd
from sandbox.engine.protocol import codec
from sandbox.errors import EngineFailed
from sandbox.limits import Limits
from sandbox.verdicts.reports import parse_report

_LIMITS = Limits(cpu_s=5, wall_s=10)

# Attacks that Landlock and the system call filter cannot deny to a run that has the host's file system.
_ONLY_TIER_A = frozenset({"see that a host file exists"})


@dataclass(frozen=True, slots=True)
class Attack:
    """One attempt to break out, and whether it was denied."""

    name: str
    denied: bool
    detail: str

    @property
    def required(self) -> str:
        """The tiers in which the attack must be denied."""
        return "A" if self.name in _ONLY_TIER_A else "AB"


@dataclass(frozen=True, slots=True)
class SelfTest:
    """The tier that an engine claims, what is missing for a stronger one, and the results of the attacks."""

    claimed: str
    missing: dict[str, str]
    attacks: Sequence[Attack]

    @property
    def tier(self) -> str:
        """The strongest tier, at most the claimed one, in which each required attack was denied."""
        for tier in "AB":
            if tier >= self.claimed and not self.find_breaches(tier):
                return tier
        return "C"

    def find_breaches(self, tier: str) -> list[Attack]:
        """Return the attacks that succeeded although the tier promises to deny them."""
        return [attack for attack in self.attacks if not attack.denied and tier in attack.required]

    def explain(self) -> str:
        """Return why the tier is not A, in one clause; "" if it is."""
        if self.tier == "A":
            return ""
        if self.missing:
            return "; ".join(f"{feature}: {reason}" for feature, reason in self.missing.items())
        return "; ".join(f"an attack succeeded: {attack.name}" for attack in self.find_breaches("A")[:3])


def run_self_test(engine: EngineConnection) -> SelfTest:
    """Run the attacks in an engine. Raises EngineFailed if they cannot be run."""
    engine.start({"role": "attacks", "limits": _LIMITS.to_json()}, [], _LIMITS)
    attacks: list[Attack] | None = None
    end = None
    for event in EnginePair(engine, lambda _: engine).events(_LIMITS.wall):
        if isinstance(event, RunEnd):
            end = event
        else:
            attacks = _read_attacks(event.payload)
    if attacks is None:
        raise EngineFailed(f"the self-test did not run: {end.fault or end.code if end else 'no answer'}.")
    return SelfTest(engine.tier, dict(engine.missing), attacks)


def _read_attacks(payload: bytes) -> list[Attack]:
    try:
        results = parse_report(payload)["attacks"]
    except (codec.CodecError, KeyError) as error:
        raise EngineFailed("the report of the self-test is malformed.") from error
    if not isinstance(results, list):
        raise EngineFailed("the report of the self-test is malformed.")
    return [Attack(*result) for result in results]
