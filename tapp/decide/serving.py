"""The instances that serve, as far as one observation shows it: the budgets count them.

docs/design.md, "The budget". `_available` is where an instance counts as available, or does not;
how long a Ready pod has to last for that is in `tapp/pod/availability.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tapp.decide.instances import Instance
from tapp.decide.overdue import trouble_of_deletion
from tapp.declared.model import TApp
from tapp.pod.availability import NEVER, available_in
from tapp.pod.gate import has_closed_gate
from tapp.pod.lost import limit_of
from tapp.pod.pod import Pod
from tapp.pod.resize import Resizing, resizing_of
from tapp.pod.trouble import silence, trouble
from tapp.pod.waiting import Patience, Trouble
from tapp.words.conditions import Type
from tapp.words.reasons import Reason
from tapp.world import Options, World


@dataclass
class Serving:
    """The instances that serve, as far as one observation shows it."""

    available: set[int]  # numbers of the available instances
    # numbers of those that are not counted on, and may serve all the same: they look available, but
    # may already be on their way out, or are not trusted yet
    in_doubt: set[int]
    silent: set[int]  # numbers of those whose node is not heard of; they may serve, too
    unsettled: bool  # whether the last spec's updates may still be on their way, unseen
    # numbers of those that serve while their containers get other resources: they count as
    # available, and take a place in the budget
    resized: frozenset[int]
    deletion_unconfirmed: set[int]  # those that look available, and may already be on their way out
    waits: list[float]  # seconds until others may become available


def serving_of(world: World, instances: list[Instance], now: float) -> Serving:
    """Finds who serves."""
    available, untrusted, waits = _available(instances, world.tapp.spec.min_ready_seconds, now)
    deletion_unconfirmed = available & _chosen_before(instances, world.tapp.status.replacing)
    silent = {
        instance.id
        for instance in instances
        if instance.should_run
        and (pod := instance.pod) is not None
        and pod.ready is False
        and pod.silent
    }
    resized = frozenset[int]()
    if world.tapp.spec.resizes:
        resized = frozenset(available & {i.id for i in instances if _is_resized(i)})
    return Serving(
        available - deletion_unconfirmed,
        deletion_unconfirmed | untrusted | resized,
        silent,
        _unsettled(world.tapp),
        resized,
        deletion_unconfirmed,
        waits,
    )


def _available(
    instances: list[Instance], min_ready_seconds: int, now: float
) -> tuple[set[int], set[int], list[float]]:
    """Numbers of the available instances; of those that are Ready and not trusted yet; and waits.

    What is not trusted yet is not counted on, but most of it serves: it is not free to be taken.
    The waits are the seconds until others may become available.
    """
    available, untrusted, waits = set(), set(), []
    for instance in instances:
        pod = instance.pod
        if pod is None or pod.ready is not True or not instance.should_run or pod.spec.drains:
            continue
        if has_closed_gate(pod):
            untrusted.add(instance.id)  # its kubelet has not looked yet: it is on its way out
            continue
        if instance.update.unfinished:
            if instance.update.only_time_can_tell:
                untrusted.add(instance.id)
            continue
        if _restarts_for_resources(instance, pod):
            untrusted.add(instance.id)
            continue
        missing = available_in(pod, min_ready_seconds, now, instance.seen_since)
        if missing == 0:
            available.add(instance.id)
        elif missing != NEVER:
            untrusted.add(instance.id)
            waits.append(missing)
    return available, untrusted, waits


def _restarts_for_resources(instance: Instance, pod: Pod) -> bool:
    state = resizing_of(pod) if pod.spec.resize_restarts else None
    return state is not None and state.restarts and _is_at_work(instance, pod, state)


def _is_resized(instance: Instance) -> bool:
    """True while a kubelet is at work on other resources, as the template asks or has asked."""
    pod, wanted = instance.pod, instance.resize
    if instance.resizing is not None or pod is None or wanted is None or not wanted.resources:
        return instance.resizing is not None
    state = resizing_of(pod)
    return state is not None and _is_at_work(instance, pod, state)


def _is_at_work(instance: Instance, pod: Pod, state: Resizing) -> bool:
    """True if a resize has begun, also where the template asks for others still by now.

    One that waits for room has not, and counts only while its template asks for just that.
    """
    return instance.resizing is not None or not state.pending or pod.kubelet_is_behind


def _chosen_before(instances: list[Instance], replacing: Mapping[str, str]) -> set[int]:
    """Instances whose pod an earlier sync has chosen to replace while it was not available.

    A pod that is not available may be replaced without a look at the budget, and a deletion is not
    guarded by the pod's resourceVersion. Should the pod have recovered just before, then a lagging
    cache shows it available, and its deletion not yet; the budget would be spent on others. Or the
    deletion has failed, and the pod serves: then it has to wait for the budget like any other.
    """
    if not replacing:
        return set()
    return {
        instance.id
        for instance in instances
        if instance.pod is not None and replacing.get(str(instance.id)) == instance.pod.uid
    }


def _unsettled(tapp: TApp) -> bool:
    """True if updates of the previous spec may be under way that this observation does not show.

    Metacontroller's cache may lag behind its own writes. While the spec stays the same that does no
    harm: the same instances are chosen again, and a write on an old resourceVersion is refused. But
    right after a spec change in the middle of a roll-out other instances would be chosen, on top of
    those just taken down. One sync later the cache has been seen to move on.
    """
    observed, generation = tapp.status.observed_generation, tapp.metadata.generation
    if not observed or observed == generation:
        return False
    quiet = any(
        condition.type == Type.PROGRESSING and condition.reason == Reason.COMPLETE
        for condition in tapp.status.conditions
    )
    return not (quiet and observed == generation - 1)


def troubles_of(
    tapp: TApp, instances: Sequence[Instance], options: Options, now: float
) -> dict[int, Trouble]:
    """Returns instance -> trouble of its pod, for instances whose pod may have any.

    A pod that serves and has never restarted has none. Only the deletion of a pod can be in trouble
    if the instance should not run.
    """
    moved = tapp.spec.force_delete_pod and not tapp.spec.never_migrate
    limit, _ = limit_of(tapp.metadata.annotations, options.lost_node_seconds)
    patience = Patience(options.unschedulable_seconds, options.start_seconds, limit)
    ending = {
        instance.id: trouble_of_deletion(pod, tapp.metadata.namespace, now)
        for instance in instances
        if (pod := instance.pod) is not None and pod.terminating
    }
    return ending | {
        instance.id: silence(pod, since, now, moved=moved, limit=limit)
        if (since := instance.silent_since) is not None
        else trouble(pod, instance.update, now, patience)
        for instance in instances
        if instance.should_run
        and (pod := instance.pod) is not None
        and not pod.terminating
        and (pod.ready is not True or pod.restarts)
    }
