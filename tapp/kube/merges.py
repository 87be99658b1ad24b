"""JSON merge patches, and the three-way merge that `kubectl apply` does for custom resources."""

from collections.abc import Mapping
from typing import Any

import msgspec

Document = dict[str, Any]

KUBECTL_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def merge_patch(target: Any, patch: Any) -> Any:
    """Returns `target` with a JSON merge patch applied (RFC 7386); `target` is not changed."""
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def kubectl_applied(live: Document, wanted: Document) -> Document:
    """Returns a custom resource as it is after `kubectl apply` of a manifest.

    Maps are merged by key, and lists are replaced.

    Args:
        live: the object in the cluster, whose annotation has the manifest that was applied last.
        wanted: the manifest to apply.
    """
    annotations = (live.get("metadata") or {}).get("annotations") or {}
    last = msgspec.json.decode(annotations.get(KUBECTL_APPLIED, "{}"))
    merged: Document = _three_way(live, last, wanted)
    return merged


def _three_way(live: Any, last: Any, wanted: Any) -> Any:
    """Returns a part of the object in the cluster after the new manifest is applied.

    Args:
        live: the part in the cluster.
        last: the same part of the manifest that was applied last.
        wanted: the same part of the new manifest.
    """
    if not isinstance(live, Mapping) or not isinstance(wanted, Mapping):
        return wanted
    before = last if isinstance(last, Mapping) else {}
    merged = {key: value for key, value in live.items() if key in wanted or key not in before}
    for key, value in wanted.items():
        merged[key] = _three_way(merged.get(key), before.get(key), value)
    return merged
