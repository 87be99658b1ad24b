"""Names that TApp shares with clusters, users and other programs, such as labels and annotations.

Other versions of the service and objects in clusters use these names. Renaming one would restart
pods or lose claims.
"""

from enum import StrEnum
from typing import Final

GROUP: Final = "apps.tkestack.io"
API_VERSION: Final = "apps.tkestack.io/v1"
KIND: Final = "TApp"

# --- labels on pods -----------------------------------------------------------------------------

# Revision of the template: a hash of metadata and spec. The old controller used the same label.
TEMPLATE_HASH: Final = "tapp_template_hash_key"
# Hash of the spec without the images of running containers.
UNIQ_HASH: Final = "tapp_uniq_hash_key"
# The instance number; claims have this label, too.
INSTANCE: Final = "tapp_instance_key"
# The instance number, under the name that StatefulSet uses.
POD_INDEX: Final = "apps.kubernetes.io/pod-index"
# The TApp's uid, on every child (`generateSelector: true` of the CompositeController).
CONTROLLER_UID: Final = "controller-uid"
# `"true"` on pods whose status this service writes: the DecoratorController selects them by this
# label.
POD_STATUS: Final = "apps.tkestack.io/pod-status"

# `"true"` on pods that are on hold. The service writes this label, so that a PodDisruptionBudget
# can select these pods, and a program can see that its hold is in effect.
HELD: Final = "apps.tkestack.io/held"
# `"true"` on pods that pull images and belong to no instance.
PULLER: Final = "apps.tkestack.io/puller"

# --- annotations on pods ------------------------------------------------------------------------

# JSON: the record of the last update in place, with what each changed container ran before.
IN_PLACE_UPDATE: Final = "apps.tkestack.io/in-place-update"
# JSON: container name -> image in the template. Admission may have changed the image in the pod.
TEMPLATE_IMAGES: Final = "apps.tkestack.io/template-images"
# For a template with placeholders: its revision, and the hash of the instance's own template
# without images and resources.
WRITTEN: Final = "apps.tkestack.io/written-template"
# Number of consecutive pods of the instance that failed soon after their start, before this one.
FAILURES: Final = "apps.tkestack.io/failures"
# Annotation of `kubectl rollout restart` in a template: another value replaces the pods.
RESTARTED_AT: Final = "kubectl.kubernetes.io/restartedAt"
# In a template: another value restarts all containers in place, or the container whose name follows
# behind a dot (`apps.tkestack.io/restart-in-place.web`).
RESTART_IN_PLACE: Final = "apps.tkestack.io/restart-in-place"
# The revision that the pod will be updated to when it has left its Services. The suffix `-again`
# marks the pod's present revision, for an update that only restarts containers.
DRAIN: Final = "apps.tkestack.io/drain"
# Since when the pod's node is silent, RFC 3339. The instance will be started on another node.
LOST_NODE: Final = "apps.tkestack.io/lost-node"
# On a pod, set by users and programs: another value restarts all containers in place, or the
# container whose name follows behind a dot.
RESTART_INSTANCE: Final = "apps.tkestack.io/restart-instance"
# On a pod, set by users and programs, or in a template: an integer. Instances with a higher one are
# updated earlier within their group.
UPDATE_PRIORITY: Final = "apps.tkestack.io/update-priority"
# On a pod, set by users and programs: the reason why the service must not change it. Empty: no
# hold.
HOLD: Final = "apps.tkestack.io/hold"
# On a pod on hold: `update` or `delete`, if the hold is only for one of them.
HOLD_FOR: Final = "apps.tkestack.io/hold-for"
# The pending action of a pod on hold (`PendingAction`), for programs.
WANTED: Final = "apps.tkestack.io/wanted"
# Since when the action is pending, RFC 3339, by the service's clock.
WANTED_SINCE: Final = "apps.tkestack.io/wanted-since"
# Annotation that keeps an autoscaler from removing the node of a pod -> its value. The service
# writes them on pods on hold. Sources: FAQ of the cluster autoscaler ("What types of pods can
# prevent CA from removing a node?"); Karpenter, Disruption, "Pod-Level Controls".
AUTOSCALER_ANNOTATIONS: Final = {
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
    "karpenter.sh/do-not-disrupt": "true",
}
# The keys of AUTOSCALER_ANNOTATIONS that the service wrote on the pod, separated by commas. The
# service removes these with the hold, and never one that somebody else has set.
HELD_ANNOTATIONS: Final = "apps.tkestack.io/held-annotations"
# Metacontroller's copy of what the hook returned when the object was last written.
LAST_APPLIED: Final = "metacontroller.k8s.io/last-applied-configuration"

# Keys that describe a single pod. A template has such a key if its author copied it from a running
# pod; the key is left out of the template's pods.
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
        HELD_ANNOTATIONS,
        LAST_APPLIED,
    }
)

# --- annotation on claims -----------------------------------------------------------------------

# Kubernetes' old annotation for the StorageClass of a claim; it takes precedence over the field.
STORAGE_CLASS: Final = "volume.beta.kubernetes.io/storage-class"

# --- annotations on ControllerRevisions ----------------------------------------------------------

# Name of the recorded template; the label TEMPLATE_HASH has its revision.
TEMPLATE: Final = "apps.tkestack.io/template"

# Digest of the recorded values.
VALUES: Final = "apps.tkestack.io/values"

# --- annotations on TApps -----------------------------------------------------------------------

# The reason of a change, as its author wrote it; also on ControllerRevisions, as with kubectl.
CHANGE_CAUSE: Final = "kubernetes.io/change-cause"
# JSON, for tools: name of a canary's template -> name of the template that it is a copy of.
CANARIES: Final = "apps.tkestack.io/canaries"
# Seconds of silence after which a node is lost for this TApp's instances.
LOST_NODE_SECONDS: Final = "apps.tkestack.io/lost-node-seconds"

# --- label on TApps -----------------------------------------------------------------------------

# The Metacontroller that serves the TApp, if there are several; also on its CompositeController.
SHARD: Final = "apps.tkestack.io/shard"

# --- status of pods -----------------------------------------------------------------------------

# Readiness gates that this service serves; the second is the old controller's, on its remaining
# pods.
GATES: Final = ("apps.tkestack.io/InPlaceUpdateReady", "tkestack.io/InPlaceUpdate")
# `status.reason` of a pod that this service made Failed because its node is lost.
NODE_LOST: Final = "NodeLost"

# --- the spec -----------------------------------------------------------------------------------

# Name of `spec.template`, and of the default template unless the spec names another one.
DEFAULT_TEMPLATE: Final = "default"
# With more instances, a response exceeds limits of Metacontroller or etcd.
MAX_REPLICAS: Final = 50_000
# Regular expression of a key in `spec.values`.
VALUE_KEY: Final = r"[-._A-Za-z0-9]{1,63}"


class PendingAction(StrEnum):
    """Action that the service will take on a pod when its hold is removed (docs/hold.md).

    The members are the values of the annotation WANTED.
    """

    UPDATE = "Update"  # An update in place: containers may restart, the pod stays.
    RECREATE = "Recreate"  # A replacement: the pod is deleted, and a new pod is created.
    # A final deletion: the instance is killed or scaled down, or the TApp is deleted.
    DELETE = "Delete"


class InstanceStatus(StrEnum):
    """The status of an instance: values of `status.statuses` (docs/finished.md)."""

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
    """The status of all instances together: values of `status.appStatus` (docs/finished.md)."""

    PENDING = "Pending"
    RUNNING = "Running"
    FAILED = "Failed"
    SUCC = "Succ"
    KILLED = "Killed"
