"""Watches the true cluster and judges every write of Metacontroller (P2, P4, P5, P6).

The judge never uses the hook's opinion. Which instances are available follows from the objects in
the store at the moment of a write; a *snapshot* holds what a sync could know: its request and its
response.

The exact rule of P2 uses these terms:

- An instance *serves* if its processes do, no matter what its status says. Every container that it
  needs runs the image of its newest spec, is not being stopped, and would pass its probes. All this
  has been true for minReadySeconds. A readiness gate must be open, and no annotation may ask the
  pod to leave its Services (`tests/model/truth.py`).
- An update *takes* an instance if the instance serves and the update deletes its pod, changes an
  image or makes the pod leave its Services. In addition the snapshot of the sync must show the
  instance as available, or on a silent node. A node is silent if Ready is False although all values
  that the kubelet wrote are True.
- An instance that was updated is *out* until it serves again. A pod that an update ended with
  another image than the wanted one is out, too, whatever its phase.

When an instance is taken, three groups together must not exceed maxUnavailable of its group: the
instances that are out, those that are unavailable in the snapshot and do not serve, and the
instance itself. With `updateStrategy.domain` they are all of one domain (`tests/model/domains.py`).
Instances that were out before count whether or not the snapshot shows them, with
four exceptions that no response to a single request could avoid:

- `other spec`: the instance was taken under another spec, and the snapshot does not show that yet.
  The snapshot's pods are older than its parent (the watch of pods lags behind that of TApps).
- `came back`: the instance was unavailable when its update was decided, so the update used no
  budget. It became available before the delete arrived. The snapshot shows neither its availability
  nor the status that was written with the update (both watches lag).
- `two tags`: the instance was updated before it had ever started, to another tag of the image that
  was being started. The status has the wanted image, and nothing in it tells the two apart.
- `late resize`: one of the two changes is a PATCH of `pods/resize`, which is sent independently of
  the responses. In the meantime new knowledge (such as a node that reports again) has made another
  instance the next one.

Instances of the force group (those that do not run the rolling template) are judged before those of
the rolling group of the same sync.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from simulator.api.store import Event
from simulator.metacontroller.cache import Entry
from simulator.metacontroller.hook_calls import HookCall
from simulator.objects.clock import EPOCH
from simulator.objects.kinds import Kind
from simulator.objects.objects import labels_of, owners_of
from simulator.recording import Write
from simulator.world import World
from tapp.kube.resources import compare
from tests.hook_calls import (
    drains,
    gates,
    images,
    is_open,
    number,
    observed,
    phase,
    ready,
    ready_since,
    should_run,
    silent_since,
    storage,
    updating,
)
from tests.invariants import ViolationError
from tests.model import domains
from tests.model.holds import HoldJudge
from tests.model.partitions import PartitionJudge
from tests.model.resizes import ResizeJudge
from tests.model.snapshots import (
    Outage,
    Snapshot,
    body_of,
    brief,
    identity,
    is_infeasible,
    is_recorded,
    lacks_resources,
    no_cause_to_restart,
    requests,
    resources_mode,
    resources_only,
    spoken,
    two_tags,
)
from tests.model.statuses import StatusJudge
from tests.model.truth import Truth
from tests.prepull import is_puller

Document = dict[str, Any]


@dataclass
class Judge:
    """Judges each write to the objects of one TApp when the API server has stored the write.

    Attributes:
        world: the simulated cluster.
        name: the name of the TApp.
        counts: counters of what the judge has seen, for example excused violations.
        snapshot: the knowledge of the last sync; None before the first sync.
        pods: the pods in the store, by name.
        outages: instance number -> the update after which the instance does not serve yet.
        bodies: identity of a pod -> the template from which the pod was created, as text.
    """

    world: World
    name: str
    counts: Counter[str] = field(default_factory=Counter)
    snapshot: Snapshot | None = None
    pods: dict[str, Document] = field(default_factory=dict)
    outages: dict[int, Outage] = field(default_factory=dict)
    bodies: dict[str, str] = field(default_factory=dict)
    met: dict[str, set[tuple[str, str]]] = field(default_factory=dict)
    """Uid of a pod -> the requests of users in its annotations when it was last changed."""
    _events: list[Event] = field(default_factory=list)
    _pod_revisions: list[int] = field(default_factory=list)
    _delivered: int = 0
    _judged: int = 0

    def __post_init__(self) -> None:
        self.truth = Truth(self.world, self.pods)
        self.statuses = StatusJudge(self.world, self.pods, self.truth, self.counts)
        self.partitions = PartitionJudge(self.name, self.counts)
        self.resizes = ResizeJudge(self.world, self.name, self.counts)
        self.holds = HoldJudge(self.world, self.counts)
        self.world.watch(self._on_event)
        self.world.on_call(self._on_call)
        self.world.cache.on_change(self._on_delivery)

    # Recording.

    def _on_event(self, event: Event) -> None:
        if event.kind.name == "Pod":
            self._pod_revisions.append(event.revision)
        if event.kind.name in ("Pod", "PersistentVolumeClaim", "TApp"):
            self._events.append(event)

    def _on_delivery(self, kind: Kind, _old: Entry | None, _new: Entry | None) -> None:
        self._delivered += kind.name == "Pod"

    def _on_call(self, call: HookCall) -> None:
        self.holds.on_call(call)
        if self.snapshot is not None:
            self.partitions.note(self.snapshot)
        if call.hook == "finalize":
            self.snapshot = None
        if call.hook != "sync":
            return
        request = call.request
        waiting = self._pod_revisions[self._delivered : self._delivered + 1]
        snapshot = Snapshot(
            request=request,
            time=call.time,
            spec=request["parent"]["spec"],
            running=should_run(request),
            available=set(),
            taken=set(),
            pods_are_older=False,
            pods=observed(request, "Pod"),
            call=call,
        )
        snapshot.pods_are_older = bool(waiting) and waiting[0] < snapshot.parent_version
        for name, pod in snapshot.pods.items():
            id = number(request, name)
            if id not in snapshot.running:
                continue
            shown = self.is_available(pod, snapshot.spec, call.time)
            if shown:
                snapshot.available.add(id)
            if (shown or silent_since(pod) is not None) and self.truth.can_serve(
                name, snapshot.spec
            ):
                snapshot.taken.add(id)
        self.snapshot = self.resizes.snapshot = snapshot

    # Judging.

    def after_step(self) -> None:
        """Judges all changes that one step of the clock has made; raises ViolationError."""
        for id in list(self.outages):
            self._close(f"{self.name}-{id}")
        events, self._events = self._events, []
        writes = self.world.writes[self._judged :]
        self._judged += len(writes)
        for write in writes:
            self._check_outcome(write)
        ours: dict[tuple[str, str], set[str]] = {}
        for write in writes:
            if write.outcome == "ok":
                ours.setdefault((write.kind, write.name), set()).add(write.verb)
        for event in events:
            name = event.object["metadata"]["name"]
            verbs = ours.get((event.kind.name, name), set())
            mine = bool(verbs)
            if event.kind.name != "Pod":
                if mine and event.kind.name == "TApp":
                    self._note_status(event)
                elif mine:
                    self._check_claim(event)
                continue
            if not is_puller(event.object):
                self._judge_pod(event, verbs)

    def _judge_pod(self, event: Event, verbs: set[str]) -> None:
        """Judges one change of a pod.

        `verbs` are the verbs of Metacontroller's writes to this pod in this step; the set is empty
        if others have changed the pod.
        """
        name, mine = event.object["metadata"]["name"], bool(verbs - {"status"})
        self._close(name)
        if verbs:
            self.statuses.check(event, verbs)
        decided = self.resizes.decided_on(event.revision)
        self.holds.check(event, mine=mine)
        if decided is not None:
            self._check_resize(event, decided)
        elif mine and self.snapshot is not None and event.old is not None:
            self._check_touch(event, self.snapshot)
        if event.new is None:
            self.pods.pop(name, None)
        else:
            self.pods[name] = event.new
        if mine and event.new is not None and self.snapshot is not None:
            self._note_body(event.new, self.snapshot)
        self._close(name)

    def is_available(self, pod: Document, spec: Document, now: float) -> bool:
        """Returns True if the pod's status shows an available pod that is not being updated.

        `now` is the time of the simulated clock, in seconds.
        """
        if pod["metadata"].get("deletionTimestamp") or phase(pod) != "Running" or not ready(pod):
            return False
        age = EPOCH.timestamp() + now - ready_since(pod)
        going = updating(pod) or drains(pod) or not is_open(pod)
        return bool(age >= spec.get("minReadySeconds", 0) and not going)

    def _is_out(self, id: int, snapshot: Snapshot) -> bool:
        """Returns True if the instance does not serve now."""
        return not self.truth.can_serve(f"{self.name}-{id}", snapshot.spec)

    def _pod(self, id: int) -> str:
        return f"{self.name}-{id}"

    def _close(self, name: str) -> None:
        id = int(name.rpartition("-")[2])
        outage = self.outages.get(id)
        if outage is not None and not self._is_out(id, self.snapshot or outage.snapshot):
            pod = self.pods.get(name)
            if not (outage.is_resize and pod and self.resizes.is_under_way(pod)):
                del self.outages[id]

    def _check_resize(self, event: Event, snapshot: Snapshot) -> None:
        """Judges a PATCH that the component resize has sent, with the snapshot of the sync that
        decided on it.
        """
        old, new = event.old, event.new
        assert old is not None
        assert new is not None
        name, again = old["metadata"]["name"], self.resizes.check(old, new, snapshot)
        strategy = snapshot.spec["updateStrategy"]["inPlaceUpdateStrategy"]
        if again and gates(old) and strategy.get("gracePeriodSeconds"):
            if ready(old):
                raise ViolationError(f"P2: {name} is resized while it is Ready, and restarts")
            self.counts["resizes out of service"] += 1
        id = number(snapshot.request, name)
        assert id is not None
        for other in list(self.outages):
            self._close(self._pod(other))
        taken = id in snapshot.taken
        if taken:
            self._check_budget(id, snapshot, late=True)
        uid = old["metadata"]["uid"]
        self.pods[name] = new
        now = self.world.clock.now
        self.outages[id] = Outage(snapshot, uid, event.revision, taken, now, is_resize=True)

    def _check_touch(self, event: Event, snapshot: Snapshot) -> None:
        old, new = event.old, event.new
        assert old is not None
        name = old["metadata"]["name"]
        id = number(snapshot.request, name)
        gone = new is None or bool(new["metadata"].get("deletionTimestamp"))
        if id is None or old["metadata"].get("deletionTimestamp") or id not in snapshot.running:
            return
        seen = snapshot.pods.get(name)
        if seen is None or phase(seen) in ("Succeeded", "Failed"):
            return
        drained = not gone and drains(new or {}) and not drains(old)
        restarts = gone or images(old) != images(new or {})
        if not gone and not drained and spoken(old) == spoken(new or {}):
            return
        self.partitions.check(id, snapshot)
        self._check_reason(id, old, snapshot, restarts=restarts)
        if restarts:
            self.met[old["metadata"]["uid"]] = requests(old)
        if not restarts and not drained:
            return
        self.counts["updates"] += restarts
        for other in list(self.outages):
            self._close(f"{self.name}-{other}")
        if id in snapshot.taken:
            self._check_budget(id, snapshot)
        before, uid = self.outages.get(id), old["metadata"]["uid"]
        taken = id in snapshot.taken or (
            before is not None and before.uid == uid and before.was_available
        )
        now = self.world.clock.now
        self.outages[id] = Outage(snapshot, uid, event.revision, taken, now)

    def _check_budget(self, id: int, snapshot: Snapshot, *, late: bool = False) -> None:
        """Checks P2 for an instance that an update takes; the module's docstring defines the rule.

        `late` is True for a PATCH of the component resize, which may arrive after later decisions.
        """
        self.counts["taken"] += 1
        rolling = snapshot.group(id)
        budget = snapshot.budget(rolling=rolling)
        out = {id}
        ended = {other for other in self.outages if self.truth.ended_by_update(self._pod(other))}
        for other in (snapshot.running | ended) - {id}:
            outage = self.outages.get(other)
            if outage is not None:
                seen_on = outage.is_resize and self.resizes.counts_on(snapshot)
                if outage.is_resize and not seen_on and not self._is_out(other, snapshot):
                    continue
                if outage.began > snapshot.time and (outage.is_resize or late):
                    self.counts["excused: late resize"] += 1
                    continue
                same_sync = outage.snapshot is snapshot
                if same_sync and not rolling and snapshot.group(other):
                    continue
                seen = outage.is_seen_by(snapshot, f"{self.name}-{other}")
                if not seen and other in snapshot.available and not same_sync:
                    excused = self._excused(outage, snapshot)
                    if excused:
                        self.counts[excused] += 1
                        continue
                    budget = max(budget, snapshot.budget(rolling=snapshot.group(other)))
                if other in snapshot.available and two_tags(snapshot.pods[f"{self.name}-{other}"]):
                    self.counts["excused: two tags"] += 1
                    continue
                out.add(other)
            elif other not in snapshot.available and self._is_out(other, snapshot):
                out.add(other)
        domains.check(self.name, id, out, snapshot, self.counts)
        if len(out) > budget:
            message = f"P2: {self.name}-{id} is taken, {sorted(out)} are out, budget {budget}"
            raise ViolationError(f"{message}\n{self._account(out, snapshot)}")

    def _account(self, out: set[int], snapshot: Snapshot) -> str:
        """Describes the instances in `out` as the sync saw them and as they are, for the message of
        a violation.
        """
        lines = [
            f"now {self.world.clock.now:.2f}, decided {snapshot.time:.2f} on generation "
            f"{snapshot.generation}, should run {sorted(snapshot.running)}, available in the "
            f"snapshot {sorted(snapshot.available)}, its pods older: {snapshot.pods_are_older}"
        ]
        for id in sorted(out):
            pod, outage = self.pods.get(f"{self.name}-{id}"), self.outages.get(id)
            seen = snapshot.pods.get(f"{self.name}-{id}")
            lines.append(f"  {id}: true {brief(pod)}; seen {brief(seen)}")
            lines.append(f"     runs {self.truth.account(self._pod(id))}")
            if outage is not None:
                past = outage.snapshot
                lines.append(
                    f"     out since rv {outage.revision}, decided {past.time:.2f} on generation "
                    f"{past.generation}, then available: {outage.was_available}"
                )
        return "\n".join(lines)

    def _note_status(self, event: Event) -> None:
        for outage in self.outages.values():
            if outage.snapshot is self.snapshot and not outage.recorded:
                outage.recorded = event.revision

    def _excused(self, outage: Outage, snapshot: Snapshot) -> str:
        if outage.snapshot.generation != snapshot.generation and snapshot.pods_are_older:
            return "excused: other spec"
        recorded = outage.recorded and outage.recorded <= snapshot.parent_version
        return "" if outage.was_available or recorded else "excused: came back"

    def _check_reason(self, id: int, pod: Document, snapshot: Snapshot, *, restarts: bool) -> None:
        """Checks P4: a pod may change only if its instance's template has changed since the pod was
        created.

        A user's request to restart the pod is a reason, too. `restarts` is True if the change
        restarts or replaces containers.
        """
        if requests(pod) - self.met.get(pod["metadata"]["uid"], set()):
            return
        body = snapshot.template(id)
        if body is None:
            raise ViolationError(f"P4: {self.name}-{id} is touched without a template")
        made_of = self.bodies.get(identity(pod))
        seen = snapshot.pods[pod["metadata"]["name"]]
        in_place = resources_mode(snapshot.spec) == "InPlace"
        never = in_place and is_infeasible(seen)
        if never or (in_place and not restarts and lacks_resources(seen, body)):
            return
        if (
            made_of == body_of(body, snapshot.spec)
            and seen["metadata"]["uid"] == pod["metadata"]["uid"]
        ):
            stale = seen["metadata"]["resourceVersion"] != pod["metadata"]["resourceVersion"]
            if stale and self.bodies.get(identity(seen)) != body_of(body, snapshot.spec):
                self.counts["touched on an old sight"] += 1
                return
            raise ViolationError(f"P4: {self.name}-{id} is touched though its spec is the same")
        if restarts and made_of and resources_only(made_of, body) and is_recorded(pod, snapshot):
            self.resizes.check_replaced(made_of, seen, body, snapshot)
        fresh = seen["metadata"]["resourceVersion"] == pod["metadata"]["resourceVersion"]
        if restarts and fresh and made_of and no_cause_to_restart(made_of, pod, body, snapshot):
            raise ViolationError(f"P4: {self.name}-{id} restarts because of its resources")

    def _note_body(self, pod: Document, snapshot: Snapshot) -> None:
        id = number(snapshot.request, pod["metadata"]["name"])
        if id is None or pod["metadata"].get("deletionTimestamp"):
            return
        body = snapshot.template(id)
        if body is not None and identity(pod) not in self.bodies:
            self.bodies[identity(pod)] = body_of(body, snapshot.spec)

    def _check_outcome(self, write: Write) -> None:
        """Checks P5: the API server may refuse a write only if a test has injected that failure."""
        self.counts[f"{write.verb} {write.kind}: {write.outcome}"] += 1
        if write.outcome not in ("ok", "no-op"):
            self.statuses.note_refusal(write)
        if write.outcome in ("Invalid", "Forbidden") and "injected" not in write.message:
            raise ViolationError(f"P5: {write}")

    def _check_growth(self, old: Document, new: Document) -> None:
        """Checks P5 and P6: the update of a claim must set the size of its template, which is
        larger.

        Nothing else of the claim may change.
        """
        name, before, after = old["metadata"]["name"], storage(old), storage(new)
        template = name.removesuffix(f"-{self.name}-{name.rpartition('-')[2]}")
        assert self.snapshot is not None
        templates = self.snapshot.spec.get("volumeClaimTemplates") or []
        asked = [str(storage(each)) for each in templates if each["metadata"]["name"] == template]
        spec = {**old["spec"]}
        spec["resources"] = {**spec["resources"], "requests": {"storage": after}}
        wanted = compare(after, before) > 0 and any(not compare(after, each) for each in asked)
        if not wanted or new["spec"] != spec:
            raise ViolationError(f"P6: claim {name} is changed from {before} to {after}")
        if owners_of(new) != owners_of(old) or labels_of(new) != labels_of(old):
            raise ViolationError(f"P6: more than the size of claim {name} is changed")
        self.counts["claims grown"] += 1

    def _check_claim(self, event: Event) -> None:
        """Checks P6: a claim may only grow, and may be deleted only if the retention policy says
        so.
        """
        if event.old is None or event.old["metadata"].get("deletionTimestamp"):
            return
        name = event.old["metadata"]["name"]
        if event.new is not None and not event.new["metadata"].get("deletionTimestamp"):
            self._check_growth(event.old, event.new)
            return
        call = next(
            item for item in reversed(self.world.hook_calls) if item.hook in ("sync", "finalize")
        )
        spec = call.request["parent"]["spec"]
        policy = spec.get("persistentVolumeClaimRetentionPolicy") or {}
        key = "whenDeleted" if call.hook == "finalize" else "whenScaled"
        scaled = int(name.rpartition("-")[2]) >= spec.get("replicas", 1)
        if policy.get(key) != "Delete" or not (scaled or call.hook == "finalize"):
            raise ViolationError(f"P6: claim {name} is deleted, policy {policy}")
