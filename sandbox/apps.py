"""The sandbox as a Django app: it has checks and a command, and no models."""

from django.apps import AppConfig


class SandboxConfig(AppConfig):
    name = "sandbox"
    verbose_name = "Sandbox"

    def ready(self) -> None:
        from sandbox import checks  # noqa: F401  # registers itself, once the registry of apps is ready
