"""Metacontroller's documents: request bytes to a `World`, an answer to bytes.

Hook protocol v1 and v2 differ only in the keys of the children, which are not read: names come from
the objects. Source: Metacontroller pkg/controller/composite/api, facts section 1.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Generic, NoReturn, TypeVar

import msgspec
from msgspec import Raw
from pydantic import BaseModel, ValidationError

from tapp.claims import instance_number
from tapp.lookalike import Looks
from tapp.model import ClaimPolicy, Parent, TApp
from tapp.objects import ClaimObject, PodMeta, PodObject, PodStatus
from tapp.observe import Pod
from tapp.plan import World

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)
P = TypeVar("P", bound=Parent)

_MISSING = re.compile(r"Object missing required field `(.+)`")

PODS = "Pod.v1"
CLAIMS = "PersistentVolumeClaim.v1"


class WireError(ValueError):
    """A request that is not one of Metacontroller's.

    Attributes:
        path: where in the document, for example `parent.metadata.uid`.
        message: what is wrong there, and what to do.
    """

    def __init__(self, path: str, message: str) -> None:
        """Both parts go to the caller."""
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path
        self.message = message


class _TypedChildren(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pods: dict[str, PodObject] = msgspec.field(name=PODS, default_factory=dict)
    claims: dict[str, ClaimObject] = msgspec.field(name=CLAIMS, default_factory=dict)


class _RawChildren(msgspec.Struct, frozen=True):
    pods: dict[str, Raw] | None = msgspec.field(name=PODS, default=None)
    claims: dict[str, Raw] | None = msgspec.field(name=CLAIMS, default=None)


class _Meta(msgspec.Struct, frozen=True):
    name: str
    uid: str | None = None


class _Named(msgspec.Struct, frozen=True):
    metadata: _Meta


class _Request(msgspec.Struct, frozen=True):
    parent: dict[str, Any]
    children: _TypedChildren
    related: dict[str, dict[str, Raw]] | None = None


class _OddRequest(msgspec.Struct, frozen=True):
    parent: dict[str, Any]
    children: Raw
    related: dict[str, dict[str, Raw]] | None = None


class _CustomizeRequest(msgspec.Struct, frozen=True):
    parent: dict[str, Any]


_decode_request = msgspec.json.Decoder(_Request).decode
_decode_customize = msgspec.json.Decoder(_CustomizeRequest).decode
_decode_odd_request = msgspec.json.Decoder(_OddRequest).decode
_decode_kinds = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_raw_children = msgspec.json.Decoder(_RawChildren).decode
_decode_pod = msgspec.json.Decoder(PodObject).decode
_decode_claim = msgspec.json.Decoder(ClaimObject).decode
_decode_named = msgspec.json.Decoder(_Named).decode


class Request(Generic[P]):
    """A sync or finalize request, checked: identity is there, and every child has a name.

    Attributes:
        parent: who asks.
        document: the parent as it came.
        pods: all pods, by name.
        claims: all claims, by name.
        namespace_uid: uid of the parent's Namespace, None where the request shows none.
    """

    def __init__(self, body: bytes, model: type[P]) -> None:
        """Reads a request, with the parent as a `model`: `TApp`, or `Parent` without its spec.

        Raises:
            WireError: it is not one, with the path of what is wrong.
        """
        odd: dict[str, str] = {}
        try:
            request = _decode_request(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            request, odd = _piece_by_piece(body)
        self.document = request.parent
        self.parent = _validated(model, request.parent)
        namespace = self.parent.metadata.namespace
        looks = Looks(namespace, self.parent.metadata.name)
        self.pods = pods = dict[str, Pod]()
        for key, pod in request.children.pods.items():
            meta = pod.metadata
            name = meta.name
            if not name or name in pods or meta.namespace not in (namespace, None):
                _refuse_child(PODS, key, name, meta.namespace, namespace)
            try:
                observed = looks.observe(pod)
            except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
                path = f"children[{PODS!r}][{key!r}]"
                raise WireError(path, f"is not readable JSON: {error}") from None
            if key in odd:
                observed.odd = odd[key]
            pods[name] = observed
        looks.remember()
        self.claims: dict[str, ClaimObject] = {}
        for key, claim in request.children.claims.items():
            name, where = claim.metadata.name, claim.metadata.namespace
            if not name or name in self.claims or where not in (namespace, None):
                _refuse_child(CLAIMS, key, name, where, namespace)
            self.claims[name] = claim
        self.namespace_uid = _namespace_uid(request.related, namespace)

    @property
    def status(self) -> dict[str, Any]:
        """The parent's status as it was last written; Metacontroller sets `observedGeneration`."""
        status = self.document.get("status")
        kept = status if isinstance(status, dict) else {}
        return {key: value for key, value in kept.items() if key != "observedGeneration"}

    @property
    def claim_policy(self) -> ClaimPolicy:
        """The claims' retention, whatever else the spec holds; `Retain` where it cannot be read."""
        try:
            return ClaimPolicy.model_validate(self.document.get("spec") or {})
        except ValidationError:
            return ClaimPolicy()


def world_of(request: Request[TApp]) -> World:
    """What the decisions look at: pods by their instance's number."""
    prefix = f"{request.parent.metadata.name}-"
    pods: dict[int, Pod] = {}
    foreign = []
    for name, pod in request.pods.items():
        number = instance_number(name, prefix)
        if number is None:
            foreign.append(pod)
        else:
            pods[number] = pod
    foreign.sort(key=lambda pod: pod.name)
    return World(request.parent, pods, foreign, request.claims, request.namespace_uid)


def customize_parent(body: bytes) -> tuple[Parent, bool]:
    """The parent of a customize request, and whether it has claim templates.

    The rest of its spec plays no part: Metacontroller calls this before finalize too, and a TApp
    that makes no sense must still be deletable.

    Raises:
        WireError: it is not one.
    """
    document = _decoded(_decode_customize, body, "").parent
    spec = document.get("spec")
    claims = isinstance(spec, dict) and bool(spec.get("volumeClaimTemplates"))
    return _validated(Parent, document), claims


def encode(answer: Mapping[str, Any]) -> bytes:
    """An answer as bytes: compact, keys in the order given."""
    return msgspec.json.encode(answer)


def _piece_by_piece(body: bytes) -> tuple[_Request, dict[str, str]]:
    """The slow way: one odd pod must not fail its siblings, unless it has no name.

    Returns the request, and for each odd pod's key what is odd about it.
    """
    request = _decoded(_decode_odd_request, body, "")
    for kind, objects in _decoded(_decode_kinds, request.children, "children").items():
        if kind not in (PODS, CLAIMS) and bytes(objects).strip() not in (b"{}", b"null"):
            raise WireError(
                f"children[{kind!r}]",
                "this hook manages only pods and claims, and would delete these; "
                "remove the kind from the CompositeController's childResources",
            )
    children = _decoded(_decode_raw_children, request.children, "children")
    pods, odd = {}, {}
    for key, item in (children.pods or {}).items():
        try:
            pods[key] = _decode_pod(item)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            pods[key] = _salvaged(item, f"children[{PODS!r}][{key!r}]")
            odd[key] = str(error)
    claims = {
        key: _decoded(_decode_claim, item, f"children[{CLAIMS!r}][{key!r}]")
        for key, item in (children.claims or {}).items()
    }
    return _Request(request.parent, _TypedChildren(pods, claims), request.related), odd


class _Skeleton(msgspec.Struct, frozen=True):
    metadata: dict[str, Raw]
    spec: Raw = Raw(b"null")
    status: Raw = Raw(b"null")


_decode_skeleton = msgspec.json.Decoder(_Skeleton).decode
_decode_name = msgspec.json.Decoder(str).decode
_decode_status = msgspec.json.Decoder(PodStatus | None).decode


def _salvaged(raw: Raw, path: str) -> PodObject:
    """A pod of unexpected shape, as far as it can be read; its name is a must."""
    skeleton = _decoded(_decode_skeleton, raw, path)
    metadata = skeleton.metadata
    if "name" not in metadata:
        raise WireError(f"{path}.metadata.name", "is missing")
    name = _decoded(_decode_name, metadata["name"], f"{path}.metadata.name")
    namespace = metadata.get("namespace")
    deleted = metadata.get("deletionTimestamp")
    try:
        status = _decode_status(skeleton.status)
    except (msgspec.DecodeError, UnicodeDecodeError):
        status = None
    return PodObject(
        PodMeta(
            name=name,
            namespace=_decoded(_decode_name, namespace, f"{path}.metadata.namespace")
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


def _refuse_child(kind: str, key: str, name: str, namespace: str | None, expected: str) -> NoReturn:
    path = f"children[{kind!r}][{key!r}].metadata"
    if not name:
        raise WireError(f"{path}.name", "is empty")
    if namespace not in (expected, None):
        raise WireError(f"{path}.namespace", f"is {namespace!r}, but the parent is in {expected!r}")
    raise WireError(f"{path}.name", f"{name!r} stands in the request twice")


def _namespace_uid(related: Mapping[str, Mapping[str, Raw]] | None, name: str) -> str | None:
    for key, raw in ((related or {}).get("Namespace.v1") or {}).items():
        found = _decoded(_decode_named, raw, f"related['Namespace.v1'][{key!r}]")
        if found.metadata.name == name:
            return found.metadata.uid
    return None


def _validated(model: type[M], document: Mapping[str, Any]) -> M:
    try:
        return model.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise WireError(f"parent{_path(document, first['loc'])}", first["msg"]) from None
    except RecursionError:
        raise WireError("parent", "is nested too deeply") from None


def _path(document: Any, places: tuple[int | str, ...]) -> str:
    """The path of an error, without pydantic's own additions such as the type of a union."""
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


def _decoded(decode: Callable[[Any], T], raw: bytes | Raw, path: str) -> T:
    """Decodes, and turns every way in which that can fail into one error with a path."""
    try:
        return decode(raw)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$")
        where = path + where.rstrip("`")
        if missing := _MISSING.fullmatch(what):
            where, what = f"{where}.{missing[1]}", "is missing"
        raise WireError(where.lstrip("."), what) from None
    except RecursionError:
        raise WireError(path, "is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise WireError(path, f"is not JSON: {error}") from None
