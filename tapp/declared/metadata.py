"""Labels and annotations of a template: what an update in place writes of them, and what differs.

Others write on pods, too: a program that sets `role: master` on its own pod. An update in place
writes only the keys whose value in the template has changed since the pod's revision.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from tapp.declared.reads import digest
from tapp.declared.revision import own_labels
from tapp.kube.parts import map_in
from tapp.words.quoted import quoted
from tapp.words.vocabulary import NEVER_IN_TEMPLATES

Entries = Mapping[str, str]

_LONGEST = 80  # Characters of a value that a summary has as they are; it has digests of longer ones
_SHOWN = 40  # Characters of a value in a message
_decode = msgspec.json.Decoder(tuple[dict[str, str], dict[str, str]]).decode


class Metadata(NamedTuple):
    """The labels and annotations of a template that are for every pod."""

    labels: Entries
    annotations: Entries

    def of(self, part: str) -> Entries:
        """Returns the labels or the annotations."""
        return self.labels if part == "labels" else self.annotations

    def summary(self) -> bytes:
        """Returns a short text that is the same for all equal metadata."""
        parts = [_summaries(entries) for entries in self]
        return msgspec.json.encode(parts, order="sorted")


def authors_metadata(metadata: Any) -> Metadata:
    """Returns what a pod has of its template's metadata, without what tells of one pod only."""
    labels = own_labels({"labels": map_in(metadata, "labels")})
    return Metadata(_for_every_pod(labels), _for_every_pod(map_in(metadata, "annotations")))


def _for_every_pod(entries: Mapping[str, Any]) -> Entries:
    return {
        key: text
        for key, text in entries.items()
        if key not in NEVER_IN_TEMPLATES and isinstance(text, str)
    }


def _summaries(entries: Entries) -> Entries:
    return {
        key: text if len(text) <= _LONGEST else f"a text with the digest {digest(text)}"
        for key, text in entries.items()
    }


def written(observed: Entries, applied: Entries, wanted: Entries, before: Entries) -> Entries:
    """Returns the labels or annotations with which an update in place answers.

    A key is left out if Metacontroller is to remove it, or if somebody has removed it.

    Args:
        observed: those of the pod.
        applied: those of them that Metacontroller wrote last.
        wanted: those of the template that the pod is to run.
        before: those of the template that the pod was made of.
    """
    found = {
        key: text if before.get(key) != text else observed[key]
        for key, text in wanted.items()
        if before.get(key) != text or key in observed
    }
    # A key that neither template has was written by an earlier one, and stays.
    others = (key for key in applied if key not in wanted and key not in before)
    return found | {key: observed[key] for key in others if key in observed}


def guessed_before(
    last: Entries | None, observed: Entries, wanted: Entries, edited: Mapping[str, str]
) -> Entries:
    """Returns the labels or annotations of the template that a pod was made of, as far as known.

    For a pod whose revision the history lacks. Metacontroller's copy (`last`) has them, but for the
    values that somebody had changed before the last write: these are in the copy as well, and
    `edited` has the keys that somebody else wrote last. None of `last`: nothing is known.
    """
    if last is None:
        return {}
    kept = {
        key: text
        for key, text in wanted.items()
        if key in last and key in edited and observed.get(key) == last[key]
    }
    return {**last, **kept}


class Edit(NamedTuple):
    """A label or an annotation of a pod that is not as in its template."""

    is_there: bool  # whether the pod has the key
    text: str  # the key and both values, for a person


def edits(pod: bytes, template: bytes) -> Iterator[Edit]:
    """Yields the keys of a template's summary that have another value in a pod's, or none.

    Keys that the pod alone has are left out: an earlier template had them, or somebody added them.
    """
    for part, found, wanted in zip(
        ("label", "annotation"), _decode(pod), _decode(template), strict=True
    ):
        for key, text in wanted.items():
            if found.get(key) != text:
                was = f"is {quoted(found[key], _SHOWN)}" if key in found else "was removed"
                words = f"{part} {quoted(key)} {was} (template: {quoted(text, _SHOWN)})"
                yield Edit(key in found, words)
