"""Metacontroller's dynamic apply: a three-way merge that guesses which lists to merge by key.

`apply_update` is the entry point. It merges three objects: the observed one, the last applied one,
and the desired one. The rules are (Metacontroller 4.17.2, pkg/dynamic/apply/apply.go):

* Keys of the last applied object that are not desired are removed, and desired keys are merged. All
  other keys stay.
* A list is merged item by item if all items of the observed, last applied and desired lists are
  objects that share a merge key (`tapp/kube/project.py`). Any other list is replaced.
* If several items have the same key, the last item replaces the others.
* A value of the wrong type, and null, count as empty.

No argument is changed, and unchanged parts of the result are shared with the observed object.
"""

import re
from operator import is_

import msgspec

from simulator.objects.objects import Json, Object, annotations_of, meta, with_meta
from tapp.kube.project import MERGE_KEYS, merge_key  # noqa: F401 - tests import both from here

LAST_APPLIED = "metacontroller.k8s.io/last-applied-configuration"

SYSTEM_FIELDS = (
    "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
    "deletionGracePeriodSeconds", "managedFields",
)  # fmt: skip

_encoder = msgspec.json.Encoder(order="sorted")
_HTML = re.compile("[<>&\u2028\u2029]")
_MISSING = object()


class ApplyError(Exception):
    """An object cannot be updated, because its last-applied annotation is not a JSON object."""


def canonical_json(value: Json) -> str:
    """Encodes a value as Go's json.Marshal does: keys are sorted, and <, > and & are escaped."""
    text = _encoder.encode(value).decode()
    return _HTML.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def _as_text(value: Json) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    return "<nil>" if value is None else str(value)


def _merge_value(observed: Json, last: Json, desired: Json) -> Json:
    if isinstance(observed, dict):
        return _merge_map(
            observed,
            last if isinstance(last, dict) else {},
            desired if isinstance(desired, dict) else {},
        )
    if isinstance(observed, list):
        return _merge_list(
            observed,
            last if isinstance(last, list) else [],
            desired if isinstance(desired, list) else None,
        )
    return desired


def _merge_map(observed: Object, last: Object, desired: Object) -> Object:
    merged = observed
    for key in last:
        if key not in desired and key in merged:
            merged = {k: v for k, v in merged.items() if k != key}
    changes = {}
    for key, value in desired.items():
        before = merged.get(key, _MISSING)
        after = value if before is _MISSING else _merge_value(before, last.get(key), value)
        if after is not before:
            changes[key] = after
    return {**merged, **changes} if changes else merged


def _merge_list(observed: list[Json], last: list[Json], desired: list[Json] | None) -> Json:
    desired_items = desired or []
    key = merge_key(observed, last, desired_items)
    if key is None:
        return desired
    by_key = {_as_text(item[key]): item for item in observed}
    merged = _merge_map(
        by_key,
        {_as_text(item[key]): item for item in last},
        {_as_text(item[key]): item for item in desired_items},
    )
    names = [_as_text(item[key]) for item in observed]
    result = [merged[name] for name in names if name in merged]
    seen = set(names)
    for item in desired_items:
        name = _as_text(item[key])
        if name not in seen:
            seen.add(name)
            result.append(merged[name])
    unchanged = len(result) == len(observed) and all(map(is_, result, observed))
    return observed if unchanged else result


def merge(observed: Object, last_applied: Object | None, desired: Object) -> Object:
    """Returns the observed object with the changes from the last applied to the desired object.

    `last_applied` is the object that the hook returned when Metacontroller last wrote the object;
    None counts as empty.
    """
    return _merge_map(observed, last_applied or {}, desired)


def last_applied(obj: Object) -> Object | None:
    """Returns the object in the last-applied annotation; None if it is missing or null.

    Raises ApplyError if the annotation is neither a JSON object nor null.
    """
    text = annotations_of(obj).get(LAST_APPLIED)
    if not text:
        return None
    try:
        value: Json = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise ApplyError(f'can\'t unmarshal "{LAST_APPLIED}" annotation: {error}') from error
    if value is not None and not isinstance(value, dict):
        raise ApplyError(f'can\'t unmarshal "{LAST_APPLIED}" annotation: not an object')
    return value


def without_last_applied(desired: Object) -> Object:
    """Returns the desired object of a hook, without the last-applied annotation.

    A hook that copies observed objects may also copy this annotation. Metacontroller then replaces
    it.
    """
    annotations = meta(desired).get("annotations")
    if not annotations or LAST_APPLIED not in annotations:
        return desired
    rest = {key: value for key, value in annotations.items() if key != LAST_APPLIED}
    return {**desired, "metadata": {**meta(desired), "annotations": rest}}


def with_last_applied(obj: Object, applied: Object) -> Object:
    """Returns an object with `applied` stored in its last-applied annotation.

    `applied` is the object that the hook has returned. The next update compares the hook's new
    object with it.
    """
    text = canonical_json(applied)
    annotations = annotations_of(obj)
    if annotations.get(LAST_APPLIED) == text:
        return obj
    return with_meta(obj, annotations={**annotations, LAST_APPLIED: text})


def apply_update(observed: Object, desired: Object) -> Object:
    """Returns the object that Metacontroller writes to change the observed to the desired object.

    The status, and metadata that only the API server sets, stay as observed. The desired object is
    stored in the last-applied annotation. Raises ApplyError if the present annotation is malformed.
    """
    last = last_applied(observed)
    desired = without_last_applied(desired)
    merged = merge(observed, last, desired)
    old_meta, new_meta = meta(observed), meta(merged)
    # System fields and the status stay as observed, whatever the hook has put there
    # (pkg/controller/common/manage_children.go).
    metadata = {k: v for k, v in new_meta.items() if k not in SYSTEM_FIELDS}
    metadata.update({k: old_meta[k] for k in SYSTEM_FIELDS if k in old_meta})
    result = {**merged, "metadata": metadata}
    result.pop("status", None)
    if "status" in observed:
        result["status"] = observed["status"]
    return with_last_applied(result, desired)
