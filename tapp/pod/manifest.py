"""The labels, annotations and spec of a pod or a plain child: what an answer to it is made of."""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from tapp.kube.objects import PlainObject, PodMeta, PodObject
from tapp.kube.parts import map_of
from tapp.kube.project import project
from tapp.words.kinds import POD, Kind
from tapp.words.vocabulary import LAST_APPLIED

T = TypeVar("T")


class Manifest:
    """The decoded form of a pod or a plain child; a part of a wrong type reads as empty.

    `projected` is the answer that changes nothing; None where Metacontroller has not applied this
    object before, or its annotation is gone or unreadable.
    """

    __slots__ = (
        *("annotations", "finalizers", "gone_by", "kind", "labels", "managed_fields"),
        *("name", "namespace", "projected", "spec"),
    )

    def __init__(self, pod: PodObject | PlainObject, kind: Kind = POD) -> None:
        """Decodes it, or raises msgspec.DecodeError, UnicodeDecodeError or RecursionError."""
        meta, self.kind = pod.metadata, kind
        self.name = meta.name
        self.namespace = meta.namespace
        self.labels = map_of(msgspec.json.decode(meta.labels))
        self.annotations = map_of(msgspec.json.decode(meta.annotations))
        self.finalizers = msgspec.json.decode(meta.finalizers)
        self.gone_by = meta.deletion_timestamp or ""
        self.managed_fields = meta.managed_fields
        self.spec = map_of(msgspec.json.decode(pod.spec))
        self.projected = self._projected()

    @property
    def document(self) -> dict[str, Any]:
        """The object as far as projection looks at it: identity, labels, annotations, spec."""
        metadata: dict[str, Any] = {"name": self.name}
        if self.namespace is not None:
            metadata["namespace"] = self.namespace
        metadata["labels"] = self.labels
        metadata["annotations"] = self.annotations
        if self.finalizers:
            metadata["finalizers"] = self.finalizers
        return {**self.kind.type_meta, "metadata": metadata, "spec": self.spec}

    def _projected(self) -> dict[str, Any] | None:
        applied = read_annotation(msgspec.json.decode, self.annotations.get(LAST_APPLIED))
        if not isinstance(applied, dict):
            return None
        document = self.document
        result: dict[str, Any] = project(document, applied)
        metadata = result.get("metadata") if isinstance(applied.get("metadata"), dict) else {}
        # Identity is a must, whatever somebody made of the annotation: a child without it would
        # fail the whole answer.
        identity = {
            key: document["metadata"][key]
            for key in ("name", "namespace")
            if key in document["metadata"]
        }
        return {**result, **self.kind.type_meta, "metadata": {**(metadata or {}), **identity}}


def read_annotation(decode: Callable[[str | bytes], T], text: Any) -> T | None:
    """The JSON in an annotation; None where there is none, or somebody broke it."""
    if not isinstance(text, str | bytes):
        return None
    try:
        return decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None


NO_MANIFEST = Manifest(PodObject(PodMeta("")))
"""Of a pod that is not compared with its template field by field."""
