"""Judges the writes of pod statuses, and the writes of the annotations that request them.

The service cannot write a pod's status itself. The service writes a *marker*, an annotation on the
pod, and the DecoratorController then writes the status. A *drain* is the marker that makes a pod
leave its Services before an update. The marker of a lost node sets the pod to Failed.

The judge uses the truth of the cluster: the state of the API server at the moment of a write, the
nodes that really report, the processes that really run. The judge never uses the hook's opinion.

- No image of a pod with a readiness gate and a grace period changes while the pod is Ready, which
  its Services follow. There is no exception: both are in the pod, and the write is based on its
  version.
- A gate is opened only if no drain is requested and the processes run the wanted images.
- A pod is set to Failed only while its node has not reported since the marker was written. A node
  may have returned in the moment that its kubelet needs to write the pod (`excused: back just now`:
  the pod is still silent, and the write is based on its version).
- A marker of a lost node is written only if the sync saw a silent pod, for long enough, and no
  guard. The *guard* prevents markers while most nodes are silent.
- A silent pod of a TApp whose pods may be moved is not deleted before it is set to Failed; only the
  deletion of a TApp does not wait for the guard.
- While most nodes are silent no pod is moved, with one exception that no response to a single
  request could avoid. The marker of one pod cannot depend on another pod's version. If further
  nodes stop reporting after a marker was decided, marked pods may be deleted before the next sync
  has seen that and removed the marker (`excused: guard not seen`), or while that write fails or is
  in progress (`excused: mark not taken back`).
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any

from simulator.api.store import Event
from simulator.metacontroller.hook_calls import HookCall
from simulator.objects.clock import EPOCH
from simulator.recording import Write
from simulator.world import World
from tests.hook_calls import (
    LOST,
    NODE_LOST,
    conditions,
    drains,
    gates,
    guarded,
    images,
    note,
    observed,
    phase,
    ready,
    silent_since,
)
from tests.invariants import ViolationError
from tests.model.truth import Truth

Document = dict[str, Any]

DEFAULT_LIMIT = 300
"""Seconds after which a silent node is lost, unless the TApp has an annotation with another
limit.
"""
MOMENT = 1.0
"""Seconds within which a kubelet that reports again has written the statuses of its pods."""
SOON = 0.5
"""Seconds within which a sync ends, in addition to the time that the hook takes."""


class StatusJudge:
    """Judges the markers and statuses of the pods of one TApp.

    `pods` are the TApp's pods in the store, by name; the owner of the judge keeps them up to date.
    `truth` knows the running processes, and the judge adds to `counts`.
    """

    def __init__(
        self, world: World, pods: dict[str, Document], truth: Truth, counts: Counter[str]
    ) -> None:
        self._world = world
        self._pods = pods
        self._truth = truth
        self._counts = counts
        self._call: HookCall | None = None
        self._request: Document = {}
        self._heard: dict[str, float] = {}
        self._marked: dict[str, float] = {}
        self._refused: dict[str, float] = {}
        world.on_call(self._on_call)
        world.watch(self._on_event)

    def _on_call(self, call: HookCall) -> None:
        if call.hook in ("sync", "finalize"):
            self._call, self._request = call, call.request

    def _on_event(self, event: Event) -> None:
        """Stores the time at which a node reports again after it was silent."""
        if event.kind.name == "Node" and event.new is not None:
            is_ready = conditions(event.new).get("Ready", {}).get("status") == "True"
            if is_ready and event.old is not None:
                self._heard[event.new["metadata"]["name"]] = self._world.clock.now

    def note_refusal(self, write: Write) -> None:
        if write.kind == "Pod":
            self._refused[write.name] = write.time

    # Judging.

    def check(self, event: Event, verbs: set[str]) -> None:
        """Judges a change of a pod that Metacontroller has written; `verbs` are the verbs of its
        writes.
        """
        old, new = event.old, event.new
        if old is None or old["metadata"].get("deletionTimestamp"):
            return
        if new is None or new["metadata"].get("deletionTimestamp"):
            if "delete" in verbs:
                self._check_deletion(old)
        elif "status" in verbs:
            self._check_status(old, new)
        elif "update" in verbs:
            self._check_update(old, new)

    def _check_update(self, old: Document, new: Document) -> None:
        """Judges a write of the CompositeController to a pod: changed images, and markers."""
        name, spec = old["metadata"]["name"], self._request["parent"]["spec"]
        strategy = (spec.get("updateStrategy") or {}).get("inPlaceUpdateStrategy") or {}
        grace = strategy.get("gracePeriodSeconds") or 0
        if images(old) != images(new) and gates(old) and grace:
            if ready(old):
                raise ViolationError(f"P2: {name} is updated while it is Ready: {self._told(old)}")
            self._counts["updates out of service"] += 1
            if self._truth.runs_wanted(old) and self._age(old) < grace:
                self._counts["out of service for less than the grace period"] += 1
        self._counts["drains"] += drains(new) and not drains(old)
        self._counts["drains taken back"] += drains(old) and images(old) == images(new)
        lost = note(new, LOST)
        if lost and lost != note(old, LOST):
            self._check_mark(old, lost)
        elif note(old, LOST) and not lost:
            self._counts["marks taken back"] += 1

    def _check_mark(self, old: Document, lost: str) -> None:
        """Checks that a pod is marked as lost only after the time limit and without the guard.

        `lost` is the value of the marker: the time since which the node is silent.
        """
        name, parent = old["metadata"]["name"], self._request["parent"]
        seen = observed(self._request, "Pod")
        since = silent_since(seen[name])
        notes = parent["metadata"].get("annotations") or {}
        limit = int(notes.get("apps.tkestack.io/lost-node-seconds") or DEFAULT_LIMIT)
        late = since is not None and self._unix(self._call_time) >= since + limit
        if not late or lost != _stamp(since or 0.0) or not _moves(parent["spec"]):
            raise ViolationError(f"P2: {name} is called lost: {self._told(seen[name])}")
        if guarded(seen.values()):
            raise ViolationError(f"P2: {name} is called lost though most nodes are silent")
        self._counts["marks"] += 1
        self._counts["marks on an old sight of the guard"] += guarded(self._pods.values())
        lost_nodes = self._world.kubelet.lost_nodes
        self._counts["marks of a node that is heard of"] += _node(old) not in lost_nodes
        self._marked[old["metadata"]["uid"]] = self._world.clock.now

    def _check_status(self, old: Document, new: Document) -> None:
        """Judges a status that the DecoratorController has written: a readiness gate, or the phase
        Failed.
        """
        name, before, after = old["metadata"]["name"], conditions(old), conditions(new)
        if phase(new) != phase(old):
            self._check_failed(old, new)
            return
        changed = {it for it in before.keys() | after.keys() if before.get(it) != after.get(it)}
        rest = [{**pod["status"], "conditions": None} for pod in (old, new)]
        if not changed <= gates(old) or rest[0] != rest[1]:
            raise ViolationError(f"P7: {name}: {old['status']} becomes {new['status']}")
        for gate in changed:
            was, now = before.get(gate, {}).get("status"), after[gate]["status"]
            if was == now:
                self._counts["gates noted"] += 1
            elif now == "True":
                self._counts["gates opened"] += 1
                if drains(old):
                    raise ViolationError(f"P2: the gate of {name} opens while it is drained")
                if was == "False" and not self._truth.runs_wanted(old):
                    self._counts["gates opened early"] += 1
            else:
                self._counts["gates closed"] += 1
                if not drains(old) and self._truth.runs_wanted(old) and ready(old):
                    self._counts["gates closed on a pod that serves"] += 1

    def _check_failed(self, old: Document, new: Document) -> None:
        """Checks that the DecoratorController sets a pod to Failed only if the pod's node is really
        lost.
        """
        name, node, lost = old["metadata"]["name"], _node(old), note(old, LOST)
        since, status = silent_since(old), new["status"]
        if (status["phase"], status.get("reason")) != ("Failed", NODE_LOST):
            raise ViolationError(f"P7: {name} becomes {status}")
        if since is None or lost != _stamp(since):
            raise ViolationError(f"P2: {name} is made Failed: {self._told(old)}")
        marked = self._marked.get(old["metadata"]["uid"], 0.0)
        back = self._heard.get(node, 0.0)
        if node not in self._world.kubelet.lost_nodes and self._world.clock.now - back < MOMENT:
            self._counts["excused: back just now"] += 1
        elif node not in self._world.kubelet.lost_nodes or back > marked:
            raise ViolationError(f"P2: {name} is made Failed, its node is heard of")
        self._counts["made Failed"] += 1
        if guarded(self._pods.values()):
            self._check_guard(name)

    def _check_guard(self, name: str) -> None:
        """Checks a pod that is set to Failed while most nodes are silent.

        Raises ViolationError if the sync could have known that most nodes are silent.
        """
        call = self._call
        assert call is not None
        if call.error or not guarded(observed(self._request, "Pod").values()):
            self._counts["excused: guard not seen"] += 1
            return
        soon = self._world.metacontroller.hook_seconds + SOON
        refused = self._refused.get(name, -1.0) >= call.time
        if refused or call.hook == "finalize" or self._world.clock.now - call.time <= soon:
            self._counts["excused: mark not taken back"] += 1
            return
        raise ViolationError(f"P2: {name} is made Failed though most nodes are silent")

    def _check_deletion(self, old: Document) -> None:
        """Checks that a pod on a silent node is not deleted, because the pod would stay
        Terminating.
        """
        name, pods = old["metadata"]["name"], observed(self._request, "Pod")
        seen = pods.get(name)
        if seen is None or silent_since(seen) is None:
            return
        ends = self._request["finalizing"] and guarded(pods.values())
        if _moves(self._request["parent"]["spec"]) and not ends:
            raise ViolationError(f"P2: {name} is deleted while it is silent: {self._told(seen)}")

    # Texts and times.

    @property
    def _call_time(self) -> float:
        return 0.0 if self._call is None else self._call.time

    def _unix(self, time: float) -> float:
        return EPOCH.timestamp() + time

    def _age(self, pod: Document) -> float:
        """Returns the seconds since the last transition of the pod's condition Ready."""
        text = conditions(pod).get("Ready", {}).get("lastTransitionTime")
        now = self._unix(self._world.clock.now)
        return now - datetime.fromisoformat(text).timestamp() if text else now

    def _told(self, pod: Document) -> str:
        return f"{pod['metadata'].get('annotations')} {pod['status']}"


def _moves(spec: Document) -> bool:
    return bool(spec.get("forceDeletePod") and not spec.get("neverMigrate"))


def _node(pod: Document) -> str:
    return str(pod["spec"].get("nodeName") or "")


def _stamp(time: float) -> str:
    return datetime.fromtimestamp(int(time), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
