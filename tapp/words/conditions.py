"""Types of a TApp's conditions, named here alone (docs/mend.md, "Conditions of a TApp")."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Type(StrEnum):
    """Types of conditions."""

    # Always there, True or False.
    AVAILABLE = "Available"
    PROGRESSING = "Progressing"
    READY = "Ready"
    DEGRADED = "Degraded"
    # There while they are True.
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
    SERVICES_NOT_CREATED = "ServicesNotCreated"
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
    INVALID_UPDATE_PRIORITY = "InvalidUpdatePriority"
    INVALID_HOLD_FOR = "InvalidHoldFor"
    # The two that kstatus knows; there while they are True, never both.
    RECONCILING = "Reconciling"
    STALLED = "Stalled"


ALWAYS: Final = (Type.AVAILABLE, Type.PROGRESSING, Type.READY, Type.DEGRADED)
"""The types that every TApp has."""
KSTATUS: Final = (Type.RECONCILING, Type.STALLED)  # Read by kstatus, and so by Flux, helm and kpt
REFUSED: Final = tuple(type for type in Type if type not in (*ALWAYS, *KSTATUS))
"""The types of what is refused or ignored, in the order in which they are written."""
HARMLESS: Final = frozenset(
    {
        Type.UNUSED_INSTANCES,
        Type.ROLLING_TEMPLATE_UNUSED,
        Type.UNUSED_TEMPLATES,
        Type.PULLERS_NOT_RUN,
        Type.METADATA_EDITED,
        Type.INVALID_UPDATE_PRIORITY,
        Type.INVALID_HOLD_FOR,
    }
)
"""Conditions that leave every instance as it should be."""


@dataclass(frozen=True)
class Finding:
    """A condition without its time: `status` is "True", "False", or "Unknown" if nobody looked."""

    type: Type
    status: str
    reason: str
    message: str

    def document(self, changed_at: str) -> dict[str, str]:
        """The condition with the time of its last change, as far as any time was observed."""
        condition = {
            "type": self.type,
            "status": self.status,
            "reason": self.reason,
            "message": self.message[:_LONGEST],
        }
        return {**condition, "lastTransitionTime": changed_at} if changed_at else condition


_LONGEST = 8_000  # Characters of a message, which may quote the author: all must fit
