"""All reasons of decisions and conditions: word in the API, standing of the instance, and meaning.

The standing of a reason groups the reasons, for code that need not know each of them.
docs/troubleshooting.md has a table of all reasons, and docs/design.md, "Verdicts", says which rule
gives which reason. If there is a refusal, Degraded and Ready have the type of the refusal's
condition as their reason.
"""

from enum import StrEnum
from typing import Final


class Standing(StrEnum):
    """State of an instance or a TApp with a reason: it is done, goes on, or has to wait."""

    DONE = "done"  # Nothing is left to do.
    PROGRESSING = "progressing"  # An action is under way, or follows without help of a person.
    # The instance waits for other instances, for its node, or until the user resumes updates.
    WAITING = "waiting"
    ON_HOLD = "on hold"  # An annotation of its pod asks the service to change nothing.
    BLOCKED = "blocked"  # A person has to help, or the instance goes on only after a long time.

    @property
    def waits(self) -> bool:
        """True if another event has to happen before the instance goes on."""
        return self in {Standing.WAITING, Standing.ON_HOLD}


_DONE, _PROGRESSING, _WAITING, _ON_HOLD, _BLOCKED = Standing


class Reason(StrEnum):
    """A reason of a decision or a condition: the word in the API, its standing, and its meaning."""

    standing: Standing
    meaning: str

    def __new__(cls, word: str, standing: Standing, meaning: str) -> "Reason":
        """Creates a member of the enumeration.

        Args:
            word: the word in the API, which is the value of the member.
            standing: how an instance or a TApp with this reason stands.
            meaning: a phrase that explains the reason to a user.
        """
        member = str.__new__(cls, word)
        member._value_ = word
        member.standing, member.meaning = standing, meaning
        return member

    # Reasons of decisions
    UP_TO_DATE = "UpToDate", _DONE, "its pod matches its template"
    KEPT = "Kept", _DONE, "the partition or a rollback keeps an older revision"
    IMAGES_EDITED = (
        "ImagesEdited",
        _DONE,
        "its pod matches its template, except for an image that was set by hand",
    )
    FINISHED = "Finished", _DONE, "ran to its end and is not run again"
    KILLED = "Killed", _DONE, "`spec.statuses` sets it to `Killed`, so it has no pod"
    SCALED_DOWN = "ScaledDown", _DONE, "its number is not below `spec.replicas`, so it has no pod"
    NO_POD = "NoPod", _PROGRESSING, "has no pod; one is created"
    WAITING_FOR_TURN = "WaitingForTurn", _PROGRESSING, "it continues with one of the next syncs"
    TERMINATING = "Terminating", _PROGRESSING, "its pod is being deleted"
    COMPLETED = "Completed", _PROGRESSING, "its pod has ended and is replaced"
    ENDED_BY_UPDATE = (
        "EndedByUpdate",
        _PROGRESSING,
        "its pod has ended during an update, and is replaced",
    )
    NODE_LOST = "NodeLost", _PROGRESSING, "its node is lost; it starts elsewhere"
    ADOPTED = (
        "Adopted",
        _PROGRESSING,
        "another controller created its pod, which matches the template",
    )
    SAME_MEANING = (
        "SameMeaning",
        _PROGRESSING,
        "its template is written differently and describes the same pod",
    )
    RESTART_ASKED = "RestartAsked", _PROGRESSING, "a restart is requested"
    TEMPLATE_CHANGED = "TemplateChanged", _PROGRESSING, "its template differs from its pod"
    NOT_IN_PLACE = (
        "NotInPlace",
        _PROGRESSING,
        "gets a new pod, because an update in place is not possible",
    )
    DRAINING = "Draining", _PROGRESSING, "leaves its Services before its update"
    MARKS_CHANGED = "MarksChanged", _PROGRESSING, "labels or annotations of its pod have to change"
    RESIZING = "Resizing", _PROGRESSING, "the kubelet resizes its containers"
    SPEC_JUST_CHANGED = "SpecJustChanged", _WAITING, "updates of the previous spec may be under way"
    RESTART_WAITS = "RestartWaits", _WAITING, "its restart in place waits for its last update"
    NODE_SILENT = "NodeSilent", _WAITING, "its node has stopped reporting"
    TEMPLATE_NOT_FOUND = (
        "TemplateNotFound",
        _BLOCKED,
        "its template does not exist, or makes no pod",
    )
    REVISION_NOT_FOUND = (
        "RevisionNotFound",
        _BLOCKED,
        "the revision that it is kept at is not in the history",
    )
    INVALID_BUDGET = "InvalidBudget", _BLOCKED, "its budget is neither a number nor a percentage"
    UNREADABLE_POD = "UnreadablePod", _BLOCKED, "the TApp service cannot read its pod"
    NEVER_MIGRATE = "NeverMigrate", _BLOCKED, "`spec.neverMigrate` keeps its ended pod"
    BACK_OFF = (
        "BackOff",
        _BLOCKED,
        "its pods end soon after their creation; the next one is delayed",
    )
    # Reasons of decisions and of conditions
    PULLING = "PullingImages", _PROGRESSING, "its new images are pulled on its node first"
    RESIZE_DEFERRED = "ResizeDeferred", _WAITING, "its node has no room for the resize now"
    PULL_FAILED = "PullFailed", _BLOCKED, "its new images cannot be pulled; nothing is stopped"
    WAITING_FOR_BUDGET = "WaitingForBudget", _WAITING, "too many others are unavailable"
    WAITING_FOR_DOMAIN = (
        "WaitingForDomain",
        _WAITING,
        "instances of another failure domain have to be updated and available first",
    )
    WAITING_FOR_ORDER = "WaitingForOrder", _WAITING, "another instance comes first in the order"
    PAUSED = "Paused", _WAITING, "`spec.updateStrategy.paused` is set"
    HELD = "Held", _ON_HOLD, "its pod is on hold, by an annotation"
    BLOCKED = "Blocked", _BLOCKED, "no pod can be created for it"
    # Reasons of the condition Available
    ENOUGH = "MinimumInstancesAvailable", _DONE, "enough instances are available"
    TOO_FEW = "MinimumInstancesUnavailable", _PROGRESSING, "too few instances are available"
    # Reasons of Progressing, and of Ready while Ready is False
    CREATING = "Creating", _PROGRESSING, "pods are created"
    UPDATING = "Updating", _PROGRESSING, "instances are updated"
    DELETING = "Deleting", _PROGRESSING, "pods are being deleted"
    WAITING_FOR_INSTANCES = "WaitingForInstances", _PROGRESSING, "pods are not available yet"
    PROGRESS_DEADLINE_EXCEEDED = "ProgressDeadlineExceeded", _BLOCKED, "a rollout makes no progress"
    ROLLED_BACK = "RolledBack", _BLOCKED, "a rollout made no progress, and was rolled back"
    STUCK = "Stuck", _BLOCKED, "no instance can continue; the condition Degraded says why"
    COMPLETE = "Complete", _DONE, "nothing is left to be done"
    # Reasons of Ready
    AS_SPECIFIED = "AsSpecified", _DONE, "every instance is as the spec asks"
    REACHED = "PartitionReached", _DONE, "the partition keeps instances at an older revision"
    # Reasons of Degraded
    AS_EXPECTED = "AsExpected", _DONE, "nothing is refused or broken"
    BROKEN = "InstancesBroken", _BLOCKED, "instances have failures that do not end by themselves"
    NODES_SILENT = (
        "NodesSilent",
        _WAITING,
        "pods cannot be deleted on nodes that have stopped reporting",
    )
    # Reasons of conditions that say what the service does not do
    MISSING = "Missing", _BLOCKED, "requested pods do not exist"
    OVERDUE = "DeletionOverdue", _BLOCKED, "the deletion of an object takes too long"
    UNRESOLVED = "Unresolved", _BLOCKED, "a template does not exist, or no pod can be made from it"
    NOT_A_BUDGET = "NotABudget", _BLOCKED, "a budget is neither a number nor a percentage"
    NOT_A_PARTITION = "NotAPartition", _BLOCKED, "a partition is neither a number nor a percentage"
    NOT_RECORDED = "NotRecorded", _BLOCKED, "the history lacks the revision of kept instances"
    NOT_MERGEABLE = "NotMergeable", _BLOCKED, "a list has two entries with the same merge key"
    NOT_OWNED = "NotOwned", _BLOCKED, "claims in use do not belong to the TApp"
    NOT_EXPANDABLE = "NotExpandable", _BLOCKED, "claims cannot grow"
    INFEASIBLE = "Infeasible", _BLOCKED, "a storage driver refuses to change claims"
    MODIFYING = (
        "ModifyingVolumes",
        _PROGRESSING,
        "a storage driver has not yet given volumes their attributes",
    )
    NOT_REGISTERED = "NotRegistered", _BLOCKED, "a component that the spec needs is not installed"
    NO_SERVICE = "NoService", _BLOCKED, "requested Services do not exist"
    NO_DISRUPTION_BUDGET = (
        "NoDisruptionBudget",
        _BLOCKED,
        "the requested PodDisruptionBudget does not exist",
    )
    EDITED = "Edited", _BLOCKED, "an image was set by hand"
    UNREADABLE = "Unreadable", _BLOCKED, "a pod cannot be read"
    NO_CONTAINER = (
        "NoContainer",
        _BLOCKED,
        "a restart is requested of a container that does not run",
    )
    NO_PULLER = (
        "NoPuller",
        _WAITING,
        "images cannot be pulled before updates, so updates continue without that",
    )
    NOT_RESIZED = "NotResized", _BLOCKED, "pods do not get the resources of their template"
    NO_INSTANCE = "NoInstance", _BLOCKED, "a pod's name belongs to no instance"
    NOT_A_NUMBER = "NotANumber", _BLOCKED, "a key is not an instance number"
    NOT_KILLED = "NotKilled", _BLOCKED, "a requested status does not exist"
    NOT_BELOW_REPLICAS = "NotBelowReplicas", _DONE, "the spec names an instance that does not exist"
    NOT_READ = "NotRead", _BLOCKED, "no template reads a value"
    NOT_FOUND = "NotFound", _BLOCKED, "the rolling template does not exist"
    UNUSED = "Unused", _DONE, "nothing uses a template"
    NOT_SERVED = "NotServed", _BLOCKED, "the status of the pods is not written"
    GUARDED = "Guarded", _WAITING, "most nodes are silent, so none counts as lost"
    NOT_LABELED = "NotLabeled", _DONE, "pods lack the label of their failure domain"
    NOT_A_HOLD = "NotAHold", _DONE, "a hold is limited to an unknown action"
    NOT_A_PRIORITY = "NotAPriority", _DONE, "an update's priority is no integer"
    NOT_SECONDS = "NotSeconds", _BLOCKED, "the TApp's own limit is no number"


# The reasons that a decision may have.
OF_DECISIONS: Final = tuple(Reason)[: list(Reason).index(Reason.ENOUGH)]
