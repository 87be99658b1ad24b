"""Reads the JSON of a pod into a `Pod`.

Every pod that the API server accepts can be read. Of any other pod the valid parts are read, and
the pod says which part is wrong. An error would stop the syncs of the whole TApp.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

import msgspec
from msgspec import Raw

from hooks.wire.decode import WireError, as_deep_as_readable, check_identity, child_path, decoded
from tapp.kube.objects import PodMeta, PodObject, PodStatus
from tapp.pod.manifest import Manifest
from tapp.pod.pod import Pod
from tapp.pod.read import read
from tapp.storage.claims import instance_number
from tapp.words.kinds import POD

_decode_pod = msgspec.json.Decoder(PodObject).decode


@dataclass(frozen=True, slots=True)
class ObservedPod:
    """A pod of a request, with the number of its instance.

    It keeps no reference to the request, so the cache may store it.
    """

    key: str  # the pod's key in the request
    pod: Pod
    number: int | None  # the number of its instance; None if its name is no instance's
    # True if the memo may store the pod: unreadable pods and pods of other controllers may be large
    may_be_kept: bool


class Manifests(Mapping[str, Manifest]):
    """The manifests of the pods of a request, by the name of the pod.

    A manifest is decoded when it is looked up. That happens only for the few pods that the response
    changes.
    """

    def __init__(self, pods: Mapping[str, ObservedPod], texts: Mapping[str, Raw]) -> None:
        self._pods, self._texts = pods, texts

    def __getitem__(self, name: str) -> Manifest:
        observed = self._pods[name]
        if observed.pod.foreign:
            return observed.pod.manifest
        text = self._texts[observed.key]
        return as_deep_as_readable(lambda read: Manifest(_split(read, "")[0]), text)

    def __iter__(self) -> Iterator[str]:
        return iter(self._pods)

    def __len__(self) -> int:
        return len(self._pods)


def observe(text: bytes | Raw, key: str, namespace: str, prefix: str) -> ObservedPod:
    """Reads a pod in a sync or finalize request.

    Raises WireError if the text is no JSON, or if the pod has no name or another namespace than the
    TApp.

    Args:
        text: the JSON of the pod.
        key: the pod's key in the request.
        namespace: the namespace of the TApp.
        prefix: the beginning of the names of the instances' pods, `APP-`.
    """
    path = child_path(POD, key)
    pod, manifest = _read(text, path)
    check_identity(path, pod.name, manifest.namespace, namespace)
    pod = msgspec.structs.replace(pod, unchanged=manifest.unchanged())
    may_be_kept = not pod.foreign and not pod.unreadable
    return ObservedPod(key, pod, instance_number(pod.name, prefix), may_be_kept)


def observe_alone(text: bytes | Raw, path: str) -> Pod:
    """Reads the pod in a request of `/pod-status`, which contains no TApp.

    Raises WireError if the text is no JSON, or the pod has no name. `path` is the path of the pod
    in the request.
    """
    found, _ = _read(text, path)
    check_identity(path, found.name, None, "")
    return found


def _read(text: bytes | Raw, path: str) -> tuple[Pod, Manifest]:
    """Reads a pod and its manifest from JSON.

    Raises WireError if the text is no JSON, or the pod has no name. `path` is the path of the pod
    in the request.
    """

    def found(text: bytes | Raw) -> tuple[Pod, Manifest]:
        pod, unreadable = _split(text, path)
        manifest = Manifest(pod)
        return read(pod, manifest, unreadable), manifest

    try:
        return as_deep_as_readable(found, text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise WireError(path, f"is not readable JSON: {error}") from None


def _split(text: bytes | Raw, path: str) -> tuple[PodObject, str]:
    """Returns the parts of a pod, and why some parts are unreadable.

    The second value is empty if all parts are readable. `path` is the path of the pod in the
    request.
    """
    try:
        return _decode_pod(text), ""
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return _salvaged(text, path), str(error)


class _Skeleton(msgspec.Struct, frozen=True):
    """A pod whose parts are not decoded yet."""

    metadata: dict[str, Raw]
    spec: Raw = Raw(b"null")
    status: Raw = Raw(b"null")


_decode_skeleton = msgspec.json.Decoder(_Skeleton).decode
_decode_name = msgspec.json.Decoder(str).decode
_decode_status = msgspec.json.Decoder(PodStatus | None).decode


def _salvaged(text: bytes | Raw, path: str) -> PodObject:
    """Reads the valid parts of a pod that has an unexpected shape.

    Raises WireError if the pod has no name, because the response could not keep the pod then.
    `path` is the path of the pod in the request.
    """
    skeleton = decoded(_decode_skeleton, text, path)
    metadata = skeleton.metadata
    if "name" not in metadata:
        raise WireError(f"{path}.metadata.name", "is missing")
    name = decoded(_decode_name, metadata["name"], f"{path}.metadata.name")
    namespace = metadata.get("namespace")
    deleted = metadata.get("deletionTimestamp")
    status = None
    with suppress(msgspec.DecodeError, UnicodeDecodeError):
        status = _decode_status(skeleton.status)
    return PodObject(
        PodMeta(
            name=name,
            namespace=decoded(_decode_name, namespace, f"{path}.metadata.namespace")
            if namespace is not None and bytes(namespace) != b"null"
            else None,
            deletion_timestamp=None if deleted is None or bytes(deleted) == b"null" else "?",
            labels=metadata.get("labels", Raw(b"null")),
            annotations=metadata.get("annotations", Raw(b"null")),
            finalizers=metadata.get("finalizers", Raw(b"null")),
        ),
        skeleton.spec,
        status,
    )
