"""Celery application whose broker refuses connections, for the setting TASK_APPLICATION."""

from celery import Celery

app = Celery("unreachable", broker="redis://127.0.0.1:1/0", set_as_current=False)
