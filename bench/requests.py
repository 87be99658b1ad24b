"""Realistic hook requests of any size: seeded, generated on the spot, about 8 KB a pod.

The pods are what an API server makes of the hook's own answers: defaults, token volume, default
tolerations, managedFields, last-applied annotation, conditions, container statuses.
"""

import random
from collections.abc import Mapping
from typing import Any

import msgspec

from hooks.app import create_app
from hooks.settings import Settings

Document = dict[str, Any]

NAME, NAMESPACE, UID = "web", "shop", "6f0f8b8e-6d0c-4a51-9a5d-0c5a4f3c2b11"
LAST_APPLIED = "metacontroller.k8s.io/last-applied-configuration"
OLD, NEW = "registry.example.com/shop/web:1.4.2", "registry.example.com/shop/web:1.5.0"

_go = msgspec.json.Encoder(order="sorted").encode  # as Go's encoding/json: sorted, compact


def tapp(replicas: int, image: str, claims: bool) -> Document:
    """The parent: one template, 10% maxUnavailable, claims for N/10 instances' worth of children."""
    container = {
        "name": "web",
        "image": image,
        "args": ["--listen", ":8080", "--log-format", "json"],
        "ports": [{"name": "http", "containerPort": 8080}],
        "env": [
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "REGION", "value": "eu-central-1"},
            {"name": "DATABASE_URL", "valueFrom": {"secretKeyRef": {"name": "db", "key": "url"}}},
        ],
        "resources": {
            "requests": {"cpu": "250m", "memory": "256Mi"},
            "limits": {"cpu": "1", "memory": "512Mi"},
        },
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080}, "periodSeconds": 5},
        "livenessProbe": {"httpGet": {"path": "/live", "port": 8080}, "initialDelaySeconds": 10},
        "volumeMounts": [{"name": "cache", "mountPath": "/var/cache/web"}],
        "securityContext": {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True},
    }
    template = {
        "metadata": {
            "labels": {"app": NAME, "team": "shop"},
            "annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": "8080"},
        },
        "spec": {
            "containers": [container],
            "volumes": [{"name": "cache", "emptyDir": {"sizeLimit": "1Gi"}}],
            "terminationGracePeriodSeconds": 30,
            "serviceAccountName": NAME,
            "securityContext": {"runAsNonRoot": True, "runAsUser": 1000},
        },
    }
    spec: Document = {
        "replicas": replicas,
        "serviceName": NAME,
        "template": template,
        "updateStrategy": {"maxUnavailable": "10%"},
    }
    if claims:
        spec["volumeClaimTemplates"] = [
            {
                "metadata": {"name": "data"},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "10Gi"}},
                },
            }
        ]
    return {
        "apiVersion": "apps.tkestack.io/v1",
        "kind": "TApp",
        "metadata": {
            "name": NAME,
            "namespace": NAMESPACE,
            "uid": UID,
            "generation": 7,
            "resourceVersion": "48211",
            "creationTimestamp": "2026-03-01T08:00:00Z",
            "finalizers": ["metacontroller.io/compositecontroller-tapp-controller"],
            "managedFields": [{"manager": "kubectl", "time": "2026-03-01T08:00:00Z"}],
        },
        "spec": spec,
    }


def body(parent: Document, pods: list[Document], claims: list[Document], *, end: bool) -> bytes:
    """The request's bytes, as Metacontroller sends them (protocol v2)."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    namespace["metadata"]["uid"] = "0d9a1c33-7f5e-4c2f-9a53-52b1a30b4c11"  # type: ignore[index]
    return _go(
        {
            "controller": {"apiVersion": "metacontroller.k8s.io/v1alpha1", "spec": {}},
            "parent": parent,
            "children": {"Pod.v1": _keyed(pods), "PersistentVolumeClaim.v1": _keyed(claims)},
            "related": {"Namespace.v1": {NAMESPACE: namespace}},
            "finalizing": end,
        }
    )


def _keyed(objects: list[Document]) -> Mapping[str, Document]:
    return {f"{NAMESPACE}/{item['metadata']['name']}": item for item in objects}


def desired(parent: Document) -> list[Document]:
    """The hook's own answer to an empty world."""
    settings = Settings(log_level="ERROR")
    answer = (
        create_app(settings)
        .test_client()
        .post("/sync", data=body(parent, [], [], end=False), content_type="application/json")
    )
    children: list[Document] = msgspec.json.decode(answer.data)["children"]
    return children


def situations(n: int, seed: int = 1) -> dict[str, tuple[str, bytes]]:
    """Situation -> (endpoint, request) for a TApp of `n` instances."""
    rng = random.Random(seed)  # noqa: S311 - sample data
    old, new = tapp(n, OLD, claims=False), tapp(n, NEW, claims=False)
    old_pods = [_pod(item, rng, OLD) for item in desired(old) if item["kind"] == "Pod"]
    new_pods = [_pod(item, rng, NEW) for item in desired(new) if item["kind"] == "Pod"]
    rolled = [_rolled(pod, rng) for pod in new_pods]
    claims = [_claim(index) for index in range(max(1, n // 10))]
    settled = {**old, "status": _settled_status(old, old_pods)}
    after = {**new, "status": _settled_status(new, rolled)}
    # In the middle: half have been rolled, a twentieth restarts, the rest waits.
    middle = rolled[: n // 2] + old_pods[n // 2 :]
    for index in range(n // 2, n // 2 + n // 20):
        middle[index] = _restarting(rolled[index])
    return {
        "nothing to do": ("/sync", body(settled, old_pods, claims, end=False)),
        "nothing to do, after a roll in place": ("/sync", body(after, rolled, claims, end=False)),
        "middle of a roll": (
            "/sync",
            body({**new, "status": settled["status"]}, middle, claims, end=False),
        ),
        "create all": ("/sync", body(new, [], [], end=False)),
        "finalize": ("/finalize", body(settled, old_pods, claims, end=True)),
    }


def _settled_status(parent: Document, pods: list[Document]) -> Document:
    """The status that the hook itself writes for these pods, with Metacontroller's addition."""
    settings = Settings(log_level="ERROR")
    answer = (
        create_app(settings)
        .test_client()
        .post("/sync", data=body(parent, pods, [], end=False), content_type="application/json")
    )
    status: Document = msgspec.json.decode(answer.data)["status"]
    return {**status, "observedGeneration": parent["metadata"]["generation"]}


def _pod(child: Document, rng: random.Random, image: str) -> Document:
    """What the API server and a kubelet make of a desired pod."""
    name = child["metadata"]["name"]
    child["metadata"]["labels"]["controller-uid"] = UID
    applied = _go(child).decode()
    token = "kube-api-access-" + "".join(rng.choices("bcdfghjklmnpqrstvwxz2456789", k=5))
    spec = msgspec.json.decode(_go(child["spec"]))
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
    spec["volumes"].append(
        {
            "name": token,
            "projected": {
                "defaultMode": 420,
                "sources": [
                    {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                    {
                        "configMap": {
                            "items": [{"key": "ca.crt", "path": "ca.crt"}],
                            "name": "kube-root-ca.crt",
                        }
                    },
                    {
                        "downwardAPI": {
                            "items": [
                                {
                                    "fieldRef": {
                                        "apiVersion": "v1",
                                        "fieldPath": "metadata.namespace",
                                    },
                                    "path": "namespace",
                                }
                            ]
                        }
                    },
                ],
            },
        }
    )
    container = spec["containers"][0]
    container |= {
        "imagePullPolicy": "IfNotPresent",
        "terminationMessagePath": "/dev/log",
        "terminationMessagePolicy": "File",
    }
    container["ports"][0]["protocol"] = "TCP"
    container["env"][0]["valueFrom"]["fieldRef"]["apiVersion"] = "v1"
    for probe in ("readinessProbe", "livenessProbe"):
        container[probe] |= {"failureThreshold": 3, "successThreshold": 1, "timeoutSeconds": 1}
        container[probe]["httpGet"]["scheme"] = "HTTP"
    container["volumeMounts"].append(
        {
            "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
            "name": token,
            "readOnly": True,
        }
    )
    metadata = child["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **metadata,
            "annotations": {**metadata["annotations"], LAST_APPLIED: applied},
            "creationTimestamp": "2026-03-01T08:00:05Z",
            "generation": 1,
            "managedFields": _managed_fields(child),
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
        "spec": spec,
        "status": _status(name, image, rng),
    }


def _status(name: str, image: str, rng: random.Random) -> Document:
    times = {"lastProbeTime": None, "lastTransitionTime": "2026-03-01T08:00:19Z"}
    types = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    address = f"10.{rng.randrange(256)}.{rng.randrange(256)}.{rng.randrange(256)}"
    return {
        "conditions": [
            {**times, "observedGeneration": 1, "status": "True", "type": type} for type in types
        ],
        "containerStatuses": [
            {
                "containerID": _container_id(rng),
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
                "state": {"running": {"startedAt": "2026-03-01T08:00:12Z"}},
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
        "startTime": "2026-03-01T08:00:06Z",
    }


def _container_id(rng: random.Random) -> str:
    return f"containerd://{rng.getrandbits(256):064x}"


def _rolled(pod: Document, rng: random.Random) -> Document:
    """The pod after an in-place update that has finished: its record, another container."""
    pod = msgspec.json.decode(_go(pod))
    record = _go(
        {
            "containers": {"web": {"id": _container_id(rng), "image": OLD}},
            "revision": pod["metadata"]["labels"]["tapp_template_hash_key"],
        }
    ).decode()
    annotations = pod["metadata"]["annotations"]
    applied = msgspec.json.decode(annotations[LAST_APPLIED])
    applied["metadata"]["annotations"]["apps.tkestack.io/in-place-update"] = record
    annotations["apps.tkestack.io/in-place-update"] = record
    annotations[LAST_APPLIED] = _go(applied).decode()
    pod["metadata"]["generation"] = pod["status"]["observedGeneration"] = 2
    return pod


def _restarting(pod: Document) -> Document:
    """The rolled pod while its container is still being replaced."""
    pod = msgspec.json.decode(_go(pod))
    for condition in pod["status"]["conditions"]:
        if condition["type"] in ("Ready", "ContainersReady"):
            condition["status"] = "False"
    status = pod["status"]["containerStatuses"][0]
    status["ready"] = status["started"] = False
    status["state"] = {"waiting": {"reason": "ContainerCreating"}}
    return pod


def _claim(index: int) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": f"data-{NAME}-{index}",
            "namespace": NAMESPACE,
            "labels": {"controller-uid": UID, "tapp_instance_key": str(index)},
            "uid": f"{index:08x}-0000-4000-9000-000000000000",
            "managedFields": _managed_fields({"spec": {"accessModes": [], "resources": {}}}),
        },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "standard",
            "resources": {"requests": {"storage": "10Gi"}},
            "volumeName": f"pv-{index}",
        },
        "status": {"phase": "Bound", "capacity": {"storage": "10Gi"}},
    }


def _managed_fields(document: Any) -> list[Document]:
    """ManagedFields as three writers leave them: the creator, the scheduler's, the kubelet's."""
    status = {
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
