"""Plans the changes that let Metacontroller take over the pods and claims of a TApp.

`plan_move` is the entry point; it neither reads nor writes the cluster. Metacontroller selects
children by the label `controller-uid`. If a child has the right owner but lacks the label,
Metacontroller removes itself as the owner. So the label has to be written before Metacontroller
starts.
"""

from __future__ import annotations  # for Python 3.9

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

# A copy of the constant in tapp/words/vocabulary.py, which needs a newer Python
CONTROLLER_UID = "controller-uid"
PODS = "pods"
CLAIMS = "persistentvolumeclaims"
_KINDS = {PODS: "pod", CLAIMS: "claim"}

# A label that the StatefulSet controller sets on each pod, and the new service does not
POD_NAME = "statefulset.kubernetes.io/pod-name"
# Readiness gate of every pod that the old controller created; only the old controller sets it
OLD_READINESS_GATE = "tkestack.io/InPlaceUpdate"


@dataclass(frozen=True)
class Child:
    """A pod or a claim of a TApp, identified by resource type, namespace and name."""

    resource: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """Returns kind, namespace and name as text, such as `pod shop/web-0`."""
        return f"{_KINDS[self.resource]} {self.namespace}/{self.name}"


@dataclass(frozen=True)
class Change:
    """One patch of one pod or claim, with a description for the user."""

    child: Child
    what: str
    patch: Json
    guarded: bool  # True if the patch applies only to the resourceVersion that was read


@dataclass
class Move:
    """The plan for one TApp: the patches to make, and the problems that a person has to solve."""

    namespace: str
    name: str
    uid: str
    target: str = ""  # the options that select the cluster, for commands that a user pastes
    changes: list[Change] = field(default_factory=list)  # the changes that `--apply` makes
    done: int = 0  # number of children that already have the right label
    in_the_way: list[str] = field(default_factory=list)  # problems that a person has to solve
    warnings: list[str] = field(default_factory=list)  # further facts that a person should know


def plan_move(
    tapp: Json,
    pods: Sequence[Json],
    claims: Sequence[Json],
    namespace_uid: str | None,
    target: str = "",
) -> Move:
    """Returns the plan for one TApp; neither reads nor writes the cluster.

    Args:
        tapp: the TApp.
        pods: all pods of its namespace.
        claims: all claims of its namespace.
        namespace_uid: the uid of the Namespace, which becomes an owner of each claim so that claims
            outlive their TApp. None if the claims should be deleted with the TApp.
        target: the options that select the cluster, for commands that a user pastes; may be empty.
    """
    meta = tapp["metadata"]
    move = Move(meta["namespace"], meta["name"], meta["uid"], target)
    if meta.get("deletionTimestamp"):
        move.warnings.append("the TApp is being deleted, so nothing is changed")
        return move
    mine = [pod for pod in pods if _controller(pod).get("uid") == move.uid]
    for pod in mine:
        _plan_label(move, PODS, pod)
        if _waits_for_old_controller(pod):
            move.warnings.append(
                f"{_child(PODS, pod)} waits for the readiness gate {OLD_READINESS_GATE}, which "
                "only the old controller sets: start that controller again until the pod is Ready, "
                "or delete the pod after the move"
            )
    _find_foreign_pods(move, tapp, pods)
    _find_lost_label(move, tapp, mine)
    for claim in claims:
        if _controller(claim).get("uid") == move.uid:
            _plan_label(move, CLAIMS, claim)
            _plan_second_owner(move, claim, namespace_uid)
        elif any(owner.get("uid") == move.uid for owner in _owners(claim)):
            move.in_the_way.append(
                f"{_child(CLAIMS, claim)} names the TApp as an owner, but not as its controller: "
                "set `controller: true` in that ownerReference, or remove the reference"
            )
    return move


def _plan_label(move: Move, resource: str, child: Json) -> None:
    meta = child["metadata"]
    present = (meta.get("labels") or {}).get(CONTROLLER_UID)
    if present == move.uid:
        move.done += 1
    elif present is None:
        patch = {"metadata": {"uid": meta["uid"], "labels": {CONTROLLER_UID: move.uid}}}
        what = f"add label {CONTROLLER_UID}={move.uid}"
        move.changes.append(Change(_child(resource, child), what, patch, guarded=False))
    else:
        kind = _KINDS[resource]
        move.in_the_way.append(
            f"{_child(resource, child)} has the label {CONTROLLER_UID}={present}, the uid of "
            f"another object. If it belongs to this TApp, run: kubectl label {kind} {meta['name']} "
            f"-n {move.namespace} --overwrite {CONTROLLER_UID}={move.uid}{move.target}"
        )


def _find_foreign_pods(move: Move, tapp: Json, pods: Sequence[Json]) -> None:
    """Adds a problem to the plan for each pod that has the name of an instance but another owner.

    Such a pod prevents the creation of the instance's own pod. No problem is added for a pod that
    Metacontroller is about to adopt.

    Args:
        move: the plan, which the function changes.
        tapp: the TApp.
        pods: all pods of its namespace.
    """
    replicas = (tapp.get("spec") or {}).get("replicas", 1)
    number = re.compile(re.escape(move.name) + "-(0|[1-9][0-9]*)")
    for pod in pods:
        meta, owner = pod["metadata"], _controller(pod)
        match = number.fullmatch(meta["name"])
        if match is None or int(match[1]) >= replicas or owner.get("uid") == move.uid:
            continue
        where = f"{_child(PODS, pod)} has the name of instance {match[1]}"
        if owner:
            move.in_the_way.append(
                f"{where}, but {owner.get('kind')} {owner.get('name')} (uid {owner.get('uid')}) "
                "owns it: delete the pod, or set `replicas` or `statuses` so that the instance "
                "does not run"
            )
        elif (meta.get("labels") or {}).get(CONTROLLER_UID) == move.uid:
            move.done += 1
        else:
            move.in_the_way.append(
                f"{where}, but no owner. If it belongs to this TApp, let Metacontroller adopt it: "
                f"kubectl label pod {meta['name']} -n {move.namespace} {CONTROLLER_UID}={move.uid}"
                f"{move.target}"
            )


def _find_lost_label(move: Move, tapp: Json, pods: Sequence[Json]) -> None:
    """Adds a warning to the plan if pods have the label POD_NAME and their templates lack it.

    Only the StatefulSet controller sets this label, so the next pod of each instance would lack it.

    Args:
        move: the plan, which the function changes.
        tapp: the TApp.
        pods: all pods of its namespace.
    """
    spec = tapp.get("spec") or {}
    templates = [spec.get("template"), *(spec.get("templatePool") or {}).values()]
    labels = [((each or {}).get("metadata") or {}).get("labels") or {} for each in templates]
    if labels and all(POD_NAME in each for each in labels):
        return
    named = [pod["metadata"]["name"] for pod in pods if POD_NAME in _labels(pod)]
    if named:
        move.warnings.append(
            f"pods {', '.join(named)} have the label {POD_NAME}, and their template does not: the "
            "next pod of each instance lacks it, and a Service that selects by it loses its pods. "
            f'Add it to the labels of the template: {POD_NAME}: "$(tapp.name)". Until then, '
            "`kubectl tapp status` repeats this warning"
        )


def _labels(obj: Json) -> Json:
    labels = obj["metadata"].get("labels")
    return labels if isinstance(labels, dict) else {}


def _plan_second_owner(move: Move, claim: Json, namespace_uid: str | None) -> None:
    """Adds a patch to the plan that makes the Namespace a second owner of a claim.

    The garbage collector keeps an object as long as one of its owners exists. Nothing is added if
    `namespace_uid` is None, or if the Namespace already owns the claim.
    """
    owners = _owners(claim)
    if namespace_uid is None:
        return
    if any(owner.get("uid") == namespace_uid for owner in owners):
        return
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "name": move.namespace,
        "uid": namespace_uid,
    }
    # A merge patch replaces the whole list of owners. With the resourceVersion, the API server
    # refuses the patch if the list has changed since it was read.
    metadata = {
        "uid": claim["metadata"]["uid"],
        "resourceVersion": claim["metadata"]["resourceVersion"],
        "ownerReferences": [*owners, namespace],
    }
    what = f"add second owner Namespace {move.namespace}"
    child = _child(CLAIMS, claim)
    # If the label is missing as well, one patch writes both.
    if move.changes and move.changes[-1].child == child:
        label = move.changes.pop()
        metadata = {**label.patch["metadata"], **metadata}
        what = f"{label.what}, {what}"
    move.changes.append(Change(child, what, {"metadata": metadata}, guarded=True))


def unprotected(move: Move, claims: Sequence[Json]) -> int:
    """Returns the number of claims that would be deleted with the TApp, their only owner.

    `claims` are all claims of the TApp's namespace.
    """
    return sum(
        _controller(claim).get("uid") == move.uid and len(_owners(claim)) == 1 for claim in claims
    )


def _waits_for_old_controller(pod: Json) -> bool:
    gates = (pod.get("spec") or {}).get("readinessGates") or []
    if not any(gate.get("conditionType") == OLD_READINESS_GATE for gate in gates):
        return False
    status = pod.get("status") or {}
    if status.get("phase") in ("Succeeded", "Failed"):
        return False
    conditions = status.get("conditions") or []
    return not any(
        item.get("type") == OLD_READINESS_GATE and item.get("status") == "True"
        for item in conditions
    )


def _child(resource: str, obj: Json) -> Child:
    return Child(resource, obj["metadata"]["namespace"], obj["metadata"]["name"])


def _owners(obj: Json) -> list[Json]:
    owners = obj["metadata"].get("ownerReferences")
    return owners if isinstance(owners, list) else []


def _controller(obj: Json) -> Json:
    return next((owner for owner in _owners(obj) if owner.get("controller") is True), {})
