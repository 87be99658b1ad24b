"""Labels and annotations of templates: how pods differ in them, and what an update in place writes.

Other programs also write labels and annotations of pods. For example, a database may set `role:
primary` on its own pod. So an update in place (`written`) writes a key only if its value differs
between two templates: the one that the pod was created from, and the new one.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from tapp.declared.reads import digest
from tapp.declared.revision import own_labels
from tapp.kube.parts import map_in
from tapp.words.quoted import quoted
from tapp.words.vocabulary import AUTOSCALER_ANNOTATIONS, HELD_ANNOTATIONS, NEVER_IN_TEMPLATES

Entries = Mapping[str, str]

# Most characters of a value in a summary; a digest takes the place of a longer value.
_LONGEST = 80
# Most characters of a value in a message.
_SHOWN = 40
_decode = msgspec.json.Decoder(tuple[dict[str, str], dict[str, str]]).decode


class Metadata(NamedTuple):
    """The labels and annotations that a template gives to every pod."""

    labels: Entries
    annotations: Entries

    def of(self, part: str) -> Entries:
        """Returns the labels if `part` is `labels`, and the annotations if it is `annotations`."""
        return self.labels if part == "labels" else self.annotations

    def summary(self) -> bytes:
        """Returns the labels and annotations as JSON, with digests in place of long values.

        Equal labels and annotations have the same summary, so the service stores and compares only
        summaries.
        """
        parts = [_summaries(entries) for entries in self]
        return msgspec.json.encode(parts, order="sorted")


def authors_metadata(metadata: Any) -> Metadata:
    """Returns the labels and annotations of a pod that come from its template.

    Keys that belong to one pod only, such as the instance number, are left out. `metadata` is the
    `metadata` of the pod as decoded JSON, of any shape.
    """
    labels = own_labels({"labels": map_in(metadata, "labels")})
    return Metadata(for_every_pod(labels), for_every_pod(map_in(metadata, "annotations")))


def for_every_pod(entries: Mapping[str, Any]) -> Entries:
    """Returns the labels or annotations of a pod that may come from its template.

    Left out are keys that belong to one pod only, and values that are not text. `entries` are all
    labels or all annotations of the pod.
    """
    own = held_annotations(entries)
    return {
        key: text
        for key, text in entries.items()
        if key not in NEVER_IN_TEMPLATES and key not in own and isinstance(text, str)
    }


def held_annotations(annotations: Mapping[str, Any]) -> frozenset[str]:
    """Returns the annotation keys that the service set on a pod on hold, for autoscalers.

    The service lists its keys in an annotation of its own (`HELD_ANNOTATIONS`). `annotations` are
    all annotations of the pod.
    """
    text = annotations.get(HELD_ANNOTATIONS)
    if not isinstance(text, str):
        return frozenset()
    # Anybody may write the list. Other keys in it stay those of the template's author.
    return frozenset(AUTOSCALER_ANNOTATIONS.keys() & set(text.split(",")))


def _summaries(entries: Entries) -> Entries:
    """Returns labels or annotations with a digest in place of each value of over `_LONGEST`
    characters.
    """
    return {
        key: text if len(text) <= _LONGEST else f"a text with the digest {digest(text)}"
        for key, text in entries.items()
    }


def written(observed: Entries, applied: Entries, wanted: Entries, before: Entries) -> Entries:
    """Returns the labels or annotations that the response for an update in place contains.

    Metacontroller removes a key from the pod if the key is missing in the response and
    Metacontroller applied it last time. The result has these values:

    - If the new template has the key with another value than the old template, or only the new
      template has the key: the new template's value.
    - If both templates have the key with the same value: the pod's value. If somebody has removed
      the key from the pod, the result lacks the key.
    - If only the old template has the key: nothing, so that Metacontroller removes the key.
    - If neither template has the key, but Metacontroller applied it last time: the pod's value.

    Args:
        observed: the labels or annotations of the pod.
        applied: the labels or annotations that Metacontroller applied last.
        wanted: the labels or annotations of the new template, to which the pod is updated.
        before: the labels or annotations of the old template, from which the pod was created.
    """
    found = {
        key: text if before.get(key) != text else observed[key]
        for key, text in wanted.items()
        if before.get(key) != text or key in observed
    }
    # A key that neither template has comes from an earlier template. The pod keeps the key, because
    # this update changes only keys whose value differs between the two templates.
    others = (key for key in applied if key not in wanted and key not in before)
    return found | {key: observed[key] for key in others if key in observed}


def guessed_before(
    last: Entries | None, observed: Entries, wanted: Entries, edited: Mapping[str, str]
) -> Entries:
    """Guesses the labels or annotations of the template that a pod was created from.

    The result is used as `before` in `written` if the history has no record of the pod's revision.
    It is based on Metacontroller's copy of the pod (the last-applied annotation), which contains
    all labels and annotations of that template. The copy may also contain values that somebody else
    set on the pod, and `written` must not overwrite values of others. For each key of the copy, the
    result has:

    - The new template's value, if somebody else wrote the key last and the pod still has the copy's
      value. `written` then sees no difference between the templates, and keeps the pod's value.
    - The copy's value, in all other cases.

    Args:
        last: the labels or annotations in Metacontroller's copy. If there is no copy (None), the
            result is empty.
        observed: the labels or annotations of the pod.
        wanted: the labels or annotations of the new template, to which the pod is updated.
        edited: key -> field manager, for keys that somebody other than this service wrote last.
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
    """A label or annotation of a template that the pod lacks, or has with another value."""

    is_there: bool  # True if the pod has the key, False if somebody has removed it.
    text: str  # Key and both values, for a message.


def edits(pod: bytes, template: bytes) -> Iterator[Edit]:
    """Yields the labels and annotations of a template that a pod lacks or has with another value.

    Keys that only the pod has are left out, because an earlier template or another program added
    them.

    Args:
        pod: a summary (`Metadata.summary`) of the pod's labels and annotations.
        template: a summary (`Metadata.summary`) of the template's labels and annotations.
    """
    for part, found, wanted in zip(
        ("label", "annotation"), _decode(pod), _decode(template), strict=True
    ):
        for key, text in wanted.items():
            if found.get(key) != text:
                was = f"is {quoted(found[key], _SHOWN)}" if key in found else "was removed"
                words = f"{part} {quoted(key)} {was} (template: {quoted(text, _SHOWN)})"
                yield Edit(key in found, words)
