"""The log of the service: one JSON object on each line of standard output."""

import json
import logging
import sys
from typing import Any

# The lines show neither thread nor process, so Python need not collect them (Python's logging
# HOWTO, "Optimization").
logging.logThreads = logging.logMultiprocessing = False
LOGGER = logging.getLogger("tapp.hooks")
LONGEST = 2_000  # Characters of a text in a line: the text may quote a request of any length
_FRAMES = 20_000  # Last characters of a traceback; the end has the error


class JsonFormatter(logging.Formatter):
    """Writes a log record of Python, and its `fields`, as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Returns the record as one line of JSON, with a traceback if the record has an error."""
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
    """Returns a text cut to `LONGEST` characters, with its full length at the end.

    A shorter text, or a value that is no text, is returned as it is.
    """
    if isinstance(value, str) and len(value) > LONGEST:
        return f"{value[:LONGEST]}... ({len(value)} characters)"
    return value


_ENCODER = json.JSONEncoder(default=lambda value: cut(str(value)))


def configure(level: str) -> None:
    """Sends the log of the service to standard output.

    `level` is the lowest level that is logged: DEBUG, INFO, WARNING or ERROR.
    """
    if not LOGGER.handlers:
        handler = logging.StreamHandler(sys.stdout)
        handler.setFormatter(JsonFormatter())
        LOGGER.addHandler(handler)
        LOGGER.propagate = False
    LOGGER.setLevel(level)
