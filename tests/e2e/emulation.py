"""Runs the simulator's Metacontroller against the real API server.

This is the code that the simulator runs in memory. Here, watches of the API server fill its cache,
its clock is the wall clock, and its store is the API server. One thread does all of the work, so
parents are synced one after another. The real Metacontroller has several workers.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable

from simulator.api.store import Event
from simulator.metacontroller.cache import Cache, Entry, Environment
from simulator.metacontroller.composite import read
from simulator.metacontroller.decorator import Decorator, read_decorator
from simulator.metacontroller.hook_client import HttpHook
from simulator.metacontroller.metacontroller import Metacontroller
from simulator.objects.clock import Clock
from simulator.objects.kinds import NAMESPACE, Kind
from simulator.objects.objects import key_of

from .informer import Informer
from .kube import Json, Kube
from .store import ApiKinds, ApiStore

TICK = 0.005
SYNC_DELAY = 0.005


class LiveCache(Cache):
    """A cache that starts to watch a kind at its first use."""

    def __init__(self, clock: Clock, watch: Callable[[Kind], None]) -> None:
        super().__init__(clock)
        self._watch = watch

    def get(self, kind: Kind, key: tuple[str, str]) -> Entry | None:
        """Returns the cached object, or None."""
        self._watch(kind)
        return super().get(kind, key)

    def entries(self, kind: Kind, namespace: str = "") -> list[Entry]:
        """Returns the cached objects of a kind, sorted by name, of one namespace if given."""
        self._watch(kind)
        return super().entries(kind, namespace)


class Emulation:
    """A Composite- or DecoratorController that the simulator's Metacontroller runs."""

    def __init__(self, kube: Kube, manifest: Json) -> None:
        self.failures: list[str] = []
        self._kube = kube
        self._manifest = manifest
        self._inbox: queue.SimpleQueue[tuple[Kind, str, Json]] = queue.SimpleQueue()
        self._informers: dict[Kind, Informer] = {}
        self._clock = Clock()
        self._cache = LiveCache(self._clock, self._watch)
        self._began = time.monotonic()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="emulation", daemon=True)

    def start(self) -> None:
        """Fills the caches, children before parents, and starts to sync."""
        kinds = ApiKinds(self._kube)
        environment = Environment(ApiStore(self._kube), self._cache, kinds, self._clock)
        decorating = self._manifest["kind"] == "DecoratorController"
        for resource in (self._decorator if decorating else self._composite)(environment):
            self._watch(kinds.by_plural(*resource))
        self._thread.start()

    def _composite(self, environment: Environment) -> list[tuple[str, str]]:
        """Creates the CompositeController and returns its resources in the order of their
        watches.
        """
        composite = read(self._manifest)
        made = Metacontroller(composite, environment, HttpHook())
        made.queue.delay = SYNC_DELAY
        children = [(child.api_version, child.plural) for child in composite.children]
        parent = composite.parent_api_version, composite.parent_plural
        return [(NAMESPACE.api_version, NAMESPACE.plural), *children, parent]

    def _decorator(self, environment: Environment) -> list[tuple[str, str]]:
        """Creates the DecoratorController and returns its resources in the order of their
        watches.
        """
        decorator = read_decorator(self._manifest)
        made = Decorator(decorator, environment, HttpHook())
        made.queue.delay = SYNC_DELAY
        return [(each.api_version, each.plural) for each in decorator.resources]

    def stop(self) -> None:
        """Stops after the current sync. Raises RuntimeError if the emulation failed earlier."""
        self._ending.set()
        self._thread.join(60)
        for informer in self._informers.values():
            informer.stop()
        if self.failures:
            raise RuntimeError(f"the emulation failed: {self.failures[:5]}")

    def _watch(self, kind: Kind) -> None:
        if kind in self._informers:
            return
        path = self._kube.path(kind.api_version, kind.plural)
        informer = Informer(self._kube, path, lambda how, obj: self._inbox.put((kind, how, obj)))
        self._informers[kind] = informer
        informer.start()
        self._cache.replace(kind, informer.objects().values())

    def _run(self) -> None:
        wait = 0.0
        while not self._ending.is_set():
            try:
                self._take_events(wait)
                now = max(self._clock.now, time.monotonic() - self._began)
                wait = 0.0 if self._clock.step(now) else TICK
                self._clock.now = now
            except Exception as error:  # noqa: BLE001 - reported by `stop`, and the loop continues
                self.failures.append(f"{type(error).__name__}: {error}")

    def _take_events(self, wait: float) -> None:
        while True:
            try:
                kind, how, obj = self._inbox.get(timeout=wait) if wait else self._inbox.get_nowait()
            except queue.Empty:
                return
            wait = 0.0
            if how == "DELETED":
                self._cache.feed(Event(kind, obj, None, 0))
            elif self._newer(kind, obj):
                self._cache.feed(Event(kind, None, obj, 0))

    def _newer(self, kind: Kind, obj: Json) -> bool:
        """Returns True if the cache has an older version: the first list may contain the event's
        object.
        """
        known = self._cache.get(kind, key_of(obj))
        if known is None or known.obj["metadata"]["uid"] != obj["metadata"]["uid"]:
            return True
        return int(known.obj["metadata"]["resourceVersion"]) < int(
            obj["metadata"]["resourceVersion"]
        )
