"""Counts the available pods at each moment with a separate watch, to check budgets."""

from __future__ import annotations

import threading

from .informer import Informer
from .kube import Json, Kube
from .pods import is_ready


class Watcher:
    """Counts the pods that serve, with a watch on pods.

    A pod serves while it is Ready, is not being deleted, and has a new container for each changed
    image. The last condition is necessary because a real kubelet reports nothing while it pulls.
    """

    def __init__(self, kube: Kube, namespace: str) -> None:
        self._lock = threading.Lock()
        self._serving: set[str] = set()
        self._uids: dict[str, set[str]] = {}
        self._images: dict[str, dict[str, str]] = {}
        self._replaced: dict[str, dict[str, str | None]] = {}
        self.fewest = 0
        """The minimum number of pods that served at one time since `begin`."""
        self._informer = Informer(kube, kube.path("v1", "pods", namespace), self._heard)

    def seen(self, name: str) -> set[str]:
        """Returns the uids of all pods of this name so far."""
        with self._lock:
            return set(self._uids.get(name, ()))

    def begin(self) -> None:
        """Resets the minimum to the present number."""
        with self._lock:
            self.fewest = len(self._serving)

    def start(self) -> None:
        """Starts the watch."""
        self._informer.start()

    def stop(self) -> None:
        """Stops the watch."""
        self._informer.stop()

    def _heard(self, change: str, pod: Json) -> None:
        uid = pod["metadata"]["uid"]
        spec, status = pod["spec"], pod.get("status") or {}
        images = {c["name"]: c["image"] for c in spec["containers"]}
        ids = {c["name"]: c.get("containerID") for c in status.get("containerStatuses") or []}
        with self._lock:
            self._uids.setdefault(pod["metadata"]["name"], set()).add(uid)
            pending = self._replaced.setdefault(uid, {})
            for name, image in self._images.get(uid, images).items():
                if images.get(name) != image:
                    pending[name] = ids.get(name)
            for name in [name for name, was in pending.items() if ids.get(name) != was]:
                del pending[name]
            self._images[uid] = images
            gone = change == "DELETED" or "deletionTimestamp" in pod["metadata"]
            if is_ready(pod) and not gone and not pending:
                self._serving.add(uid)
            else:
                self._serving.discard(uid)
            self.fewest = min(self.fewest, len(self._serving))
