"""Computes the object for a response with which Metacontroller leaves an existing object unchanged.

Metacontroller merges the object D of a response into the existing object O. It stores D in an
annotation of O. In the next sync, this previous D is called L; it shows which fields to remove.
Metacontroller writes nothing if D equals L as JSON and the merge does not change O.

`project(O, L)` returns the values of O in the shape of L. Merging this result never changes O. The
result equals L, except in the first sync after somebody else has changed O (Metacontroller,
pkg/dynamic/apply).
"""

from typing import Any

# Metacontroller merges two lists item by item if all items have the same one of these keys. The
# first such key counts (apply.go has them in this order).
MERGE_KEYS = ("containerPort", "port", "mountPath", "name", "uid", "ip", "path")


def merge_key(*lists: Any) -> str | None:
    """Returns the key by which Metacontroller merges the items of the given lists.

    Returns None if Metacontroller replaces the lists as a whole.
    """
    common: set[str] | None = None
    for items in lists:
        for item in items:
            if not isinstance(item, dict):
                return None
            common = set(item) if common is None else common & item.keys()
    if common:
        for key in MERGE_KEYS:
            if key in common:
                return key
    return None


def project(observed: Any, applied: Any) -> Any:
    """Returns the values of `observed` in the shape of `applied`.

    The result shares parts with both arguments, which stay unchanged.

    Args:
        observed: the existing object, or a part of it.
        applied: the object that Metacontroller applied last, or its part at the same path.
    """
    # Most parts are as Metacontroller applied them, and comparing is much cheaper than projecting.
    # The result has the keys in the order of `applied` in either case.
    if observed == applied:
        return applied
    if isinstance(observed, dict) and isinstance(applied, dict):
        return {
            key: project(value, applied[key]) if type(value) in _NESTED else value
            for key in applied
            if (value := observed.get(key, _ABSENT)) is not _ABSENT
        }
    if isinstance(observed, list) and isinstance(applied, list):
        key = merge_key(observed, applied)
        if key is not None:
            by_key = {str(item[key]): item for item in observed}
            wanted = [str(item[key]) for item in applied]
            if len(by_key) == len(observed) and len(set(wanted)) == len(wanted):
                return [
                    project(by_key[name], item)
                    for name, item in zip(wanted, applied, strict=True)
                    if name in by_key
                ]
    return observed


_ABSENT = object()
_NESTED = (dict, list)


def duplicate_merge_key(value: Any) -> str | None:
    """Returns the path of the first list in which two items have the same merge key, or None.

    The path is relative to `value`; it is empty if `value` itself is such a list. An example is
    `.containers[web].ports`, if a port number is listed for TCP and for UDP. Metacontroller merges
    such items into one item. If it has applied such a list before, it turns every response for the
    object into an invalid change (metacontroller/metacontroller#371).
    """
    if isinstance(value, dict):
        for key, item in value.items():
            if type(item) in _NESTED and (path := duplicate_merge_key(item)) is not None:
                return f".{key}{path}"
    elif value and type(value[0]) in _NESTED:
        key = merge_key(value) if len(value) > 1 else None
        if key is not None and len({str(item[key]) for item in value}) < len(value):
            return ""
        for index, item in enumerate(value):
            if type(item) in _NESTED and (path := duplicate_merge_key(item)) is not None:
                key = merge_key(value)
                return f"[{item[key] if key else index}]{path}"
    return None
