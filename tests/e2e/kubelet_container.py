"""One container's life in the fake kubelet: a state machine over time, without any I/O."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import UTC, datetime
from enum import Enum, auto
from typing import Any

from .kubelet_levers import Levers, normal

Json = dict[str, Any]


class Step(Enum):
    """Where a container stands."""

    NEW = auto()
    PULLING = auto()
    PULL_BACKOFF = auto()
    STARTING = auto()
    RUNNING = auto()
    STOPPING = auto()
    CRASH_BACKOFF = auto()
    EXITED = auto()
    """For good: nothing starts it again."""


def timestamp() -> str:
    """Now, as Kubernetes writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Container:
    """A container of a pod: plain init container, native sidecar or main container."""

    def __init__(self, name: str, *, init: bool, sidecar: bool) -> None:
        self.name = name
        self.init = init
        self.sidecar = sidecar
        self.step = Step.NEW
        self.until: float | None = None
        """When the present step ends, on the monotonic clock."""
        self.image = ""
        """The image, as the spec spelt it, of the present attempt."""
        self.container_id = ""
        self.restarts = 0
        self.exit_code: int | None = None
        self._shown_image = ""
        self._image_id = ""
        self._started_at = ""
        self._ready_from = 0.0
        self._state: Json = {"waiting": {"reason": "ContainerCreating"}}
        self._last: Json = {}
        self._pull_failures = 0
        self._crashes = 0
        self._asked_exit: int | None = None
        self.replacing = False
        """Being replaced because its image changed."""

    # What others look at

    @property
    def _runs_once(self) -> bool:
        return self.init and not self.sidecar

    @property
    def running(self) -> bool:
        """Whether a process of this container runs."""
        return self.step in (Step.RUNNING, Step.STOPPING)

    @property
    def exited(self) -> bool:
        """Down for good."""
        return self.step is Step.EXITED

    @property
    def succeeded(self) -> bool:
        """Exited for good with code 0."""
        return self.exited and self.exit_code == 0

    @property
    def ever_ran(self) -> bool:
        """Whether any process of this container has existed."""
        return bool(self.container_id)

    def ready(self, now: float, levers: Levers) -> bool:
        """Ready: running for long enough, and of an image that becomes ready."""
        if not self.running:
            return False
        return now >= self._ready_from and self.image not in levers.unready_images

    def wake(self, now: float) -> float | None:
        """When something happens next by itself."""
        times = [self.until] if self.until is not None else []
        if self.running and self._ready_from > now:
            times.append(self._ready_from)
        return min(times, default=None)

    def status(self, now: float, levers: Levers, spec_image: str) -> Json:
        """The containerStatus."""
        ready = self.succeeded if self._runs_once else self.ready(now, levers)
        shown: Json = {
            "name": self.name,
            "image": self._shown_image or spec_image,
            "imageID": self._image_id,
            "state": self._state,
            "lastState": self._last,
            "ready": ready,
            "restartCount": self.restarts,
            "started": self.running,
        }
        if self.container_id:
            shown["containerID"] = self.container_id
        return shown

    # What makes it move

    def advance(
        self, image: str, now: float, levers: Levers, restarts: Callable[[int], bool]
    ) -> None:
        """Moves as far as the clock allows. `restarts` tells whether an exit leads to a start.

        A new image replaces a running container and ends every wait of one that is not running;
        one that has exited for good stays so (as the real kubelet has it).
        """
        if image != self.image:
            self._take_image(image, now, levers)
        moved = True
        while moved:
            moved = self._advance_once(image, now, levers, restarts)

    def stop(self, now: float, seconds: float) -> None:
        """Asks a running container to stop; one that waits never starts."""
        if self.step is Step.RUNNING:
            self.step, self.until = Step.STOPPING, now + seconds
        elif self.step is not Step.STOPPING and self.step is not Step.EXITED:
            self.step, self.until = Step.EXITED, None

    def stopped(self, now: float, code: int) -> bool:
        """For a pod that ends: whether the container is down (takes note of the exit if due)."""
        if self.step is Step.STOPPING and self.until is not None and now >= self.until:
            self._exit(code)
            self.step, self.until = Step.EXITED, None
        return self.step is Step.EXITED

    def kill(self, code: int) -> None:
        """Ends it at once and for good."""
        if self.running:
            self._exit(code)
        self.step, self.until = Step.EXITED, None

    def ask_exit(self, code: int) -> None:
        """Lets a running container exit by itself with this code at the next step."""
        self._asked_exit = code

    def adopt(self, status: Json, image: str, now: float, policy: str) -> None:
        """Takes over a container that an earlier kubelet ran."""
        self.image = image
        self.container_id = status.get("containerID", "")
        self.restarts = status.get("restartCount", 0)
        self._shown_image, self._image_id = status.get("image", ""), status.get("imageID", "")
        self._state, self._last = status.get("state") or {}, status.get("lastState") or {}
        if running := self._state.get("running"):
            self.step, self._started_at = Step.RUNNING, running.get("startedAt") or timestamp()
            self._ready_from = now
        elif terminated := self._state.get("terminated"):
            code = self.exit_code = int(terminated.get("exitCode", 0))
            if policy == "Never" or (code == 0 and (policy == "OnFailure" or self._runs_once)):
                self.step = Step.EXITED

    def _take_image(self, image: str, now: float, levers: Levers) -> None:
        if self.step is Step.RUNNING and not (self._runs_once):
            self.step, self.until, self.replacing = Step.STOPPING, now + levers.stop_seconds, True
        elif self.step in (Step.PULLING, Step.PULL_BACKOFF, Step.STARTING, Step.CRASH_BACKOFF):
            self._pull(image, now, levers)
            self._pull_failures = self._crashes = 0

    def _advance_once(
        self, image: str, now: float, levers: Levers, restarts: Callable[[int], bool]
    ) -> bool:
        due = self.until is not None and now >= self.until
        if self.step is Step.NEW:
            self._pull(image, now, levers)
        elif self.step is Step.PULLING and due:
            self._pulled(now, levers, restarts)
        elif self.step in (Step.PULL_BACKOFF, Step.CRASH_BACKOFF) and due:
            self._pull(image, now, levers)
        elif self.step is Step.STARTING and due:
            self._run(now, levers)
        elif self.step is Step.STOPPING and due:
            self._exit(levers.stop_code)
            self._crashes = 0
            self._pull(image, now, levers)
        elif self.step is Step.RUNNING and (due or self._asked_exit is not None):
            self._exited_by_itself(now, levers, restarts)
        else:
            return False
        return True

    def _pull(self, image: str, now: float, levers: Levers) -> None:
        self.image = image
        self.step, self.until = Step.PULLING, now + levers.pull_time(image)

    def _pulled(self, now: float, levers: Levers, restarts: Callable[[int], bool]) -> None:
        if self.image not in levers.bad_images:
            self._pull_failures = 0
            self.step, self.until = Step.STARTING, now + levers.start_seconds
            return
        self._pull_failures += 1
        self.replacing = False
        if self.ever_ran and not restarts(self.exit_code or 0):
            # The image change killed it, and its restart policy starts it no more.
            self.step, self.until = Step.EXITED, None
            return
        if "terminated" in self._state:
            self._last = self._state
        reason = "ErrImagePull" if self._pull_failures == 1 else "ImagePullBackOff"
        message = f"failed to pull image {self.image!r}"
        self._state = {"waiting": {"reason": reason, "message": message}}
        self.step, self.until = Step.PULL_BACKOFF, now + levers.backoff(self._pull_failures)

    def _run(self, now: float, levers: Levers) -> None:
        if self.ever_ran:
            self.restarts += 1
            if "terminated" in self._state:
                self._last = self._state
        self.container_id = f"containerd://{secrets.token_hex(32)}"
        self._shown_image, self._image_id = normal(self.image), levers.image_id(self.image)
        self._started_at = timestamp()
        self._state = {"running": {"startedAt": self._started_at}}
        self._ready_from = now + levers.ready_seconds
        self.step, self.until, self.replacing = Step.RUNNING, None, False
        self._asked_exit = None
        if self.image in levers.crashing:
            self.until = now + levers.crash_seconds
        elif self._runs_once:
            self.until = now + levers.init_seconds

    def _exited_by_itself(
        self, now: float, levers: Levers, restarts: Callable[[int], bool]
    ) -> None:
        code = self._asked_exit
        if code is None:
            table = levers.init_codes if self._runs_once else levers.crashing
            code = table.get(self.image, levers.crashing.get(self.image, 0))
        self._asked_exit = None
        self._exit(code)
        if not restarts(code):
            self.step, self.until = Step.EXITED, None
            return
        self._crashes += 1
        if self._crashes == 1:
            self._pull(self.image, now, levers)  # the first restart does not wait
            return
        wait = levers.backoff(self._crashes - 1)
        self._last = self._state
        self._state = {"waiting": {"reason": "CrashLoopBackOff", "message": f"back-off {wait}s"}}
        self.step, self.until = Step.CRASH_BACKOFF, now + wait

    def _exit(self, code: int) -> None:
        self.exit_code = code
        self._state = {
            "terminated": {
                "exitCode": code,
                "reason": "Completed" if code == 0 else "Error",
                "startedAt": self._started_at,
                "finishedAt": timestamp(),
                "containerID": self.container_id,
            }
        }
