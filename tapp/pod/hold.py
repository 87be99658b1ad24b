"""The hold on a pod: what its annotations and its label say (docs/hold.md).

A user sets the annotation `hold` to keep the service from changing the pod. The service writes the
pending action and its time into further annotations, and labels the pod. It also writes the
annotations that keep autoscalers from removing the node of the pod, unless somebody has set them.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from tapp.declared.metadata import held_annotations
from tapp.words.quoted import short
from tapp.words.vocabulary import (
    AUTOSCALER_ANNOTATIONS,
    HELD,
    HELD_ANNOTATIONS,
    HOLD,
    HOLD_FOR,
    WANTED,
    WANTED_SINCE,
    PendingAction,
)

# Characters of an annotation that are kept: anybody may write a text of any length.
_KEPT = 100


class Hold(msgspec.Struct, frozen=True, gc=False):
    """The annotations and the label about a hold on a pod; texts are cut to a fixed length."""

    # The reason for the hold, as its user wrote it; empty if the pod is not on hold.
    reason: str = ""
    # Which actions the hold is for, as its user wrote it; empty if it is for all.
    limited_to: str = ""
    wanted: str = ""  # The pending action that the pod's annotation names; empty without one.
    since: str = ""  # Since when the action is pending, as the annotation has it.
    label: str = ""  # The label of pods on hold, as the pod has it; empty without one.
    # Keys of the annotations for autoscalers that the service has written on the pod.
    autoscalers: tuple[str, ...] = ()
    # Keys of the annotations for autoscalers that somebody else has set on the pod.
    authored: tuple[str, ...] = ()

    def prevents(self, action: PendingAction) -> bool:
        """Returns True if the pod is on hold, and the hold prevents this action.

        A hold that is limited to updates does not prevent a deletion, and a hold that is limited to
        deletions does not prevent an update. A replacement is both, so each of these holds prevents
        it.
        """
        if self.limited_to == FOR_UPDATE:
            return bool(self.reason) and action is not PendingAction.DELETE
        if self.limited_to == FOR_DELETE:
            return bool(self.reason) and action is not PendingAction.UPDATE
        return bool(self.reason)

    @property
    def desired_label(self) -> str:
        """The value of the label HELD that the pod should have; empty if the pod is not on hold."""
        return "true" if self.reason else ""

    @property
    def desired_autoscalers(self) -> tuple[str, ...]:
        """The keys of the annotations for autoscalers that the service should write on the pod."""
        if not self.reason:
            return ()
        return tuple(key for key in AUTOSCALER_ANNOTATIONS if key not in self.authored)

    @property
    def has_invalid_limit(self) -> bool:
        """True if the annotation that limits the hold to an action is invalid.

        Such a hold prevents all actions.
        """
        return bool(self.reason) and self.limited_to not in ("", FOR_UPDATE, FOR_DELETE)


FOR_UPDATE, FOR_DELETE = "update", "delete"
_ANNOTATIONS = frozenset({HOLD, HOLD_FOR, WANTED, WANTED_SINCE, HELD_ANNOTATIONS})
NO_HOLD = Hold()


def hold_of(labels: Mapping[str, Any], annotations: Mapping[str, Any]) -> Hold | None:
    """Returns the hold that labels and annotations of a pod describe.

    Returns None if the pod has none of these annotations and not the label.
    """
    if HELD not in labels and _ANNOTATIONS.isdisjoint(annotations):
        return None
    ours, autoscalers, authored = held_annotations(annotations), [], []
    for key, value in AUTOSCALER_ANNOTATIONS.items():
        # An annotation of the service whose value somebody has changed belongs to that person.
        if key in ours and annotations.get(key) == value:
            autoscalers.append(key)
        elif annotations.get(key):
            authored.append(key)
    found = Hold(
        reason=_cut(annotations.get(HOLD)),
        limited_to=_cut(annotations.get(HOLD_FOR)),
        wanted=_cut(annotations.get(WANTED)),
        since=_cut(annotations.get(WANTED_SINCE)),
        label=_cut(labels.get(HELD)),
        autoscalers=tuple(autoscalers),
    )
    return None if found == NO_HOLD else replace(found, authored=tuple(authored))


def _cut(value: Any) -> str:
    """Returns a text cut to a fixed length, or an empty string if the value is no text."""
    return short(value, _KEPT) if isinstance(value, str) else ""
