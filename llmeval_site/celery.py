"""Celery application: `celery -A llmeval_site worker --beat`. Messages wake workers; the database stores the jobs."""

import os

from celery import Celery, Task
from celery.signals import before_task_publish, setup_logging, task_postrun, task_prerun
from django_guid import clear_guid, get_guid, set_guid

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "llmeval_site.settings")

app = Celery("llmeval")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@setup_logging.connect
def keep_logging_of_settings(**_: object) -> None:
    """Leave logging as the settings define it: otherwise --loglevel replaces the level of LLMEVAL_LOG_LEVEL."""


# The library's own integration would import Celery in every command, as settings name it: 0.1 s of each start.
@before_task_publish.connect
def send_request_id(headers: dict[str, object], **_: object) -> None:
    """Send the id of the current request with a task."""
    headers["request_id"] = get_guid()


@task_prerun.connect
def set_request_id(task: Task, **_: object) -> None:
    """Log the messages of a task under the id of the request that sent it, or under the id of the task."""
    set_guid(getattr(task.request, "request_id", None) or task.request.id or "")


@task_postrun.connect
def clear_request_id(**_: object) -> None:
    """Forget the id when the task has ended, so that messages of later tasks of this process do not have it."""
    clear_guid()
