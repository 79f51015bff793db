"""What the tasks of a Celery worker share: the messages that wake them, and whether the worker shuts down."""
