"""The configuration of logging."""

import logging


def drop_traceback_of_refused_request(record: logging.LogRecord) -> bool:
    """Keep the line about a request that was answered with 4xx, without the traceback that Django adds to it."""
    if 400 <= getattr(record, "status_code", 0) < 500:
        record.exc_info = None
    return True


def logging_settings(*, log_format: str, level: str) -> dict[str, object]:
    """Return Django's LOGGING: all messages go to stderr, with keys masked."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "filters": {
            "request_id": {"()": "django_guid.log_filters.CorrelationId", "correlation_id_field": "request_id"},
            "refused": {"()": "django.utils.log.CallbackFilter", "callback": drop_traceback_of_refused_request},
        },
        "formatters": {
            "text": {
                "()": "hub.common.masking.MaskingFormatter",
                "format": "{asctime} {levelname} {name}: {message}",
                "style": "{",
            },
            "json": {
                "()": "llmeval_site.configuration.json_logs.MaskingJSONFormatter",
                "format": "{asctime} {levelname} {name} {message} {request_id}",
                "style": "{",
                "rename_fields": {"asctime": "time", "levelname": "level", "name": "logger"},
            },
        },
        "handlers": {
            "console": {
                "class": "logging.StreamHandler",
                "formatter": log_format,
                "filters": ["request_id", "refused"],
            },
        },
        "root": {"handlers": ["console"], "level": level},
        # It logs three lines for each request.
        "loggers": {"django_guid": {"level": "WARNING"}},
    }
