"""The configuration of logging."""


def logging_settings(*, log_format: str, level: str) -> dict[str, object]:
    """Return Django's LOGGING: all messages go to stderr, with keys masked."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "filters": {
            "request_id": {"()": "django_guid.log_filters.CorrelationId", "correlation_id_field": "request_id"}
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
            "console": {"class": "logging.StreamHandler", "formatter": log_format, "filters": ["request_id"]},
        },
        "root": {"handlers": ["console"], "level": level},
        # It logs three lines for each request.
        "loggers": {"django_guid": {"level": "WARNING"}},
    }
