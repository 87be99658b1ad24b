"""What is there: pods as values that the rules can ask questions of.

A pod is split in two. Its `Appearance` is what it was told to be (labels, annotations, spec); the
rest is how it does (phase, readiness, containers). This module is the only reader of pod JSON.
"""

from collections.abc import Callable
from datetime import datetime
from functools import cached_property
from typing import Any, TypeVar

import msgspec

from tapp import objects
from tapp.objects import ContainerStatus, InPlaceRecord, PodObject, RanImage
from tapp.project import duplicate_merge_keys, project
from tapp.vocabulary import (
    IN_PLACE_UPDATE,
    LAST_APPLIED,
    TEMPLATE_HASH,
    TEMPLATE_IMAGES,
    UNIQ_HASH,
)

T = TypeVar("T")

COMPLETED = ("Succeeded", "Failed")
INIT = "initContainers"


Values = tuple[bytes, bytes, bytes, bytes, bytes, bytes]
"""The texts in a pod's appearance that are its own, as they stand in the request's JSON.

Its name (also in its host name and the names of its claims), its instance's number (in two labels),
its node, the name of its token volume, the record of its last in-place update as it is escaped in
its annotation, and the same record escaped once more in the last-applied annotation.
"""
NAME, NUMBER, NODE, TOKEN, RECORD, RECORD_APPLIED = range(6)
NO_VALUES: Values = (b"", b"", b"", b"", b"", b"")


class Appearance:
    """What a pod was told to be.

    Pods that look alike share the appearance of the first of them (`lookalike.py`): what is read
    here for a decision must be the same for all of them, apart from their own names in it.
    """

    def __init__(self, pod: PodObject) -> None:
        """Decodes the three parts; one of a wrong type reads as empty.

        Raises:
            msgspec.DecodeError: a part is no JSON.
        """
        meta = pod.metadata
        self.name = meta.name
        self.namespace = meta.namespace
        self.labels = _decoded_map(meta.labels)
        self.annotations = _decoded_map(meta.annotations)
        self.finalizers = msgspec.json.decode(meta.finalizers)
        self.spec = _decoded_map(pod.spec)
        self.odd = _oddity(pod)
        """What of it is of a wrong type, "" if nothing."""
        self.shared_by: Values | None = None
        """The first pod's own values, if other pods may share this appearance."""

    @cached_property
    def template_hash(self) -> str | None:
        """The revision label."""
        return self.labels.get(TEMPLATE_HASH)

    @cached_property
    def uniq_hash(self) -> str | None:
        """The revision label without images."""
        return self.labels.get(UNIQ_HASH)

    @cached_property
    def applied(self) -> dict[str, Any] | None:
        """What Metacontroller applied last; None where it left no (readable) annotation."""
        applied = _read(msgspec.json.decode, self.annotations.get(LAST_APPLIED))
        return applied if isinstance(applied, dict) else None

    @cached_property
    def template_images(self) -> dict[str, str]:
        """Container name -> image as the template had it when it was last applied."""
        return _read(objects.decode_images, self.annotations.get(TEMPLATE_IMAGES)) or {}

    @cached_property
    def images(self) -> dict[str, str]:
        """Container name -> image in the spec, of containers and init containers."""
        return {item["name"]: item.get("image", "") for item in self._containers}

    @cached_property
    def restart_policies(self) -> dict[str, str]:
        """Container name -> the policy that decides whether the kubelet starts it again."""
        policy = self.restart_policy
        return {item["name"]: item.get("restartPolicy") or policy for item in self._containers}

    @property
    def _containers(self) -> list[dict[str, Any]]:
        if self.odd:
            return []
        return [*(self.spec.get("containers") or []), *(self.spec.get(INIT) or [])]

    @property
    def restart_policy(self) -> str:
        """`spec.restartPolicy`, with Kubernetes' default."""
        return self.spec.get("restartPolicy") or "Always"

    @cached_property
    def duplicates(self) -> list[str]:
        """Paths that Metacontroller cannot merge; none in a pod that it never applied."""
        if self.applied is None:
            return []
        return duplicate_merge_keys({"spec": self.applied.get("spec")})

    @property
    def document(self) -> dict[str, Any]:
        """The pod as far as projection looks at it: identity, labels, annotations, spec."""
        metadata: dict[str, Any] = {"name": self.name}
        if self.namespace is not None:
            metadata["namespace"] = self.namespace
        metadata["labels"] = self.labels
        metadata["annotations"] = self.annotations
        if self.finalizers:
            metadata["finalizers"] = self.finalizers
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": self.spec}

    @property
    def projected(self) -> dict[str, Any] | None:
        """The answer that changes nothing, if Metacontroller has applied this pod before."""
        if self.applied is None:
            return None
        document = self.document
        result: dict[str, Any] = project(document, self.applied)
        metadata = result.get("metadata") if isinstance(self.applied.get("metadata"), dict) else {}
        # Identity is a must, whatever somebody made of the annotation: a child without it would
        # fail the whole answer.
        identity = {
            key: document["metadata"][key]
            for key in ("name", "namespace")
            if key in document["metadata"]
        }
        return {
            **result,
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**(metadata or {}), **identity},
        }


class _NamedContainer(msgspec.Struct):
    name: str
    image: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    containers: list[_NamedContainer] | None = None
    init_containers: list[_NamedContainer] | None = None


_decode_strings = msgspec.json.Decoder(dict[str, str] | None).decode
_decode_spec = msgspec.json.Decoder(_Spec).decode


def _oddity(pod: PodObject) -> str:
    """What is of a wrong type in the parts of a pod that decisions read."""
    parts: tuple[tuple[str, Callable[[Any], Any], msgspec.Raw], ...] = (
        ("metadata.labels", _decode_strings, pod.metadata.labels),
        ("metadata.annotations", _decode_strings, pod.metadata.annotations),
        ("spec", _decode_spec, pod.spec),
    )
    for path, decode, raw in parts:
        try:
            if raw is not objects.NOTHING:
                decode(raw)
        except msgspec.ValidationError as error:
            return f"{path}: {error}"
    return ""


def _decoded_map(raw: msgspec.Raw) -> dict[str, Any]:
    value = msgspec.json.decode(raw)
    return value if isinstance(value, dict) else {}


def _read(decode: Callable[[str], T], text: Any) -> T | None:
    """The JSON in an annotation; None where there is none, or somebody broke it."""
    if not isinstance(text, str):
        return None
    try:
        return decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None


class Pod:
    """One observed pod."""

    __slots__ = (
        *("_containers", "_object", "_record", "look", "name", "odd"),
        *("phase", "ready", "ready_since", "terminating", "values"),
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
        self.ready_since = ""
        status = pod.status
        if status is not None:
            self.phase = status.phase or "Pending"
            for condition in status.conditions or ():
                if condition.type == "Ready":
                    self.ready = condition.status == "True"
                    self.ready_since = condition.last_transition_time or ""
                    break

    def alone(self) -> "Pod":
        """The same pod with an appearance of its own, every value in it."""
        pod = Pod(self._object, Appearance(self._object))
        pod.odd = self.odd
        return pod

    @property
    def record(self) -> InPlaceRecord | None:
        """The last in-place update; None if there was none (or somebody broke the annotation)."""
        if self._record is None and IN_PLACE_UPDATE in self.look.annotations:
            own = self.values[RECORD]
            text = (
                msgspec.json.decode(b'"' + own + b'"')
                if own
                else self.look.annotations[IN_PLACE_UPDATE]
            )
            self._record = _read(objects.decode_record, text)
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
                    except msgspec.ValidationError:
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
        return next((item for item in self.containers if item.name == name), ContainerStatus())

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
        if self.ready is not True or not self.ready_since:
            return 0.0
        try:
            since = datetime.fromisoformat(self.ready_since).timestamp()
        except ValueError:
            return 0.0
        return max(0.0, now - since)
