"""Removes from objects the parts that must differ between the simulator and a real cluster.

`docs/simulator.md` lists the removed parts. Change both together.
"""

from __future__ import annotations

import json
import re
from typing import Any

Json = dict[str, Any]
LAST_APPLIED = "metacontroller.k8s.io/last-applied-configuration"
IN_PLACE = "apps.tkestack.io/in-place-update"
FAILURES = "apps.tkestack.io/failures"
"""If a cache lags, the first failure of a series may be lost with its pod (docs/finished.md)."""
UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
CONTAINER = re.compile(r"containerd://[0-9a-f]{64}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
TOKEN = re.compile(r"kube-api-access-[a-z0-9]{5}")
# Fields that the server sets, and times.
METADATA = (
    "uid", "resourceVersion", "creationTimestamp", "managedFields", "namespace", "selfLink",
)  # fmt: skip
# Annotations of kubectl and of the controllers that bind claims.
ANNOTATIONS = ("kubectl.kubernetes.io/", "pv.kubernetes.io/", "volume.")
EVICTION = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
CONDITIONS = ("PodScheduled", "Initialized", "ContainersReady", "Ready")


def normal(objects: list[Json], namespace: str) -> dict[str, Json]:
    """Returns the comparable forms of the objects by `kind name`."""
    names = {each["metadata"]["uid"]: each["metadata"]["name"] for each in objects}
    return {
        f"{each['kind']} {each['metadata']['name']}": _object(each, names, namespace)
        for each in objects
    }


def _object(obj: Json, names: dict[str, str], namespace: str) -> Json:
    meta = {key: value for key, value in obj["metadata"].items() if key not in METADATA}
    annotations = {
        key: json.loads(value) if key in (LAST_APPLIED, IN_PLACE) else value
        for key, value in (meta.pop("annotations", None) or {}).items()
        if not key.startswith(ANNOTATIONS) and key != FAILURES
    }
    applied = (annotations.get(LAST_APPLIED) or {}).get("metadata") or {}
    (applied.get("annotations") or {}).pop(FAILURES, None)
    parts = {"Pod": _pod, "PersistentVolumeClaim": _claim, "TApp": _tapp}[obj["kind"]](obj)
    whole = {"metadata": meta | {"annotations": annotations}, **parts}
    return _value(whole, names, namespace)  # type: ignore[no-any-return]


def _pod(pod: Json) -> Json:
    status = pod.get("status") or {}
    spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
    conditions = {
        each["type"]: each["status"]
        for each in status.get("conditions") or []
        if each["type"] in CONDITIONS
    }
    # A container that does not start is `waiting` and `terminated` in turn.
    ended = status.get("phase") in ("Succeeded", "Failed")
    containers = {
        each["name"]: {
            "ready": each["ready"],
            "restarts": each["restartCount"],
            "state": sorted(each["state"]) if ended else "running" in each["state"],
        }
        for group in ("initContainerStatuses", "containerStatuses")
        for each in status.get(group) or []
    }
    shown = {key: status.get(key) for key in ("phase", "qosClass", "observedGeneration")}
    return {
        "spec": spec,
        "scheduled": "nodeName" in pod["spec"],
        "status": shown | {"conditions": conditions, "containers": containers},
    }


def _claim(claim: Json) -> Json:
    left_out = ("volumeName", "storageClassName")
    spec = {key: value for key, value in claim["spec"].items() if key not in left_out}
    return {"spec": spec, "phase": claim["status"]["phase"]}


BY_TIME = ("Reconciling", "Stalled")
"""Conditions of a broken TApp of which one follows the other after half a minute."""


def _tapp(tapp: Json) -> Json:
    status = dict(tapp.get("status") or {})
    status["conditions"] = [
        {key: value for key, value in each.items() if key not in _left_out(each)}
        for each in status.get("conditions") or []
        if each["type"] not in BY_TIME
    ]
    return {"spec": tapp["spec"], "status": status}


def _left_out(condition: Json) -> tuple[str, ...]:
    """Returns the fields of a condition to remove: times, and the message about broken instances.

    The message follows the kubelet's attempts.
    """
    broken = condition["reason"] == "InstancesBroken"
    return ("lastTransitionTime", "message") if broken else ("lastTransitionTime",)


def _value(value: Any, names: dict[str, str], namespace: str) -> Any:
    if isinstance(value, dict):
        if value.get("key") in EVICTION and value.get("tolerationSeconds") in (3, 300):
            value = value | {"tolerationSeconds": "the default"}
        return {key: _value(inner, names, namespace) for key, inner in value.items()}
    if isinstance(value, list):
        return [_value(inner, names, namespace) for inner in value]
    if not isinstance(value, str):
        return value
    if value == namespace:
        return "default"
    value = value.replace(f"-n {namespace}`", "-n default`")  # a command in a message
    text = UID.sub(lambda found: f"<{names.get(found[0], 'uid')}>", value)
    text = TIME.sub("then", CONTAINER.sub("containerd://X", text))
    return TOKEN.sub("kube-api-access-X", text)
