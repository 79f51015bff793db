"""Celery task that keeps stored figures about preferences up to date."""

from celery import shared_task

from preferences.insight.stored import refresh_results


@shared_task(name="preferences.refresh_insight", ignore_result=True)
def refresh_insight() -> None:
    """Compute the figures that were looked at lately again if they may have changed, and delete the unused ones."""
    refresh_results()
