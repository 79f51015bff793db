"""Django's entry for the runs app."""

from django.apps import AppConfig


class RunsConfig(AppConfig):
    name = "runs"
    verbose_name = "Runs"

    def ready(self) -> None:
        # They import models, which exist only once the apps are loaded.
        from runs.execution.session.run_budget import record_costs
        from runs.stages import register
        from runs.tracking.stage import TrackingStage
        from runs.transitions import on_end

        register(TrackingStage())
        on_end(record_costs)
