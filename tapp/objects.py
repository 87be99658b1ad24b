"""The parts of Kubernetes objects that decisions look at, typed for msgspec's decoder.

Everything else in a pod (managedFields, most of its status) is skipped without becoming Python
objects. What may be needed whole stays `Raw`: a slice of the request, decoded on demand. Every
field is optional but the name, because Go leaves empty ones out or sends null.
"""

import msgspec
from msgspec import Raw

NOTHING = Raw(b"null")


class Condition(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """One of `status.conditions`."""

    type: str | None = None
    status: str | None = None
    last_transition_time: str | None = None


class PodStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """`status` of a pod."""

    phase: str | None = None
    conditions: Raw = NOTHING
    container_statuses: Raw = NOTHING
    init_container_statuses: Raw = NOTHING
    observed_generation: int | None = None


class PodMeta(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """`metadata` of a pod."""

    name: str
    namespace: str | None = None
    uid: str | None = None
    deletion_timestamp: str | None = None
    creation_timestamp: str | None = None
    generation: int | None = None
    labels: Raw = NOTHING
    annotations: Raw = NOTHING
    finalizers: Raw = NOTHING


class PodObject(msgspec.Struct, frozen=True, gc=False):
    """A pod as Metacontroller sends it."""

    metadata: PodMeta
    spec: Raw = NOTHING
    status: PodStatus | None = None


class ClaimMeta(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """`metadata` of a claim."""

    name: str
    namespace: str | None = None
    labels: dict[str, str] | None = None
    deletion_timestamp: str | None = None


class ClaimObject(msgspec.Struct, frozen=True, gc=False):
    """A PersistentVolumeClaim as Metacontroller sends it."""

    metadata: ClaimMeta


class Waiting(msgspec.Struct, frozen=True, gc=False):
    """`state.waiting` of a container."""

    reason: str | None = None


class Running(msgspec.Struct, frozen=True, gc=False):
    """`state.running` of a container: that it is there says all."""


class Terminated(msgspec.Struct, frozen=True, gc=False, rename={"exit_code": "exitCode"}):
    """`state.terminated` of a container."""

    exit_code: int | None = None


class ContainerState(msgspec.Struct, frozen=True, gc=False):
    """`state` of a container: one of the three is set."""

    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(msgspec.Struct, frozen=True, gc=False):
    """One of `status.containerStatuses`."""

    name: str | None = None
    container_id: str | None = msgspec.field(default=None, name="containerID")
    state: ContainerState | None = None


class RanImage(msgspec.Struct, frozen=True):
    """What a container ran before an in-place update: its containerID, started with `image`."""

    id: str = ""
    image: str = ""


class InPlaceRecord(msgspec.Struct, frozen=True):
    """The annotation that an in-place update leaves on the pod.

    Attributes:
        revision: the revision that the pod was updated to.
        containers: for each container whose image changed, what ran when it was changed.
    """

    revision: str = ""
    containers: dict[str, RanImage] = {}


decode_conditions = msgspec.json.Decoder(list[Condition] | None).decode
decode_statuses = msgspec.json.Decoder(list[ContainerStatus] | None).decode
decode_images = msgspec.json.Decoder(dict[str, str]).decode
decode_record = msgspec.json.Decoder(InPlaceRecord).decode
