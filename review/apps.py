"""Django configuration of the review app."""

from django.apps import AppConfig


class ReviewConfig(AppConfig):
    name = "review"
    verbose_name = "Review"

    def ready(self) -> None:
        # These modules import models, which can only be imported once all apps are loaded.
        from preferences.selectors import register_withheld
        from review.queue.blinding import withheld
        from runs.stages import register_package

        register_package("review.stages")
        register_withheld(withheld)
