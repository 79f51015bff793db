"""Log lines as JSON objects, for log collectors."""

import logging

from pythonjsonlogger.json import JsonFormatter

from hub.common.masking import mask


class MaskingJSONFormatter(JsonFormatter):
    """A JSON formatter that masks configured keys. Values of `extra`, such as `run_id`, become keys of the object."""

    def format(self, record: logging.LogRecord) -> str:
        return mask(super().format(record))
