"""The hold on a pod, as its annotations and its label tell of it (docs/design.md, "Hold")."""

from collections.abc import Mapping
from typing import Any

import msgspec

from tapp.words.quoted import short
from tapp.words.vocabulary import HELD, HOLD, HOLD_FOR, WANTED, WANTED_SINCE, Wish

_KEPT = 100  # Characters that are kept of a text that anybody may write, and enough to show


class Hold(msgspec.Struct, frozen=True, gc=False):
    """The words of a pod on its hold, and on what is wanted; texts are cut."""

    reason: str = ""  # why it is not to be touched; "" where nobody holds it
    narrowed: str = ""  # what the hold is for, as somebody wrote it; "" where it is for everything
    wanted: str = ""  # what the pod was told that is wanted, "" for nothing
    since: str = ""  # since when, as it stands there
    label: str = ""  # the label of pods that are on hold, "" where it has none

    def covers(self, wish: Wish) -> bool:
        """True if it is there, and keeps this from being done to the pod."""
        if self.narrowed == FOR_UPDATE:
            return bool(self.reason) and wish is not Wish.DELETE
        if self.narrowed == FOR_DELETE:
            return bool(self.reason) and wish is not Wish.UPDATE
        return bool(self.reason)

    @property
    def due_label(self) -> str:
        """The label that it should have: pods on hold have one, whatever they are held for."""
        return "true" if self.reason else ""

    @property
    def is_mistaken(self) -> bool:
        """True if what it is for makes no sense: then it is for everything."""
        return bool(self.reason) and self.narrowed not in ("", FOR_UPDATE, FOR_DELETE)


FOR_UPDATE, FOR_DELETE = "update", "delete"
NO_HOLD = Hold()


def hold_of(labels: Mapping[str, Any], annotations: Mapping[str, Any]) -> Hold | None:
    """The hold on a pod; None where nothing tells of any."""
    found = Hold(
        reason=_cut(annotations.get(HOLD)),
        narrowed=_cut(annotations.get(HOLD_FOR)),
        wanted=_cut(annotations.get(WANTED)),
        since=_cut(annotations.get(WANTED_SINCE)),
        label=_cut(labels.get(HELD)),
    )
    return None if found == NO_HOLD else found


def _cut(value: Any) -> str:
    return short(value, _KEPT) if isinstance(value, str) else ""
