"""One pod's JSON, read: what it tells, and the answer that leaves it alone."""

from contextlib import suppress
from dataclasses import dataclass

import msgspec
from msgspec import Raw

from hooks.wire.decode import WireError, as_deep_as_readable, check_identity, child_path, decoded
from tapp.answer.render import kept_pod
from tapp.kube.objects import PodMeta, PodObject, PodStatus
from tapp.pod.manifest import Manifest
from tapp.pod.pod import Pod
from tapp.pod.read import read
from tapp.storage.claims import instance_number
from tapp.words.kinds import POD

_decode_pod = msgspec.json.Decoder(PodObject).decode


@dataclass(frozen=True, slots=True)
class ObservedPod:
    """One pod of a request, read. It refers to nothing of the request and may outlive it."""

    key: str  # its key in the request
    pod: Pod  # what it tells
    number: int | None  # its instance's number, None where its name is no instance's
    # what leaves it alone, whatever is decided: to make it anew at each sync would take three times
    # as long as all the rest; None where that depends on its template, because Metacontroller has
    # not applied it, or left no trace of that
    answer: Raw | None

    @property
    def may_be_kept(self) -> bool:
        """True if it is small: not one of the few that nobody made out, or that is not ours."""
        return not self.pod.foreign and not self.pod.unreadable


def manifest_of(text: bytes | Raw) -> Manifest:
    """A pod's labels, annotations and spec, from a text that was read before."""
    return as_deep_as_readable(lambda read: Manifest(_split(read, "")[0]), text)


def observe(text: bytes | Raw, key: str, namespace: str, prefix: str) -> ObservedPod:
    """Reads a pod. One that is of an odd shape is read as far as it can be, and says so.

    `key` is its key in the request, `prefix` the begin of its instances' names: `APP-`. Raises
    WireError: it is no JSON, has no name, or is of another namespace than this.
    """
    path = child_path(POD, key)
    pod, manifest = _read(text, path)
    check_identity(path, pod.name, manifest.namespace, namespace)
    answer = None
    if manifest.projected is not None:
        # A copy, because msgspec's encoder leaves room for half as much again behind its result.
        answer = Raw(bytes(memoryview(msgspec.json.encode(kept_pod(manifest, None)))))
    return ObservedPod(key, pod, instance_number(pod.name, prefix), answer)


def observe_alone(text: bytes | Raw, path: str) -> Pod:
    """Reads a pod that comes without its TApp. Raises WireError: it is no JSON, or has no name."""
    found, _ = _read(text, path)
    check_identity(path, found.name, None, "")
    return found


def _read(text: bytes | Raw, path: str) -> tuple[Pod, Manifest]:
    """A pod, and its labels, annotations and spec. WireError: it is no JSON, or has no name."""

    def found(text: bytes | Raw) -> tuple[Pod, Manifest]:
        pod, unreadable = _split(text, path)
        manifest = Manifest(pod)
        return read(pod, manifest, unreadable), manifest

    try:
        return as_deep_as_readable(found, text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise WireError(path, f"is not readable JSON: {error}") from None


def _split(text: bytes | Raw, path: str) -> tuple[PodObject, str]:
    """The parts of a pod, and what keeps them from being read as they should be."""
    try:
        return _decode_pod(text), ""
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return _salvaged(text, path), str(error)


class _Skeleton(msgspec.Struct, frozen=True):
    metadata: dict[str, Raw]
    spec: Raw = Raw(b"null")
    status: Raw = Raw(b"null")


_decode_skeleton = msgspec.json.Decoder(_Skeleton).decode
_decode_name = msgspec.json.Decoder(str).decode
_decode_status = msgspec.json.Decoder(PodStatus | None).decode


def _salvaged(text: bytes | Raw, path: str) -> PodObject:
    """A pod of unexpected shape, as far as it can be read; its name is a must."""
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
