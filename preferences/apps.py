"""Django configuration of the preferences app."""

from django.apps import AppConfig


class PreferencesConfig(AppConfig):
    name = "preferences"
    verbose_name = "Preferences"

    def ready(self) -> None:
        # These modules import models, which can only be imported once all apps are loaded.
        from preferences.selectors import runs_with_preferences
        from preferences.tracking import PreferenceAdditions
        from runs.retention import register_needed_runs
        from runs.tracking.additions import register

        register(PreferenceAdditions())
        register_needed_runs(runs_with_preferences)
