"""Pods as the API server returns them, made of the hook's own answers: about 8 KB each.

Defaults, token volume, default tolerations, managedFields, last-applied annotation, conditions and
container statuses; node, addresses, containers and uid differ from pod to pod.
"""

import random

import msgspec

from bench.fields import managed_fields
from bench.parent import NAME, OLD, UID, Document

LAST_APPLIED = "metacontroller.k8s.io/last-applied-configuration"
RECORD = "apps.tkestack.io/in-place-update"

go = msgspec.json.Encoder(order="sorted").encode  # as Go's encoding/json: sorted, compact


def running(child: Document, rng: random.Random, image: str) -> Document:
    """What Metacontroller, the API server and a kubelet make of a desired pod."""
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
    """The spec with the API server's defaults, and what admission and the scheduler add."""
    token = "kube-api-access-" + "".join(rng.choices("bcdfghjklmnpqrstvwxz2456789", k=5))
    spec: Document = msgspec.json.decode(go(desired))
    spec |= {
        "dnsPolicy": "ClusterFirst",
        "enableServiceLinks": True,
        "nodeName": f"node-{rng.randrange(200)}",
        "preemptionPolicy": "PreemptLowerPriority",
        "priority": 0,
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "serviceAccount": NAME,
    }
    spec["tolerations"] = [
        {"effect": "NoExecute", "key": key, "operator": "Exists", "tolerationSeconds": 300}
        for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    ]
    spec["volumes"].append({"name": token, "projected": _TOKEN_VOLUME})
    container = spec["containers"][0]
    container |= {
        "imagePullPolicy": "IfNotPresent",
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    }
    container["ports"][0]["protocol"] = "TCP"
    container["env"][0]["valueFrom"]["fieldRef"]["apiVersion"] = "v1"
    for probe in ("readinessProbe", "livenessProbe"):
        container[probe] |= {"failureThreshold": 3, "successThreshold": 1, "timeoutSeconds": 1}
        container[probe]["httpGet"]["scheme"] = "HTTP"
    mount = {
        "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
        "name": token,
        "readOnly": True,
    }
    container["volumeMounts"].append(mount)
    return spec


_NAMESPACE_FILE = {
    "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
    "path": "namespace",
}
_CA_FILE = {"items": [{"key": "ca.crt", "path": "ca.crt"}], "name": "kube-root-ca.crt"}
_TOKEN_VOLUME = {
    "defaultMode": 420,
    "sources": [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": _CA_FILE},
        {"downwardAPI": {"items": [_NAMESPACE_FILE]}},
    ],
}


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


def rolled(pod: Document, rng: random.Random) -> Document:
    """The pod after an in-place update that has finished: its record, another container."""
    pod = msgspec.json.decode(go(pod))
    record = go(
        {
            "containers": {"web": {"id": container_id(rng), "image": OLD}},
            "revision": pod["metadata"]["labels"]["tapp_template_hash_key"],
        }
    ).decode()
    annotations = pod["metadata"]["annotations"]
    applied = msgspec.json.decode(annotations[LAST_APPLIED])
    applied["metadata"]["annotations"][RECORD] = record
    annotations[RECORD] = record
    annotations[LAST_APPLIED] = go(applied).decode()
    pod["metadata"]["generation"] = pod["status"]["observedGeneration"] = 2
    return pod


def restarting(pod: Document) -> Document:
    """The rolled pod while its container is still being replaced."""
    pod = msgspec.json.decode(go(pod))
    for condition in pod["status"]["conditions"]:
        if condition["type"] in ("Ready", "ContainersReady"):
            condition["status"] = "False"
    status = pod["status"]["containerStatuses"][0]
    status["ready"] = status["started"] = False
    status["state"] = {"waiting": {"reason": "ContainerCreating"}}
    return pod
