"""The answer that leaves an existing object alone.

Metacontroller merges what the hook returns (D) into the observed object (O), with the D of last
time (L, an annotation) to know what to take away. Nothing is written exactly when D equals L as
JSON and the merge changes nothing. `project(O, L)`, the values of O in the shape of L, merges to O
always, and equals L from its first use on (Metacontroller pkg/dynamic/apply).
"""

from typing import Any

MERGE_KEYS = ("containerPort", "port", "mountPath", "name", "uid", "ip", "path")
"""Lists whose items all share one of these keys merge item by item (apply.go, in this order)."""


def merge_key(*lists: Any) -> str | None:
    """The key by which Metacontroller merges these lists; None where it replaces them whole."""
    common: set[str] | None = None
    for items in lists:
        for item in items:
            if not isinstance(item, dict):
                return None
            common = set(item) if common is None else common & item.keys()
    if not common:
        return None
    return next((key for key in MERGE_KEYS if key in common), None)


def project(observed: Any, applied: Any) -> Any:
    """The values of `observed` in the shape of `applied`. Neither is changed; parts are shared."""
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
    """The path of the first list in which two items share a merge key; None where there is none.

    For example `.containers[web].ports` with one port on TCP and UDP. Metacontroller's merge
    collapses such items, so an object that it once applied can never be answered without an
    (illegal) change (metacontroller/metacontroller#371).
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
