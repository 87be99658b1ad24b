"""One JSON object a line on standard output, as log collectors like it."""

import json
import logging
import sys
from typing import Any

# What no line shows need not be gathered (Python's logging HOWTO, "Optimization"); gunicorn's own
# lines show the process.
logging.logThreads = logging.logMultiprocessing = False
LOGGER = logging.getLogger("tapp.hooks")
_ENCODER = json.JSONEncoder(default=str)


class JsonFormatter(logging.Formatter):
    """Writes a record and its `fields` as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line: dict[str, Any] = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S") + f".{int(record.msecs):03d}",
            "level": record.levelname,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return _ENCODER.encode(line)


def configure(level: str) -> None:
    """Sends the service's log to standard output."""
    if not LOGGER.handlers:
        handler = logging.StreamHandler(sys.stdout)
        handler.setFormatter(JsonFormatter())
        LOGGER.addHandler(handler)
        LOGGER.propagate = False
    LOGGER.setLevel(level)
