"""Reading Kubernetes objects: metadata accessors, label selectors, Go's notion of equality.

Nothing here mutates its arguments. Sources: apimachinery's ObjectMeta and LabelSelector, and
reflect.DeepEqual, by which Metacontroller compares: it is type-sensitive.
"""

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

from tapp.kube import owners

Json = Any
Object = dict[str, Json]
Key = tuple[str, str]

_MISSING: Json = object()


def meta(obj: Object) -> Object:
    """Return the object's metadata (empty if it has none)."""
    return obj.get("metadata") or {}


def name_of(obj: Object) -> str:
    """Return metadata.name."""
    return str(meta(obj).get("name", ""))


def namespace_of(obj: Object) -> str:
    """Return metadata.namespace, empty for cluster-scoped objects."""
    return str(meta(obj).get("namespace") or "")


def uid_of(obj: Object) -> str:
    """Return metadata.uid."""
    return str(meta(obj).get("uid", ""))


def uids(version: int) -> Iterator[str]:
    """Make the uids of a cluster whose first resourceVersion comes after this one."""
    text, mark = f"{version:014x}", "5eed" if version else "0000"
    series = f"{mark}{text[:4]}-{text[4:8]}-4{text[8:11]}-8{text[11:]}"
    return (f"{series}-{number:012x}" for number in count(1))


def version_of(obj: Object) -> str:
    """Return metadata.resourceVersion."""
    return str(meta(obj).get("resourceVersion", ""))


def generation_of(obj: Object) -> int:
    """Return metadata.generation, 0 for kinds without one."""
    return int(meta(obj).get("generation", 0))


def labels_of(obj: Object) -> dict[str, str]:
    """Return metadata.labels."""
    return meta(obj).get("labels") or {}


def annotations_of(obj: Object) -> dict[str, str]:
    """Return metadata.annotations."""
    return meta(obj).get("annotations") or {}


def finalizers_of(obj: Object) -> list[str]:
    """Return metadata.finalizers."""
    return meta(obj).get("finalizers") or []


def owners_of(obj: Object) -> list[Object]:
    """Return metadata.ownerReferences."""
    return meta(obj).get("ownerReferences") or []


def controller_of(obj: Object) -> Object | None:
    """Return the reference to the owner that controls the object, if there is one."""
    return owners.controller_of(owners_of(obj))


def is_terminating(obj: Object) -> bool:
    """Tell whether deletion of the object has begun."""
    return meta(obj).get("deletionTimestamp") is not None


def key_of(obj: Object) -> Key:
    """Return (namespace, name)."""
    return namespace_of(obj), name_of(obj)


def with_meta(obj: Object, **changes: Json) -> Object:
    """Copy the object with metadata fields set; the value None (or []) removes a field."""
    metadata = dict(meta(obj))
    for field, value in changes.items():
        if value is None or value == []:
            metadata.pop(field, None)
        else:
            metadata[field] = value
    return {**obj, "metadata": metadata}


def same(left: Json, right: Json) -> bool:
    """Compare like Go's reflect.DeepEqual on decoded JSON: 1, 1.0 and true all differ."""
    if left is right:
        return True
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        if len(left) != len(right):
            return False
        for field, value in left.items():  # loops, as this is called more often than all else
            other = right.get(field, _MISSING)
            if value is not other and not same(value, other):
                return False
        return True
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def changed_paths(old: Json, new: Json, path: str = "") -> Iterator[str]:
    """Yield the path of every leaf that differs, such as `spec.containers[0].image`."""
    if same(old, new):
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for field in sorted(old.keys() | new.keys()):
            inner = f"{path}.{field}" if path else field
            yield from changed_paths(old.get(field), new.get(field), inner)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from changed_paths(before, after, f"{path}[{index}]")
    else:
        yield path


def _expression_matches(expression: Mapping[str, Json], labels: Mapping[str, str]) -> bool:
    key, values = expression["key"], expression.get("values") or []
    match expression["operator"]:
        case "In":
            return key in labels and labels[key] in values
        case "NotIn":
            return key not in labels or labels[key] not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case operator:
            raise ValueError(f"{operator!r} is not a valid label selector operator")


def selects(selector: Mapping[str, Json] | None, labels: Mapping[str, str]) -> bool:
    """Tell whether a LabelSelector matches; an absent or empty one matches everything."""
    if not selector:
        return True
    for key, value in (selector.get("matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    expressions = selector.get("matchExpressions") or []
    return all(_expression_matches(expression, labels) for expression in expressions)
