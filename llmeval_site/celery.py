"""The Celery application (`celery -A llmeval_site worker --beat`). A message only says "look"; the database is the queue."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "llmeval_site.settings")

app = Celery("llmeval")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
