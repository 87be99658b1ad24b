"""Errors of requests to the API server."""


class TemporaryError(Exception):
    """A request failed for the moment: the API server is unreachable, overloaded or broken.

    `seconds` is how long the API server asks to wait before the next attempt, or 0 if the API
    server does not say.
    """

    def __init__(self, message: str, seconds: float = 0) -> None:
        """Stores the message for the log, and when to try again.

        `seconds` is the wait that the API server asks for; 0 if it does not ask for one.
        """
        super().__init__(message)
        self.seconds = seconds


class RejectedError(Exception):
    """The API server rejects a request for good. The message says why."""
