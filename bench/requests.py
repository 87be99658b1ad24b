"""A hook request's bytes, as Metacontroller sends them."""

from msgspec import Raw

from bench.fields import managed_fields
from bench.parent import NAME, NAMESPACE, UID, Document
from bench.pods import go


def body_of(parent: Document, claims: list[Raw]) -> bytes:
    """The bytes of a request without pods, as Metacontroller sends them (protocol v2)."""
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": NAMESPACE, "uid": "0d9a1c33-7f5e-4c2f-9a53-52b1a30b4c11"},
    }
    fields = {
        "controller": {"apiVersion": "metacontroller.k8s.io/v1alpha1", "spec": {}},
        "parent": parent,
        "children": {
            "Pod.v1": {},
            "PersistentVolumeClaim.v1": {
                f"{NAMESPACE}/data-{NAME}-{index}": claim for index, claim in enumerate(claims)
            },
        },
        "related": {"Namespace.v1": {NAMESPACE: namespace}},
        "finalizing": False,
    }
    # Metacontroller's own fields come in this order, everything below sorted by key.
    return b"{" + b",".join(b'"%s":' % key.encode() + go(fields[key]) for key in fields) + b"}"


def claim_of(index: int) -> Document:
    """The claim of an instance, bound."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": f"data-{NAME}-{index}",
            "namespace": NAMESPACE,
            "labels": {"controller-uid": UID, "tapp_instance_key": str(index)},
            "uid": f"{index:08x}-0000-4000-9000-000000000000",
            "managedFields": managed_fields({"spec": {"accessModes": [], "resources": {}}}),
        },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "standard",
            "resources": {"requests": {"storage": "10Gi"}},
            "volumeName": f"pv-{index}",
        },
        "status": {"phase": "Bound", "capacity": {"storage": "10Gi"}},
    }
