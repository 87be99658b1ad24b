"""The labels, annotations and spec of an observed pod, Service or other child, decoded.

The response for an existing object is built from its `Manifest`. `Manifest.projected` is a response
that leaves the object unchanged (`tapp/kube/project.py`).
"""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from msgspec import Raw

from tapp.kube.objects import PlainObject, PodMeta, PodObject
from tapp.kube.parts import map_of
from tapp.kube.project import project
from tapp.words.kinds import POD, Kind
from tapp.words.vocabulary import LAST_APPLIED

T = TypeVar("T")


class Manifest:
    """The labels, annotations, finalizers and spec of an observed object, decoded from JSON.

    A part that has a wrong type is empty. `projected` is the object that a hook returns for this
    child so that Metacontroller changes nothing. It has exactly the fields that Metacontroller has
    applied before, with their observed values. It is None if Metacontroller's annotation with the
    last applied object is missing or not valid.
    """

    __slots__ = (
        *("annotations", "finalizers", "gone_by", "kind", "labels", "managed_fields"),
        *("name", "namespace", "projected", "spec"),
    )

    def __init__(self, pod: PodObject | PlainObject, kind: Kind = POD) -> None:
        """Decodes the labels, annotations, finalizers and spec of an object.

        Raises msgspec.DecodeError, UnicodeDecodeError or RecursionError if its JSON is invalid.
        `kind` is the kind of the object.
        """
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
        """The object with the parts that `project` reads: kind, name, metadata and spec.

        The metadata consist of the labels, the annotations and the finalizers.
        """
        metadata: dict[str, Any] = {"name": self.name}
        if self.namespace is not None:
            metadata["namespace"] = self.namespace
        metadata["labels"] = self.labels
        metadata["annotations"] = self.annotations
        if self.finalizers:
            metadata["finalizers"] = self.finalizers
        return {**self.kind.type_meta, "metadata": metadata, "spec": self.spec}

    def unchanged(self) -> Raw | None:
        """Returns `projected` as JSON: the response that leaves the object as it is.

        Returns None if `projected` is None.
        """
        if self.projected is None:
            return None
        # A copy, because msgspec's encoder leaves room for half as much again behind its result.
        return Raw(bytes(memoryview(msgspec.json.encode(self.projected))))

    def _projected(self) -> dict[str, Any] | None:
        """Returns the object with which a hook makes Metacontroller leave the child as it is.

        The object has the fields that Metacontroller has applied before, with their observed
        values. Metacontroller's annotation with the last applied object names these fields. Returns
        None if this annotation is missing or not valid.
        """
        applied = read_annotation(msgspec.json.decode, self.annotations.get(LAST_APPLIED))
        if not isinstance(applied, dict):
            return None
        document = self.document
        result: dict[str, Any] = project(document, applied)
        metadata = result.get("metadata") if isinstance(applied.get("metadata"), dict) else {}
        # Users can edit Metacontroller's annotation. Without name and namespace the child would
        # make Metacontroller refuse the whole response.
        identity = {
            key: document["metadata"][key]
            for key in ("name", "namespace")
            if key in document["metadata"]
        }
        return {**result, **self.kind.type_meta, "metadata": {**(metadata or {}), **identity}}


def read_annotation(decode: Callable[[str | bytes], T], text: Any) -> T | None:
    """Decodes the JSON in an annotation; returns None if it is missing or not valid.

    Args:
        decode: decodes the text and raises msgspec.DecodeError if it is not valid.
        text: the value of the annotation, of any type.
    """
    if not isinstance(text, str | bytes):
        return None
    try:
        return decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None


# Stands for the manifest of a pod whose fields need not be compared with its template.
NO_MANIFEST = Manifest(PodObject(PodMeta("")))
