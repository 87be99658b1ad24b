"""Keeps a copy of a collection by list and watch, and lists again after each error."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator

import urllib3

from .kube import Json, Kube, KubeError

Key = tuple[str, str]
Listener = Callable[[str, Json], None]


class WatchEndedError(Exception):
    """A watch cannot continue, so the collection has to be listed again."""


def key_of(obj: Json) -> Key:
    """Returns namespace (empty for cluster-scoped objects) and name."""
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


class Watch:
    """A watch request. Another thread may call `close`."""

    def __init__(self, kube: Kube, path: str, query: dict[str, str], seconds: int = 240) -> None:
        query = query | {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(seconds),
        }
        self._response = kube.stream(path, query, seconds + 15)

    def __iter__(self) -> Iterator[Json]:
        """Yields events until the server ends the watch.

        Raises WatchEndedError if it cannot continue.
        """
        response = self._response
        try:
            if response.status != 200:
                raise WatchEndedError(f"{response.status}: {response.data[:300]!r}")
            rest = b""
            for chunk in response.stream(1 << 16):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    event: Json = json.loads(line)
                    if event["type"] == "ERROR":
                        raise WatchEndedError(str(event["object"].get("message")))
                    yield event
        finally:
            response.close()
            response.release_conn()

    def close(self) -> None:
        """Ends a read that waits in another thread."""
        if isinstance(self._response, urllib3.HTTPResponse):
            try:
                self._response.shutdown()
            except (OSError, ValueError, RuntimeError):
                return  # the response has ended already, so no read waits


class Informer:
    """The objects of a collection; one listener gets all changes in order.

    The informer calls the listener in its own thread, with ADDED, MODIFIED or DELETED and the
    object. After a gap it compares lists, so no change is lost, but several changes may arrive as
    one.
    """

    def __init__(
        self, kube: Kube, path: str, listener: Listener | None = None, **query: str
    ) -> None:
        self._kube = kube
        self._path = path
        self._query = query
        self._listener = listener
        self._objects: dict[Key, Json] = {}
        self._lock = threading.Lock()
        self._synced = threading.Event()
        self._stopping = False
        self._watch: Watch | None = None
        self._thread = threading.Thread(target=self._run, name=f"informer {path}", daemon=True)

    def start(self) -> Informer:
        """Starts the thread and waits for the first list."""
        self._thread.start()
        if not self._synced.wait(30):
            raise TimeoutError(f"no list of {self._path} in 30 s")
        return self

    def stop(self) -> None:
        """Ends the watch and the thread."""
        self._stopping = True
        watch = self._watch
        if watch is not None:
            watch.close()
        self._thread.join(10)

    def objects(self) -> dict[Key, Json]:
        """Returns the last observed version of all objects."""
        with self._lock:
            return dict(self._objects)

    def get(self, namespace: str, name: str) -> Json | None:
        """Returns the last observed version of an object, or None."""
        with self._lock:
            return self._objects.get((namespace, name))

    def _run(self) -> None:
        while not self._stopping:
            try:
                self._follow(self._list())
            except (WatchEndedError, KubeError, OSError, urllib3.exceptions.HTTPError, ValueError):
                if not self._stopping:
                    time.sleep(0.1)

    def _list(self) -> str:
        answer = self._kube.request("GET", self._path, None, self._query)
        kind = str(answer["kind"]).removesuffix("List")
        seen = {}
        for item in answer["items"]:
            obj = {"apiVersion": answer["apiVersion"], "kind": kind} | item
            seen[key_of(obj)] = obj
        for key, old in list(self._objects.items()):
            new = seen.get(key)
            if new is None or new["metadata"]["uid"] != old["metadata"]["uid"]:
                self._tell("DELETED", old)
        for key, obj in seen.items():
            known = self._objects.get(key)
            if known is None:
                self._tell("ADDED", obj)
            elif known["metadata"]["resourceVersion"] != obj["metadata"]["resourceVersion"]:
                self._tell("MODIFIED", obj)
        self._synced.set()
        return str(answer["metadata"]["resourceVersion"])

    def _follow(self, resource_version: str) -> None:
        while not self._stopping:
            query = self._query | {"resourceVersion": resource_version}
            self._watch = Watch(self._kube, self._path, query)
            for event in self._watch:
                obj = event["object"]
                resource_version = obj["metadata"]["resourceVersion"]
                if event["type"] != "BOOKMARK":
                    self._tell(event["type"], obj)
                if self._over():
                    return

    def _over(self) -> bool:
        return self._stopping

    def _tell(self, change: str, obj: Json) -> None:
        with self._lock:
            if change == "DELETED":
                self._objects.pop(key_of(obj), None)
            else:
                self._objects[key_of(obj)] = obj
        if self._listener is not None:
            self._listener(change, obj)
