"""Errors that a client receives: an HTTP status code and a JSON body with a message."""

from typing import Final

import msgspec

LONGEST: Final = 500  # Characters of a text in an error body: the text may quote the request


class RefusedError(Exception):
    """A request that the service refuses with an HTTP error."""

    def __init__(self, code: int, message: str, path: str = "") -> None:
        """Stores the status code, the message, and the path of the invalid field.

        `path` is a path in the JSON document of the request, or "" if the error is about no field.
        """
        super().__init__(message)
        self.code = code
        self.message = message
        self.path = path


def error_body(message: str, **more: str) -> bytes:
    """Returns the JSON of an error response with the message and the entries of `more`.

    Leaves out empty entries, and cuts long texts.
    """
    texts = {"error": message, **{key: value for key, value in more.items() if value}}
    return msgspec.json.encode({key: value[:LONGEST] for key, value in texts.items()})
