"""Controllers of kube-controller-manager that matter for a workload hook.

* `GarbageCollector` follows pkg/controller/garbagecollector: an object is deleted when *all* its
  owners are gone. If at least one owner exists and is not waiting in a foreground deletion, only
  the references to the other owners are removed.
* `ClaimController` binds claims, expands their volumes as a CSI driver does, and protects claims
  that a scheduled pod uses (pkg/controller/volume/pvcprotection).
* `NamespaceController` deletes the contents of a namespace that is being deleted.

Each controller subscribes to the cluster's events and acts a moment later. Sources: Kubernetes
v1.37.2.
"""

from collections.abc import Callable
from functools import partial

from simulator.api.admission import CLAIM_PROTECTION
from simulator.api.cluster import Cluster
from simulator.api.deletion import FOREGROUND, ORPHAN
from simulator.api.store import DeleteOptions, Event, Propagation
from simulator.api.validation import storage_of
from simulator.objects.clock import Clock
from simulator.objects.kinds import CLAIM, NAMESPACE, POD, Kind
from simulator.objects.objects import (
    Object,
    finalizers_of,
    is_terminating,
    key_of,
    name_of,
    namespace_of,
    owners_of,
    uid_of,
    with_meta,
)
from tapp.kube.resources import compare

_REACTION_SECONDS, _EXPAND_SECONDS = 0.1, 2.0


def without_finalizer(name: str) -> Callable[[Object], Object]:
    """Returns a function for `Cluster.edit` that removes one finalizer from an object."""
    return lambda obj: with_meta(obj, finalizers=[f for f in finalizers_of(obj) if f != name])


def _without_owners(uids: set[str]) -> Callable[[Object], Object]:
    return lambda obj: with_meta(
        obj, ownerReferences=[ref for ref in owners_of(obj) if ref["uid"] not in uids]
    )


class GarbageCollector:
    """Deletes objects whose owners are deleted, `_REACTION_SECONDS` after the event about the
    owner.

    Foreground deletion and orphaning are modeled, too.
    """

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._dependents: dict[str, dict[str, None]] = {}
        self._pending: dict[str, None] = {}
        cluster.subscribe(self._on_event)

    def _on_event(self, event: Event) -> None:
        old, new = event.old, event.new
        before = {ref["uid"] for ref in owners_of(old)} if old else set()
        after = {ref["uid"] for ref in owners_of(new)} if new else set()
        uid = uid_of(event.object)
        for owner in sorted(before - after):
            self._dependents.get(owner, {}).pop(uid, None)
            self._enqueue_if_waiting(owner)
        for owner in sorted(after - before):
            self._dependents.setdefault(owner, {})[uid] = None
            found = self._cluster.find_by_uid(owner)
            # An owner in another namespace counts as missing.
            if found is None or namespace_of(found[1]) not in ("", namespace_of(event.object)):
                self._enqueue(uid)
        if new is None:
            for dependent in self._dependents.pop(uid, {}):
                self._enqueue(dependent)
        elif is_terminating(new) and {FOREGROUND, ORPHAN} & set(finalizers_of(new)):
            self._enqueue(uid)

    def _enqueue_if_waiting(self, uid: str) -> None:
        owner = self._cluster.find_by_uid(uid)
        if owner is not None and FOREGROUND in finalizers_of(owner[1]):
            self._enqueue(uid)

    def _enqueue(self, uid: str) -> None:
        if not self._pending:
            self._clock.after(_REACTION_SECONDS, self._work)
        self._pending[uid] = None

    def _work(self) -> None:
        pending, self._pending = self._pending, {}
        for uid in pending:
            found = self._cluster.find_by_uid(uid)
            if found is not None:
                self._check_owners(*found)

    def _check_owners(self, kind: Kind, obj: Object) -> None:
        if is_terminating(obj):
            if ORPHAN in finalizers_of(obj):
                self._orphan(kind, obj)
            elif FOREGROUND in finalizers_of(obj):
                self._delete_in_foreground(kind, obj)
            return
        solid, dangling, waiting = self._classify(obj)
        if not owners_of(obj) or (solid and not dangling and not waiting):
            return
        if solid:
            self._cluster.edit(kind, obj, _without_owners(dangling | waiting))
            return
        propagation: Propagation = "Background"
        if (waiting and self._dependents.get(uid_of(obj))) or FOREGROUND in finalizers_of(obj):
            propagation = "Foreground"
        elif ORPHAN in finalizers_of(obj):
            propagation = "Orphan"
        self._cluster.delete(kind, *key_of(obj), DeleteOptions(uid_of(obj), propagation))

    def _classify(self, obj: Object) -> tuple[set[str], set[str], set[str]]:
        solid: set[str] = set()
        dangling: set[str] = set()
        waiting: set[str] = set()
        for ref in owners_of(obj):
            found = self._cluster.find_by_uid(ref["uid"])
            if found is None or namespace_of(found[1]) not in ("", namespace_of(obj)):
                dangling.add(ref["uid"])
            elif is_terminating(found[1]) and FOREGROUND in finalizers_of(found[1]):
                waiting.add(ref["uid"])
            else:
                solid.add(ref["uid"])
        return solid, dangling, waiting

    def _orphan(self, kind: Kind, owner: Object) -> None:
        for uid in list(self._dependents.get(uid_of(owner), {})):
            found = self._cluster.find_by_uid(uid)
            if found is not None:
                self._cluster.edit(*found, _without_owners({uid_of(owner)}))
        self._cluster.edit(kind, owner, without_finalizer(ORPHAN))

    def _delete_in_foreground(self, kind: Kind, owner: Object) -> None:
        blocking = False
        for uid in self._dependents.get(uid_of(owner), {}):
            found = self._cluster.find_by_uid(uid)
            refs = owners_of(found[1]) if found else []
            blocking |= any(
                ref["uid"] == uid_of(owner) and ref.get("blockOwnerDeletion") for ref in refs
            )
            if found and not is_terminating(found[1]):
                self._enqueue(uid)
        if not blocking:
            self._cluster.edit(kind, owner, without_finalizer(FOREGROUND))


class ClaimController:
    """Binds claims, expands and modifies their volumes, and protects claims in use from removal.

    A claim is in use if a scheduled pod mounts it.

    Attributes:
        bind_seconds: seconds from the creation of a claim until it is bound.
        largest_volume: the size of the largest volume that the storage driver can provide; None if
            there is no limit. A claim that requests more keeps its volume and gets the resize
            status ControllerResizeInfeasible.
        infeasible_classes: names of VolumeAttributesClasses that the storage driver refuses.
    """

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self.bind_seconds = 0.5
        self.largest_volume: str | None = None
        self.infeasible_classes: set[str] = set()
        cluster.subscribe(self._on_event)

    def _on_event(self, event: Event) -> None:
        if event.kind is CLAIM and event.new is not None:
            key = key_of(event.new)
            if event.old is None:
                self._clock.after(self.bind_seconds, lambda: self._bind(*key))
            if is_terminating(event.new) and (event.old is None or not is_terminating(event.old)):
                self._clock.after(_REACTION_SECONDS, lambda: self._release(*key))
            elif _needs_expansion(event.new) and (
                event.old is None or storage_of(event.old) != storage_of(event.new)
            ):
                self._clock.after(_EXPAND_SECONDS, lambda: self._expand(*key))
            if _needs_modification(event.new) and (
                event.old is None
                or attributes_class_of(event.old) != attributes_class_of(event.new)
            ):
                self._clock.after(_EXPAND_SECONDS, lambda: self._modify(*key))
        elif event.kind is POD and event.new is None:
            namespace = namespace_of(event.object)
            for claim in claims_of(event.object):
                self._clock.after(_REACTION_SECONDS, partial(self._release, namespace, claim))

    def _bind(self, namespace: str, name: str) -> None:
        def bound(claim: Object) -> Object:
            volume = f"pvc-{uid_of(claim)}"
            status = {
                "phase": "Bound",
                "accessModes": claim["spec"].get("accessModes", []),
                "capacity": (claim["spec"].get("resources") or {}).get("requests", {}),
            }
            if attributes_class_of(claim):
                status["currentVolumeAttributesClassName"] = attributes_class_of(claim)
            return {**claim, "spec": {**claim["spec"], "volumeName": volume}, "status": status}

        claim = self._cluster.find(CLAIM, namespace, name)
        if claim is not None and (claim.get("status") or {}).get("phase") == "Pending":
            self._cluster.edit(CLAIM, claim, bound)

    def _expand(self, namespace: str, name: str) -> None:
        def expanded(claim: Object) -> Object:
            status, size = dict(claim.get("status") or {}), storage_of(claim)
            status.pop("allocatedResourceStatuses", None)
            if self.largest_volume is None or compare(size, self.largest_volume) <= 0:
                status["capacity"] = {**(status.get("capacity") or {}), "storage": size}
            else:
                status["allocatedResources"] = {"storage": size}
                status["allocatedResourceStatuses"] = {"storage": "ControllerResizeInfeasible"}
            return {**claim, "status": status}

        claim = self._cluster.find(CLAIM, namespace, name)
        if claim is not None and _needs_expansion(claim):
            self._cluster.edit(CLAIM, claim, expanded)

    def _modify(self, namespace: str, name: str) -> None:
        """Gives a volume the attributes of its class, or refuses, as external-resizer does."""

        def modified(claim: Object) -> Object:
            status, wanted = dict(claim.get("status") or {}), attributes_class_of(claim)
            status.pop("modifyVolumeStatus", None)
            if wanted in self.infeasible_classes:
                target = {"targetVolumeAttributesClassName": wanted, "status": "Infeasible"}
                status["modifyVolumeStatus"] = target
            else:
                status["currentVolumeAttributesClassName"] = wanted
            return {**claim, "status": status}

        claim = self._cluster.find(CLAIM, namespace, name)
        if claim is not None and _needs_modification(claim):
            self._cluster.edit(CLAIM, claim, modified)

    def _release(self, namespace: str, name: str) -> None:
        claim = self._cluster.find(CLAIM, namespace, name)
        if claim is None or not is_terminating(claim):
            return
        if CLAIM_PROTECTION not in finalizers_of(claim):
            return
        pods = self._cluster.list(POD, namespace)
        if not any(pod["spec"].get("nodeName") and name in claims_of(pod) for pod in pods):
            self._cluster.edit(CLAIM, claim, without_finalizer(CLAIM_PROTECTION))


def _needs_expansion(claim: Object) -> bool:
    """Returns True if a claim is bound and requests more storage than its volume has."""
    status = claim.get("status") or {}
    has = (status.get("capacity") or {}).get("storage", "0")
    return status.get("phase") == "Bound" and compare(storage_of(claim), has) > 0


def attributes_class_of(claim: Object) -> str:
    """Returns the VolumeAttributesClass that a claim requests, or "" if it requests none."""
    return str(claim["spec"].get("volumeAttributesClassName") or "")


def _needs_modification(claim: Object) -> bool:
    """Returns True if a claim is bound and requests a class that its volume does not have."""
    status, wanted = claim.get("status") or {}, attributes_class_of(claim)
    has = status.get("currentVolumeAttributesClassName")
    return status.get("phase") == "Bound" and bool(wanted) and wanted != has


def claims_of(pod: Object) -> list[str]:
    """Returns the names of the claims that a pod mounts."""
    volumes = pod["spec"].get("volumes") or []
    return [
        volume["persistentVolumeClaim"]["claimName"]
        for volume in volumes
        if "persistentVolumeClaim" in volume
    ]


class NamespaceController:
    """Deletes all objects in a namespace that is being deleted, and then removes the namespace."""

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._terminating: dict[str, bool] = {}
        cluster.subscribe(self._on_event)

    def _on_event(self, event: Event) -> None:
        obj = event.object
        if event.kind is NAMESPACE and event.new is not None and is_terminating(obj):
            self._schedule(name_of(obj))
        elif event.new is None and namespace_of(obj) in self._terminating:
            self._schedule(namespace_of(obj))

    def _schedule(self, name: str) -> None:
        if not self._terminating.get(name):
            self._terminating[name] = True
            self._clock.after(_REACTION_SECONDS, lambda: self._delete_contents(name))

    def _delete_contents(self, name: str) -> None:
        self._terminating[name] = False
        contents = self._cluster.contents(name)
        for kind, obj in contents:
            if not is_terminating(obj):
                self._cluster.delete(kind, *key_of(obj), DeleteOptions(propagation="Background"))
        if not self._cluster.contents(name):
            del self._terminating[name]
            self._cluster.remove(NAMESPACE, self._cluster.get(NAMESPACE, "", name))
