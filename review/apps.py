"""Django configuration of the review app."""

from django.apps import AppConfig


class ReviewConfig(AppConfig):
    name = "review"
    verbose_name = "Review"

    def ready(self) -> None:
        # These modules import models, which can only be imported once all apps are loaded.
        from preferences.selectors import register_withheld
        from review.queue.blinding import withheld
        from review.stages.judge_stage import JudgeStage
        from review.stages.review_stage import ReviewStage
        from runs.stages import register

        register(JudgeStage())
        register(ReviewStage())
        register_withheld(withheld)
