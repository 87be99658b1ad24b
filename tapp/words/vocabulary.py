"""Names that TApp shares with the cluster; to rename one would restart pods or orphan claims."""

from enum import StrEnum
from typing import Final

GROUP: Final = "apps.tkestack.io"
API_VERSION: Final = "apps.tkestack.io/v1"
KIND: Final = "TApp"

# --- labels on pods -----------------------------------------------------------------------------
TEMPLATE_HASH: Final = "tapp_template_hash_key"
"""Revision of the whole template: metadata and spec (the old controller's label name)."""
UNIQ_HASH: Final = "tapp_uniq_hash_key"  # Of the spec without running containers' images
INSTANCE: Final = "tapp_instance_key"  # The instance's number; also on claims
POD_INDEX: Final = "apps.kubernetes.io/pod-index"  # The instance's number, named as by StatefulSet
CONTROLLER_UID: Final = "controller-uid"  # The TApp's uid on every child (`generateSelector: true`)
POD_STATUS: Final = "apps.tkestack.io/pod-status"
"""`"true"` on pods whose status this service writes: the DecoratorController selects them by it."""

HELD: Final = "apps.tkestack.io/held"
"""`"true"` on pods that are on hold, written by this service: a PodDisruptionBudget may select them
by it, and a program knows by it that its hold has been seen."""
PULLER: Final = "apps.tkestack.io/puller"  # `"true"` on pods that pull images, and are no instances

# --- annotations on pods ------------------------------------------------------------------------
IN_PLACE_UPDATE: Final = "apps.tkestack.io/in-place-update"
"""JSON: the last in-place update's revision and time, and what each changed container ran."""
TEMPLATE_IMAGES: Final = "apps.tkestack.io/template-images"
"""JSON: container name -> image as the template had it, before admission may have rewritten it."""
WRITTEN: Final = "apps.tkestack.io/written-template"
"""Of which template with placeholders the pod's is: that one's revision as it is written, and the
hash of the pod's own without images and resources."""
FAILURES: Final = "apps.tkestack.io/failures"
"""Number of pods of the instance that failed before this one, in a row, soon after their start."""
RESTARTED_AT: Final = "kubectl.kubernetes.io/restartedAt"  # kubectl's: another value, new pods
RESTART_IN_PLACE: Final = "apps.tkestack.io/restart-in-place"
"""In a template: another text asks for a restart in place of all containers, or of the one that is
named behind a dot (`apps.tkestack.io/restart-in-place.web`)."""
DRAIN: Final = "apps.tkestack.io/drain"
"""The revision that the pod is to be brought to as soon as it is out of its Services, with `-again`
behind it where that is the one that it has."""
LOST_NODE: Final = "apps.tkestack.io/lost-node"
"""Since when the pod's node is not heard of, RFC 3339: its instance is to start elsewhere."""
RESTART_INSTANCE: Final = "apps.tkestack.io/restart-instance"
"""Set on a pod by people and programs: another text asks for a restart in place of its containers,
or of the one named behind a dot."""
UPDATE_PRIORITY: Final = "apps.tkestack.io/update-priority"
"""On a pod, set by people and programs, or in a template: an integer; within their group those with
a higher one are updated earlier."""
HOLD: Final = "apps.tkestack.io/hold"  # Why the pod is not to be touched, set by others; "": none
HOLD_FOR: Final = "apps.tkestack.io/hold-for"  # Beside it: `update` or `delete`, if for one alone
WANTED: Final = "apps.tkestack.io/wanted"  # What a pod on hold is told (`Wish`), for its program
WANTED_SINCE: Final = "apps.tkestack.io/wanted-since"  # Since when, RFC 3339, by our own clock
LAST_APPLIED: Final = "metacontroller.k8s.io/last-applied-configuration"
"""Metacontroller's: what the hook returned when the object was last written."""

NEVER_IN_TEMPLATES: Final = frozenset(
    {
        POD_STATUS,
        PULLER,
        IN_PLACE_UPDATE,
        TEMPLATE_IMAGES,
        WRITTEN,
        FAILURES,
        DRAIN,
        LOST_NODE,
        RESTART_INSTANCE,
        HELD,
        HOLD,
        HOLD_FOR,
        WANTED,
        WANTED_SINCE,
        LAST_APPLIED,
    }
)
"""Keys that tell of one pod only. In a template it was pasted from a live pod, and reaches none."""

# --- annotation on claims -----------------------------------------------------------------------
STORAGE_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
"""Kubernetes' older place for a claim's class; where it is set, it counts."""

# --- annotations on ControllerRevisions ----------------------------------------------------------
TEMPLATE: Final = "apps.tkestack.io/template"  # The kept template's name; its label has the hash

VALUES: Final = "apps.tkestack.io/values"  # Digest of the values that are kept with it

# --- annotations on TApps -----------------------------------------------------------------------
CHANGE_CAUSE: Final = "kubernetes.io/change-cause"
"""The reason of a change, in its author's words; also on ControllerRevisions, as for kubectl."""
CANARIES: Final = "apps.tkestack.io/canaries"  # JSON, for tools: a canary's copy -> what it is of
LOST_NODE_SECONDS: Final = "apps.tkestack.io/lost-node-seconds"
"""After how many seconds of silence a node is lost to this TApp's instances."""

# --- label on TApps -----------------------------------------------------------------------------
SHARD: Final = "apps.tkestack.io/shard"
"""The Metacontroller that serves the TApp, where there are several; also on what registers it."""

# --- status of pods -----------------------------------------------------------------------------
GATES: Final = ("apps.tkestack.io/InPlaceUpdateReady", "tkestack.io/InPlaceUpdate")
"""Readiness gates that are served: ours, and the old controller's on the pods that it left."""
NODE_LOST: Final = "NodeLost"  # `status.reason` of a pod that was made Failed for its lost node

# --- the spec -----------------------------------------------------------------------------------
DEFAULT_TEMPLATE: Final = "default"  # The name of `spec.template`, unless the spec says otherwise
MAX_REPLICAS: Final = 50_000  # Above this one answer exceeds Metacontroller's or etcd's limits
VALUE_KEY: Final = r"[-._A-Za-z0-9]{1,63}"  # A key of the values, as a regular expression


class Wish(StrEnum):
    """Values of the annotation `wanted` (docs/design.md, "Hold")."""

    UPDATE = "Update"  # An update in the pod: its containers may start again, and the pod stays
    RECREATE = "Recreate"  # An update by another pod
    DELETE = "Delete"  # The pod is to go: its instance is killed or scaled down, or the TApp goes


class InstanceStatus(StrEnum):
    """Values of `status.statuses` (docs/design.md, "Completed and finished instances")."""

    NOT_CREATED = "NotCreated"
    PENDING = "Pending"
    RUNNING = "Running"
    UPDATING = "Updating"
    POD_FAILED = "PodFailed"
    POD_SUCC = "PodSucc"
    KILLING = "Killing"
    KILLED = "Killed"
    FAILED = "Failed"
    SUCC = "Succ"
    UNKNOWN = "Unknown"


class AppStatus(StrEnum):
    """Values of `status.appStatus` (docs/design.md, "Completed and finished instances")."""

    PENDING = "Pending"
    RUNNING = "Running"
    FAILED = "Failed"
    SUCC = "Succ"
    KILLED = "Killed"
