"""Django system checks of the sandbox: `manage.py check --deploy` says what isolation this machine gives."""

from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, Tags, Warning, register

from sandbox.client.pool import Pool, PoolOptions
from sandbox.client.self_test import TIERS
from sandbox.errors import SandboxUnavailable


@register(Tags.security, deploy=True)
def isolation_is_strong(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:
    """Warn where local engines reach tier C only, or do not start."""
    try:
        with Pool.open(PoolOptions(backend="local", accept=frozenset("ABC"), workers=1)) as pool:
            test = pool.selftest
    except SandboxUnavailable as error:
        return [Warning(str(error), id="sandbox.W001")]
    if test.tier != "C":
        return []
    hint = "Use the docker or socket backend, or a kernel with Landlock and seccomp."
    return [Warning(f"The local sandbox reaches tier C: {TIERS['C']} ({test.explain()}).", hint, id="sandbox.W002")]
