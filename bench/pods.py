"""Pods as the API server returns them, made of the hook's own answers: about 8 KB each.

Defaults, token volume, default tolerations, managedFields, last-applied annotation, conditions and
container statuses; node, addresses, containers and uid differ from pod to pod.
"""

import random

import msgspec

from bench.fields import managed_fields
from bench.parent import NAME, UID, Document
from simulator.api.admission import Admission

LAST_APPLIED = "metacontroller.k8s.io/last-applied-configuration"

go = msgspec.json.Encoder(order="sorted").encode  # as Go's encoding/json: sorted, compact


def running(child: Document, rng: random.Random, image: str) -> Document:
    """A desired pod as Metacontroller, the API server and a kubelet make it."""
    child["metadata"]["labels"]["controller-uid"] = UID
    metadata = child["metadata"]
    created = f"2026-03-01T08:{rng.randrange(60):02d}:{rng.randrange(60):02d}Z"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **metadata,
            "annotations": {**metadata["annotations"], LAST_APPLIED: go(child).decode()},
            "creationTimestamp": created,
            "generation": 1,
            "managedFields": managed_fields(child),
            "ownerReferences": [
                {
                    "apiVersion": "apps.tkestack.io/v1",
                    "blockOwnerDeletion": True,
                    "controller": True,
                    "kind": "TApp",
                    "name": NAME,
                    "uid": UID,
                }
            ],
            "resourceVersion": str(rng.randrange(10**6)),
            "uid": f"{rng.getrandbits(32):08x}-0000-4000-8000-{rng.getrandbits(48):012x}",
        },
        "spec": _spec(child["spec"], rng),
        "status": _status(image, created, rng),
    }


def _spec(desired: Document, rng: random.Random) -> Document:
    """The spec with what the API server's admission and the scheduler add."""
    admitted = Admission(rng).pod_create({"kind": "Pod", "spec": desired})["spec"]
    return {**admitted, "nodeName": f"node-{rng.randrange(200)}"}


_CONDITIONS = (
    *("PodReadyToStartContainers", "Initialized", "Ready"),
    *("ContainersReady", "PodScheduled"),
)


def _status(image: str, created: str, rng: random.Random) -> Document:
    times = {"lastProbeTime": None, "lastTransitionTime": created}
    address = f"10.{rng.randrange(256)}.{rng.randrange(256)}.{rng.randrange(256)}"
    return {
        "conditions": [
            {**times, "observedGeneration": 1, "status": "True", "type": type}
            for type in _CONDITIONS
        ],
        "containerStatuses": [
            {
                "containerID": container_id(rng),
                "image": image,
                "imageID": f"registry.example.com/shop/web@sha256:{rng.getrandbits(256):064x}",
                "lastState": {},
                "name": NAME,
                "ready": True,
                "resources": {
                    "limits": {"cpu": "1", "memory": "512Mi"},
                    "requests": {"cpu": "250m", "memory": "256Mi"},
                },
                "restartCount": 0,
                "started": True,
                "state": {"running": {"startedAt": created}},
                "user": {"linux": {"gid": 1000, "supplementalGroups": [1000], "uid": 1000}},
                "volumeMounts": [{"mountPath": "/var/cache/web", "name": "cache"}],
            }
        ],
        "hostIP": "10.0.0.7",
        "hostIPs": [{"ip": "10.0.0.7"}],
        "observedGeneration": 1,
        "phase": "Running",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "qosClass": "Burstable",
        "startTime": created,
    }


def container_id(rng: random.Random) -> str:
    """The id of a container that has not been there before."""
    return f"containerd://{rng.getrandbits(256):064x}"
