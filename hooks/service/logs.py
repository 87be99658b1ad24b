"""One JSON object a line on standard output, as log collectors like it."""

import json
import logging
import sys
from typing import Any

# What no line shows need not be gathered (Python's logging HOWTO, "Optimization"); gunicorn's own
# lines show the process.
logging.logThreads = logging.logMultiprocessing = False
LOGGER = logging.getLogger("tapp.hooks")
LONGEST = 2_000  # Characters of a text in a line: it may quote a request of any length
_FRAMES = 20_000  # Characters of a traceback; its end tells most


class JsonFormatter(logging.Formatter):
    """Writes a record and its `fields` as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line: dict[str, Any] = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S") + f".{int(record.msecs):03d}",
            "level": record.levelname,
            "message": cut(record.getMessage()),
            **{key: cut(value) for key, value in getattr(record, "fields", {}).items()},
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)[-_FRAMES:]
        return _ENCODER.encode(line)


def cut(value: Any) -> Any:
    """The same, with its texts not too long."""
    if isinstance(value, str) and len(value) > LONGEST:
        return f"{value[:LONGEST]}... ({len(value)} characters)"
    return value


_ENCODER = json.JSONEncoder(default=lambda value: cut(str(value)))


def configure(level: str) -> None:
    """Sends the service's log to standard output."""
    if not LOGGER.handlers:
        handler = logging.StreamHandler(sys.stdout)
        handler.setFormatter(JsonFormatter())
        LOGGER.addHandler(handler)
        LOGGER.propagate = False
    LOGGER.setLevel(level)
