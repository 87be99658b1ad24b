"""What a pod was told to be: its labels, annotations and spec, decoded as far as decisions look."""

from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import msgspec

from tapp import objects
from tapp.objects import PodObject
from tapp.pattern import SharedAnswer
from tapp.project import duplicate_merge_keys, project
from tapp.vocabulary import LAST_APPLIED, TEMPLATE_HASH, TEMPLATE_IMAGES, UNIQ_HASH

T = TypeVar("T")

INIT = "initContainers"


class Appearance:
    """What a pod was told to be.

    Pods that look alike share the appearance of the first of them (`lookalike.py`): what is read
    here for a decision must be the same for all of them, apart from their own names in it.
    """

    def __init__(self, pod: PodObject) -> None:
        """Decodes the three parts; one of a wrong type reads as empty.

        Raises:
            msgspec.DecodeError: a part is no JSON.
        """
        meta = pod.metadata
        self.name = meta.name
        self.namespace = meta.namespace
        self.labels = _decoded_map(meta.labels)
        self.annotations = _decoded_map(meta.annotations)
        self.finalizers = msgspec.json.decode(meta.finalizers)
        self.spec = _decoded_map(pod.spec)
        self.odd = _oddity(pod)
        """What of it is of a wrong type, "" if nothing."""
        self.verdicts: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
        """Template -> what the rules said of this appearance and that template (`judge.py`)."""
        self.kept = SharedAnswer()
        """The answer that leaves such pods alone."""
        self.kept_as: WeakKeyDictionary[Any, SharedAnswer] = WeakKeyDictionary()
        """Template -> the same for pods that run it, where that makes a difference."""
        self.overlaid: WeakKeyDictionary[Any, SharedAnswer] = WeakKeyDictionary()
        """Template -> the answer that brings such pods to it in place."""
        self.shared = False
        """Whether other pods may have this appearance, too."""

    @cached_property
    def template_hash(self) -> str | None:
        """The revision label."""
        return self.labels.get(TEMPLATE_HASH)

    @cached_property
    def uniq_hash(self) -> str | None:
        """The revision label without images."""
        return self.labels.get(UNIQ_HASH)

    @cached_property
    def applied(self) -> dict[str, Any] | None:
        """What Metacontroller applied last; None where it left no (readable) annotation."""
        applied = read_annotation(msgspec.json.decode, self.annotations.get(LAST_APPLIED))
        return applied if isinstance(applied, dict) else None

    @cached_property
    def template_images(self) -> dict[str, str]:
        """Container name -> image as the template had it when it was last applied."""
        return read_annotation(objects.decode_images, self.annotations.get(TEMPLATE_IMAGES)) or {}

    @cached_property
    def images(self) -> dict[str, str]:
        """Container name -> image in the spec, of containers and init containers."""
        return {item["name"]: item.get("image", "") for item in self._containers}

    @cached_property
    def restart_policies(self) -> dict[str, str]:
        """Container name -> the policy that decides whether the kubelet starts it again."""
        policy = self.restart_policy
        return {item["name"]: item.get("restartPolicy") or policy for item in self._containers}

    @property
    def _containers(self) -> list[dict[str, Any]]:
        if self.odd:
            return []
        return [*(self.spec.get("containers") or []), *(self.spec.get(INIT) or [])]

    @property
    def restart_policy(self) -> str:
        """`spec.restartPolicy`, with Kubernetes' default."""
        return self.spec.get("restartPolicy") or "Always"

    @cached_property
    def duplicates(self) -> list[str]:
        """Paths that Metacontroller cannot merge; none in a pod that it never applied."""
        projected = self.projected
        return [] if projected is None else duplicate_merge_keys({"spec": projected.get("spec")})

    @property
    def document(self) -> dict[str, Any]:
        """The pod as far as projection looks at it: identity, labels, annotations, spec."""
        metadata: dict[str, Any] = {"name": self.name}
        if self.namespace is not None:
            metadata["namespace"] = self.namespace
        metadata["labels"] = self.labels
        metadata["annotations"] = self.annotations
        if self.finalizers:
            metadata["finalizers"] = self.finalizers
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": self.spec}

    @cached_property
    def projected(self) -> dict[str, Any] | None:
        """The answer that changes nothing, if Metacontroller has applied this pod before."""
        if self.applied is None:
            return None
        document = self.document
        result: dict[str, Any] = project(document, self.applied)
        metadata = result.get("metadata") if isinstance(self.applied.get("metadata"), dict) else {}
        # Identity is a must, whatever somebody made of the annotation: a child without it would
        # fail the whole answer.
        identity = {
            key: document["metadata"][key]
            for key in ("name", "namespace")
            if key in document["metadata"]
        }
        return {
            **result,
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**(metadata or {}), **identity},
        }


class _NamedContainer(msgspec.Struct):
    name: str
    image: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    containers: list[_NamedContainer] | None = None
    init_containers: list[_NamedContainer] | None = None


_decode_strings = msgspec.json.Decoder(dict[str, str] | None).decode
_decode_spec = msgspec.json.Decoder(_Spec).decode


def _oddity(pod: PodObject) -> str:
    """What is of a wrong type in the parts of a pod that decisions read."""
    parts: tuple[tuple[str, Callable[[Any], Any], msgspec.Raw], ...] = (
        ("metadata.labels", _decode_strings, pod.metadata.labels),
        ("metadata.annotations", _decode_strings, pod.metadata.annotations),
        ("spec", _decode_spec, pod.spec),
    )
    for path, decode, raw in parts:
        try:
            if raw is not objects.NOTHING:
                decode(raw)
        except msgspec.ValidationError as error:
            return f"{path}: {error}"
    return ""


def _decoded_map(raw: msgspec.Raw) -> dict[str, Any]:
    value = msgspec.json.decode(raw)
    return value if isinstance(value, dict) else {}


def read_annotation(decode: Callable[[str | bytes], T], text: Any) -> T | None:
    """The JSON in an annotation; None where there is none, or somebody broke it."""
    if not isinstance(text, str | bytes):
        return None
    try:
        return decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
