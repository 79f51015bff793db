"""The Celery application: `celery -A llmeval_site worker --beat`. The queue of record is the database."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "llmeval_site.settings")

app = Celery("llmeval")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
