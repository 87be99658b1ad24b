"""Parses requests and responses of the hook for `tests.invariants`, independently of the service.

All functions read JSON documents. The functions implement rules of the documentation, such as which
instances are available, and share little code with the service.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from simulator.api.apply import LAST_APPLIED, MERGE_KEYS, apply_update
from tapp.kube.restarts import restarts_in

Document = dict[str, Any]

RECORD = "apps.tkestack.io/in-place-update"
DRAIN = "apps.tkestack.io/drain"
LOST = "apps.tkestack.io/lost-node"
NODE_LOST = "NodeLost"
POD_STATUS = "apps.tkestack.io/pod-status"
KEYS = {
    "Pod": "Pod.v1",
    "PersistentVolumeClaim": "PersistentVolumeClaim.v1",
    "ControllerRevision": "ControllerRevision.apps/v1",
    "Service": "Service.v1",
    "PodDisruptionBudget": "PodDisruptionBudget.policy/v1",
}
"""Kind of a child -> its key in a request."""
GATES = {"apps.tkestack.io/InPlaceUpdateReady", "tkestack.io/InPlaceUpdate"}


def observed(request: Document, kind: str) -> dict[str, Document]:
    """Returns name -> object for the observed children of a kind in a request."""
    children = request["children"].get(KEYS[kind]) or {}
    return {item["metadata"]["name"]: item for item in children.values()}


def desired(answer: Document, kind: str) -> dict[str, Document]:
    """Returns name -> object for the children of a kind in a response."""
    return {item["metadata"]["name"]: item for item in answer["children"] if item["kind"] == kind}


def declares_revisions(request: Document) -> bool:
    """Returns True if the CompositeController has ControllerRevisions as children."""
    spec = (request.get("controller") or {}).get("spec") or {}
    return any(
        (child["apiVersion"], child["resource"]) == ("apps/v1", "controllerrevisions")
        and (child.get("updateStrategy") or {}).get("method", "OnDelete") == "OnDelete"
        for child in spec.get("childResources") or []
    )


def record_of(revision: Document) -> tuple[str, str]:
    """Returns the template name and the revision of a ControllerRevision that the service has
    created.

    Returns ("", "") for a ControllerRevision of any other origin.
    """
    meta, number = revision["metadata"], revision.get("revision")
    notes, labels = meta.get("annotations") or {}, meta.get("labels") or {}
    if not isinstance(notes, dict) or not isinstance(labels, dict):
        return ("", "")
    template, found = notes.get("apps.tkestack.io/template"), labels.get("tapp_template_hash_key")
    readable = isinstance(number, int) and 0 <= number <= 2**53
    readable &= isinstance(template, str) and isinstance(found, str)
    return (template, found) if readable and template and found else ("", "")


def content_of(revision: Document) -> tuple[str, str, str]:
    """Returns the template name, the revision, and the digest of the recorded values of a
    ControllerRevision.
    """
    notes = revision["metadata"].get("annotations") or {}
    values = notes.get("apps.tkestack.io/values", "") if isinstance(notes, dict) else ""
    return (*record_of(revision), str(values))


BESIDE = ("serviceName", "volumeClaimTemplates")
"""Fields of the spec that a revision records besides a template and its values."""


def claim_templates(spec: Document) -> list[Document]:
    """Returns the valid claim templates of a spec."""
    found = {}
    for each in spec.get("volumeClaimTemplates") or []:
        name = (each.get("metadata") or {}).get("name")
        if isinstance(name, str) and name and isinstance(each.get("spec"), dict):
            found[name] = each
    return list(found.values())


def number(request: Document, name: str) -> int | None:
    """Returns the instance number at the end of a pod's name; None if the name is not that of an
    instance.
    """
    found = re.fullmatch(re.escape(request["parent"]["metadata"]["name"]) + r"-(\d+)", name)
    return int(found[1]) if found and str(int(found[1])) == found[1] else None


def claims_are_applied(request: Document) -> bool:
    """Returns True if the registration makes Metacontroller update claims."""
    spec = (request.get("controller") or {}).get("spec") or {}
    return any(
        child["resource"] == "persistentvolumeclaims"
        and child["updateStrategy"]["method"] == "InPlace"
        for child in spec.get("childResources") or []
    )


def storage(claim: Document) -> str:
    """Returns the storage that a claim requests."""
    return str(claim["spec"]["resources"]["requests"]["storage"])


def without_size(resources: Document) -> Document:
    """Returns the `resources` of a claim without the storage request."""
    requests = {key: item for key, item in resources["requests"].items() if key != "storage"}
    return {**resources, "requests": requests}


def applied(request: Document, child: Document, want: Document) -> Document:
    """Returns the observed child after Metacontroller has merged the hook's child `want` into
    it.
    """
    uid = request["parent"]["metadata"]["uid"]
    labels = {**(want["metadata"].get("labels") or {}), "controller-uid": uid}
    result: Document = apply_update(
        child, {**want, "metadata": {**want["metadata"], "labels": labels}}
    )
    return result


def bare(child: Document) -> Document:
    """Returns the child without Metacontroller's last-applied annotation."""
    annotations = dict(child["metadata"].get("annotations") or {})
    annotations.pop(LAST_APPLIED, None)
    metadata = {k: v for k, v in child["metadata"].items() if k != "annotations"}
    return {
        **child,
        "metadata": {**metadata, **({"annotations": annotations} if annotations else {})},
    }


# --- spec and observed objects --------------------------------------------------------------------


def template_name(spec: Document, id: int) -> str:
    return (spec.get("templates") or {}).get(str(id)) or default_name(spec)


def default_name(spec: Document) -> str:
    return spec.get("defaultTemplateName") or spec.get("DefaultTemplateName") or "default"


def rolling_name(spec: Document) -> str:
    return (spec.get("updateStrategy") or {}).get("template") or default_name(spec)


def template(spec: Document, name: str) -> Document | None:
    default = spec.get("template") if name == "default" else None
    return default or (spec.get("templatePool") or {}).get(name)


def own_template(spec: Document, id: int) -> Document | None:
    """Returns the template of an instance with its values filled in; None if the template does not
    exist.
    """
    body = template(spec, template_name(spec, id))
    text = json.dumps(body)
    if body is None or "$(tapp." not in text:
        return body
    own = {**(spec.get("defaultValues") or {}), **((spec.get("values") or {}).get(str(id)) or {})}
    for key, value in own.items():
        text = text.replace(f"$(tapp.values.{key})", value)
    filled: Document = json.loads(text)
    return filled


def should_run(request: Document) -> set[int]:
    """Returns the numbers of the instances that should run: below `replicas`, not killed, and not
    finished.
    """
    spec = request["parent"]["spec"]
    killed = {id for id, what in (spec.get("statuses") or {}).items() if what == "Killed"}
    remembered = (request["parent"].get("status") or {}).get("statuses") or {}
    pods = observed(request, "Pod")
    result = set()
    for id in range(spec.get("replicas", 1)):
        pod = pods.get(f"{request['parent']['metadata']['name']}-{id}")
        memory = remembered.get(str(id)) in ("Succ", "Failed")
        if pod is None:
            over = memory
        elif pod["metadata"].get("deletionTimestamp"):
            over = memory and phase(pod) in ("Succeeded", "Failed")
        else:
            over = phase(pod) in ("Succeeded", "Failed") and not replaced(pod, spec)
        if not over and str(id) not in killed:
            result.add(id)
    return result


def replaced(pod: Document, spec: Document) -> bool:
    """Returns True if the service replaces the ended pod by a new one. The pod must have ended."""
    statuses = pod["status"].get("containerStatuses") or []
    started = any(
        item.get("containerID") or (item.get("state") or {}).keys() & {"running", "terminated"}
        for item in statuses
    )
    refused = pod["spec"].get("nodeName") and not started
    again = _starts_again(pod)
    mains = {item["name"] for item in pod["spec"]["containers"]}
    if made_failed(pod):
        return True  # its node was lost
    if disrupted(pod) and not spec.get("neverMigrate"):
        return True
    if mains & _not_updated(pod):
        return True  # an update in place ended it
    return bool(not spec.get("neverMigrate") and (refused or again))


def disrupted(pod: Document) -> bool:
    """Returns True if a DisruptionTarget condition says that an eviction or a preemption has ended
    the pod.
    """
    condition = conditions(pod).get("DisruptionTarget") or {}
    return phase(pod) == "Failed" and condition.get("status") == "True"


def _starts_again(pod: Document) -> bool:
    """Returns True if the kubelet would have restarted a container of the ended pod by the restart
    policy.
    """
    spec, status = pod["spec"], pod["status"]
    codes: dict[str, int] = {}
    for item in [
        *(status.get("initContainerStatuses") or []),
        *(status.get("containerStatuses") or []),
    ]:
        ended = (item.get("state") or {}).get("terminated")
        if ended is not None:
            codes[item["name"]] = ended["exitCode"]
    for one in spec.get("initContainers") or []:
        code = codes.get(one["name"])
        if (
            code
            and one.get("restartPolicy") != "Always"
            and not restarts_in(spec, one).restarts_after(code)
        ):
            return False
    failed = phase(pod) == "Failed"
    by_others = failed and not any(codes.get(one["name"]) for one in spec["containers"])
    unknown = 255 if failed else 0
    return any(
        restarts_in(spec, one).restarts_after(
            unknown if by_others else codes.get(one["name"], unknown)
        )
        for one in spec["containers"]
    )


def available(request: Document, now: float | None = None) -> set[int]:
    """Returns the numbers of the available instances; if `now` is None, `minReadySeconds` is
    ignored.
    """
    running, result = should_run(request), set()
    least = request["parent"]["spec"].get("minReadySeconds", 0) if now is not None else 0
    for name, pod in observed(request, "Pod").items():
        id = number(request, name)
        if id is None or id not in running or pod["metadata"].get("deletionTimestamp"):
            continue
        going = updating(pod) or drains(pod)
        serves = phase(pod) == "Running" and ready(pod) and not going
        if serves and (not least or (now or 0.0) - ready_since(pod) >= least):
            result.add(id)
    return result


def ready_since(pod: Document) -> float:
    """Returns the time when the pod became Ready, in seconds since the epoch."""
    condition = next(item for item in pod["status"]["conditions"] if item["type"] == "Ready")
    return datetime.fromisoformat(condition["lastTransitionTime"]).timestamp()


def phase(pod: Document) -> str:
    return str((pod.get("status") or {}).get("phase") or "Pending")


def ready(pod: Document) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or []
    return any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)


def drains(pod: Document) -> bool:
    """Returns True if an annotation makes the pod leave its Services before an update to another
    revision.
    """
    meta = pod["metadata"]
    asked = (meta.get("annotations") or {}).get(DRAIN) or ""
    own = (meta.get("labels") or {}).get("tapp_template_hash_key")
    return str(asked).startswith("v1-") and asked != own


def note(pod: Document, key: str) -> str:
    """Returns an annotation of the pod, or an empty string."""
    return str((pod["metadata"].get("annotations") or {}).get(key) or "")


def conditions(pod: Document) -> dict[str, Document]:
    """Returns the conditions of the pod by type."""
    return {item["type"]: item for item in (pod.get("status") or {}).get("conditions") or []}


def gates(pod: Document) -> set[str]:
    """Returns the readiness gates of the pod that this service sets."""
    found = {gate.get("conditionType") for gate in pod["spec"].get("readinessGates") or []}
    return found & GATES


def is_open(pod: Document) -> bool:
    """Returns True if all readiness gates that this service sets are open."""
    known = conditions(pod)
    return all(known.get(gate, {}).get("status") == "True" for gate in gates(pod))


def silent_since(pod: Document) -> float | None:
    """Returns since when the pod's node has not reported, in seconds since the epoch.

    Returns None if the node reports. A node counts as silent if Ready is False although all other
    conditions say that Ready should be True.
    """
    if pod["metadata"].get("deletionTimestamp") or phase(pod) != "Running":
        return None
    known = conditions(pod)
    types = [gate["conditionType"] for gate in pod["spec"].get("readinessGates") or []]
    whole = all(known.get(it, {}).get("status") == "True" for it in ("ContainersReady", *types))
    if not whole or known.get("Ready", {}).get("status") != "False":
        return None
    times = [known[it]["lastTransitionTime"] for it in ("Ready", "ContainersReady", *types)]
    return max(datetime.fromisoformat(time).timestamp() for time in times)


def made_failed(pod: Document) -> bool:
    """Returns True if the service has set the pod to Failed because its node is lost."""
    reason = (pod.get("status") or {}).get("reason")
    return phase(pod) == "Failed" and reason == NODE_LOST and bool(note(pod, LOST))


def guarded(pods: Iterable[Document]) -> bool:
    """Returns True if more than half of the nodes are silent, so that no node may be declared lost.

    This holds for three or more nodes only. The nodes are those of the running pods.
    """
    nodes, silent, heard = set(), set(), set()
    for pod in pods:
        node = pod["spec"].get("nodeName")
        if "apps.tkestack.io/puller" in (pod["metadata"].get("labels") or {}):
            continue
        if not node or pod["metadata"].get("deletionTimestamp") or phase(pod) != "Running":
            continue
        nodes.add(node)
        if ready(pod):
            heard.add(node)
        elif silent_since(pod) is not None:
            silent.add(node)
    return len(nodes) >= 3 and 2 * len(silent - heard) > len(nodes)


def serves_behind_a_gate(request: Document, pod: Document) -> bool:
    """Returns True if the pod still has to leave its Services before an update in place may
    start.
    """
    strategy = request["parent"]["spec"].get("updateStrategy") or {}
    in_place = strategy.get("inPlaceUpdateStrategy") or {}
    return bool(in_place.get("gracePeriodSeconds") and gates(pod) and ready(pod))


def updating(pod: Document) -> bool:
    """Returns True if an update in place of the pod has started and is not complete.

    The update is not complete while a container cannot run its new image yet.
    """
    return bool(_not_updated(pod))


def _not_updated(pod: Document) -> set[str]:
    """Returns the names of the containers whose update in place is not complete.

    Such a container still has the container ID from before the update, or no container ID, or the
    kubelet has not seen the new spec. An image between the old and the new one does not count,
    because it cannot be distinguished from another tag of the new image.
    """
    text = (pod["metadata"].get("annotations") or {}).get(RECORD)
    try:
        recorded = json.loads(text or "{}").get("containers") or {}
    except (ValueError, AttributeError):
        return set()
    status, now = pod.get("status") or {}, images(pod)
    seen, generation = status.get("observedGeneration"), pod["metadata"].get("generation")
    lists = ("containerStatuses", "initContainerStatuses")
    shown = {item["name"]: item for key in lists for item in status.get(key) or []}
    result = set()
    for name, was in recorded.items():
        item = shown.get(name, {})
        if name not in now:
            continue
        behind = seen and generation and seen < generation
        stays = item.get("containerID") == was.get("id")
        other = now[name] != (was.get("image") or now[name])  # an empty image: unknown
        if behind or not item.get("containerID") or (stays and other):
            result.add(name)
    return result


def images(pod: Document) -> dict[str, str]:
    sections = ("containers", "initContainers")
    return {item["name"]: item["image"] for key in sections for item in pod["spec"].get(key) or []}


def resolved(value: object, should_run: int) -> int | None:
    if isinstance(value, int):
        return value if value >= 1 else None
    found = re.fullmatch(r"([0-9]+)%", str(value))
    if found is None or not 1 <= int(found[1]) <= 100:
        return None
    return math.ceil(should_run * int(found[1]) / 100)


def doubled(value: Any) -> bool:
    """Returns True if a list inside a pod's spec has two items with the same merge key."""
    if isinstance(value, dict):
        return any(
            doubled(item) for key, item in value.items() if key not in ("metadata", "status")
        )
    if not isinstance(value, list):
        return False
    if value and all(isinstance(item, dict) for item in value):
        common = set.intersection(*(set(item) for item in value))
        key = next((key for key in MERGE_KEYS if key in common), None)
        if key is not None and len({str(item[key]) for item in value}) < len(value):
            return True
    return any(doubled(item) for item in value)


def leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, f"{path}.{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from leaves(item, f"{path}[{index}]")
    else:
        yield path, value
