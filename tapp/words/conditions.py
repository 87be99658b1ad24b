"""The types of a TApp's conditions (docs/troubleshooting.md, "Conditions of a TApp")."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Type(StrEnum):
    """The types of the conditions that the status of a TApp may have."""

    # Every TApp has these conditions, with status True or False.
    AVAILABLE = "Available"
    PROGRESSING = "Progressing"
    READY = "Ready"
    DEGRADED = "Degraded"
    # The status of a TApp has each of these conditions only while the condition is True.
    PODS_NOT_CREATED = "PodsNotCreated"
    PODS_NOT_DELETED = "PodsNotDeleted"
    CLAIMS_NOT_DELETED = "ClaimsNotDeleted"
    SERVICES_NOT_DELETED = "ServicesNotDeleted"
    TEMPLATE_NOT_FOUND = "TemplateNotFound"
    INVALID_BUDGET = "InvalidBudget"
    INVALID_PARTITION = "InvalidPartition"
    REVISIONS_NOT_FOUND = "RevisionsNotFound"
    CREATION_BLOCKED = "CreationBlocked"
    DUPLICATE_MERGE_KEYS = "DuplicateMergeKeys"
    CLAIMS_NOT_OWNED = "ClaimsNotOwned"
    CLAIMS_NOT_GROWN = "ClaimsNotGrown"
    CLAIMS_NOT_MODIFIED = "ClaimsNotModified"
    CLAIMS_BEING_MODIFIED = "ClaimsBeingModified"
    SERVICES_NOT_CREATED = "ServicesNotCreated"
    DISRUPTION_BUDGET_NOT_APPLIED = "DisruptionBudgetNotApplied"
    IMAGES_EDITED = "ImagesEdited"
    METADATA_EDITED = "MetadataEdited"
    UNREADABLE_PODS = "UnreadablePods"
    FOREIGN_PODS = "ForeignPods"
    IMAGES_NOT_PULLED = "ImagesNotPulled"
    PULLERS_NOT_RUN = "PullersNotRun"
    PODS_NOT_RESIZED = "PodsNotResized"
    UNKNOWN_CONTAINERS = "UnknownContainers"
    UNKNOWN_INSTANCES = "UnknownInstances"
    UNKNOWN_STATUSES = "UnknownStatuses"
    UNUSED_INSTANCES = "UnusedInstances"
    UNUSED_VALUES = "UnusedValues"
    ROLLING_TEMPLATE_UNUSED = "RollingTemplateUnused"
    UNUSED_TEMPLATES = "UnusedTemplates"
    POD_STATUS_NOT_WRITTEN = "PodStatusNotWritten"
    MOST_NODES_SILENT = "MostNodesSilent"
    INVALID_LOST_NODE_SECONDS = "InvalidLostNodeSeconds"
    DOMAIN_LABEL_MISSING = "DomainLabelMissing"
    INVALID_UPDATE_PRIORITY = "InvalidUpdatePriority"
    INVALID_HOLD_FOR = "InvalidHoldFor"
    # The library kstatus reads these conditions. The status of a TApp has at most one of them, and
    # only while the condition is True.
    RECONCILING = "Reconciling"
    STALLED = "Stalled"


# Types that every TApp has, with status True or False.
ALWAYS: Final = (Type.AVAILABLE, Type.PROGRESSING, Type.READY, Type.DEGRADED)
# Types that the library kstatus reads, and so the tools that use it: Flux, helm and kpt.
KSTATUS: Final = (Type.RECONCILING, Type.STALLED)
# Types of conditions that say what the service does not do, in the order in which they are written.
REFUSED: Final = tuple(type for type in Type if type not in (*ALWAYS, *KSTATUS))
# Types of conditions that affect no instance, so that the TApp is not Degraded.
HARMLESS: Final = frozenset(
    {
        Type.UNUSED_INSTANCES,
        Type.CLAIMS_BEING_MODIFIED,
        Type.ROLLING_TEMPLATE_UNUSED,
        Type.UNUSED_TEMPLATES,
        Type.PULLERS_NOT_RUN,
        Type.METADATA_EDITED,
        Type.DOMAIN_LABEL_MISSING,
        Type.INVALID_UPDATE_PRIORITY,
        Type.INVALID_HOLD_FOR,
    }
)


@dataclass(frozen=True)
class Finding:
    """A condition of the TApp without the time of its last change.

    `status` is "True" or "False". It is "Unknown" if the service did not check the condition.
    """

    type: Type
    status: str
    reason: str
    message: str

    @property
    def text(self) -> str:
        """The message for the status of the TApp, of at most `_LONGEST` characters."""
        return self.message[:_LONGEST]

    def document(self, changed_at: str) -> dict[str, str]:
        """Returns the condition as an entry of `status.conditions`.

        `changed_at` becomes the `lastTransitionTime`, RFC 3339. If it is empty, the entry has no
        time.
        """
        condition = {
            "type": self.type,
            "status": self.status,
            "reason": self.reason,
            "message": self.text,
        }
        return {**condition, "lastTransitionTime": changed_at} if changed_at else condition


# Most characters of a condition's message. A message may quote texts of users, and all conditions
# have to fit into the status.
_LONGEST = 8_000
