"""Records what happens to the pods of one workload, in the order of a watch.

The lines are `made 0`, `ready 0`, `ends 0` (the pod is being deleted) and `gone 0`.
"""

from __future__ import annotations

import re
import threading
import time

from .informer import Informer
from .kube import Json, Kube
from .pods import is_ready
from .waiting import PATIENCE

QUIET = 2.0
"""Seconds without another line after which the expected lines are complete."""


class Diary:
    """Watches the pods `NAME-NUMBER` of a namespace; a context manager."""

    def __init__(self, kube: Kube, namespace: str, name: str) -> None:
        self._lock = threading.Lock()
        self._name = re.compile(re.escape(name) + r"-(\d+)")
        self._lines: list[str] = []
        self._known: dict[str, set[str]] = {}
        self._read = 0
        self._informer = Informer(kube, kube.path("v1", "pods", namespace), self._heard)

    def __enter__(self) -> Diary:
        """Starts the watch."""
        self._informer.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stops the watch."""
        self._informer.stop()

    def news(self, count: int, seconds: float = PATIENCE) -> list[str]:
        """Waits for `count` new lines, and returns them with the lines that follow within the quiet
        time.
        """
        deadline = time.monotonic() + seconds
        while len(self._lines) - self._read < count and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(QUIET)
        with self._lock:
            lines, self._read = self._lines[self._read :], len(self._lines)
        return lines

    def _heard(self, change: str, pod: Json) -> None:
        found = self._name.fullmatch(pod["metadata"]["name"])
        if found is None:
            return
        states = {"made"}
        states |= {"ends"} if "deletionTimestamp" in pod["metadata"] else set()
        states |= {"ready"} if is_ready(pod) and "ends" not in states else set()
        states |= {"ends", "gone"} if change == "DELETED" else set()
        with self._lock:
            known = self._known.setdefault(pod["metadata"]["uid"], set())
            new = [word for word in ("made", "ready", "ends", "gone") if word in states - known]
            self._lines += [f"{word} {found[1]}" for word in new]
            known |= states
