"""Labels and annotations of templates: what an update in place writes, and how a pod's differ.

Other programs write labels and annotations of pods, too; for example, a database may set `role:
primary` on its own pod. So an update in place (`written`) writes only the keys whose value differs
between the template that the pod was created from and the new template.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from tapp.declared.reads import digest
from tapp.declared.revision import own_labels
from tapp.kube.parts import map_in
from tapp.words.quoted import quoted
from tapp.words.vocabulary import HELD_ANNOTATIONS, NEVER_IN_TEMPLATES

Entries = Mapping[str, str]

# A summary has values up to this many characters, and digests of longer ones.
_LONGEST = 80
# Characters of a value that are shown in a message.
_SHOWN = 40
_decode = msgspec.json.Decoder(tuple[dict[str, str], dict[str, str]]).decode


class Metadata(NamedTuple):
    """The labels and annotations that a template gives to every pod."""

    labels: Entries
    annotations: Entries

    def of(self, part: str) -> Entries:
        """Returns the labels if `part` is `labels`, and otherwise the annotations."""
        return self.labels if part == "labels" else self.annotations

    def summary(self) -> bytes:
        """Returns the metadata as JSON with digests in place of long values.

        Equal metadata has the same summary, so summaries can be compared instead of the metadata.
        """
        parts = [_summaries(entries) for entries in self]
        return msgspec.json.encode(parts, order="sorted")


def authors_metadata(metadata: Any) -> Metadata:
    """Returns those labels and annotations of a pod that come from its template.

    Keys that belong to one pod only, such as the instance number, are left out. `metadata` is the
    metadata of the pod, of any shape.
    """
    labels = own_labels({"labels": map_in(metadata, "labels")})
    return Metadata(for_every_pod(labels), for_every_pod(map_in(metadata, "annotations")))


def for_every_pod(entries: Mapping[str, Any]) -> Entries:
    """Returns those labels or annotations of a pod that its template may have given to it.

    Keys that belong to one pod only are left out, and values that are no text.
    """
    own = held_annotations(entries)
    return {
        key: text
        for key, text in entries.items()
        if key not in NEVER_IN_TEMPLATES and key not in own and isinstance(text, str)
    }


def held_annotations(annotations: Mapping[str, Any]) -> frozenset[str]:
    """Returns the keys of the annotations for autoscalers that the service wrote on a pod on hold.

    `annotations` are those of the pod.
    """
    text = annotations.get(HELD_ANNOTATIONS)
    return frozenset(text.split(",")) if isinstance(text, str) and text else frozenset()


def _summaries(entries: Entries) -> Entries:
    """Returns the entries with a digest in place of each long value."""
    return {
        key: text if len(text) <= _LONGEST else f"a text with the digest {digest(text)}"
        for key, text in entries.items()
    }


def written(observed: Entries, applied: Entries, wanted: Entries, before: Entries) -> Entries:
    """Returns the labels or annotations of the response for an update in place.

    Metacontroller removes a key that is missing in the response if it applied the key last time. If
    somebody has removed a key from the pod, and the template has not changed the key, it stays
    removed.

    Args:
        observed: the entries of the pod.
        applied: the entries that Metacontroller wrote last.
        wanted: the entries of the template that the pod is updated to.
        before: the entries of the template that the pod was created from.
    """
    found = {
        key: text if before.get(key) != text else observed[key]
        for key, text in wanted.items()
        if before.get(key) != text or key in observed
    }
    # A key that neither template has comes from an earlier template. It stays, because only a
    # changed key is written.
    others = (key for key in applied if key not in wanted and key not in before)
    return found | {key: observed[key] for key in others if key in observed}


def guessed_before(
    last: Entries | None, observed: Entries, wanted: Entries, edited: Mapping[str, str]
) -> Entries:
    """Returns the likely labels or annotations of the template that a pod was created from.

    This is used if the history lacks the pod's revision. Metacontroller's copy of the pod has the
    entries of that template. But a value that somebody changed before the last write is in the
    copy, too. So an entry counts as unchanged by the template if somebody else wrote it last and
    the copy has the pod's value. It then gets the value of the wanted template.

    Args:
        last: the entries in Metacontroller's copy. Without a copy (None), the result is empty.
        observed: the entries of the pod.
        wanted: the entries of the template that the pod is updated to.
        edited: the entries that somebody else wrote last: key -> writer.
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
    """A label or annotation that a pod lacks or has with another value than its template."""

    is_there: bool  # True if the pod has the key, False if somebody has removed it.
    text: str  # Key and both values, for a message.


def edits(pod: bytes, template: bytes) -> Iterator[Edit]:
    """Yields the labels and annotations of a template that a pod lacks or has with another value.

    Keys that only the pod has are left out, because an earlier template or somebody else has added
    them.

    Args:
        pod: a summary (`Metadata.summary`) of the pod's labels and annotations.
        template: a summary of the template's labels and annotations.
    """
    for part, found, wanted in zip(
        ("label", "annotation"), _decode(pod), _decode(template), strict=True
    ):
        for key, text in wanted.items():
            if found.get(key) != text:
                was = f"is {quoted(found[key], _SHOWN)}" if key in found else "was removed"
                words = f"{part} {quoted(key)} {was} (template: {quoted(text, _SHOWN)})"
                yield Edit(key in found, words)
