"""The instances, put together: all that is known of each, before any is judged.

Every rule finds its part of some instances, in the light of what the rules before it have found.
Only here they come together, and nothing changes an instance afterwards.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import msgspec
from msgspec.structs import asdict, replace

from tapp.decide.comparison import compare
from tapp.decide.instances import RECHECK, Instance, app_status, gives_way, instances_of
from tapp.decide.partition import Partition, partition_of
from tapp.decide.resizes import resize_states
from tapp.decide.unmade import Ahead, look_ahead
from tapp.kube.restarts import COMPLETED
from tapp.pod.pace import Pace, pace
from tapp.storage.records import Recorded
from tapp.words.vocabulary import AppStatus
from tapp.world import Options, World


@dataclass(frozen=True)
class Assembly:
    """All instances, and what has been found out beside them."""

    instances: list[Instance]  # ascending: all below `spec.replicas`, then those that are to go
    partition: Partition  # who is kept at which revision
    ahead: Ahead  # for whom no pod could be made
    app_status: AppStatus  # `status.appStatus`
    waits: list[float]  # seconds after which one of them is another


def assemble(world: World, options: Options, now: float) -> Assembly:
    """Puts together all that is known of each instance."""
    observed, recorded = instances_of(world, now), Recorded(world)
    partition, kept = partition_of(world, recorded, observed)
    instances = _with(observed, kept)
    ahead = look_ahead(world, recorded, instances, options, now)
    app = app_status(instances)
    instances = _with(instances, compare(world, recorded, instances, options))
    if world.tapp.spec.resizes:
        instances = _with(instances, resize_states(instances, world, options, now))
    paces = _paces(instances, world, now)
    removals = _removals(instances, app, world, options)
    waits = [max(each.due - now, RECHECK) for each in paces.values() if not each.is_due]
    waits += [RECHECK] if False in removals.values() else []

    def whole(item: Instance) -> Instance:
        unmade = (ahead.blocked if item.pod is None else ahead.unmade).get(item.id, "")
        found, due = paces.get(item.id), removals.get(item.id, False)
        if not (unmade or found or due):
            return item
        unfit = ahead.unfit.get(item.id, "")
        return replace(item, unmade=unmade, unfit=unfit, pace=found, remove_finished=due)

    return Assembly([whole(item) for item in instances], partition, ahead, app, waits)


def _with(instances: list[Instance], parts: Mapping[int, msgspec.Struct]) -> list[Instance]:
    """The instances with these parts of some of them; a part's fields are the instance's."""
    if not parts:
        return instances
    return [
        item if (part := parts.get(item.id)) is None else replace(item, **asdict(part))
        for item in instances
    ]


def _removals(
    instances: Iterable[Instance], app: AppStatus, world: World, options: Options
) -> dict[int, bool]:
    """Finished instance whose pod is to go -> whether it may go now.

    It goes only when the parent that we were sent already remembers how it ended: a status that
    was decided but not written yet would be lost with the pod, and the instance would run again.
    """
    if app is AppStatus.RUNNING and options.delete_pod_after_app_finish:
        return {}
    remembered = world.tapp.status.statuses
    return {
        item.id: remembered.get(str(item.id)) == item.status
        for item in instances
        if item.finished and item.pod is not None and item.wanted
    }


def _paces(instances: Iterable[Instance], world: World, now: float) -> dict[int, Pace]:
    """Instance -> how soon its completed pod is replaced; at once for another template."""
    noted, found = world.tapp.status.failures, dict[int, Pace]()
    for instance in instances:
        pod = instance.pod
        if pod is None or pod.phase not in COMPLETED or pod.terminating or not instance.should_run:
            continue
        if not instance.updated or pod.made_failed or not gives_way(pod, instance.update):
            continue
        if (each := pace(pod, instance.id, noted, now)) is not None:
            found[instance.id] = each
    return found
