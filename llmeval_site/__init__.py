"""The Django project: settings, addresses, the Celery application, and what belongs to no app."""
