"""Lets the first call of kubectl finish before other calls start, so that only one call logs in.

A credential plugin that finds no token starts a login, for example with a device code. Two calls at
the same time would start two logins. The first call that the API server answers leaves a token in
the plugin's cache, and later calls use this token until it expires.
"""

import re
import threading
import time
from collections.abc import Callable

from kubectl_tapp.cluster.kubectl import CallResult

_OPEN_SECONDS = 60.0  # Seconds after an answer of the API server during which calls run in parallel
# An error of the API server shows that the login has worked, unless it is Unauthorized.
_ANSWER = re.compile(r"Error from server(?! \(Unauthorized\))")


class FirstCall:
    """Runs calls of kubectl one after the other until the API server has answered a call, and then
    in parallel.

    All calls of one command go through one such object. Safe to use from several threads.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        """Creates an object that lets only one call of kubectl run at a time.

        This state ends as soon as the API server answers a call. `now` returns a time in seconds
        that never decreases.
        """
        self._now = now
        self._lock = threading.Lock()
        self._answered_at: float | None = None

    def run(self, call: Callable[[], CallResult]) -> CallResult:
        """Runs a call of kubectl and returns its result.

        The call runs alone if the API server has not answered any call in the last minute.
        Otherwise calls run in parallel.
        """
        if not self._is_open():
            with self._lock:
                # While this thread waited for the lock, another call may have been answered, so
                # that calls may run in parallel.
                if not self._is_open():
                    return self._recorded(call())
        return self._recorded(call())

    def _is_open(self) -> bool:
        return self._answered_at is not None and self._now() - self._answered_at < _OPEN_SECONDS

    def _recorded(self, done: CallResult) -> CallResult:
        if done.code == 0 or _ANSWER.search(done.err):
            self._answered_at = self._now()
        return done
