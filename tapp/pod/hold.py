"""The hold on a pod: a request of a user that the service does not change the pod (docs/hold.md).

A user sets the annotation `hold`, and perhaps `hold-for` to limit the hold to some actions. The
service then writes to the pod:

- the annotations `wanted` and `wanted-since`: the pending action, and since when it is pending;
- the label `held`;
- the annotations that keep autoscalers from removing the pod's node, unless somebody has set them.
  The annotation `held-annotations` lists their keys.
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
    """The annotations and the label about a hold on a pod; texts are cut to `_KEPT` characters."""

    # The reason for the hold, as its user wrote it; empty if the pod is not on hold.
    reason: str = ""
    # Value of the annotation `hold-for`: the actions that the hold prevents; empty for all actions.
    limited_to: str = ""
    wanted: str = ""  # Value of the annotation `wanted`: the pending action; empty without one.
    since: str = ""  # Value of the annotation `wanted-since`: since when the action is pending.
    label: str = ""  # Value of the label `held`; empty if the pod does not have the label.
    # Keys of the annotations for autoscalers that the service has written on the pod.
    autoscalers: tuple[str, ...] = ()
    # Keys of the annotations for autoscalers that somebody else has set on the pod.
    authored: tuple[str, ...] = ()

    def prevents(self, action: PendingAction) -> bool:
        """Returns True if the pod is on hold, and the hold prevents this action.

        The annotation `hold-for` decides which actions a hold prevents:

        - Without the annotation, or with an invalid value: all actions.
        - With `update`: updates and replacements.
        - With `delete`: deletions and replacements.
        """
        if self.limited_to == FOR_UPDATE:
            return bool(self.reason) and action is not PendingAction.DELETE
        if self.limited_to == FOR_DELETE:
            return bool(self.reason) and action is not PendingAction.UPDATE
        return bool(self.reason)

    @property
    def desired_label(self) -> str:
        """The value that the pod's label `held` should have; empty if the pod is not on hold."""
        return "true" if self.reason else ""

    @property
    def desired_autoscalers(self) -> tuple[str, ...]:
        """The keys of the annotations for autoscalers that the service should write on the pod."""
        if not self.reason:
            return ()
        return tuple(key for key in AUTOSCALER_ANNOTATIONS if key not in self.authored)

    @property
    def has_invalid_limit(self) -> bool:
        """True if the pod is on hold and its annotation `hold-for` has an invalid value.

        Such a hold prevents all actions.
        """
        return bool(self.reason) and self.limited_to not in ("", FOR_UPDATE, FOR_DELETE)


FOR_UPDATE, FOR_DELETE = "update", "delete"
_ANNOTATIONS = frozenset({HOLD, HOLD_FOR, WANTED, WANTED_SINCE, HELD_ANNOTATIONS})
NO_HOLD = Hold()


def hold_of(labels: Mapping[str, Any], annotations: Mapping[str, Any]) -> Hold | None:
    """Returns the hold that the labels and annotations of a pod describe.

    Returns None if the pod has neither the label `held` nor one of the annotations `hold`,
    `hold-for`, `wanted`, `wanted-since` and `held-annotations`, or if all of them are empty.
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
    """Returns a text cut to `_KEPT` characters, or an empty string if the value is no text."""
    return short(value, _KEPT) if isinstance(value, str) else ""
