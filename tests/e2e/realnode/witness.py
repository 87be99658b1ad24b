"""Records the running containers from the processes of containerd's tasks, independent of any
status.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from .images import SERVING, STARTED

INTERVAL = 0.05
ANNOTATION = "io.kubernetes.cri"


@dataclass(frozen=True)
class Running:
    """A container whose process runs."""

    namespace: str
    pod: str
    uid: str
    container: str
    image: str
    id: str
    serving: bool
    """True if files in the container say that the process has started and serves."""


@dataclass(frozen=True)
class Moment:
    """The containers that ran from the time `seconds` until the next recorded moment."""

    seconds: float
    running: frozenset[Running]

    def __str__(self) -> str:
        words = sorted(
            f"{each.pod}/{each.container}={each.image.rpartition(':')[2]}"
            f"{'' if each.serving else '(not serving)'} {each.id[:5]}"
            for each in self.running
        )
        return f"{self.seconds:7.2f} {', '.join(words)}"


class Witness:
    """Counts the pods of a namespace whose watched containers all run, and keeps the minimum."""

    def __init__(self, tasks: Path, proc: Path) -> None:
        self._tasks = tasks
        self._proc = proc
        self._known: dict[str, tuple[str, ...] | None] = {}
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="witness", daemon=True)
        self._namespace = ""
        self._containers: frozenset[str] = frozenset()
        self.begun = time.monotonic()
        """The start of the timeline."""
        self.fewest = 0
        """The minimum number of pods with running containers at one time since `begin`."""
        self.fewest_serving = 0
        """The minimum number of pods that also served."""
        self.timeline: list[Moment] = []
        """All changes since `begin`."""

    def start(self) -> None:
        """Starts to record."""
        self._thread.start()

    def stop(self) -> None:
        """Stops recording."""
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join(5)

    def begin(self, namespace: str, *containers: str) -> None:
        """Resets the counts for one namespace. A pod counts while all `containers` (`main`) run."""
        with self._lock:
            self._namespace = namespace
            self._containers = frozenset(containers or ("main",))
            self.begun, self.timeline = time.monotonic(), []
            self.fewest = self.fewest_serving = 1 << 30
            self._sample()

    def now(self, namespace: str) -> list[Running]:
        """Returns the containers that run in a namespace now."""
        return [each for each in self._running() if each.namespace == namespace]

    def processes(self, namespace: str, pod: str) -> list[Path]:
        """Returns the /proc directories of a pod's running containers."""
        ids = [each.id for each in self.now(namespace) if each.pod == pod]
        return [self._proc / (self._tasks / id / "init.pid").read_text() for id in ids]

    def __str__(self) -> str:
        """Returns the timeline, one line for each change."""
        with self._lock:
            return "\n".join(str(each) for each in self.timeline)

    def _watch(self) -> None:
        while not self._ending.wait(INTERVAL):
            with self._lock:
                if self._namespace:
                    self._sample()

    def _sample(self) -> None:
        running = frozenset(self.now(self._namespace))
        self.fewest = min(self.fewest, self._count(running))
        serving = frozenset(each for each in running if each.serving)
        self.fewest_serving = min(self.fewest_serving, self._count(serving))
        if not self.timeline or self.timeline[-1].running != running:
            self.timeline.append(Moment(time.monotonic() - self.begun, running))

    def _count(self, running: frozenset[Running]) -> int:
        pods: dict[str, set[str]] = {}
        for each in running:
            pods.setdefault(each.pod, set()).add(each.container)
        return sum(self._containers <= names for names in pods.values())

    def _running(self) -> list[Running]:
        with contextlib.suppress(FileNotFoundError):
            found = [self._container(each) for each in self._tasks.iterdir()]
            return [each for each in found if each is not None]
        return []

    def _container(self, bundle: Path) -> Running | None:
        identity = self._identity(bundle)
        if identity is None:
            return None
        try:
            pid = (bundle / "init.pid").read_text()
            process = self._proc / pid
            state = (process / "stat").read_text().rpartition(")")[2].split()[0]
            # Until the container starts, its process is runc.
            begun = not (process / "cmdline").read_bytes().startswith(b"runc\0init")
        except OSError:
            return None
        if state in "ZX" or not begun:
            return None
        serving = all((process / "root" / each).exists() for each in (STARTED, SERVING))
        namespace, pod, uid, container, image = identity
        return Running(namespace, pod, uid, container, image, bundle.name, serving)

    def _identity(self, bundle: Path) -> tuple[str, ...] | None:
        """Returns namespace, pod, uid, container and image from containerd; None for a sandbox."""
        if bundle.name not in self._known:
            try:
                found = json.loads((bundle / "config.json").read_text())["annotations"]
            except (OSError, ValueError):
                return None
            keys = ("sandbox-namespace", "sandbox-name", "sandbox-uid", "container-name")
            values = tuple(found.get(f"{ANNOTATION}.{key}", "") for key in (*keys, "image-name"))
            is_container = found.get(f"{ANNOTATION}.container-type") == "container"
            self._known[bundle.name] = values if is_container else None
        return self._known[bundle.name]
