"""Settings of the simulated kubelets: containers start and stop as slowly as the TApp's real pods
did.

`behaviour` is the entry point. Problems that the real cluster shows continue in the simulation: an
image that fails everywhere, a pod without a node, a pod that is not deleted in time.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any

from kubectl_tapp.base.observed import Document
from kubectl_tapp.base.reading import conditions_by_type, container_statuses, containers
from kubectl_tapp.forecast.timing import TIMES, Durations
from simulator.node.levers import KILLED, NEVER, Levers
from tapp.kube.resources import canonical_resources
from tapp.kube.stored import PROBE
from tapp.words.times import seconds

# Fields of a pod spec that decide which nodes fit
_SCHEDULING_FIELDS = (
    *("nodeSelector", "affinity", "topologySpreadConstraints"),
    *("priorityClassName", "runtimeClassName"),
)
_NODE_TOLERATIONS = "node.kubernetes.io/"  # Prefix of the tolerations that admission adds to pods
Demands = tuple[object, ...]


def pods_without_node(pods: Iterable[Document]) -> dict[str, tuple[Demands, str]]:
    """Returns the pods that the scheduler has found no node for.

    The result maps pod names to the scheduling demands of the pod and the scheduler's message.
    """
    told = ((pod, _scheduler_message(pod)) for pod in pods)
    return {
        pod["metadata"]["name"]: (demands(pod), message)
        for pod, message in told
        if message is not None
    }


def _scheduler_message(pod: Document) -> str | None:
    if (pod.get("spec") or {}).get("nodeName"):
        return None
    scheduled = conditions_by_type(pod).get("PodScheduled") or {}
    return str(scheduled.get("message") or "") if scheduled.get("status") == "False" else None


def demands(pod: Document) -> Demands:
    """Returns the fields of a pod that the scheduler reads; pods with equal fields fit the same
    nodes.
    """
    spec = pod.get("spec") or {}
    tolerated = [
        item
        for item in spec.get("tolerations") or []
        if not str(item.get("key") or "").startswith(_NODE_TOLERATIONS)
    ]
    claims = [
        (volume.get("persistentVolumeClaim") or {}).get("claimName")
        for volume in spec.get("volumes") or []
    ]
    asked = [
        (
            each.get("name"),
            canonical_resources(each.get("resources")).get("requests"),
            _host_ports(each),
        )
        for each in containers(spec)
    ]
    rest = tuple(spec.get(field) or None for field in _SCHEDULING_FIELDS)
    scheduler = spec.get("schedulerName") or "default-scheduler"
    return (*rest, scheduler, tolerated, [claim for claim in claims if claim], asked)


def _host_ports(container: Document) -> list[object]:
    return [port["hostPort"] for port in container.get("ports") or [] if port.get("hostPort")]


# Seconds of one tick. All simulated times are multiples of it, so that sums of times are exact.
TICK = 1 / 16
STARTING = ("ContainerCreating", "PodInitializing")
_OVERHEAD = 0.5  # Seconds that a simulated pod needs to be scheduled and observed
PATIENCE = 120.0  # Seconds after which a start counts as failed, if no start was observed
_DELETION_OVERDUE = (
    60.0  # A pod that still exists this many seconds after its grace period does not terminate
)


@dataclass
class Behaviour(Levers):
    """Settings of simulated kubelets, with the times that the real pods of this TApp have taken."""

    # image -> the durations of containers that run the image
    paces: dict[str, Durations] = field(default_factory=dict)
    # pod name -> the pod's scheduling demands and the scheduler's message, for pods without a node
    unplaced: dict[str, tuple[Demands, str]] = field(default_factory=dict)
    # uids of pods that are being deleted and do not terminate
    staying: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Removes all randomness, so that equal instances take equally long, and installs the
        methods below as the simulated kubelet's settings.
        """
        self.jitter, self.by_chance, self.relist_seconds = 0.0, False, 4 * TICK
        self.start_seconds, self.init_seconds = TICK, TICK
        self.schedule_seconds, self.react_seconds = 3 * TICK, 3 * TICK
        self.stop_code = KILLED
        self.unschedulable = self._finds_no_node
        self.hangs_on_delete = lambda pod: pod["metadata"]["uid"] in self.staying

    @property
    def patience(self) -> float:
        """Seconds after which a start counts as failed: three times the longest known duration of a
        start.
        """
        return max([3 * pace.start for pace in self.paces.values()], default=PATIENCE)

    def seconds_to_pull(self, pod: Document, container: str, image: str, *, fresh: bool) -> float:
        """Returns the seconds that pulling an image for a container takes.

        `fresh` is True if the container has never run. In a new pod only the first container takes
        time, because the measured time covers all pulls of a pod together. An update in place pulls
        the image each time.
        """
        pace = self.paces.get(image)
        if pace is None:
            return self.image_pull_seconds(image)
        if not fresh:
            return max(pace.swap - self.start_seconds, 0.0)
        first = containers(pod["spec"])[0]
        return max(pace.begin - _OVERHEAD, 0.0) if container == first["name"] else 0.0

    def pull_error(self, image: str) -> str:
        """Returns the message of a failed pull in the simulation, which names the image."""
        return f"{image} is assumed to fail"

    def unschedulable_message(self, pod: Document, _nodes: int) -> str:
        """Returns the message of the real scheduler about this pod, or "" if it had none."""
        return self.unplaced.get(pod["metadata"]["name"], ((), ""))[1]

    def _finds_no_node(self, pod: Document) -> bool:
        known = self.unplaced.get(pod["metadata"]["name"])
        return known is not None and known[0] == demands(pod)

    def seconds_to_stop(self, _pod: Document, image: str) -> tuple[float, int]:
        """Returns the seconds until a container with this image stops, and its exit code.

        If the grace period ends earlier, the simulated kubelet kills the container then.
        """
        pace = self.paces.get(image)
        return (self.stop_seconds if pace is None else pace.stop), self.stop_code

    def moment(self, time: float) -> float:
        """Returns the time rounded up to the next tick of the simulated clock."""
        return in_ticks(time)

    def seconds_until_ready(self, image: str) -> float:
        """Returns the seconds from the start of a container until its probes succeed; `NEVER` if
        they fail.
        """
        return (
            NEVER if image in self.unready_images else self.ready_seconds_by_image.get(image, 0.0)
        )


def behaviour(
    paces: Iterable[tuple[Durations, Document]], pods: Iterable[Document], now: float
) -> Behaviour:
    """Returns the settings of simulated kubelets for these templates, with problems that the pods
    show.

    Args:
        paces: the durations and the content of each template. The templates before the edit come
            first.
        pods: the real pods.
        now: the time, in seconds since the epoch.
    """
    known, pods = Behaviour(), list(pods)
    for known_pace, body in paces:
        times: Any = {name: in_ticks(getattr(known_pace, name)) for name in TIMES}
        pace = replace(known_pace, **times)
        for container in containers(body.get("spec") or {}):
            image = container.get("image", "")
            known.paces[image] = pace
            known.ready_seconds_by_image[image] = max(
                pace.ready - _probe_period(container) / 2, 0.0
            )
    known.reports_generation = not pods or any(
        (pod.get("status") or {}).get("observedGeneration") for pod in pods
    )
    known.unplaced = pods_without_node(pods)
    known.staying = frozenset(
        str(pod["metadata"]["uid"]) for pod in pods if _does_not_terminate(pod, now)
    )
    return known


def in_ticks(seconds: float) -> float:
    """Returns the seconds rounded up to a multiple of `TICK`, so that sums of times are exact."""
    return ceil(seconds / TICK) * TICK


def _probe_period(container: Document) -> float:
    probe = container.get("readinessProbe") or container.get("startupProbe")
    if not isinstance(probe, dict):
        return 0.0
    return float(probe.get("periodSeconds") or PROBE["periodSeconds"])


def _does_not_terminate(pod: Document, now: float) -> bool:
    deleted = pod["metadata"].get("deletionTimestamp")
    return bool(deleted) and now - seconds(deleted) > _DELETION_OVERDUE


@dataclass(frozen=True)
class BrokenImage:
    """An image that fails in at least one pod of the TApp and runs well in none.

    A forecast assumes that it goes on failing.
    """

    image: str  # the image as written in the pods' specs
    reason: str  # reason in the containers' status, such as `CrashLoopBackOff`
    pods: tuple[str, ...]  # names of the pods that report the failure
    how: str  # `pull`, `crash` or `unready`


def broken_images(pods: Iterable[Document], now: float, patience: float) -> list[BrokenImage]:
    """Returns the images that fail in at least one container and run well in none.

    `now` is in seconds since the epoch. A container that has been unready for more than `patience`
    seconds counts as failing.
    """
    well, failing = set[str](), dict[str, list[tuple[str, str, str]]]()
    for pod in pods:
        images = {one["name"]: one.get("image", "") for one in containers(pod.get("spec") or {})}
        for item in container_statuses(pod):
            image = images.get(item.get("name"), "")
            if item.get("ready"):
                well.add(image)
            elif (found := _failure(item, now, patience)) is not None:
                failing.setdefault(image, []).append((pod["metadata"]["name"], *found))
    return [
        BrokenImage(image, failed[0][1], tuple(name for name, _, _ in failed), failed[0][2])
        for image, failed in sorted(failing.items())
        if image and image not in well
    ]


def _failure(status: Mapping[str, Any], now: float, patience: float) -> tuple[str, str] | None:
    """Returns the reason of a container's failure, and its kind: `pull`, `crash` or `unready`.

    Returns None if the container may still start. `status` is its container status; a container
    that has been unready for more than `patience` seconds counts as failing.
    """
    state = status.get("state") or {}
    waiting, ended, running = (state.get(name) for name in ("waiting", "terminated", "running"))
    if waiting is not None and waiting.get("reason") not in STARTING:
        reason = str(waiting.get("reason") or "waiting")
        return reason, "crash" if reason == "CrashLoopBackOff" else "pull"
    if ended is not None and ended.get("exitCode") and status.get("restartCount"):
        return str(ended.get("reason") or "Error"), "crash"
    if running is not None and now - seconds(running.get("startedAt")) > patience:
        return "not ready", "unready"
    return None


def mark_as_broken(known: Behaviour, broken: Iterable[BrokenImage], assumed: Iterable[str]) -> None:
    """Changes the settings `known` so that every container with one of these images fails.

    `broken` are images that fail in the real cluster, and `assumed` are images that the user
    assumes to fail.
    """
    for item in broken:
        where = {"crash": known.crashing_images, "unready": known.unready_images}
        where.get(item.how, known.bad_images).add(item.image)
    known.bad_images |= set(assumed)
