"""Behaviour of containers, images and kubelets: one set of levers for every kubelet of the tests.

Times are in seconds. Images are named as the pod's spec spells them. Everything may be changed at
any time and counts from the next step on.
"""

import hashlib
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from simulator.objects.objects import Object
from tapp.kube.images import canonical_name

NEVER = math.inf
KILLED = 137
Exit = tuple[float, int] | None


@dataclass
class Levers:
    """The levers that a test can pull; at rest everything goes well."""

    schedule_seconds: float = 0.2
    react_seconds: float = 0.2  # Until the kubelet hears of a change of the pod
    gate_seconds: float = 0.5  # Until the kubelet hears of a gate's change, and reckons Ready anew
    jitter: float = 0.5  # By up to this share the times above, and a start, are longer
    by_chance: bool = True  # True if its pauses are of any length up to their longest; else half
    relist_seconds: float = 1.0  # At most between two looks at containers; only these see a change
    pull_seconds: float = 0.0
    pulls: dict[str, float] = field(default_factory=dict)
    """Seconds that pulling this image takes, instead of `pull_seconds`."""
    start_seconds: float = 1.0
    hooks: dict[str, float] = field(default_factory=dict)  # Seconds of its postStart hook
    init_seconds: float = 0.5
    stop_seconds: float = 0.5
    stops: dict[str, float] = field(default_factory=dict)
    """Seconds that a container of this image takes to stop, instead of `stop_seconds`; what takes
    longer than its grace period is killed at its end."""
    stop_code: int = KILLED  # Exit code of a container that was asked to stop, and did
    ready_seconds: float = 0.0  # As if every container had a probe that succeeds after so long
    passes: dict[str, float] = field(default_factory=dict)
    """Seconds after its start from which the probes of this image succeed; `NEVER`: they fail."""
    starts: dict[str, float] = field(default_factory=dict)
    """The same of its startup probe, instead of `passes`."""
    bad_images: set[str] = field(default_factory=set)  # These cannot be pulled
    unready_images: set[str] = field(default_factory=set)  # They never serve, as by a failing probe
    crashing_images: set[str] = field(default_factory=set)
    """Images whose containers exit with code 1 `crash_seconds` after they started."""
    crashing: dict[str, int] = field(default_factory=dict)  # The same with another exit code
    crash_seconds: float = 1.0
    backoff_seconds: float = 10.0
    backoff_limit: float = 300.0
    retry_seconds: float = 10.0  # A pod worker that failed waits so long, and up to half more
    digests: dict[str, str] = field(default_factory=dict)  # Where two names are one image
    known: dict[str, str] = field(default_factory=dict)
    """Digest (`sha256:...`) to the name under which nodes have had the image for long."""
    spelt: dict[str, str] = field(default_factory=dict)
    """Digest -> the name by which it was started first: a name with a digest is that image, too."""
    reports_generation: bool = True  # `status.observedGeneration`, since Kubernetes 1.34
    keeps_ready: bool = True
    """True if a kubelet that is started anew goes on with `started` and Ready as published, as
    since Kubernetes 1.35; else a container is unready until its probe has succeeded."""
    resizes: bool = False  # True if kubelets tell of resources, and resize (Kubernetes 1.33)
    resize_seconds: float = 1.0
    resize_pends: Callable[[Object], tuple[str, str] | None] = lambda _pod: None
    """Reason (`Deferred`, `Infeasible`) and message for a pod whose resize cannot be done."""
    resize_fails: Callable[[Object], str] = lambda _pod: ""
    """The runtime's words for a pod whose resize was begun and is not done; it is tried again."""
    completes: Callable[[Object, str], tuple[float, int] | None] = lambda _pod, _container: None
    """The time and the way in which a container ends by itself."""
    refuses: Callable[[Object], bool] = lambda _pod: False
    hangs_on_delete: Callable[[Object], bool] = lambda _pod: False
    unschedulable: Callable[[Object], bool] = lambda _pod: False

    def pull_time(self, image: str) -> float:
        """Return how long pulling this image takes."""
        return self.pulls.get(self.plain(image), self.pull_seconds)

    def pull_of(self, _pod: Object, _container: str, image: str, *, fresh: bool) -> float:  # noqa: ARG002
        """Return the same for a container of a pod; `fresh`: it has never run there."""
        return self.pull_time(image)

    def pull_error(self, image: str) -> str:
        """Return what a registry says that does not have the image."""
        name = canonical_name(image)
        why = f'failed to pull and unpack image "{name}": {name}: not found'
        return f"rpc error: code = NotFound desc = {why}"

    def stop_of(self, _pod: Object, image: str) -> tuple[float, int]:
        """Return how long a container would take to stop, and with which code."""
        return self.stops.get(self.plain(image), self.stop_seconds), self.stop_code

    def moment(self, time: float) -> float:
        """Return when a kubelet does what is due at a time."""
        return time

    def passing(self, image: str) -> float:
        """Return after how long a container of this image really serves, and its probes tell so."""
        image = self.plain(image)
        if image in self.unready_images:
            return NEVER
        return self.passes.get(image, self.ready_seconds)

    def starting(self, image: str) -> float:
        """Return after how long a startup probe of this image succeeds."""
        image = self.plain(image)
        passing = self.passing(image)
        return passing if image in self.unready_images else self.starts.get(image, passing)

    def probed_anyway(self, image: str) -> bool:
        """Tell whether this image counts as probed although the spec shows no probe."""
        return self.plain(image) in self.unready_images or self.ready_seconds > 0

    def exit_of(self, pod: Object, container: str, image: str, *, once: bool) -> Exit:
        """Return when, after its start, a container ends by itself, and with which code."""
        image = self.plain(image)
        if image in self.crashing:
            return self.crash_seconds, self.crashing[image]
        if image in self.crashing_images:
            return self.crash_seconds, 1
        if once:
            return self.init_seconds, 0
        return self.completes(pod, container)

    def refusal(self, pod: Object) -> tuple[str, str] | None:
        """Return reason and message if the kubelet does not take the pod."""
        if self.refuses(pod):
            return "OutOfcpu", "Pod was rejected: Node didn't have enough resource: cpu"
        return None

    def hangs(self, pod: Object) -> bool:
        """Tell whether the pod's deletion hangs."""
        return self.hangs_on_delete(pod)

    def no_room(self, _pod: Object, nodes: int) -> str:
        """Return the scheduler's words for a pod that no node takes."""
        return f"0/{nodes} nodes are available: {nodes} Insufficient cpu."

    def image_id(self, image: str) -> str:
        """Return the imageID of a container that runs this image."""
        repository = re.sub(r"(:[^/:]*)?(@.*)?$", "", canonical_name(image))
        digest = self.digest(image)
        self.spelt.setdefault(digest, image)
        return f"{repository}@{digest}"

    def plain(self, image: str) -> str:
        """Return the name that the levers know an image by: one with a digest is no other image."""
        return self.spelt.get(image.rpartition("@")[2], image) if "@" in image else image

    def digest(self, image: str) -> str:
        """Return what the image's name stands for."""
        if "@" in image:
            return image.rpartition("@")[2]
        own = hashlib.sha256(canonical_name(image).encode()).hexdigest()
        known = self.digests.get(image) or own
        return f"sha256:{known.removeprefix('sha256:')}"
