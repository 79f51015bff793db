"""The Django project: settings, URLs, the Celery application, and everything that belongs to no single app."""
