"""The sandbox as a Django app: it has a check and commands, and no models."""

from django.apps import AppConfig


class SandboxConfig(AppConfig):
    name = "sandbox"
    verbose_name = "Sandbox"

    def ready(self) -> None:
        from sandbox import checks  # noqa: F401  # importing it registers the check
