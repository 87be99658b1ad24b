"""Errors that a request gets instead of an answer: a status code, and a text for its caller."""

from typing import Final

import msgspec

LONGEST: Final = 500  # Characters of a text in an error's answer: it may quote the request


class RefusedError(Exception):
    """A request that gets an error answer."""

    def __init__(self, code: int, message: str, path: str = "") -> None:
        """`path` is where in the request's document the trouble is."""
        super().__init__(message)
        self.code = code
        self.message = message
        self.path = path


def error_body(message: str, **more: str) -> bytes:
    """The JSON of an error's answer; what `more` says is left out where it is empty."""
    said = {"error": message, **{key: value for key, value in more.items() if value}}
    return msgspec.json.encode({key: value[:LONGEST] for key, value in said.items()})
