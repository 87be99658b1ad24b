"""Notes: data that a sync stores for later syncs, in the TApp's status or in a pod's condition.

The service has no memory of its own, so all data for later syncs is in maps of the status. This
module encodes and decodes the keys of these maps. Some maps have plain instance numbers, or ranges
of them (`ranges.py`), as keys or values.

Users and older versions may have written any text there. A text that is not a note is decoded as
None or left out, and is never an error.
"""

import re
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, NamedTuple, Protocol, Self, TypeVar

from tapp.words.ranges import MOST, numbers, ranges
from tapp.words.times import UNKNOWN, is_written, seconds
from tapp.words.vocabulary import MAX_REPLICAS

# Name of a recorded template with its values (`content_name` in `storage/records.py`).
REVISION = re.compile(r"[A-Za-z0-9._-]{1,150}")
_NUMBER = r"(0|[1-9]\d{0,18})"
_UPDATE = re.compile(rf"{_NUMBER}/{_NUMBER}", re.ASCII)
_READY = re.compile(rf"{_NUMBER}/(True|False)", re.ASCII)
_RESIZE = re.compile(rf"{_NUMBER}/([^/]*)(/refused)?", re.ASCII)
_REACHED = re.compile(r"(\d{1,19})/(\d{1,6})/(\d{1,6})", re.ASCII)
# Most rollbacks in `status.rolledBack`, and most characters of an entry.
_MOST_ROLLED_BACK, _LONGEST_ROLLED_BACK = 10, 1_000
_ASKED, _REFUSED, _ON, _STUCK = "asked for: ", "refused: ", " on ", "stuck: "


class Note(Protocol):
    """Data that a sync stores for later syncs. Its encoded form is the key of an entry in the
    status.

    `encode` and `decode` convert between the note and the key. The value of the entry is usually a
    time.
    """

    def encode(self) -> str:
        """Returns the key of this note in a map of the status."""

    @classmethod
    def decode(cls, text: str) -> Self | None:
        """Returns the note for a key in a map of the status; None if it is not a key of this kind
        of note.
        """


N = TypeVar("N", bound=Note)


def encoded(notes: Mapping[N, str]) -> dict[str, str]:
    """Returns a map for the status: encoded note -> the value of the note, usually a time."""
    return {note.encode(): text for note, text in notes.items()}


def decoded(kind: type[N], noted: Mapping[str, str]) -> dict[N, str]:
    """Returns the notes of one kind in a map of the status, each with its value.

    Keys that are not notes of this kind are left out.

    Args:
        kind: the class of the notes.
        noted: a map of the observed status.
    """
    pairs = ((kind.decode(key), text) for key, text in noted.items())
    return {note: text for note, text in pairs if note is not None}


class UpdateNote(NamedTuple):
    """An update in place, as a key of `status.settling` and `status.turned`, such as `3/2`.

    In `status.settling`, the value is the time since when syncs wait for the completion of the
    update, which only elapsed time can show. In `status.turned`, the value names the containers
    that the kubelet will certainly restart.
    """

    id: int  # Instance number.
    # Generation of the instance's pod. Each update in place raises it, so it identifies the update.
    generation: int

    def encode(self) -> str:
        """Returns the key of the note, `ID/GENERATION`."""
        return f"{self.id}/{self.generation}"

    @classmethod
    def decode(cls, text: str) -> Self | None:
        """Returns the note in a text `ID/GENERATION`; None for any other text."""
        found = _UPDATE.fullmatch(text)
        return cls(int(found[1]), int(found[2])) if found else None


class ReadyNote(NamedTuple):
    """A pod whose condition Ready has no usable time, as a key of `status.unserved`, such as
    `3/True`.

    The key has the status of Ready. The value is the time of the first sync that saw this status.
    """

    id: int  # Instance number.
    ready: bool  # True if the pod is Ready, False if the pod's node does not report.

    def encode(self) -> str:
        """Returns the key of the note, `ID/True` or `ID/False`."""
        return f"{self.id}/{self.ready}"

    @classmethod
    def decode(cls, text: str) -> Self | None:
        """Returns the note in a text `ID/True` or `ID/False`; None for any other text."""
        found = _READY.fullmatch(text)
        return cls(int(found[1]), found[2] == "True") if found else None


class ResizeNote(NamedTuple):
    """A resize of a pod, as a key of `status.resizing`: `3/REVISION`, or `3/REVISION/refused`.

    The value of `3/REVISION` is the time since when the resize is due. The value of
    `3/REVISION/refused` is the time since when the API server refuses the resize.
    """

    id: int  # Instance number.
    # Revision of the instance's template. If the template changes, the service requests the resize
    # again.
    revision: str
    # True if the value is the time since when the API server seems to refuse the resize; False if
    # the value is the time since when the resize is due.
    is_refused: bool = False

    def encode(self) -> str:
        """Returns the key of the note, `ID/REVISION` or `ID/REVISION/refused`."""
        return f"{self.id}/{self.revision}{'/refused' if self.is_refused else ''}"

    @classmethod
    def decode(cls, text: str) -> Self | None:
        """Returns the note in a text that `encode` wrote; None for any other text."""
        found = _RESIZE.fullmatch(text)
        return cls(int(found[1]), found[2], found[3] is not None) if found else None


class ReachedNote(NamedTuple):
    """The progress of a rollout, as a key of `status.progressed`, such as `2/3/1`.

    The value is the time since when the rollout has made no further progress.
    """

    generation: int  # Generation of the TApp.
    begun: int  # Number of instances that need no update, or whose update has begun.
    available: int  # Number of available instances among those that `begun` counts.

    def encode(self) -> str:
        """Returns the three numbers as a key of `status.progressed`, such as `7/3/2`."""
        return f"{self.generation}/{self.begun}/{self.available}"

    @classmethod
    def decode(cls, text: str) -> Self | None:
        """Returns the three numbers in a key of `status.progressed`, such as `7/3/2`.

        Returns None if `text` has another form.
        """
        found = _REACHED.fullmatch(text)
        return cls(int(found[1]), int(found[2]), int(found[3])) if found else None


class RolledBackNote(NamedTuple):
    """A rollback at the deadline of a rollout, as an entry `REVISION: TIME: WHY` of
    `status.rolledBack`.
    """

    revision: str  # The revision that was rolled back.
    at: str  # When it was rolled back, RFC 3339.
    why: str  # The instances that the rollout waited for, and why.

    @property
    def retry(self) -> str:
        """The value of the annotation RETRY that ends this rollback, such as
        `v1-0a1b/2026-01-05T11:00:00Z`.

        It has the time, so that the same value does not end a later rollback of the revision.
        """
        return f"{self.revision}/{self.at}"


class PullerNote(NamedTuple):
    """A puller that updates wait for, as a key of `status.pulling`: `POD`, or `asked for: POD`.

    A puller is a pod that pulls the images of updates on a node before the updates. The value is
    the time since when the updates wait for the puller.
    """

    pod: str  # Name of the puller.
    is_there: bool = True  # False if the puller has been requested and does not exist yet.

    def encode(self) -> str:
        """Returns the key of the note, `POD` or `asked for: POD`."""
        return f"{'' if self.is_there else _ASKED}{self.pod}"

    @classmethod
    def decode(cls, text: str) -> Self | None:
        """Returns the note, or None if the text is the key of an `UnableNote` or a `StuckNote`."""
        if text.startswith((_REFUSED, _STUCK)):
            return None
        return cls(text.removeprefix(_ASKED), not text.startswith(_ASKED))


class StuckNote(NamedTuple):
    """A puller that fails for a reason other than its images, as a key of `status.pulling`.

    The key is `stuck: POD`. A puller is a pod that pulls the images of updates on a node before the
    updates. The value is the time since when the puller fails.
    """

    pod: str  # Name of the pod.

    def encode(self) -> str:
        """Returns the key of the note, `stuck: POD`."""
        return f"{_STUCK}{self.pod}"

    @classmethod
    def decode(cls, text: str) -> Self | None:
        """Returns the note, or None if the text is the key of a note of another kind."""
        return cls(text.removeprefix(_STUCK)) if text.startswith(_STUCK) else None


class UnableNote(NamedTuple):
    """A node where no puller can run, or all nodes, as a key of `status.pulling`.

    A puller is a pod that pulls the images of updates on a node before the updates. The key is
    `refused: IMAGE on NODE`, or `refused: IMAGE` for all nodes. IMAGE is the image of the puller's
    own container. The value is the time when the service gave up. For some time after it, updates
    on these nodes do not wait for pullers.
    """

    image: str  # Image of the puller's own container.
    node: str = ""  # Name of the node; empty for all nodes.

    def encode(self) -> str:
        """Returns the key of the note, `refused: IMAGE` or `refused: IMAGE on NODE`."""
        return f"{_REFUSED}{self.image}{self.node and _ON + self.node}"

    @classmethod
    def decode(cls, text: str) -> Self | None:
        """Returns the note, or None if the text is the key of a note of another kind."""
        if not text.startswith(_REFUSED):
            return None
        image, _, node = text.removeprefix(_REFUSED).partition(_ON)
        return cls(image, node)


class GateNote(NamedTuple):
    """The time since when syncs wait for the completion of a pod's update in place.

    Only elapsed time can show the completion. The time is stored in the condition of the pod's
    closed readiness gate. It is in the fields `lastProbeTime` and `observedGeneration`, which
    Kubernetes does not set for readiness gates.
    """

    since: str  # Since when only elapsed time can show that the update is complete, RFC 3339.
    # Generation of the pod. None with Kubernetes before 1.34, whose API server drops the field.
    generation: int | None

    def encode(self) -> dict[str, Any]:
        """Returns the note as fields of the readiness gate's condition."""
        return {"lastProbeTime": self.since, "observedGeneration": self.generation}

    @classmethod
    def decode(cls, last_probe_time: str | None, observed_generation: int | None) -> Self | None:
        """Returns the note that is stored in two fields of a readiness gate's condition.

        Returns None if `last_probe_time` is not a valid time.
        """
        if not last_probe_time or seconds(last_probe_time) == UNKNOWN:
            return None
        return cls(last_probe_time, observed_generation)


def encode_names(names: Iterable[str]) -> str:
    """Returns the names of containers as one text for `status.turned`, such as `web,log`."""
    return ",".join(names)


def decode_names(text: str) -> list[str]:
    """Returns the names in a text that `encode_names` wrote."""
    return text.split(",")


def encode_groups(groups: Mapping[str, Iterable[int]]) -> dict[str, str]:
    """Returns a map for the status whose values are ranges of instance numbers, such as `0-3,7`.

    `groups` maps each key to instance numbers. A key of `status.notCreated`, `status.notOwned` or
    `status.notExposed` is the time since when the instances lack an object. A key of `status.kept`
    is the revision at which a partition keeps the instances.
    """
    return {what: ranges(ids) for what, ids in groups.items()}


def encode_rolled_back(notes: Iterable[RolledBackNote]) -> dict[str, str]:
    """Returns `status.rolledBack`: revision -> `TIME: WHY`.

    Of many rollbacks, only the newest are contained. `why` is cut if it is long.
    """
    newest = sorted(notes, key=lambda note: note.at)[-_MOST_ROLLED_BACK:]
    return {note.revision: f"{note.at}: {note.why}"[:_LONGEST_ROLLED_BACK] for note in newest}


def decode_rolled_back(noted: Mapping[str, str]) -> dict[str, RolledBackNote]:
    """Returns revision -> the note about its rollback.

    `noted` is `status.rolledBack`. Entries without a revision or a time are left out.
    """
    pairs = ((revision, *text.partition(": ")[::2]) for revision, text in noted.items())
    found = (RolledBackNote(*each) for each in pairs if REVISION.fullmatch(each[0]))
    return {note.revision: note for note in found if is_written(note.at)}


def decode_since(noted: Mapping[str, str], now: float) -> dict[int, str]:
    """Returns instance number -> time, from a map that `encode_groups` wrote with times as keys.

    Times later than `now` are left out. `now` is in seconds since the epoch.
    """
    since_of = (
        (id, since)
        for since, text in noted.items()
        if seconds(since) <= now
        for id in numbers(text)
    )
    return dict(islice(since_of, MOST))


def decode_kept(noted: Mapping[str, str]) -> dict[int, str]:
    """Returns instance number -> revision at which a partition keeps the instance.

    `noted` is `status.kept`. Numbers that are too large for an instance are left out.
    """
    named = {key: text for key, text in noted.items() if REVISION.fullmatch(key)}
    pairs = ((id, revision) for revision, text in named.items() for id in numbers(text))
    return {id: revision for id, revision in islice(pairs, MOST) if id < MAX_REPLICAS}
