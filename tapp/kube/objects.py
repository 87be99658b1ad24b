"""The parts of Kubernetes objects that decisions look at, typed for msgspec's decoder.

Everything else in a pod (managedFields, most of its status) is skipped without becoming Python
objects. What may be needed whole stays `Raw`: a slice of the request, decoded on demand. Every
field is optional but the name, because Go leaves empty ones out or sends null.
"""

from contextlib import suppress
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Raw

from tapp.words.vocabulary import TEMPLATE, TEMPLATE_HASH, VALUES

NOTHING = Raw(b"null")


class Condition(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """One of `status.conditions`; its times may be anything (`tapp/words/times.py`)."""

    type: str | None = None
    status: str | None = None
    reason: str | None = None
    message: str | None = None
    last_transition_time: Any = None
    last_probe_time: Any = None
    observed_generation: int | None = None


class PodStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """`status` of a pod."""

    phase: str | None = None
    reason: str | None = None
    message: str | None = None
    start_time: Any = None
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
    resource_version: str | None = None
    managed_fields: Raw = NOTHING
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
    annotations: Raw = NOTHING
    owner_references: Raw = NOTHING
    finalizers: Raw = NOTHING


class ClaimObject(msgspec.Struct, frozen=True, gc=False):
    """A PersistentVolumeClaim as Metacontroller sends it."""

    metadata: ClaimMeta
    spec: Raw = NOTHING
    status: Raw = NOTHING


class PlainObject(msgspec.Struct, frozen=True, gc=False):
    """A Service or its like as Metacontroller sends it, as far as it looks like a pod."""

    metadata: PodMeta
    spec: Raw = NOTHING


class Storage(msgspec.Struct, frozen=True, gc=False):
    """A list of resources of a claim."""

    storage: str | int | float | None = None


class ClaimResources(msgspec.Struct, frozen=True, gc=False):
    """`spec.resources` of a claim."""

    requests: Storage | None = None
    limits: Storage | None = None


class ClaimSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """`spec` of a claim."""

    resources: ClaimResources | None = None
    storage_class_name: str | None = None


class ClaimStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """`status` of a claim."""

    phase: str | None = None
    allocated_resource_statuses: dict[str, str] | None = None


class StorageClassObject(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A StorageClass."""

    metadata: ClaimMeta
    allow_volume_expansion: bool | None = None


class RevisionLabels(msgspec.Struct, frozen=True, gc=False):
    """`metadata.labels` of a ControllerRevision."""

    revision: str | None = msgspec.field(default=None, name=TEMPLATE_HASH)


class RevisionAnnotations(msgspec.Struct, frozen=True, gc=False):
    """`metadata.annotations` of a ControllerRevision."""

    template: str | None = msgspec.field(default=None, name=TEMPLATE)
    values: str | None = msgspec.field(default=None, name=VALUES)


class RevisionMeta(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """`metadata` of a ControllerRevision."""

    name: str
    namespace: str | None = None
    labels: RevisionLabels | None = None
    annotations: RevisionAnnotations | None = None
    deletion_timestamp: str | None = None


class RevisionObject(msgspec.Struct, frozen=True, gc=False):
    """A ControllerRevision as Metacontroller sends it; `data` is read where it is needed."""

    metadata: RevisionMeta
    revision: Annotated[int, Meta(ge=0, le=2**53)] | None = None
    data: Raw = NOTHING


class Waiting(msgspec.Struct, frozen=True, gc=False):
    """`state.waiting` of a container."""

    reason: str | None = None
    message: str | None = None


class Running(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """`state.running` of a container."""

    started_at: Any = None


class Terminated(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """`state.terminated` of a container."""

    exit_code: int | None = None
    reason: str | None = None
    started_at: Any = None
    finished_at: Any = None
    container_id: str | None = msgspec.field(default=None, name="containerID")


class ContainerState(msgspec.Struct, frozen=True, gc=False):
    """`state` of a container: one of the three is set."""

    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


_NO_STATE = ContainerState()


class ContainerStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """One of `status.containerStatuses`."""

    name: str | None = None
    container_id: str | None = msgspec.field(default=None, name="containerID")
    image: str | None = None
    image_id: str | None = msgspec.field(default=None, name="imageID")
    restart_count: int | None = None
    ready: Any = None
    started: Any = None
    state: ContainerState | None = None
    last_state: ContainerState | None = None

    @property
    def now(self) -> ContainerState:
        """`state`, an empty one where there is none."""
        return self.state or _NO_STATE

    @property
    def before(self) -> ContainerState:
        """`lastState`, an empty one where there is none."""
        return self.last_state or _NO_STATE


class KubeletResources(msgspec.Struct, frozen=True, gc=False):
    """The resources that a kubelet reports for a container: one of `status.containerStatuses`."""

    name: str | None = None
    resources: Any = None


class RanImage(msgspec.Struct, frozen=True):
    """The image that a container ran when an in-place update changed it."""

    id: str = ""  # its containerID; "" if it had none
    image: str = ""  # what this container was started with, as the spec named it, or ""
    # images that were asked for since and may have been started or not, oldest first: each was
    # overtaken by the next one before it was seen to run
    overtaken: list[str] = []
    again: bool = False  # it was asked to start the same image once more: its name tells nothing


class InPlaceRecord(msgspec.Struct, frozen=True):
    """The annotation that an in-place update leaves on the pod."""

    # when it was written, RFC 3339, by the clock of this service; "" where the kubelet tells what
    # it has seen, and nobody needs to know
    at: str = ""
    containers: dict[str, RanImage] = {}  # of those whose image changed, what ran then
    # the requests for restarts that the pod had, container ("" for all) -> digest of the text:
    # these have been met
    asked: dict[str, str] = {}


class ManagedField(msgspec.Struct, frozen=True, gc=False):
    """One entry of `metadata.managedFields`: who wrote what part, and when."""

    manager: str | None = None
    subresource: str | None = None
    time: str | None = None
    fields: Raw = msgspec.field(default=NOTHING, name="fieldsV1")


decode_list = msgspec.json.Decoder(list[Raw]).decode
decode_condition = msgspec.json.Decoder(Condition).decode
decode_conditions = msgspec.json.Decoder(list[Condition] | None).decode
decode_statuses = msgspec.json.Decoder(list[ContainerStatus] | None).decode
decode_resources = msgspec.json.Decoder(list[KubeletResources] | None).decode
decode_images = msgspec.json.Decoder(dict[str, str]).decode
decode_record = msgspec.json.Decoder(InPlaceRecord).decode
"""Of what is missing the default holds; `encode_record` is the other way."""
decode_claim_spec = msgspec.json.Decoder(ClaimSpec | None).decode
decode_claim_status = msgspec.json.Decoder(ClaimStatus | None).decode
decode_managers = msgspec.json.Decoder(list[ManagedField] | None).decode


def encode_record(record: InPlaceRecord, revision: str) -> str:
    """The annotation of an update to a revision, which is there for people: JSON, keys sorted."""
    document: dict[str, Any] = {"revision": revision}
    document["containers"] = {
        name: {"id": ran.id, "image": ran.image}
        | ({"overtaken": ran.overtaken} if ran.overtaken else {})
        | ({"again": True} if ran.again else {})
        for name, ran in record.containers.items()
    }
    if record.asked:
        document["asked"] = record.asked
    if record.at:
        document["at"] = record.at
    return msgspec.json.encode(document, order="sorted").decode()


def readable_conditions(text: bytes) -> list[Condition]:
    """Conditions of a list that can be read; none where it is no list."""
    found = []
    with suppress(msgspec.DecodeError, UnicodeDecodeError):
        for raw in decode_list(text):
            with suppress(msgspec.DecodeError, UnicodeDecodeError):
                found.append(decode_condition(raw))
    return found
