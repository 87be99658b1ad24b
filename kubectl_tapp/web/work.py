"""Runs functions that call kubectl for requests, and answers a request before its function ends if
that takes long.

A browser opens six connections to a server, for all of its tabs together. Requests that stay open
while kubectl is slow would take these connections from the other tabs. So `Work.answer` responds
with a key after a short time, and the page asks for the result with `Work.result`.
"""

import secrets
import threading
from collections.abc import Callable
from typing import Any

from kubectl_tapp.base.errors import CommandError, Exit

# Seconds that a response waits for the result; after that the response has a key instead
_SOON = 0.5
_MAX_RESULTS = 64  # Number of results that are kept for pages that have not asked for them


class Work:
    """The functions that run for requests, each in a thread, with their results.

    Methods may be called from any thread.
    """

    def __init__(self) -> None:
        """Creates an object that runs no functions yet."""
        self._known: dict[str, _Running] = {}
        self._lock = threading.Lock()

    def answer(self, function: Callable[[], Any]) -> Any:
        """Runs a function in a thread, and returns its result if it ends soon.

        Otherwise returns `{"waiting": KEY}`, with the key for the method `result`. Raises the error
        that the function raises.
        """
        running = _Running(function)
        if running.ended.wait(_SOON):
            return running.result()
        key = secrets.token_urlsafe(16)
        with self._lock:
            self._known[key] = running
            for old in [*self._known][:-_MAX_RESULTS]:
                del self._known[old]
        return {"waiting": key}

    def result(self, key: str) -> Any:
        """Returns the result of the function with this key, or `{"waiting": KEY}` if the function
        still runs.

        A result can be fetched only once.

        Raises the error that the function raised, or CommandError if there is no such function.
        """
        with self._lock:
            running = self._known.get(key)
            if running is not None and running.ended.is_set():
                del self._known[key]
        if running is None:
            raise CommandError("the result of this request has expired: try again", Exit.CHANGED)
        return running.result() if running.ended.is_set() else {"waiting": key}


class _Running:
    """A function that runs in a thread, with its result or its error at the end."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self.ended = threading.Event()
        self._function, self._result = function, None
        self._error: Exception | None = None
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        try:
            self._result = self._function()
        except Exception as error:  # noqa: BLE001 - `result` raises it
            self._error = error
        finally:
            self.ended.set()

    def result(self) -> Any:
        """Returns the result of the function, or raises its error. May only be called after the
        function has ended.
        """
        if self._error is not None:
            raise self._error
        return self._result
