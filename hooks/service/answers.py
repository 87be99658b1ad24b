"""Answers of the API server that are no success."""


class UnansweredError(Exception):
    """The API server did not take something, and may after `seconds`; 0 where it does not say."""

    def __init__(self, message: str, seconds: float = 0) -> None:
        """`message` is for the log."""
        super().__init__(message)
        self.seconds = seconds


class WriteRefusedError(Exception):
    """The API server does not take something, and never will; the text says why."""
