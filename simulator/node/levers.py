"""Levers: settings that decide how containers, images and kubelets behave in a test.

`Levers` has one field for each kind of behavior. With the default values, everything succeeds.
Times are in seconds. Fields by image have image names as keys, written exactly as in the pod's
spec. A changed lever takes effect with the next step of a kubelet. A subclass may override the
methods to decide by pod.
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
    """The behavior of all nodes in a test: times, images that fail, and other disturbances.

    With the default values, everything succeeds. All times are in seconds. This list has the fields
    without a comment or a text of their own.

    Attributes:
        schedule_seconds: until the scheduler binds a new pod to a node.
        pull_seconds: to pull an image.
        start_seconds: to start a container.
        init_seconds: until an init container that is no sidecar has succeeded.
        stop_seconds: until a container has stopped.
        crash_seconds: from the start of a container until it exits, for the images that exit.
        backoff_seconds: the first back-off after a crash or a failed pull.
        backoff_limit: the longest back-off.
        resize_seconds: to give a container other resources.
        refuses: returns True for a pod that the kubelet rejects.
        hangs_on_delete: returns True for a pod whose deletion makes no progress.
        unschedulable: returns True for a pod that the scheduler finds no node for.
    """

    schedule_seconds: float = 0.2
    react_seconds: float = 0.2  # until the kubelet sees a change of the pod
    gate_seconds: float = 0.5  # until the kubelet sees a change of a readiness gate
    jitter: float = 0.5  # 0.5: times are longer by a random share of up to 50 %
    by_chance: bool = True  # True: pauses have random lengths; False: half of the longest length
    relist_seconds: float = 1.0  # the longest time between two looks at the runtime (PLEG)
    pull_seconds: float = 0.0
    pull_seconds_by_image: dict[str, float] = field(default_factory=dict)
    """Seconds to pull an image, by image; other images take `pull_seconds`."""
    extra_pull_seconds: float = 0.0  # added to the pull of an image that the node does not have
    registry_is_down: bool = False  # True if no image can be pulled; a node keeps those it has
    start_seconds: float = 1.0
    extra_start_seconds: float = 0.0  # added to `start_seconds`, for a slow node
    post_start_seconds: dict[str, float] = field(default_factory=dict)
    """Seconds of the postStart hook, by image."""
    init_seconds: float = 0.5
    stop_seconds: float = 0.5
    stop_seconds_by_image: dict[str, float] = field(default_factory=dict)
    """Seconds that a container takes to stop, by image; other images take `stop_seconds`.

    A container that takes longer than its grace period is killed.
    """
    stop_code: int = KILLED  # exit code of a container that stopped in time
    # from a container's start until it is ready, also without a probe; 0: only probes delay that
    ready_seconds: float = 0.0
    ready_seconds_by_image: dict[str, float] = field(default_factory=dict)
    """Seconds from the start until the probes succeed, by image; `NEVER` if they always fail."""
    started_seconds_by_image: dict[str, float] = field(default_factory=dict)
    """Seconds from the start until the startup probe succeeds, by image.

    The startup probes of other images succeed when their containers are ready.
    """
    bad_images: set[str] = field(default_factory=set)  # images that cannot be pulled
    # images whose readiness probe always fails
    unready_images: set[str] = field(default_factory=set)
    crashing_images: set[str] = field(default_factory=set)
    """Images whose containers exit with code 1, `crash_seconds` after their start."""
    exit_code_by_image: dict[str, int] = field(default_factory=dict)
    """Image -> exit code, for images whose containers exit `crash_seconds` after their start."""
    crash_seconds: float = 1.0
    backoff_seconds: float = 10.0
    backoff_limit: float = 300.0
    retry_seconds: float = 10.0  # until a failed sync is repeated; up to half of it is added
    digests: dict[str, str] = field(default_factory=dict)
    """Image name -> digest, so that two names can stand for the same image."""
    known_names: dict[str, str] = field(default_factory=dict)
    """Digest (`sha256:...`) -> the name under which the nodes have known the image before."""
    first_names: dict[str, str] = field(default_factory=dict)
    """Digest -> the name that first started the image; the other levers use this name."""
    reports_generation: bool = True  # `status.observedGeneration`, since Kubernetes 1.34
    keeps_ready: bool = True
    """True if a restarted kubelet keeps `started` and Ready as published (Kubernetes 1.35).

    False: a container is unready until its probe has succeeded again.
    """
    resizes: bool = False  # True if kubelets report and resize resources (Kubernetes 1.33)
    resize_seconds: float = 1.0
    resize_pends: Callable[[Object], tuple[str, str] | None] = lambda _pod: None
    """Returns reason (`Deferred`, `Infeasible`) and message if the pod's resize cannot start."""
    resize_fails: Callable[[Object], str] = lambda _pod: ""
    """Returns the runtime's error if the pod's resize has started and fails; it is retried."""
    completes: Callable[[Object, str], tuple[float, int] | None] = lambda _pod, _container: None
    """Returns seconds and exit code of a container that ends spontaneously, or None."""
    refuses: Callable[[Object], bool] = lambda _pod: False
    hangs_on_delete: Callable[[Object], bool] = lambda _pod: False
    unschedulable: Callable[[Object], bool] = lambda _pod: False

    def image_pull_seconds(self, image: str) -> float:
        return self.pull_seconds_by_image.get(self.lever_name(image), self.pull_seconds)

    def seconds_to_pull(self, _pod: Object, _container: str, image: str, *, fresh: bool) -> float:  # noqa: ARG002
        """Returns the seconds that pulling an image for a container takes.

        `fresh` is True if the container has never run. A subclass may use all parameters; this
        method uses only the image.
        """
        return self.image_pull_seconds(image)

    def pull_error(self, image: str) -> str:
        """Returns the error message of a registry that lacks the image."""
        name = canonical_name(image)
        why = f'failed to pull and unpack image "{name}": {name}: not found'
        return f"rpc error: code = NotFound desc = {why}"

    def seconds_to_stop(self, _pod: Object, image: str) -> tuple[float, int]:
        """Returns the seconds until a container has stopped, and the exit code that it then has."""
        return self.stop_seconds_by_image.get(
            self.lever_name(image), self.stop_seconds
        ), self.stop_code

    def moment(self, time: float) -> float:
        """Returns the time at which a kubelet carries out an action that is due at `time`.

        This method returns `time`. A subclass may return a later time, for a slow kubelet.
        """
        return time

    def seconds_until_ready(self, image: str) -> float:
        """Returns the seconds from a container's start until it can really serve.

        Returns `NEVER` if the container never can.
        """
        image = self.lever_name(image)
        if image in self.unready_images:
            return NEVER
        return self.ready_seconds_by_image.get(image, self.ready_seconds)

    def seconds_until_started(self, image: str) -> float:
        """Returns the seconds from a container's start until its startup probe succeeds.

        Returns `NEVER` if the probe always fails.
        """
        image = self.lever_name(image)
        passing = self.seconds_until_ready(image)
        return (
            passing
            if image in self.unready_images
            else self.started_seconds_by_image.get(image, passing)
        )

    def has_implied_probe(self, image: str) -> bool:
        """Returns True if containers of this image count as having a readiness probe.

        So a test can make a container unready although the spec has no probe.
        """
        return self.lever_name(image) in self.unready_images or self.ready_seconds > 0

    def spontaneous_exit(self, pod: Object, container: str, image: str, *, once: bool) -> Exit:
        """Returns (seconds, exit code) of a container that ends without being stopped.

        The seconds count from the start of the container. Returns None if the container runs until
        it is stopped. Settings for the image take precedence over `completes`.

        Args:
            pod: the pod.
            container: the name of the container.
            image: the image of the container.
            once: True for an init container that is no sidecar.
        """
        image = self.lever_name(image)
        if image in self.exit_code_by_image:
            return self.crash_seconds, self.exit_code_by_image[image]
        if image in self.crashing_images:
            return self.crash_seconds, 1
        if once:
            return self.init_seconds, 0
        return self.completes(pod, container)

    def refusal(self, pod: Object) -> tuple[str, str] | None:
        """Returns reason and message if the kubelet rejects a pod at its admission; None if not."""
        if self.refuses(pod):
            return "OutOfcpu", "Pod was rejected: Node didn't have enough resource: cpu"
        return None

    def hangs(self, pod: Object) -> bool:
        """Returns True if the kubelet makes no progress with the deletion of the pod."""
        return self.hangs_on_delete(pod)

    def unschedulable_message(self, _pod: Object, nodes: int) -> str:
        """Returns the scheduler's message about a pod that fits on none of the `nodes` nodes."""
        return f"0/{nodes} nodes are available: {nodes} Insufficient cpu."

    def image_id(self, image: str) -> str:
        """Returns the imageID that the status of a container shows for this image."""
        repository = re.sub(r"(:[^/:]*)?(@.*)?$", "", canonical_name(image))
        digest = self.digest(image)
        self.first_names.setdefault(digest, image)
        return f"{repository}@{digest}"

    def lever_name(self, image: str) -> str:
        """Returns the name under which the other fields and methods of this class know an image.

        If `image` has a digest, this is the name that first started an image with this digest.
        Without a digest, this is `image` itself.
        """
        return self.first_names.get(image.rpartition("@")[2], image) if "@" in image else image

    def digest(self, image: str) -> str:
        """Returns the digest of an image.

        It comes from the image's name or from `digests`. If neither has it, a hash of the name is
        used.
        """
        if "@" in image:
            return image.rpartition("@")[2]
        own = hashlib.sha256(canonical_name(image).encode()).hexdigest()
        known = self.digests.get(image) or own
        return f"sha256:{known.removeprefix('sha256:')}"
