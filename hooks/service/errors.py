"""Errors that a client receives: an HTTP status code and a JSON body with a message."""

from typing import Final

import msgspec

LONGEST: Final = 500  # Characters of a text in an error body: the text may quote the request


class RefusedError(Exception):
    """A request that the service refuses: the HTTP status code and the message of the response."""

    def __init__(self, code: int, message: str, path: str = "") -> None:
        """Stores the parts of the response.

        Args:
            code: the HTTP status code.
            message: the message for the client.
            path: the path of the invalid field in the JSON of the request; empty if the error is
                about no field.
        """
        super().__init__(message)
        self.code = code
        self.message = message
        self.path = path


def error_body(message: str, **more: str) -> bytes:
    """Returns the JSON of an error response.

    Long texts are cut.

    Args:
        message: the message, as the entry `error`.
        more: further entries; empty ones are left out.
    """
    texts = {"error": message, **{key: value for key, value in more.items() if value}}
    return msgspec.json.encode({key: value[:LONGEST] for key, value in texts.items()})
