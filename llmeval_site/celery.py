"""Celery application: `celery -A llmeval_site worker --beat`. Messages wake workers; the database stores the jobs."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "llmeval_site.settings")

app = Celery("llmeval")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
