"""Functions that read Kubernetes objects: metadata, label selectors, and equality as in Go.

No function changes its arguments. Sources: apimachinery's ObjectMeta and LabelSelector, and Go's
reflect.DeepEqual, with which Metacontroller compares objects and which distinguishes types.
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
    """Returns the metadata of an object, or an empty mapping if it has none."""
    return obj.get("metadata") or {}


def name_of(obj: Object) -> str:
    return str(meta(obj).get("name", ""))


def namespace_of(obj: Object) -> str:
    """Returns metadata.namespace; empty for cluster-scoped objects."""
    return str(meta(obj).get("namespace") or "")


def uid_of(obj: Object) -> str:
    return str(meta(obj).get("uid", ""))


def uids(version: int) -> Iterator[str]:
    """Yields an endless series of uids for the new objects of a cluster.

    `version` is the resourceVersion with which the cluster begins, and the uids contain it. So two
    clusters that begin with different versions have no uid in common.
    """
    text, mark = f"{version:014x}", "5eed" if version else "0000"
    series = f"{mark}{text[:4]}-{text[4:8]}-4{text[8:11]}-8{text[11:]}"
    return (f"{series}-{number:012x}" for number in count(1))


def version_of(obj: Object) -> str:
    """Returns metadata.resourceVersion; empty for an object that was never stored."""
    return str(meta(obj).get("resourceVersion", ""))


def generation_of(obj: Object) -> int:
    """Returns metadata.generation; 0 for kinds without generations."""
    return int(meta(obj).get("generation", 0))


def labels_of(obj: Object) -> dict[str, str]:
    return meta(obj).get("labels") or {}


def annotations_of(obj: Object) -> dict[str, str]:
    return meta(obj).get("annotations") or {}


def finalizers_of(obj: Object) -> list[str]:
    return meta(obj).get("finalizers") or []


def owners_of(obj: Object) -> list[Object]:
    """Returns metadata.ownerReferences."""
    return meta(obj).get("ownerReferences") or []


def controller_of(obj: Object) -> Object | None:
    """Returns the owner reference of the object with `controller: true`, or None if it has none."""
    return owners.controller_of(owners_of(obj))


def is_terminating(obj: Object) -> bool:
    """Returns True if the object has a deletion timestamp."""
    return meta(obj).get("deletionTimestamp") is not None


def key_of(obj: Object) -> Key:
    """Returns (namespace, name) of an object; the namespace of a cluster-scoped object is empty."""
    return namespace_of(obj), name_of(obj)


def with_meta(obj: Object, **changes: Json) -> Object:
    """Returns a copy of the object with the given metadata fields changed.

    A value of None or an empty list removes the field.
    """
    metadata = dict(meta(obj))
    for field, value in changes.items():
        if value is None or value == []:
            metadata.pop(field, None)
        else:
            metadata[field] = value
    return {**obj, "metadata": metadata}


def deep_equal(left: Json, right: Json) -> bool:
    """Returns True if two JSON values are equal for Go's reflect.DeepEqual.

    The values 1, 1.0 and true all differ from each other.
    """
    if left is right:
        return True
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        if len(left) != len(right):
            return False
        # Loops are faster than all(), and no function of the simulator is called more often.
        for field, value in left.items():
            other = right.get(field, _MISSING)
            if value is not other and not deep_equal(value, other):
                return False
        return True
    if isinstance(left, list):
        return len(left) == len(right) and all(map(deep_equal, left, right))
    return bool(left == right)


def changed_paths(old: Json, new: Json, path: str = "") -> Iterator[str]:
    """Yields the path of every value that differs between `old` and `new`.

    A path looks like `spec.containers[0].image`. If two lists have different lengths, only the path
    of the list is yielded. `path` is the path of both values; each yielded path begins with it.
    """
    if deep_equal(old, new):
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


def selector_matches(selector: Mapping[str, Json] | None, labels: Mapping[str, str]) -> bool:
    """Returns True if a LabelSelector matches the labels.

    None and an empty selector match all labels. Raises ValueError for an unknown operator.
    """
    if not selector:
        return True
    for key, value in (selector.get("matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    expressions = selector.get("matchExpressions") or []
    return all(_expression_matches(expression, labels) for expression in expressions)
