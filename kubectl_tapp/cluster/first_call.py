"""Lets one call of kubectl end before others run in parallel, so that only one of them logs in.

A credential plugin that finds no token starts a login, for example one by device code. Two calls at
the same time would start two logins. The first call that the API server answers leaves a token in
the plugin's cache, and later calls use it until it expires.
"""

import re
import threading
import time
from collections.abc import Callable

from kubectl_tapp.cluster.kubectl import Finished

_FRESH = 60.0  # Seconds after an answer in which calls run in parallel
_ANSWER = re.compile(r"Error from server(?! \(Unauthorized\))")


class FirstCall:
    """The gate that all calls of one command pass. It is safe to use from several threads."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        """Starts closed: the first call goes alone. `now` returns the time in seconds."""
        self._now = now
        self._alone = threading.Lock()
        self._answered_at: float | None = None

    def run(self, call: Callable[[], Finished]) -> Finished:
        """Runs `call`, alone unless the API server has answered a call in the last minute."""
        if not self._is_open():
            with self._alone:
                if not self._is_open():  # The call that this one waited for may have opened it.
                    return self._noted(call())
        return self._noted(call())

    def _is_open(self) -> bool:
        return self._answered_at is not None and self._now() - self._answered_at < _FRESH

    def _noted(self, done: Finished) -> Finished:
        if done.code == 0 or _ANSWER.search(done.err):
            self._answered_at = self._now()
        return done
