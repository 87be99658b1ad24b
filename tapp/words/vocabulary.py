"""Names that TApp shares with clusters, users and other programs, such as labels and annotations.

Objects in clusters and other versions of the service use these names. Renaming one of them would
restart pods, or make the service lose claims.
"""

from enum import StrEnum
from typing import Final

GROUP: Final = "apps.tkestack.io"
API_VERSION: Final = "apps.tkestack.io/v1"
KIND: Final = "TApp"

# --- labels on pods -----------------------------------------------------------------------------

# Revision of the template: a hash of metadata and spec. The old tapp-controller had the same label.
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
# `"true"` on pullers: pods that pull images on a node before an update, and belong to no instance.
PULLER: Final = "apps.tkestack.io/puller"

# --- annotations on pods ------------------------------------------------------------------------

# JSON about the last update in place, with the state of each changed container before the update
# (`InPlaceRecord`).
IN_PLACE_UPDATE: Final = "apps.tkestack.io/in-place-update"
# JSON: container name -> image in the template. Admission may have changed the image in the pod.
TEMPLATE_IMAGES: Final = "apps.tkestack.io/template-images"
# For a template with placeholders: its revision, and the hash of the instance's own template
# without images and resources.
WRITTEN: Final = "apps.tkestack.io/written-template"
# Number of consecutive earlier pods of the instance that failed soon after their creation.
FAILURES: Final = "apps.tkestack.io/failures"
# Annotation that `kubectl rollout restart` sets in a template. If its value changes, the pods are
# replaced.
RESTARTED_AT: Final = "kubectl.kubernetes.io/restartedAt"
# In a template: if the value changes, all containers restart in place. With the name of a container
# after a dot (`apps.tkestack.io/restart-in-place.web`), only this container restarts.
RESTART_IN_PLACE: Final = "apps.tkestack.io/restart-in-place"
# The revision to which the pod will be updated when it has left its Services. If the update only
# restarts containers, this is the present revision of the pod with the suffix `-again`.
DRAIN: Final = "apps.tkestack.io/drain"
# Since when the pod's node is silent, RFC 3339. The instance will be started on another node.
LOST_NODE: Final = "apps.tkestack.io/lost-node"
# On a pod, set by users and programs: if the value changes, all containers restart in place. With
# the name of a container after a dot, only this container restarts.
RESTART_INSTANCE: Final = "apps.tkestack.io/restart-instance"
# On a pod, set by users and programs, or in a template: an integer. Instances with a higher integer
# are updated earlier than others of their group. One group runs the rolling template, and the other
# group consists of all other instances.
UPDATE_PRIORITY: Final = "apps.tkestack.io/update-priority"
# On a pod, set by users and programs: the reason why the service must not change the pod. An empty
# value is no hold.
HOLD: Final = "apps.tkestack.io/hold"
# On a pod on hold: `update` or `delete`, if the hold prevents only this action.
HOLD_FOR: Final = "apps.tkestack.io/hold-for"
# The pending action of a pod on hold (`PendingAction`), for programs.
WANTED: Final = "apps.tkestack.io/wanted"
# Since when the action is pending, RFC 3339, by the service's clock.
WANTED_SINCE: Final = "apps.tkestack.io/wanted-since"
# Key -> value of the annotations that keep autoscalers from removing the node of a pod. The service
# writes these annotations on pods on hold. Sources: FAQ of the cluster autoscaler ("What types of
# pods can prevent CA from removing a node?"); Karpenter, Disruption, "Pod-Level Controls".
AUTOSCALER_ANNOTATIONS: Final = {
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
    "karpenter.sh/do-not-disrupt": "true",
}
# The keys of AUTOSCALER_ANNOTATIONS that the service wrote on the pod, separated by commas. At the
# end of the hold, the service removes these annotations, and never one that somebody else has set.
HELD_ANNOTATIONS: Final = "apps.tkestack.io/held-annotations"
# Metacontroller's copy of the object in the hook's response when Metacontroller last wrote the
# object.
LAST_APPLIED: Final = "metacontroller.k8s.io/last-applied-configuration"

# Keys of labels and annotations that belong to a single pod. A template has such a key if its
# author copied the template from a running pod. New pods do not get the key from the template.
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
# `REVISION/TIME` of a rollback in `status.rolledBack`: the revision is rolled out once more.
RETRY: Final = "apps.tkestack.io/retry"

# --- label on TApps -----------------------------------------------------------------------------

# The Metacontroller that serves the TApp, if there are several; also on its CompositeController.
SHARD: Final = "apps.tkestack.io/shard"

# --- status of pods -----------------------------------------------------------------------------

# Readiness gates that this service opens and closes. Pods that the old tapp-controller created have
# the second one.
GATES: Final = ("apps.tkestack.io/InPlaceUpdateReady", "tkestack.io/InPlaceUpdate")
# `status.reason` of a pod that this service made Failed because its node is lost.
NODE_LOST: Final = "NodeLost"

# --- the spec -----------------------------------------------------------------------------------

# Name of `spec.template`, and of the default template unless the spec names another one.
DEFAULT_TEMPLATE: Final = "default"
# Most instances of a TApp. With more, a response would exceed limits of Metacontroller or etcd.
MAX_REPLICAS: Final = 50_000
# Regular expression of a key in `spec.values`.
VALUE_KEY: Final = r"[-._A-Za-z0-9]{1,63}"


class PendingAction(StrEnum):
    """An action that the service will take on a pod when the hold of the pod is removed
    (docs/hold.md).

    The values are those of the annotation WANTED.
    """

    UPDATE = "Update"  # An update in place: containers may restart, the pod stays.
    RECREATE = "Recreate"  # A replacement: the pod is deleted, and a new pod is created.
    # A final deletion: the instance is killed or scaled down, or the TApp is deleted.
    DELETE = "Delete"


class InstanceStatus(StrEnum):
    """The status of an instance, as in `status.statuses` of the TApp (docs/finished.md)."""

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
    """The status of all instances together, as in `status.appStatus` of the TApp
    (docs/finished.md).
    """

    PENDING = "Pending"
    RUNNING = "Running"
    FAILED = "Failed"
    SUCC = "Succ"
    KILLED = "Killed"
