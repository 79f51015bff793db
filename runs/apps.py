"""Django's entry for the runs app."""

from django.apps import AppConfig


class RunsConfig(AppConfig):
    name = "runs"
    verbose_name = "Runs"

    def ready(self) -> None:
        # Both import models, which exist only once the apps are loaded.
        from runs.stages import register
        from runs.tracking.stage import TrackingStage

        register(TrackingStage())
