"""managedFields, as the API server records who wrote what: some 2 KB a pod, and never read."""

from typing import Any

from bench.parent import Document


def managed_fields(document: Any) -> list[Document]:
    """ManagedFields as two writers leave them: the creator and the kubelet."""
    status: Document = {
        "f:conditions": {
            f'k:{{"type":"{type}"}}': {
                ".": {},
                "f:lastProbeTime": {},
                "f:lastTransitionTime": {},
                "f:observedGeneration": {},
                "f:status": {},
                "f:type": {},
            }
            for type in ("Ready", "Initialized", "ContainersReady", "PodScheduled")
        },
        "f:containerStatuses": {},
        "f:hostIP": {},
        "f:phase": {},
        "f:podIP": {},
        "f:podIPs": {".": {}, 'k:{"ip":"10.0.0.1"}': {".": {}, "f:ip": {}}},
        "f:startTime": {},
    }
    return [
        {
            "apiVersion": "v1",
            "fieldsType": "FieldsV1",
            "fieldsV1": _fields(document),
            "manager": "metacontroller",
            "operation": "Update",
            "time": "2026-03-01T08:00:05Z",
        },
        {
            "apiVersion": "v1",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:status": status},
            "manager": "kubelet",
            "operation": "Update",
            "subresource": "status",
            "time": "2026-03-01T08:00:19Z",
        },
    ]


def _fields(value: Any) -> Document:
    if isinstance(value, dict):
        return {f"f:{key}": _fields(item) for key, item in value.items()}
    if isinstance(value, list):
        return {
            f'k:{{"name":"{index}"}}': {".": {}, **_fields(item)}
            for index, item in enumerate(value)
            if isinstance(item, dict)
        }
    return {}
