"""Notes: what a sync leaves for later ones, as a status and a gate's condition hold it.

docs/design.md, "What is remembered". The service keeps nothing, so what has to last is written into
the TApp's status, in maps of text to text. Here alone is said how; what else is noted there is a
number of an instance as it is, or numbers as ranges (`ranges.py`).

A tenant or an older release may have written anything: to decode what is no note gives None, or
leaves it out, and is never an error.
"""

import re
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, NamedTuple, Protocol, Self, TypeVar

from tapp.words.ranges import MOST, numbers, ranges
from tapp.words.times import UNKNOWN, seconds
from tapp.words.vocabulary import MAX_REPLICAS

REVISION = re.compile(r"[A-Za-z0-9._-]{1,150}")  # A name of a content (`storage/records.py`)
_NUMBER = r"(0|[1-9]\d{0,18})"
_UPDATE = re.compile(rf"{_NUMBER}/{_NUMBER}", re.ASCII)
_READY = re.compile(rf"{_NUMBER}/(True|False)", re.ASCII)
_RESIZE = re.compile(rf"{_NUMBER}/([^/]*)(/refused)?", re.ASCII)
_REACHED = re.compile(r"(\d{1,19})/(\d{1,6})/(\d{1,6})", re.ASCII)
_ASKED, _REFUSED, _ON, _STUCK = "asked for: ", "refused: ", " on ", "stuck: "


class Note(Protocol):
    """A key of a map in the status."""

    def encode(self) -> str:
        """The key."""

    @classmethod
    def decode(cls, text: str) -> Self | None:
        """The note that a key is; None where it is none of this kind."""


N = TypeVar("N", bound=Note)


def encoded(notes: Mapping[N, str]) -> dict[str, str]:
    """A map as the status has it."""
    return {note.encode(): text for note, text in notes.items()}


def decoded(kind: type[N], noted: Mapping[str, str]) -> dict[N, str]:
    """The notes of one kind in a map of the status."""
    pairs = ((kind.decode(key), text) for key, text in noted.items())
    return {note: text for note, text in pairs if note is not None}


class UpdateNote(NamedTuple):
    """One update in place: `3/2`, of `settling` and `turned`."""

    id: int  # the instance
    generation: int  # of its pod, which the next update raises

    def encode(self) -> str:
        """`ID/GENERATION`."""
        return f"{self.id}/{self.generation}"

    @classmethod
    def decode(cls, text: str) -> Self | None:
        """None where it is no such key."""
        found = _UPDATE.fullmatch(text)
        return cls(int(found[1]), int(found[2])) if found else None


class ReadyNote(NamedTuple):
    """One state of a condition Ready that has no usable time: `3/True`, of `unserved`."""

    id: int  # the instance
    ready: bool  # whether its pod is Ready; else the pod's node does not report

    def encode(self) -> str:
        """`ID/True` or `ID/False`."""
        return f"{self.id}/{self.ready}"

    @classmethod
    def decode(cls, text: str) -> Self | None:
        """None where it is no such key."""
        found = _READY.fullmatch(text)
        return cls(int(found[1]), found[2] == "True") if found else None


class ResizeNote(NamedTuple):
    """One resize: `3/REVISION`, or `3/REVISION/refused`, of `resizing`."""

    id: int  # the instance
    revision: str  # of its template: another one is tried anew
    # true for since when it seems that the API server takes no such resize, false for since when
    # the pod is to have other resources
    is_refused: bool = False

    def encode(self) -> str:
        """`ID/REVISION`, with `/refused` behind it."""
        return f"{self.id}/{self.revision}{'/refused' if self.is_refused else ''}"

    @classmethod
    def decode(cls, text: str) -> Self | None:
        """None where it is no such key."""
        found = _RESIZE.fullmatch(text)
        return cls(int(found[1]), found[2], found[3] is not None) if found else None


class ReachedNote(NamedTuple):
    """The point that a roll has reached: `2/3/1`, of `progressed`."""

    generation: int  # of the spec
    begun: int  # so many instances need no update, or theirs has begun
    available: int  # so many of them are available

    def encode(self) -> str:
        """`GENERATION/BEGUN/AVAILABLE`."""
        return f"{self.generation}/{self.begun}/{self.available}"

    @classmethod
    def decode(cls, text: str) -> Self | None:
        """None where it is no such key."""
        found = _REACHED.fullmatch(text)
        return cls(int(found[1]), int(found[2]), int(found[3])) if found else None


class PullerNote(NamedTuple):
    """One puller that is waited for: `POD`, or `asked for: POD`, of `pulling`."""

    pod: str  # its name
    is_there: bool = True  # false for one that is not there yet

    def encode(self) -> str:
        """`POD`, with `asked for: ` before it."""
        return f"{'' if self.is_there else _ASKED}{self.pod}"

    @classmethod
    def decode(cls, text: str) -> Self | None:
        """Returns the note, or None if the text is an `UnableNote` or a `StuckNote`."""
        if text.startswith((_REFUSED, _STUCK)):
            return None
        return cls(text.removeprefix(_ASKED), not text.startswith(_ASKED))


class StuckNote(NamedTuple):
    """A puller that has trouble of its own: `stuck: POD`, of `pulling`."""

    pod: str  # its name

    def encode(self) -> str:
        """Returns `stuck: POD`."""
        return f"{_STUCK}{self.pod}"

    @classmethod
    def decode(cls, text: str) -> Self | None:
        """Returns the note, or None if the text is another one."""
        return cls(text.removeprefix(_STUCK)) if text.startswith(_STUCK) else None


class UnableNote(NamedTuple):
    """No puller could run there: `refused: IMAGE`, or `refused: IMAGE on NODE`, of `pulling`."""

    image: str  # of the pullers
    node: str = ""  # "" for all nodes

    def encode(self) -> str:
        """`refused: IMAGE`, with ` on NODE` behind it."""
        return f"{_REFUSED}{self.image}{self.node and _ON + self.node}"

    @classmethod
    def decode(cls, text: str) -> Self | None:
        """None where it is a `PullerNote`."""
        if not text.startswith(_REFUSED):
            return None
        image, _, node = text.removeprefix(_REFUSED).partition(_ON)
        return cls(image, node)


class GateNote(NamedTuple):
    """The note on a closed gate, in a condition's fields that Kubernetes does not use for gates."""

    since: str  # since when, RFC 3339, only time can prove the pod's update
    generation: int | None  # of the pod then; None before Kubernetes 1.34, whose API drops it

    def encode(self) -> dict[str, Any]:
        """The fields of the condition."""
        return {"lastProbeTime": self.since, "observedGeneration": self.generation}

    @classmethod
    def decode(cls, last_probe_time: str | None, observed_generation: int | None) -> Self | None:
        """None where the condition has no such time."""
        if not last_probe_time or seconds(last_probe_time) == UNKNOWN:
            return None
        return cls(last_probe_time, observed_generation)


def encode_names(names: Iterable[str]) -> str:
    """Names of containers, of `turned`: `web,log`."""
    return ",".join(names)


def decode_names(text: str) -> list[str]:
    """The names in a text that `encode_names` wrote."""
    return text.split(",")


def encode_groups(groups: Mapping[str, Iterable[int]]) -> dict[str, str]:
    """Numbers of instances as ranges, by what these have in common.

    A time for `notCreated`, `notOwned` and `notExposed`, a revision for `kept`.
    """
    return {what: ranges(ids) for what, ids in groups.items()}


def decode_since(noted: Mapping[str, str], now: float) -> dict[int, str]:
    """Instance -> since when, as `encode_groups` wrote it; no times to come."""
    since_of = (
        (id, since)
        for since, text in noted.items()
        if seconds(since) <= now
        for id in numbers(text)
    )
    return dict(islice(since_of, MOST))


def decode_kept(noted: Mapping[str, str]) -> dict[int, str]:
    """Instance -> revision, as `encode_groups` wrote it; of numbers that instances may have."""
    named = {key: text for key, text in noted.items() if REVISION.fullmatch(key)}
    pairs = ((id, revision) for revision, text in named.items() for id in numbers(text))
    return {id: revision for id, revision in islice(pairs, MOST) if id < MAX_REPLICAS}
