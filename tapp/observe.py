"""How a pod does: the value that the rules ask questions of.

A pod is split in two. What it was told to be is its `Appearance`, which it may share with pods that
look alike; the rest (phase, readiness, containers) is its own and is read here.
"""

from datetime import datetime

import msgspec

from tapp import objects
from tapp.appearance import Appearance, read_annotation
from tapp.objects import Condition, ContainerStatus, InPlaceRecord, PodObject, RanImage
from tapp.pattern import ABSENT, NO_VALUES, RECORD, Values
from tapp.vocabulary import IN_PLACE_UPDATE

COMPLETED = ("Succeeded", "Failed")

_CHANGED = b'"lastTransitionTime":"'
_TRUE, _FALSE = b'"status":"True"', b'"status":"False"'
_READY = b',"type":"Ready"}'
"""Parts of the condition as Go writes it, with sorted keys. No string in JSON can hold them."""


class Pod:
    """One observed pod."""

    __slots__ = (
        *("_containers", "_object", "_record", "look", "name", "odd"),
        *("phase", "ready", "terminating", "values"),
    )

    def __init__(self, pod: PodObject, look: Appearance, values: Values = NO_VALUES) -> None:
        """Reads phase and readiness at once, the rest on demand.

        Args:
            pod: the pod.
            look: its appearance, which it may share.
            values: its own values in that appearance; its record's text is one of them.
        """
        self._object = pod
        self._containers: list[ContainerStatus] | None = None
        self._record: InPlaceRecord | None = None
        self.odd = look.odd
        """What could not be read; such a pod is left alone."""
        self.name = pod.metadata.name
        self.look = look
        self.values = values
        self.terminating = pod.metadata.deletion_timestamp is not None
        self.phase = "Pending"  # a pod without a phase has not been looked at by a kubelet yet
        self.ready: bool | None = None
        status = pod.status
        if status is not None:
            self.phase = status.phase or "Pending"
            conditions = bytes(status.conditions)
            end = conditions.find(_READY)
            if end < 0 or conditions.find(_READY, end + 1) >= 0 or not conditions.startswith(b"[{"):
                end = 0
            if conditions.endswith(_TRUE, 0, end):
                self.ready = True
            elif conditions.endswith(_FALSE, 0, end):
                self.ready = False
            elif status.conditions is not objects.NOTHING:
                try:
                    condition = self._ready_condition
                except (msgspec.DecodeError, UnicodeDecodeError) as error:
                    self.odd = f"status.conditions: {error}"
                else:
                    self.ready = None if condition is None else condition.status == "True"

    def alone(self) -> "Pod":
        """The same pod with an appearance of its own, every value in it."""
        pod = Pod(self._object, Appearance(self._object))
        pod.odd = self.odd
        return pod

    @property
    def _ready_condition(self) -> Condition | None:
        status = self._object.status
        conditions = objects.decode_conditions(status.conditions) if status is not None else None
        return next((item for item in conditions or () if item.type == "Ready"), None)

    @property
    def ready_since(self) -> str:
        """When its readiness last changed; "" where nobody knows."""
        status = self._object.status
        if status is None or self.ready is None:
            return ""
        conditions = bytes(status.conditions)
        end = conditions.find(_READY)
        start = conditions.find(_CHANGED, conditions.rfind(b"{", 0, end), end)
        if 0 <= start < end:
            start += len(_CHANGED)
            since = conditions[start : conditions.index(b'"', start)]
            if since.isascii() and b"\\" not in since:
                return since.decode()
        try:
            condition = self._ready_condition
        except (msgspec.DecodeError, UnicodeDecodeError):
            return ""
        return "" if condition is None else condition.last_transition_time or ""

    @property
    def record(self) -> InPlaceRecord | None:
        """The last in-place update; None if there was none (or somebody broke the annotation)."""
        if self._record is None and IN_PLACE_UPDATE in self.look.annotations:
            own = self.values[RECORD]
            text = (
                self.look.annotations[IN_PLACE_UPDATE]
                if own == ABSENT
                else own.replace(b'\\"', b'"')
            )
            self._record = read_annotation(objects.decode_record, text)
        return self._record

    @property
    def completed(self) -> bool:
        """Whether the pod has ended for good."""
        return self.phase in COMPLETED

    @property
    def running(self) -> bool:
        """Whether the pod runs and is not on its way out."""
        return not self.terminating and self.phase == "Running"

    @property
    def uid(self) -> str:
        """`metadata.uid`."""
        return self._object.metadata.uid or ""

    @property
    def created(self) -> str:
        """`metadata.creationTimestamp`."""
        return self._object.metadata.creation_timestamp or ""

    @property
    def containers(self) -> list[ContainerStatus]:
        """Statuses of all containers, init containers first."""
        if self._containers is None:
            found: list[ContainerStatus] = []
            status = self._object.status
            if status is not None:
                for raw in (status.init_container_statuses, status.container_statuses):
                    if raw is objects.NOTHING:
                        continue
                    try:
                        found += objects.decode_statuses(raw) or []
                    except (msgspec.DecodeError, UnicodeDecodeError):
                        continue  # a container of unknown state is one that has not started
            self._containers = found
        return self._containers

    @property
    def refused_by_kubelet(self) -> bool:
        """Bound to a node, ended, and no container was ever started there."""
        return (
            self.completed
            and bool(self.look.spec.get("nodeName"))
            and not any(
                status.container_id
                or (
                    (state := status.state) is not None
                    and (state.running is not None or state.terminated is not None)
                )
                for status in self.containers
            )
        )

    @property
    def kubelet_is_behind(self) -> bool:
        """Whether the kubelet says that it has not seen the newest spec (Kubernetes >= 1.34)."""
        status, generation = self._object.status, self._object.metadata.generation
        seen = status.observed_generation if status is not None else None
        return bool(seen and generation and seen < generation)

    def container(self, name: str) -> ContainerStatus:
        """The status of a container; an empty one if the kubelet has not reported it."""
        for status in self.containers:
            if status.name == name:
                return status
        return ContainerStatus()

    def restarted(self, name: str, ran: RanImage) -> bool:
        """Whether a container runs what the spec says, given what it ran before the update.

        The kubelet starts another container whenever the image string changes, so a new containerID
        is the proof. No restart will come where the image is the old one again: rolled back before
        the kubelet saw it, or rewritten by admission.
        """
        status = self.container(name)
        if status.state is None or status.state.running is None or not status.container_id:
            return False
        return status.container_id != ran.id or self.look.images.get(name) == ran.image

    @property
    def unfinished_update(self) -> dict[str, RanImage]:
        """Containers of an in-place update that have not been restarted yet."""
        record = self.record
        if record is None:
            return {}
        return {
            name: ran
            for name, ran in record.containers.items()
            if name in self.look.images
            and (self.kubelet_is_behind or not self.restarted(name, ran))
        }

    @property
    def updating(self) -> bool:
        """Whether an in-place update of images is under way (design section 3.4)."""
        record = self.record
        if record is None or not record.containers or self.phase != "Running":
            return False
        return self.ready is not True or bool(self.unfinished_update)

    def ready_for(self, now: float) -> float:
        """Seconds since the pod became Ready; 0 where it is not, or nobody knows since when."""
        if self.ready is not True:
            return 0.0
        try:
            since = datetime.fromisoformat(self.ready_since).timestamp()
        except ValueError:
            return 0.0
        return max(0.0, now - since)
