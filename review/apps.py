"""Django configuration of the review app."""

from django.apps import AppConfig
from django.db.models.signals import pre_delete


class ReviewConfig(AppConfig):
    name = "review"
    verbose_name = "Review"

    def ready(self) -> None:
        # These modules import models, which can only be imported once all apps are loaded.
        from django.contrib.auth.models import User

        from preferences.selectors import register_withheld
        from review.queue.assignments import release_assignment_of_deleted_user
        from review.queue.blinding import withheld
        from runs.stages import register_package

        register_package("review.stages")
        register_withheld(withheld)
        pre_delete.connect(release_assignment_of_deleted_user, sender=User)
