"""Reads the requests of the composite hooks from bytes into a `World`.

The hook protocols v1 and v2 differ only in the keys of the children. The keys are not used, because
the names come from the objects. Source: Metacontroller, pkg/controller/composite/api.
"""

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Raw
from pydantic import BaseModel, ValidationError

from hooks.wire.claims import read_claims
from hooks.wire.declared import declared
from hooks.wire.decode import WireError, by_name, child_path, decoded, refuse_twice
from hooks.wire.memo import Cached, CachedApp, CachedSpec, Memo, pod_bytes
from hooks.wire.observe import Manifests, ObservedPod, observe
from hooks.wire.split import Pieces, split
from tapp.decide.pulls import is_puller
from tapp.declared.lookup import Templates, resolve_templates
from tapp.declared.model import Parent, TApp
from tapp.kube.objects import PlainObject, RevisionMeta, RevisionObject, StorageClassObject
from tapp.kube.parts import map_in, map_of
from tapp.pod.manifest import Manifest
from tapp.pod.pod import Pod
from tapp.words.kinds import CLAIM, PLAIN, POD, REVISION, Kind
from tapp.world import Declared, World

M = TypeVar("M", bound=BaseModel)
P = TypeVar("P", bound=Parent)


class _Meta(msgspec.Struct, frozen=True):
    """The parts of an object's metadata that identify it."""

    name: str
    namespace: str | None = None
    uid: str | None = None


class _Named(msgspec.Struct, frozen=True):
    """The name, namespace and uid of an object; its other fields are not read."""

    metadata: _Meta


class _CustomizeRequest(msgspec.Struct, frozen=True):
    """A request of the customize hook; it has no children."""

    parent: dict[str, Any]
    controller: Raw = Raw(b"null")


_decode_customize = msgspec.json.Decoder(_CustomizeRequest).decode
_decode_revision = msgspec.json.Decoder(RevisionObject).decode
_decode_class = msgspec.json.Decoder(StorageClassObject).decode
_decode_any = msgspec.json.Decoder(Any).decode
_decode_plain = msgspec.json.Decoder(PlainObject).decode
_decode_named = msgspec.json.Decoder(_Named).decode


class Request(Generic[P]):
    """A checked sync or finalize request, in which every object has a name.

    Attributes:
        plain: kind -> name of the child -> child, for the kinds in `PLAIN`. Children of other
            kinds have attributes of their own, which map names to children.
        spec: the templates of the TApp; None if the model has no spec.
        read: number of pods that were decoded because the cache did not have them.

    The other attributes are those of `World`.
    """

    def __init__(self, body: bytes | Pieces, model: type[P], memo: Memo) -> None:
        """Reads a request.

        Raises WireError with the path of the first invalid field.

        Args:
            body: the body of the request, or its parts.
            model: `TApp`, or `Parent` to ignore the spec.
            memo: the cache. The values of the request are stored in it.
        """
        self._pieces = pieces = split(body, memo) if isinstance(body, bytes) else body
        self.parent, self.spec = _parent(pieces, model)
        namespace = self.parent.metadata.namespace
        known, self.read = _known_pods(pieces, self.parent)
        self.pods: dict[str, ObservedPod] = {}
        for item in known:
            name = item.value.pod.name
            if name in self.pods:
                later = max(item.value.key, self.pods[name].key)
                refuse_twice(child_path(POD, later), name)
            self.pods[name] = item.value
        self.revisions = by_name(REVISION, pieces.children[REVISION], namespace, _revision)
        self.plain = {
            kind: by_name(kind, pieces.children[kind], namespace, partial(_plain, kind))
            for kind in PLAIN
        }
        self.namespace_uid = _namespace_uid(pieces.related, namespace)
        self.declared = declared(pieces.controller)
        before = pieces.cached
        growing = self.declared.growing_claims
        claims = read_claims(pieces.children[CLAIM], namespace, before.claims, growing=growing)
        self.claims = {name: item.value.claim for name, item in claims.items()}
        self.unchanged_claims = {name: item.value.unchanged for name, item in claims.items()}
        self.manifests = Manifests(self.pods, pieces.children[POD])
        self.storage_classes: dict[str, bool] | None = None
        if self.claims and growing:
            self.storage_classes = _storage_classes(pieces.related)
        kept_claims = claims if growing else {}
        changed = self.spec is not before.spec or kept_claims != before.claims
        if self.read or len(known) != len(before.pods) or changed:
            kept = {item.value.key: item for item in known if item.value.may_be_kept}
            memo.keep(CachedApp(before.app, self.spec, kept, kept_claims))

    @property
    def status(self) -> dict[str, Any]:
        """Returns the parent's status without `observedGeneration`, which Metacontroller sets."""
        status = map_of(_status(self._pieces))
        return {key: value for key, value in status.items() if key != "observedGeneration"}

    def part_of_spec(self, part: type[M]) -> M:
        """Returns a part of a TApp's spec, although the rest of the spec may be invalid.

        `part` is a model with the fields of the part. Returns its defaults if the part itself is
        invalid.
        """
        try:
            return part.model_validate(_field(self._pieces, "spec") or {})
        except (ValidationError, WireError):
            return part()


def world_of(request: Request[TApp]) -> World:
    """Returns the TApp with its children, from a checked sync request."""
    pods: dict[int, Pod] = {}
    foreign, pullers = [], {}
    ours = f"{request.parent.metadata.name}-pull-x"
    for observed in request.pods.values():
        pod = observed.pod
        if observed.number is not None:
            pods[observed.number] = pod
        elif pod.name.startswith(ours) and is_puller(pod):
            pullers[pod.name] = pod
        else:
            foreign.append(pod)
    foreign.sort(key=lambda pod: pod.name)
    parent, spec = request.parent, request.spec
    templates = templates_of(parent) if spec is None else spec.value
    return World(
        parent,
        templates,
        pods,
        foreign,
        request.claims,
        request.unchanged_claims,
        request.namespace_uid,
        revisions=request.revisions,
        declared=request.declared,
        storage_classes=request.storage_classes,
        pullers=pullers,
        plain=request.plain,
        manifests=request.manifests,
    )


def templates_of(parent: TApp) -> Templates:
    """Returns the templates of a TApp's spec, without filling in their placeholders."""
    meta = parent.metadata
    return resolve_templates(parent.spec, meta.name, meta.namespace)


def customize_parent(body: bytes) -> tuple[Parent, bool, Declared]:
    """Reads a customize request.

    Returns the TApp's metadata, True if the TApp may have claims, and the kinds that the
    CompositeController declares. Raises WireError if the body is no such request.
    """
    request = decoded(_decode_customize, body, "")
    # Metacontroller sends this request before finalize, too, and a TApp with an invalid spec must
    # still be deletable. So only two fields are read.
    spec = map_in(request.parent, "spec")
    # Instances that a partition keeps may have claims of templates that the spec has no longer.
    keeps = map_in(spec, "updateStrategy").get("partition")
    claims = bool(spec.get("volumeClaimTemplates") or keeps)
    return _validated(Parent, request.parent), claims, declared(request.controller)


encode = msgspec.json.encode  # An answer as bytes, with its keys in the order given


def _parent(pieces: Pieces, model: type[P]) -> tuple[P, CachedSpec | None]:
    """Returns the parent of a request, and its cached spec.

    The cached spec is None if `model` has no spec. Raises WireError if a field is invalid.
    """
    text, spec = bytes(pieces.parent.get("spec", b"null")), pieces.cached.spec
    if spec is not None and not spec.is_of(text):
        spec = None
    document = {key: _field(pieces, key) for key in pieces.parent if key in _FIELDS}
    if model is TApp:
        document["status"] = _status(pieces)
    if model is TApp and "spec" in pieces.parent:
        document["spec"] = _field(pieces, "spec") if spec is None else spec.value.spec
    parent = _validated(model, document)
    if spec is None and isinstance(parent, TApp):
        spec = CachedSpec(text, templates_of(parent))
    return parent, spec


_FIELDS = ("apiVersion", "kind", "metadata")  # The fields that every parent has


def _status(pieces: Pieces) -> Any:
    """Returns the parent's status, or None if it is unreadable.

    An unreadable status is no error, because each sync replaces the status.
    """
    try:
        return _field(pieces, "status")
    except WireError:
        return None


def _field(pieces: Pieces, key: str) -> Any:
    """Returns a field of the parent, decoded; None if it is missing.

    Raises WireError if it is invalid.
    """
    return decoded(_decode_any, pieces.parent.get(key, b"null"), f"parent.{key}")


def _known_pods(pieces: Pieces, parent: Parent) -> tuple[list[Cached[ObservedPod]], int]:
    """Returns the pods of a request, and the number of them that were not in the cache.

    Raises WireError if a pod cannot be read.
    """
    namespace, prefix = parent.metadata.namespace, f"{parent.metadata.name}-"
    known, read, cached = list[Cached[ObservedPod]](), 0, pieces.cached
    for key, raw in pieces.children[POD].items():
        text, item = bytes(raw), cached.pods.get(key)
        if item is None or not item.is_of(text):
            observed, read = observe(text, key, namespace, prefix), read + 1
            item = Cached(text, observed, pod_bytes(text))
        known.append(item)
    return known, read


def _revision(raw: Raw, path: str) -> tuple[str, str | None, RevisionObject]:
    """Reads a ControllerRevision, and returns its name, its namespace and the object.

    If it has an unexpected shape, only its name and its namespace are read. `path` is its path in
    the request, for a WireError.
    """
    try:
        item: RevisionObject = _decode_revision(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        named = decoded(_decode_named, raw, path).metadata
        item = RevisionObject(RevisionMeta(named.name, named.namespace))
    return item.metadata.name, item.metadata.namespace, item


def _plain(kind: Kind, raw: Raw, path: str) -> tuple[str, str | None, Manifest]:
    """Reads the metadata and the spec of a child, such as a Service.

    Returns the child's name, namespace and manifest. `path` is the path of the child in the
    request; the message of a WireError names it.
    """
    found = decoded(lambda text: Manifest(_decode_plain(text), kind), raw, path)
    return found.name, found.namespace, found


def _namespace_uid(related: Mapping[str, Mapping[str, Raw]] | None, name: str) -> str | None:
    """Returns the uid of the TApp's Namespace; None if the request lacks the Namespace.

    Args:
        related: the related objects of the request: kind -> key -> JSON.
        name: the name of the Namespace.
    """
    for key, raw in ((related or {}).get("Namespace.v1") or {}).items():
        found = decoded(_decode_named, raw, f"related['Namespace.v1'][{key!r}]")
        if found.metadata.name == name:
            return found.metadata.uid
    return None


def _storage_classes(related: Mapping[str, Mapping[str, Raw]] | None) -> dict[str, bool] | None:
    """Returns StorageClass -> True if its claims may grow.

    StorageClasses that cannot be read are left out. Returns None if the request has no
    StorageClasses. `related` has the related objects of the request: kind -> key -> JSON.
    """
    shown = (related or {}).get("StorageClass.storage.k8s.io/v1")
    if shown is None:
        return None
    found = {}
    for key, raw in shown.items():
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            item: StorageClassObject = _decode_class(raw)
            found[item.metadata.name or key] = item.allow_volume_expansion is True
    return found


def _validated(model: type[M], document: Mapping[str, Any]) -> M:
    """Returns a document as an object of a model.

    Raises WireError with the path of an invalid field.
    """
    try:
        return model.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise WireError(f"parent{_path(document, first['loc'])}", first["msg"]) from None


def _path(document: Any, places: tuple[int | str, ...]) -> str:
    """Returns the path of an invalid field in the document.

    `places` is the path as pydantic reports it. It also contains types of a union, which are not in
    the document; they are left out.
    """
    path = ""
    for place in places:
        if not isinstance(document, (dict, list)):
            break
        path += f"[{place}]" if isinstance(place, int) else f".{place}"
        try:
            document = document[place]  # type: ignore[index]
        except (KeyError, IndexError, TypeError):
            break  # the missing field itself is the last place
    return path
