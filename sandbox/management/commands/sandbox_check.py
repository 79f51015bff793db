"""`manage.py sandbox_check`: what isolation this machine gives, tier by tier, attack by attack."""

import json
import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from sandbox.client.pool import Pool, PoolOptions
from sandbox.client.self_test import TIERS, SelfTest
from sandbox.connections.transports import BACKENDS, TransportOptions
from sandbox.errors import SandboxError
from sandbox.management.tiers import add_accept_argument
from sandbox.verdicts.jobs import FunctionJob
from sandbox.verdicts.results import Status

_FORGERY = (
    "class Anything:\n    def __eq__(self, other):\n        return True\n\ndef answer():\n    return Anything()\n"
)
# What may become of an answer that claims to equal anything.
_REJECTED = (Status.ASSERTION, Status.UNSUPPORTED, Status.TAMPERED)


class Command(BaseCommand):
    help = "Try every isolation tier with real attacks. Exits 3 where code would be refused."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        configured = "local" if settings.SANDBOX_BACKEND == "auto" else settings.SANDBOX_BACKEND
        parser.add_argument(
            "--backend",
            default=configured,
            choices=sorted(BACKENDS),
            help=f"{configured} unless given: LLMEVAL_SANDBOX_BACKEND, of which auto tries local first",
        )
        add_accept_argument(parser)
        parser.add_argument("--socket", default=settings.SANDBOX_SOCKET, help="path of the socket backend's service")
        parser.add_argument("--json", action="store_true", help="one JSON document on stdout")

    def handle(self, *args: Any, **options: Any) -> None:
        accept = options["accept"]
        tiers = {}
        for tier in "ABC" if options["backend"] == "local" else "A":
            tiers[tier] = self._try(options, tier)
        reached = next((test.tier for test in tiers.values() if isinstance(test, SelfTest)), None)
        refused = reached is None or reached not in accept
        if options["json"]:
            self.stdout.write(json.dumps(_as_json(options["backend"], reached, refused, tiers), indent=2))
        else:
            self._print(options["backend"], reached, refused, tiers)
        if refused:
            sys.exit(3)

    def _try(self, options: dict[str, Any], tier: str) -> SelfTest | str:
        """The self-test at this tier or below, or why there is none."""
        wanted = PoolOptions(
            backend=options["backend"],
            accept=frozenset("ABC"),
            workers=1,
            strongest=tier,
            transport=TransportOptions(
                image=settings.SANDBOX_IMAGE or None,
                runtime=settings.SANDBOX_RUNTIME or None,
                socket=options["socket"],
            ),
        )
        try:
            with Pool.open(wanted) as pool:
                forged = pool.run(FunctionJob(_FORGERY, "answer", "def check(c):\n    for _ in [0]: assert c() == 1"))
                if forged.status not in _REJECTED:
                    return f"A forged answer was not rejected: {forged.status}, {forged.message}"
                return pool.selftest
        except SandboxError as error:
            return str(error)

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
                allowed = "" if test.tier in attack.required else " (not promised by this tier)"
                mark = "denied   " if attack.denied else "SUCCEEDED"
                self.stdout.write(f"  {mark}  {attack.name}{'' if attack.denied else allowed}")
        if reached is None:
            self.stdout.write(f"The {backend} backend does not work here: code would be refused.")
        else:
            verdict = "code would be refused" if refused else "code would run"
            self.stdout.write(f"The {backend} backend reaches tier {reached}: {verdict}.")


def _as_json(backend: str, reached: str | None, refused: bool, tiers: dict[str, SelfTest | str]) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for tier, test in tiers.items():
        if isinstance(test, str):
            shown[tier] = {"error": test}
        else:
            attacks = [{"name": a.name, "denied": a.denied, "required": a.required} for a in test.attacks]
            shown[tier] = {"reached": test.tier, "missing": test.missing, "attacks": attacks}
    return {"backend": backend, "tier": reached, "refused": refused, "tiers": shown}
