"""Builds objects as they occur in a real cluster: TApps, pods, claims, and Metacontroller's
requests.

A pod goes through the steps of a real cluster: the hook returns the pod, Metacontroller adds its
label and annotation, and the API server adds defaults and runs admission
(`simulator.api.admission`). Functions such as `running` and `crashing` return the pod with the
status that a kubelet would report. No function changes its arguments.
"""

import itertools
import json
import pickle
import random
import uuid
from datetime import UTC, datetime
from typing import Any

import orjson

from simulator.api.admission import DEFAULT_CLASS, Admission, Policy
from simulator.api.apply import LAST_APPLIED, apply_update, with_last_applied
from simulator.objects.objects import deep_equal, with_meta
from tapp.kube.owners import controller_ref

Document = dict[str, Any]

NAMESPACE = "shop"
NAMESPACE_UID = "5f0c1b1e-0000-4000-8000-00000000aaaa"
NAME = "web"
UID = "0b6e3c1c-0000-4000-8000-00000000bbbb"
CREATED = "2026-01-05T10:00:00Z"
READY_SINCE = "2026-01-05T10:01:00Z"
NOW = datetime(2026, 1, 5, 11, 0, tzinfo=UTC).timestamp()
"""The time of the injected clock: an hour after the creation of all objects."""

_UIDS = itertools.count(1)


def as_sent(document: Any) -> bytes:
    """Encodes a request as Go does: no blanks, and HTML characters escaped.

    The fields of the request have the order of Metacontroller's struct; all other keys are sorted.
    """
    if isinstance(document, dict) and "children" in document:
        document = {key: document[key] for key in sorted(document, key=_place)}
        parts = [_sorted(key) + b":" + _sorted(value) for key, value in document.items()]
        text = b"{" + b",".join(parts) + b"}"
    else:
        text = _sorted(document)
    for character in "<>&\u2028\u2029":
        text = text.replace(character.encode(), b"\\u%04x" % ord(character))
    return text


DELETED = "2026-01-05T10:59:50Z"
_FIELDS = ("controller", "parent", "children", "related", "finalizing")


def _place(field: str) -> tuple[int, str]:
    return (_FIELDS.index(field) if field in _FIELDS else len(_FIELDS), field)


def _sorted(value: Any) -> bytes:
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    # orjson refuses integers of more than 64 bits.
    except TypeError:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return text.encode()


def template(
    image: str = "nginx:1.25",
    *,
    labels: Document | None = None,
    annotations: Document | None = None,
    container: Document | None = None,
    sidecars: list[Document] | None = None,
    **spec: Any,
) -> Document:
    """Returns a pod template with a container `app` that runs `image`.

    `container` has further fields of that container, `sidecars` are further containers, and `spec`
    has further fields of the pod spec. If `labels` is None, the template has the label `app: web`.
    """
    metadata: Document = {"labels": {"app": "web"} if labels is None else labels}
    if annotations is not None:
        metadata["annotations"] = annotations
    app = {"name": "app", "image": image, **(container or {})}
    return {"metadata": metadata, "spec": {"containers": [app, *(sidecars or [])], **spec}}


def claim_template(name: str = "data", storage: str = "1Gi") -> Document:
    return {
        "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}},
    }


def manifest(name: str = NAME, *, namespace: str = "", **spec: Any) -> Document:
    """Returns a TApp as a user writes it, by default with `template()`.

    An empty namespace leaves the field out. `spec` has further fields of the TApp's spec.
    """
    return {
        "apiVersion": "apps.tkestack.io/v1",
        "kind": "TApp",
        "metadata": {"name": name} | ({"namespace": namespace} if namespace else {}),
        "spec": {"template": template(), **spec},
    }


def tapp(*, status: Document | None = None, generation: int = 1, **spec: Any) -> Document:
    """Returns a TApp as the API server stores it, by default with one replica and `template()`.

    `spec` has fields of the TApp's spec; a field that is None is left out. If `status` is None, the
    TApp has no status; otherwise `observedGeneration` is added to `status`.
    """
    document = manifest(namespace=NAMESPACE, **{"replicas": 1, **spec})
    document["metadata"] |= {
        "uid": UID,
        "generation": generation,
        "resourceVersion": "1001",
        "creationTimestamp": CREATED,
        "finalizers": ["metacontroller.io/compositecontroller-tapp-controller"],
        "managedFields": _managed_fields("kubectl-client-side-apply"),
    }
    given = document["spec"].items()
    document["spec"] = {key: value for key, value in given if value is not None}
    if status is not None:
        document["status"] = {"observedGeneration": generation, **status}
    return document


def _managed_fields(manager: str) -> list[Document]:
    return [
        {
            "manager": manager,
            "operation": "Update",
            "apiVersion": "v1",
            "time": CREATED,
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:metadata": {"f:labels": {".": {}}}, "f:spec": {}},
        }
    ]


def stored(desired: Document, parent: Document, policies: tuple[Policy, ...] = ()) -> Document:
    """Returns a child of the hook's response as the API server stores it after Metacontroller has
    created it.

    `parent` is the TApp that owns the child. `policies` are the cluster's admission policies.
    """
    desired = labelled(desired, parent)
    name = desired["metadata"]["name"]
    child = with_last_applied(desired, desired)
    owners = [*(child["metadata"].get("ownerReferences") or []), controller_ref(parent)]
    child = with_meta(
        child,
        ownerReferences=owners,
        uid=f"{next(_UIDS):08x}-0000-4000-8000-00000000cccc",
        resourceVersion="2001",
        generation=1 if child["kind"] == "Pod" else None,
        creationTimestamp=CREATED,
        managedFields=_managed_fields("metacontroller"),
    )
    admission = Admission(random.Random(name), policies)
    create = {
        "Pod": admission.pod_create,
        "PersistentVolumeClaim": admission.claim_create,
        "ControllerRevision": admission.revision_create,
        "Service": admission.service_create,
        "PodDisruptionBudget": lambda budget: budget,
    }
    return create[child["kind"]](child)


def labelled(desired: Document, parent: Document) -> Document:
    """Returns a child of the hook's response with the label that Metacontroller adds.

    The CompositeController has `generateSelector: true`, so the label is the uid of `parent`.
    """
    labels = {**(desired["metadata"].get("labels") or {}), "controller-uid": _uid(parent)}
    return with_meta(desired, labels=labels)


def _uid(parent: Document) -> str:
    return str(parent["metadata"]["uid"])


def updated(
    observed: Document, desired: Document, parent: Document, policies: tuple[Policy, ...] = ()
) -> Document:
    """Returns an observed child after Metacontroller has applied the hook's desired child.

    Returns the observed object itself if nothing changes or if the object is in deletion.
    `policies` are the cluster's admission policies.
    """
    merged = apply_update(observed, labelled(desired, parent))
    if deep_equal(merged, observed) or observed["metadata"].get("deletionTimestamp"):
        return observed
    admission = Admission(random.Random(0), policies)
    if observed["kind"] == "PersistentVolumeClaim":
        version = str(int(observed["metadata"]["resourceVersion"]) + 1)
        return with_meta(admission.claim_update(merged), resourceVersion=version)
    if observed["kind"] == "Service":
        return admission.service_update(merged, observed)
    if observed["kind"] == "PodDisruptionBudget":
        return merged
    merged = {**admission.pod_update(merged), "status": observed["status"]}
    generation = observed["metadata"]["generation"]
    changed = not deep_equal(merged["spec"], observed["spec"])
    version = str(int(observed["metadata"]["resourceVersion"]) + 1)
    return with_meta(merged, resourceVersion=version, generation=generation + changed)


def without_last_applied(pod: Document) -> Document:
    """Returns the pod without Metacontroller's last-applied annotation.

    An admission policy may have removed the annotation, or another controller has created the pod.
    """
    annotations = dict(pod["metadata"].get("annotations") or {})
    annotations.pop(LAST_APPLIED, None)
    return with_meta(pod, annotations=annotations or None)


GROWING: list[Document] = [
    {"apiVersion": "v1", "resource": resource, "updateStrategy": {"method": "InPlace"}}
    for resource in ("pods", "persistentvolumeclaims")
]
"""Child resources of a CompositeController that lets Metacontroller update pods and claims, so that
claims can grow.
"""
EXPOSING: Document = {
    "apiVersion": "v1",
    "resource": "services",
    "updateStrategy": {"method": "InPlace"},
}
"""Child resource of a CompositeController with which each instance can have a Service."""
GUARDING: Document = {
    "apiVersion": "policy/v1",
    "resource": "poddisruptionbudgets",
    "updateStrategy": {"method": "InPlace"},
}
"""Child resource of a CompositeController with which a TApp can have a PodDisruptionBudget."""


# --- what the kubelet reports ---------------------------------------------------------------------


def running(pod: Document, *, ready: bool = True, since: str = READY_SINCE) -> Document:
    """Returns the pod as its kubelet reports it when all containers run on node `node-1`.

    A container whose image has changed has a higher restart count and a new container ID. `ready`
    is the pod's readiness, and `since` is the transition time of all conditions.
    """
    spec = {**pod["spec"], "nodeName": "node-1"}
    before = {
        item["name"]: item
        for section in ("containerStatuses", "initContainerStatuses")
        for item in pod["status"].get(section) or []
    }
    status: Document = {
        "phase": "Running",
        "qosClass": pod["status"].get("qosClass", "BestEffort"),
        "observedGeneration": pod["metadata"]["generation"],
        "hostIP": "10.0.0.1",
        "podIP": "10.1.0.7",
        "startTime": CREATED,
        "conditions": _conditions(pod, ready, since),
        "containerStatuses": [
            _running(pod, item, before.get(item["name"])) for item in spec["containers"]
        ],
    }
    if "initContainers" in spec:
        status["initContainerStatuses"] = [
            _running(pod, item, before.get(item["name"]))
            if item.get("restartPolicy") == "Always"
            else terminated(_running(pod, item, before.get(item["name"])), 0)
            for item in spec["initContainers"]
        ]
    return {**pod, "spec": spec, "status": status}


def _conditions(pod: Document, ready: bool, since: str) -> list[Document]:
    """Returns the conditions that the kubelet reports, and the unchanged conditions of the pod's
    readiness gates.

    Ready is True if `ready` is True and all readiness gates are open. `since` is the time of the
    last transition of the kubelet's conditions.
    """
    gates = [gate["conditionType"] for gate in pod["spec"].get("readinessGates") or []]
    others = [item for item in pod["status"].get("conditions") or [] if item["type"] in gates]
    opened = {item["type"] for item in others if item["status"] == "True"}
    truths = {
        "PodScheduled": True,
        "Initialized": True,
        "ContainersReady": ready,
        "Ready": ready and opened >= set(gates),
    }
    return others + [
        {
            "type": kind,
            "status": "True" if truth else "False",
            "lastProbeTime": None,
            "lastTransitionTime": since,
        }
        for kind, truth in truths.items()
    ]


def _running(pod: Document, container: Document, before: Document | None) -> Document:
    restarts = 0
    if before is not None and before.get("containerID"):
        if before["image"] == container["image"] and "running" in before["state"]:
            return before
        restarts = before["restartCount"] + 1
    key = f"{pod['metadata']['uid']}/{container['name']}/{restarts}"
    return {
        "name": container["name"],
        "image": container["image"],
        "imageID": "sha256:" + uuid.uuid5(uuid.NAMESPACE_URL, container["image"]).hex,
        "containerID": "containerd://" + uuid.uuid5(uuid.NAMESPACE_URL, key).hex,
        "restartCount": restarts,
        "ready": True,
        "started": True,
        "lastState": {},
        "state": {"running": {"startedAt": CREATED}},
    }


def terminated(container_status: Document, exit_code: int) -> Document:
    """Returns the status of a container after it has ended with `exit_code`."""
    state = {"terminated": {"exitCode": exit_code, "reason": "Completed", "finishedAt": CREATED}}
    return {**container_status, "ready": False, "started": False, "state": state}


def completed(pod: Document, phase: str) -> Document:
    """Returns the pod after all its containers have ended for good, in the phase Succeeded or
    Failed.
    """
    pod = running(pod, ready=False)
    code = 0 if phase == "Succeeded" else 1
    statuses = [terminated(item, code) for item in pod["status"]["containerStatuses"]]
    return {**pod, "status": {**pod["status"], "phase": phase, "containerStatuses": statuses}}


def refused(pod: Document, *, bound: bool = True) -> Document:
    """Returns the pod after the kubelet has rejected it because the node lacks CPU (`OutOfcpu`).

    No container has started. If `bound` is False, the pod has no node name.
    """
    spec = {**pod["spec"], "nodeName": "node-1"} if bound else pod["spec"]
    status = {"phase": "Failed", "reason": "OutOfcpu", "message": "Node didn't have enough cpu"}
    return {**pod, "spec": spec, "status": status}


def crashing(pod: Document, reason: str = "CrashLoopBackOff") -> Document:
    """Returns the pod on its node with all its containers waiting for a restart, for the given
    reason.
    """
    pod = running(pod, ready=False)
    statuses = [
        {**item, "ready": False, "state": {"waiting": {"reason": reason}}}
        for item in pod["status"]["containerStatuses"]
    ]
    return {**pod, "status": {**pod["status"], "containerStatuses": statuses}}


def in_phase(pod: Document, phase: str) -> Document:
    """Returns the pod with a status that has a phase and nothing else."""
    return {**pod, "status": {"phase": phase}}


def terminating(child: Document) -> Document:
    """Returns the child with a deletion timestamp, so that it is being deleted."""
    return with_meta(child, deletionTimestamp=DELETED, deletionGracePeriodSeconds=30)


def bound(claim: Document, **status: Any) -> Document:
    """Returns the claim bound to a volume of the requested size; `status` has further fields of its
    status.
    """
    spec = {**claim["spec"], "volumeName": f"pvc-{claim['metadata']['uid']}"}
    capacity = claim["spec"]["resources"]["requests"]
    return {**claim, "spec": spec, "status": {"phase": "Bound", "capacity": capacity, **status}}


def storage_class(
    name: str = "standard", *, grows: bool | None = True, default: bool = False
) -> Document:
    """Returns a StorageClass.

    `grows` is the field `allowVolumeExpansion`; None leaves it out. If `default` is True, the class
    is the cluster's default class.
    """
    annotations = {"annotations": {DEFAULT_CLASS: "true"}} if default else {}
    document = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name, **annotations},
        "provisioner": "csi.example.com",
    }
    return document if grows is None else {**document, "allowVolumeExpansion": grows}


CHILD_RESOURCE = {
    "apiVersion": "apps/v1",
    "resource": "controllerrevisions",
    "updateStrategy": {"method": "OnDelete"},
}
"""Child resource of a CompositeController that declares ControllerRevisions, so that there is a
history.
"""


def copied(document: Any) -> Any:
    """Returns a deep copy, several times as fast as `copy.deepcopy`."""
    return pickle.loads(pickle.dumps(document, pickle.HIGHEST_PROTOCOL))


def patch_between(before: Document, after: Document) -> Document:
    """Returns the JSON merge patch (RFC 7386) that turns `before` into `after`."""
    patch: Document = {key: None for key in before if key not in after}
    for key, value in after.items():
        if key not in before:
            patch[key] = value
        elif isinstance(value, dict) and isinstance(before[key], dict):
            if inner := patch_between(before[key], value):
                patch[key] = inner
        elif value != before[key]:
            patch[key] = value
    return patch


# --- requests -------------------------------------------------------------------------------------


def request(  # noqa: PLR0913 - each one is a part of the request
    parent: Document,
    pods: list[Document] | None = None,
    claims: list[Document] | None = None,
    *,
    version: int = 2,
    namespace: bool = True,
    finalizing: bool = False,
    revisions: list[Document] | None = None,
    classes: list[Document] | None = None,
    services: list[Document] | None = None,
    budgets: list[Document] | None = None,
) -> Document:
    """Returns the request that Metacontroller sends to the hook.

    Args:
        parent: the TApp.
        pods: the observed pods; None for no pods.
        claims: the observed claims; None for no claims.
        version: the version of the hook protocol, 1 or 2.
        namespace: True if the request contains the TApp's Namespace as a related object.
        finalizing: True for a finalize request, whose TApp is being deleted.
        revisions: the observed ControllerRevisions. If None, the CompositeController does not
            declare this kind of child; an empty list declares it.
        classes: the related StorageClasses. If None, the CompositeController does not let claims
            grow.
        services: the observed Services. If None, the CompositeController does not declare them.
        budgets: the observed PodDisruptionBudgets. If None, the CompositeController does not
            declare them.
    """
    if finalizing:
        parent = with_meta(parent, **{"deletionTimestamp": DELETED} | parent["metadata"])

    def keyed(objects: list[Document] | None) -> Document:
        prefix = f"{parent['metadata']['namespace']}/" if version > 1 else ""
        return {prefix + item["metadata"]["name"]: copied(item) for item in objects or []}

    name = parent["metadata"]["namespace"]
    body: Document = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "uid": NAMESPACE_UID},
    }
    children = {"Pod.v1": keyed(pods), "PersistentVolumeClaim.v1": keyed(claims)}
    related: Document = {"Namespace.v1": {name: body}} if namespace else {}
    declared: list[Document] = []
    if revisions is not None:
        children["ControllerRevision.apps/v1"] = keyed(revisions)
        declared.append(CHILD_RESOURCE)
    if classes is not None:
        shown = {item["metadata"]["name"]: item for item in classes}
        related["StorageClass.storage.k8s.io/v1"] = shown
        declared += GROWING
    if services is not None:
        children["Service.v1"] = keyed(services)
        declared.append(EXPOSING)
    if budgets is not None:
        children["PodDisruptionBudget.policy/v1"] = keyed(budgets)
        declared.append(GUARDING)
    spec: Document = {"generateSelector": True}
    if declared:
        spec["childResources"] = copied(declared)
    return {
        "controller": {
            "apiVersion": "metacontroller.k8s.io/v1alpha1",
            "kind": "CompositeController",
            "metadata": {"name": "tapp-controller", "uid": "c0ffee00-0000-4000-8000-000000000000"},
            "spec": spec,
        },
        "parent": copied(parent),
        "children": children,
        "related": related,
        "finalizing": finalizing,
    }
