"""`manage.py sandbox_check`: the isolation that this machine gives, by tier and attack."""

import json
import sys
from argparse import ArgumentParser
from dataclasses import replace

from django.conf import settings
from django.core.management.base import BaseCommand

from sandbox.client.options import TIERS, PoolOptions
from sandbox.client.pool import Pool
from sandbox.client.self_test import SelfTest
from sandbox.client.settings import get_pool_options
from sandbox.connections.backends import BACKENDS
from sandbox.errors import SandboxError
from sandbox.management.tiers import add_accept_argument
from sandbox.verdicts.jobs import FunctionJob
from sandbox.verdicts.results import Status

_FORGERY = FunctionJob(
    code="class Anything:\n    def __eq__(self, other):\n        return True\n\ndef answer():\n    return Anything()\n",
    entry_point="answer",
    tests="def check(c):\n    for _ in [0]: assert c() == 1",
)
_REJECTED = (Status.ASSERTION, Status.UNSUPPORTED, Status.TAMPERED)


class Command(BaseCommand):
    help = "Try each isolation tier with real attacks. Exits with 3 if code would be refused."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        configured = "local" if settings.SANDBOX_BACKEND == "auto" else settings.SANDBOX_BACKEND
        parser.add_argument(
            "--backend",
            default=configured,
            choices=BACKENDS,
            help=f"default: {configured}, from LLMEVAL_SANDBOX_BACKEND (for `auto`, local)",
        )
        add_accept_argument(parser)
        parser.add_argument("--socket", default=settings.SANDBOX_SOCKET, help="path of the socket backend's service")
        parser.add_argument("--json", action="store_true", help="one JSON document on stdout")

    def handle(
        self, *args: object, backend: str, accept: frozenset[str], socket: str, json: bool, **options: object
    ) -> None:
        configured = get_pool_options(backend=backend, accept="ABC")
        setup = replace(configured, workers=1, transport=replace(configured.transport, socket=socket))
        tiers = {tier: _try_tier(replace(setup, strongest=tier)) for tier in ("ABC" if backend == "local" else "A")}
        reached = next((test.tier for test in tiers.values() if isinstance(test, SelfTest)), None)
        refused = reached is None or reached not in accept
        if json:
            self.stdout.write(_format_json(backend, reached, refused, tiers))
        else:
            self._print(backend, reached, refused, tiers)
        if refused:
            sys.exit(3)

    def _print(self, backend: str, reached: str | None, refused: bool, tiers: dict[str, SelfTest | str]) -> None:
        for tier, test in tiers.items():
            if isinstance(test, str):
                self.stdout.write(f"Tier {tier}: not available. {test}")
                continue
            if test.tier != tier and backend == "local":
                self.stdout.write(f"Tier {tier} ({TIERS[tier]}): not reached. {test.explain()}")
                continue
            denied = sum(attack.denied for attack in test.attacks)
            self.stdout.write(f"Tier {test.tier} ({TIERS[test.tier]}): {denied} of {len(test.attacks)} attacks denied")
            for attack in test.attacks:
                not_promised = "" if test.tier in attack.required else " (not promised by this tier)"
                result = "denied   " if attack.denied else "SUCCEEDED"
                self.stdout.write(f"  {result}  {attack.name}{'' if attack.denied else not_promised}")
        if reached is None:
            self.stdout.write(f"The {backend} backend does not work here: code would be refused.")
        else:
            conclusion = "code would be refused" if refused else "code would run"
            self.stdout.write(f"The {backend} backend reaches tier {reached}: {conclusion}.")


def _try_tier(options: PoolOptions) -> SelfTest | str:
    """Return the self-test with these options, or why there is none."""
    try:
        with Pool.open(options) as pool:
            forged = pool.run(_FORGERY)
            if forged.status not in _REJECTED:
                return f"A forged answer was not rejected: {forged.status}, {forged.message}"
            return pool.self_test
    except SandboxError as error:
        return str(error)


def _format_json(backend: str, reached: str | None, refused: bool, tiers: dict[str, SelfTest | str]) -> str:
    shown: dict[str, object] = {}
    for tier, test in tiers.items():
        if isinstance(test, str):
            shown[tier] = {"error": test}
        else:
            attacks = [{"name": a.name, "denied": a.denied, "required": a.required} for a in test.attacks]
            shown[tier] = {"reached": test.tier, "missing": test.missing, "attacks": attacks}
    return json.dumps({"backend": backend, "tier": reached, "refused": refused, "tiers": shown}, indent=2)
