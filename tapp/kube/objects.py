"""The parts of Kubernetes objects that decisions use, as types for msgspec's decoder.

All other parts of an object are skipped, which saves time and memory. A part that is needed as a
whole, or rarely, has the type `Raw`: a slice of the request that is decoded on demand. All fields
except the name are optional, because Go leaves out empty fields or sends null.
"""

from contextlib import suppress
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Raw

from tapp.words.vocabulary import TEMPLATE, TEMPLATE_HASH, VALUES

# Stands for a part that is missing.
NOTHING = Raw(b"null")


class Condition(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """An entry of `status.conditions`.

    The two times may have any JSON value; `tapp/words/times.py` reads them.
    """

    type: str | None = None
    status: str | None = None
    reason: str | None = None
    message: str | None = None
    last_transition_time: Any = None
    last_probe_time: Any = None
    observed_generation: int | None = None


class PodStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The parts of a pod's `status` that decisions use."""

    phase: str | None = None
    reason: str | None = None
    message: str | None = None
    start_time: Any = None
    conditions: Raw = NOTHING
    container_statuses: Raw = NOTHING
    init_container_statuses: Raw = NOTHING
    observed_generation: int | None = None


class PodMeta(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The parts of `metadata` that decisions use, of a pod or of another child."""

    name: str
    namespace: str | None = None
    uid: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: Any = None
    creation_timestamp: str | None = None
    generation: int | None = None
    resource_version: str | None = None
    managed_fields: Raw = NOTHING
    labels: Raw = NOTHING
    annotations: Raw = NOTHING
    finalizers: Raw = NOTHING


class PodObject(msgspec.Struct, frozen=True, gc=False):
    metadata: PodMeta
    spec: Raw = NOTHING
    status: PodStatus | None = None


class ClaimMeta(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The parts of a claim's `metadata` that decisions use."""

    name: str
    namespace: str | None = None
    labels: dict[str, str] | None = None
    deletion_timestamp: str | None = None
    annotations: Raw = NOTHING
    owner_references: Raw = NOTHING
    finalizers: Raw = NOTHING


class ClaimObject(msgspec.Struct, frozen=True, gc=False):
    metadata: ClaimMeta
    spec: Raw = NOTHING
    status: Raw = NOTHING


class PlainObject(msgspec.Struct, frozen=True, gc=False):
    """A child of which decisions use only metadata and spec, such as a Service."""

    metadata: PodMeta
    spec: Raw = NOTHING


class Storage(msgspec.Struct, frozen=True, gc=False):
    """The entry `storage` of a claim's `requests` or `limits`."""

    storage: str | int | float | None = None


class ClaimResources(msgspec.Struct, frozen=True, gc=False):
    requests: Storage | None = None
    limits: Storage | None = None


class ClaimSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    resources: ClaimResources | None = None
    storage_class_name: str | None = None
    volume_attributes_class_name: str | None = None


class ModifyVolumeStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The state of a change of a volume to another VolumeAttributesClass."""

    target_volume_attributes_class_name: str | None = None
    status: str | None = None  # "Pending", "InProgress" or "Infeasible"


class ClaimStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    phase: str | None = None
    allocated_resource_statuses: dict[str, str] | None = None
    # The VolumeAttributesClass that the volume has now.
    current_volume_attributes_class: str | None = msgspec.field(
        default=None, name="currentVolumeAttributesClassName"
    )
    modify_volume_status: ModifyVolumeStatus | None = None


class StorageClassObject(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    metadata: ClaimMeta
    allow_volume_expansion: bool | None = None


class RevisionLabels(msgspec.Struct, frozen=True, gc=False):
    """The label of a ControllerRevision that has the revision of the recorded template."""

    revision: str | None = msgspec.field(default=None, name=TEMPLATE_HASH)


class RevisionAnnotations(msgspec.Struct, frozen=True, gc=False):
    """Two annotations of a ControllerRevision: name of the template, and digest of its values."""

    template: str | None = msgspec.field(default=None, name=TEMPLATE)
    values: str | None = msgspec.field(default=None, name=VALUES)


class RevisionMeta(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str
    namespace: str | None = None
    labels: RevisionLabels | None = None
    annotations: RevisionAnnotations | None = None
    deletion_timestamp: str | None = None


class RevisionObject(msgspec.Struct, frozen=True, gc=False):
    """A ControllerRevision, whose field `data` is decoded on demand."""

    metadata: RevisionMeta
    revision: Annotated[int, Meta(ge=0, le=2**53)] | None = None
    data: Raw = NOTHING


class Waiting(msgspec.Struct, frozen=True, gc=False):
    reason: str | None = None
    message: str | None = None


class Running(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    started_at: Any = None


class Terminated(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    exit_code: int | None = None
    reason: str | None = None
    started_at: Any = None
    finished_at: Any = None
    container_id: str | None = msgspec.field(default=None, name="containerID")


class ContainerState(msgspec.Struct, frozen=True, gc=False):
    """The field `state` or `lastState` of a container status; at most one of its three fields is
    set.
    """

    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


_NO_STATE = ContainerState()


class ContainerStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """An entry of `status.containerStatuses` or `status.initContainerStatuses` of a pod."""

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
        """The current state; a state without any field set if it is unknown."""
        return self.state or _NO_STATE

    @property
    def before(self) -> ContainerState:
        """The previous state (`lastState`); without any field if the container has never ended."""
        return self.last_state or _NO_STATE


class KubeletResources(msgspec.Struct, frozen=True, gc=False):
    """The resources of one container as the kubelet reports them in `status.containerStatuses`."""

    name: str | None = None
    resources: Any = None


class RanImage(msgspec.Struct, frozen=True):
    """A container before an update in place that replaces or restarts it."""

    id: str = ""  # The containerID before the update; empty if the status had none.
    # The image in the pod's spec when the container was started; empty if unknown.
    image: str = ""
    # Images of earlier updates that the next update replaced before the container was seen to run
    # them, oldest first. The kubelet may or may not still start a container with one of them.
    overtaken: list[str] = []
    # True if the update restarts the container with the same image. The name of the image in the
    # status then does not show whether the container has restarted.
    again: bool = False


class InPlaceRecord(msgspec.Struct, frozen=True):
    """The state of the containers before an update in place, stored in an annotation of the pod.

    Later syncs compare the pod with this record to see which containers have been updated.
    """

    # When the record was written, RFC 3339, by the clock of the service. Empty if the kubelet
    # reports the generation that it has observed, because the time is not needed then.
    at: str = ""
    # Container name -> state before the update, for the containers that it changes or restarts.
    containers: dict[str, RanImage] = {}
    # The requests for restarts that this update carries out: container name (empty for all
    # containers) -> digest of the text of the pod's restart annotation.
    requests: dict[str, str] = msgspec.field(default_factory=dict, name="asked")


class ManagedField(msgspec.Struct, frozen=True, gc=False):
    """An entry of `metadata.managedFields`: who wrote which fields, and when."""

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
# Reads a record that `encode_record` has written. A missing field gets its default.
decode_record = msgspec.json.Decoder(InPlaceRecord).decode
decode_claim_spec = msgspec.json.Decoder(ClaimSpec | None).decode
decode_claim_status = msgspec.json.Decoder(ClaimStatus | None).decode
decode_managers = msgspec.json.Decoder(list[ManagedField] | None).decode


def encode_record(record: InPlaceRecord, revision: str) -> str:
    """Returns the record of an update in place as JSON with sorted keys, for the pod's annotation.

    `revision` is the revision that the update brings the pod to. The JSON includes it for people
    who read the annotation; the service does not read it.
    """
    document: dict[str, Any] = {"revision": revision}
    document["containers"] = {
        name: {"id": ran.id, "image": ran.image}
        | ({"overtaken": ran.overtaken} if ran.overtaken else {})
        | ({"again": True} if ran.again else {})
        for name, ran in record.containers.items()
    }
    if record.requests:
        document["asked"] = record.requests
    if record.at:
        document["at"] = record.at
    return msgspec.json.encode(document, order="sorted").decode()


def readable_conditions(text: bytes) -> list[Condition]:
    """Returns those entries of a JSON list of conditions that can be decoded.

    Returns an empty list if `text` is not the JSON of a list.
    """
    found = []
    with suppress(msgspec.DecodeError, UnicodeDecodeError):
        for raw in decode_list(text):
            with suppress(msgspec.DecodeError, UnicodeDecodeError):
                found.append(decode_condition(raw))
    return found
