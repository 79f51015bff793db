"""Django system check of the sandbox: `manage.py check --deploy` reports weak isolation on this machine."""

from collections.abc import Sequence

from django.apps import AppConfig
from django.core.checks import CheckMessage, Tags, Warning, register

from sandbox.client.options import TIERS, PoolOptions
from sandbox.client.pool import Pool
from sandbox.errors import SandboxUnavailable


@register(Tags.security, deploy=True)
def check_isolation(app_configs: Sequence[AppConfig] | None, **kwargs: object) -> list[CheckMessage]:
    """Warn if local engines do not start, or reach only tier C."""
    try:
        with Pool.open(PoolOptions(backend="local", accept=frozenset("ABC"), workers=1)) as pool:
            test = pool.self_test
    except SandboxUnavailable as error:
        return [Warning(str(error), id="sandbox.W001")]
    if test.tier != "C":
        return []
    hint = "Use the docker or socket backend, or a kernel with Landlock and seccomp."
    return [
        Warning(f"The local sandbox reaches only tier C: {TIERS['C']} ({test.explain()}).", hint, id="sandbox.W002")
    ]
