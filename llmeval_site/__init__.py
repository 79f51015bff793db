"""The Django project: settings, addresses, the Celery application, and what belongs to no app."""

from llmeval_site.celery import app as celery_app

__all__ = ["celery_app"]
