"""Messages that wake workers. The queue itself is in the database, so that a lost message only costs seconds."""

from django.conf import settings
from django.utils.module_loading import import_string


class BrokerUnavailable(Exception):
    """The broker cannot be reached; the message says why."""


def send(task: str) -> None:
    """Send a message for the task of this name. Raises BrokerUnavailable."""
    # Imported with the first message: most commands send none, and Celery is a tenth of their start.
    from kombu.exceptions import OperationalError

    application = import_string(settings.TASK_APPLICATION)
    try:
        application.send_task(task, ignore_result=True)
    except (OperationalError, OSError) as error:
        raise BrokerUnavailable(str(error)) from error
