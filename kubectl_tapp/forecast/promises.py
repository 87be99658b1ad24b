"""Checks the safety properties of docs/guarantees.md at every write of a rehearsed run.

`PromiseJudge` is the entry point. It uses none of the service's decisions. It compares the objects
that a sync saw with the objects of the simulated cluster. It covers P2 (the budget, and leaving the
Services), P4 (partition and hold), P5 (updates are accepted) and P6 (claims). It judges less
strictly than the model tests (`tests/model/judge.py`). If a stale cache could explain a write, it
reports nothing.
"""

from dataclasses import dataclass, field

from kubectl_tapp.base.observed import Document
from kubectl_tapp.forecast.serving_watch import (
    UPDATE,
    ServingWatch,
    images_of,
    is_leaving,
    is_ready,
    takes,
)
from simulator.api.store import Event
from simulator.recording import INJECTED, Write
from tapp.decide.partition import partition_size
from tapp.kube.restarts import COMPLETED
from tapp.plan import Plan
from tapp.words.ranges import id_list
from tapp.words.times import UNKNOWN
from tapp.words.vocabulary import GATES, HOLD, HOLD_FOR, TEMPLATE_HASH

_PERMITTED = "Delete"  # The retention policy that permits the deletion of claims


@dataclass
class PromiseJudge:
    """Checks each write of one run against the safety properties, and collects the violations.

    Attributes:
        watch: knows which instances serve.
        same_template: the instances whose assigned template the edit does not change.
        violations: a sentence about each violated property.
        deleted_claims: the names of the claims that were deleted.
    """

    watch: ServingWatch
    same_template: set[int]
    violations: list[str] = field(default_factory=list)
    deleted_claims: list[str] = field(default_factory=list)
    resized: set[int] = field(default_factory=set)
    """Instances whose resources were patched. The service sends such a patch itself, outside the
    answers to Metacontroller.
    """
    _first_hash: dict[int, str] = field(default_factory=dict)
    _hash: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for id, pod in self.watch.pods.items():
            self._first_hash[id] = self._hash[id] = _hash_of(pod)

    def judge(self, event: Event, mine: bool, plan: Plan | None) -> None:
        """Checks one change of an object. The caller passes the change to `watch` afterwards.

        `mine` is True if Metacontroller made the change. `plan` has the decisions of the last sync;
        None if there was no sync yet.
        """
        if event.kind.name == "PersistentVolumeClaim":
            self._check_claim(event, mine, plan)
            return
        id = self.watch.id_of(event.object) if event.kind.name == "Pod" else None
        if id is None or not mine or plan is None:
            return
        if event.new is not None:
            self._check_partition(id, event.new, plan)
        if not takes(event) or event.old is None:
            return
        ended = (event.old.get("status") or {}).get("phase") in COMPLETED
        if id in self.watch.should_run and not ended:
            self._check_hold(id, event.old, plan)
            self._check_services(id, event, plan)
            self._check_budget(id, plan)
        self.watch.take(id, plan.world.tapp.spec.min_ready_seconds)

    def judge_write(self, write: Write) -> None:
        """Reports a violation of P5 if the API server refused an update of a pod as invalid."""
        is_update = write.verb == "update" and write.kind == "Pod"
        if is_update and write.outcome == "Invalid" and not write.message.startswith(INJECTED):
            self._broken("P5", f"the API server refuses {write}")

    def _broken(self, promise: str, text: str) -> None:
        self.violations.append(f"{promise}: {text}")

    # P2: the budget, and leaving the Services.

    def _check_budget(self, id: int, plan: Plan) -> None:
        """Reports a violation of P2 if an update of this instance exceeds the budget.

        Instances that the sync could not know to be unavailable do not count.
        """
        watch, least_ready = self.watch, plan.world.tapp.spec.min_ready_seconds
        if not watch.is_available(id, least_ready) or not self._seen_available(id, plan):
            return
        allowed, taken = [self._allowed(id, plan)], {id}
        for other in watch.should_run - {id}:
            if watch.is_available(other, least_ready) or other in self.resized:
                continue
            outage, seen = watch.outages.get(other), self._seen_available(other, plan)
            if outage is not None and outage.cause == UPDATE:
                # A sync that reads from a stale cache may not have seen an update of an earlier
                # generation of the spec. That update counts only if the sync could know about it.
                known = outage.generation == watch.generation and outage.was_available
                if known or not seen:
                    taken.add(other)
                    allowed.append(self._allowed(other, plan))
            elif not seen:
                taken.add(other)
        most = None if None in allowed else max(each for each in allowed if each is not None)
        if most is not None and len(taken) > most:
            self._broken(
                "P2",
                f"instance {id} is updated, so instances {id_list(sorted(taken))} do not serve; "
                f"the budget allows {most}",
            )

    def _allowed(self, id: int, plan: Plan) -> int | None:
        """Returns how many instances the budget of this instance allows to be unavailable.

        None if the budget sets no limit, or if the plan has no such instance.
        """
        rolling = plan.world.tapp.spec.rolling_name
        for instance in plan.instances:
            if instance.id == id:
                limit = plan.budgets.limit_of(instance, rolling)
                return None if limit.least is None else limit.should_run - limit.least
        return None

    def _seen_available(self, id: int, plan: Plan) -> bool:
        """Returns True if the instance had an available pod in the objects that the sync of `plan`
        received.
        """
        pod = plan.world.pods.get(id)
        if pod is None or pod.terminating or not pod.ready or pod.phase in COMPLETED:
            return False
        if pod.ready_seconds == UNKNOWN:
            return True
        return plan.now - pod.ready_seconds >= plan.world.tapp.spec.min_ready_seconds

    def _check_services(self, id: int, event: Event, plan: Plan) -> None:
        """Reports a violation of P2 if containers restart in place before the pod has left its
        Services.
        """
        old, new = event.old, event.new
        spec = plan.world.tapp.spec.update_strategy.in_place_update_strategy
        if old is None or new is None or new["metadata"].get("deletionTimestamp"):
            return
        gates = {each.get("conditionType") for each in old["spec"].get("readinessGates") or []}
        if not gates.intersection(GATES) or not spec.grace_period_seconds:
            return
        seen = plan.world.pods.get(id)
        asked = is_leaving(old) or not is_ready(old) or seen is None or not seen.ready
        if images_of(old) != images_of(new) and not asked:
            self._broken("P2", f"instance {id} restarts in place while it gets requests")

    # P4: hold and partition.

    def _check_hold(self, id: int, old: Document, plan: Plan) -> None:
        """Reports a violation of P4 if a Ready pod is updated or deleted although it is on hold.

        `old` is the pod before the write. Nothing is reported if the spec sets a time limit for
        holds, or if the hold prevents only one kind of action.
        """
        notes, spec = old["metadata"].get("annotations") or {}, plan.world.tapp.spec
        limits = (spec.update_strategy.hold_timeout_seconds, spec.deletion_hold_timeout_seconds)
        is_held = bool(notes.get(HOLD)) and not notes.get(HOLD_FOR) and limits == (None, None)
        if is_held and is_ready(old):
            self._broken("P4", f"instance {id} is on hold, and is updated all the same")

    def _check_partition(self, id: int, new: Document, plan: Plan) -> None:
        """Reports a violation of P4 if more instances have the new revision than the partition
        allows.

        `new` is the pod of the instance after the write.
        """
        if new["metadata"].get("deletionTimestamp"):
            return
        found, first, last = _hash_of(new), self._first_hash.get(id), self._hash.get(id)
        self._hash[id] = found
        if first is None or last != first or found == first or id not in self.same_template:
            return
        spec = plan.world.tapp.spec
        group = [x.id for x in plan.instances if x.template_name == spec.rolling_name]
        try:
            kept = partition_size(spec.update_strategy.partition, len(group))
        except ValueError:
            return
        updated = [x for x in group if self._hash.get(x) != self._first_hash.get(x)]
        if kept and id in group and len(updated) > len(group) - kept:
            self._broken(
                "P4",
                f"instance {id} gets the new revision, and the partition keeps {kept} of "
                f"{len(group)}",
            )

    # P6: claims.

    def _check_claim(self, event: Event, mine: bool, plan: Plan | None) -> None:
        """Records the deletion of a claim, and reports a violation of P6 if the spec forbids it.

        The spec permits it only with the retention policy Delete, for instances outside
        spec.replicas. `mine` is True if Metacontroller deleted the claim.
        """
        old, new = event.old, event.new
        if old is None or old["metadata"].get("deletionTimestamp"):
            return
        if new is not None and not new["metadata"].get("deletionTimestamp"):
            return
        name = old["metadata"]["name"]
        self.deleted_claims.append(name)
        if plan is None or not mine:
            return
        spec = plan.world.tapp.spec
        policy = spec.persistent_volume_claim_retention_policy.when_scaled
        number = int(name.rpartition("-")[2])
        if policy != _PERMITTED or number < spec.replicas:
            self._broken("P6", f"claim {name} is deleted, and no policy says so")


def _hash_of(pod: Document) -> str:
    return str((pod["metadata"].get("labels") or {}).get(TEMPLATE_HASH, ""))
