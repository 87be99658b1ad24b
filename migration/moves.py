"""The changes that are needed so that Metacontroller takes over a TApp's pods and claims.

Values in, values out. Metacontroller selects children by the label `controller-uid`. It lets go of
a child that has the right owner and not the label, so the label has to be there first.
"""

from __future__ import annotations  # for Python 3.9

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

CONTROLLER_UID = "controller-uid"  # tapp/words/vocabulary.py needs a newer Python than many have
PODS = "pods"
CLAIMS = "persistentvolumeclaims"
_KINDS = {PODS: "pod", CLAIMS: "claim"}

POD_NAME = "statefulset.kubernetes.io/pod-name"  # On a StatefulSet's pods: the pod's own name
OLD_READINESS_GATE = "tkestack.io/InPlaceUpdate"  # On every old pod; only the old controller sets


@dataclass(frozen=True)
class Child:
    """A pod or a claim by name."""

    resource: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """`pod shop/web-0`."""
        return f"{_KINDS[self.resource]} {self.namespace}/{self.name}"


@dataclass(frozen=True)
class Change:
    """One patch of one object, and what it does in words."""

    child: Child
    what: str
    patch: Json
    guarded: bool  # True if the patch holds only for the resourceVersion that was read


@dataclass
class Move:
    """Everything about one TApp."""

    namespace: str
    name: str
    uid: str
    target: str = ""  # the options of the cluster, behind a command to paste
    changes: list[Change] = field(default_factory=list)  # what `--apply` does
    done: int = 0  # children that have the right label already
    in_the_way: list[str] = field(default_factory=list)  # what a person has to decide
    warnings: list[str] = field(default_factory=list)  # sentences about what a person should know


def plan_move(
    tapp: Json,
    pods: Sequence[Json],
    claims: Sequence[Json],
    namespace_uid: str | None,
    target: str = "",
) -> Move:
    """The move of one TApp, among all pods and claims of its namespace.

    `namespace_uid` is the uid of the Namespace where claims are to outlive their TApp, else None.
    `target` has the options of the cluster, as they stand behind a command to paste.
    """
    meta = tapp["metadata"]
    move = Move(meta["namespace"], meta["name"], meta["uid"], target)
    if meta.get("deletionTimestamp"):
        move.warnings.append("is being deleted: left alone")
        return move
    mine = [pod for pod in pods if _controller(pod).get("uid") == move.uid]
    for pod in mine:
        _label(move, PODS, pod)
        if _waits_for_old_controller(pod):
            move.warnings.append(
                f"{_child(PODS, pod)} waits for the readiness gate {OLD_READINESS_GATE}, which "
                "only the old controller opens: start that again until the pod is Ready, or "
                "delete the pod after the move"
            )
    _find_strangers(move, tapp, pods)
    _find_pod_names(move, tapp, mine)
    for claim in claims:
        if _controller(claim).get("uid") == move.uid:
            _label(move, CLAIMS, claim)
            _keep_claim(move, claim, namespace_uid)
        elif any(owner.get("uid") == move.uid for owner in _owners(claim)):
            move.in_the_way.append(
                f"{_child(CLAIMS, claim)} names the TApp as an owner, but not as its controller: "
                "set `controller: true` in that ownerReference, or remove the reference"
            )
    return move


def _label(move: Move, resource: str, child: Json) -> None:
    meta = child["metadata"]
    present = (meta.get("labels") or {}).get(CONTROLLER_UID)
    if present == move.uid:
        move.done += 1
    elif present is None:
        patch = {"metadata": {"uid": meta["uid"], "labels": {CONTROLLER_UID: move.uid}}}
        what = f"label {CONTROLLER_UID}={move.uid}"
        move.changes.append(Change(_child(resource, child), what, patch, guarded=False))
    else:
        kind = _KINDS[resource]
        move.in_the_way.append(
            f"{_child(resource, child)} has the label {CONTROLLER_UID}={present}, the uid of "
            f"something else. If it belongs to this TApp: kubectl label {kind} {meta['name']} "
            f"-n {move.namespace} --overwrite {CONTROLLER_UID}={move.uid}{move.target}"
        )


def _find_strangers(move: Move, tapp: Json, pods: Sequence[Json]) -> None:
    """Pods that have an instance's name and are not the TApp's: the instance cannot be created."""
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
                "owns it: delete the pod, or set `replicas` or `statuses` so that the instance is "
                "not wanted"
            )
        elif (meta.get("labels") or {}).get(CONTROLLER_UID) == move.uid:
            move.done += 1
        else:
            move.in_the_way.append(
                f"{where}, but nobody owns it. If it is this TApp's, let Metacontroller take it: "
                f"kubectl label pod {meta['name']} -n {move.namespace} {CONTROLLER_UID}={move.uid}"
                f"{move.target}"
            )


def _find_pod_names(move: Move, tapp: Json, pods: Sequence[Json]) -> None:
    """Warns if pods have a StatefulSet's label of their name, which new pods would not have."""
    spec = tapp.get("spec") or {}
    templates = [spec.get("template"), *(spec.get("templatePool") or {}).values()]
    labels = [((each or {}).get("metadata") or {}).get("labels") or {} for each in templates]
    if labels and all(POD_NAME in each for each in labels):
        return
    named = [pod["metadata"]["name"] for pod in pods if POD_NAME in _labels(pod)]
    if named:
        move.warnings.append(
            f"pods {', '.join(named)} have the label {POD_NAME}, and their template has not: the "
            "next pod of each instance lacks it, and a Service that selects by it becomes empty. "
            f'Put it into the labels of the template: {POD_NAME}: "$(tapp.name)"'
        )


def _labels(obj: Json) -> Json:
    labels = obj["metadata"].get("labels")
    return labels if isinstance(labels, dict) else {}


def _keep_claim(move: Move, claim: Json, namespace_uid: str | None) -> None:
    """Plans the Namespace as a second owner; the garbage collector spares what has a live one."""
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
    # A merge patch replaces the list, so it must not meet a newer one.
    metadata = {
        "uid": claim["metadata"]["uid"],
        "resourceVersion": claim["metadata"]["resourceVersion"],
        "ownerReferences": [*owners, namespace],
    }
    what = f"second owner Namespace {move.namespace}"
    child = _child(CLAIMS, claim)
    # One write per claim: the label, if it is due too, goes along.
    if move.changes and move.changes[-1].child == child:
        label = move.changes.pop()
        metadata = {**label.patch["metadata"], **metadata}
        what = f"{label.what}, {what}"
    move.changes.append(Change(child, what, {"metadata": metadata}, guarded=True))


def unprotected(move: Move, claims: Sequence[Json]) -> int:
    """The number of the TApp's claims that the garbage collector deletes together with it."""
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
