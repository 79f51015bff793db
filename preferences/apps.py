"""Django's entry for the preferences app."""

from django.apps import AppConfig


class PreferencesConfig(AppConfig):
    name = "preferences"
    verbose_name = "Preferences"

    def ready(self) -> None:
        # Imports models, which exist only once the apps are loaded.
        from preferences.tracking import Judgments
        from runs.tracking.additions import register

        register(Judgments())
