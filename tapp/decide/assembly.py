"""Assembles the instances: collects all observations about each of them before it is judged.

Each rule computes one part of some instances. This module calls the rules and puts the parts
together; afterwards no instance changes. The template comes first, because all other parts depend
on it. An instance has the template of the spec. If a partition or a rollback keeps the instance at
an older revision, it has the template of that revision.
"""

from collections.abc import Iterable
from typing import NamedTuple

from tapp.decide.comparison import compare
from tapp.decide.instances import (
    RECHECK,
    Instance,
    app_status,
    gives_way,
    observe_instances,
    with_parts,
)
from tapp.decide.partition import Partition, partition_of
from tapp.decide.pod_problems import CreationProblems, find_problems
from tapp.decide.resizes import resize_states
from tapp.decide.rollback import Rollback, rollback_of
from tapp.kube.restarts import COMPLETED
from tapp.pod.pace import Pace, pace
from tapp.storage.records import Records
from tapp.words.vocabulary import AppStatus
from tapp.world import Options, World


class Assembly(NamedTuple):
    """All instances of a TApp with all observations about them, ready to be judged."""

    # Sorted by number: the instances below `spec.replicas`, then surplus pods with higher numbers
    instances: list[Instance]
    records: Records  # the ControllerRevisions in the history
    partition: Partition  # which instances are kept at which older revision
    rollback: Rollback  # whether the newest revision is rolled back
    problems: CreationProblems  # why no pod can be created for some instances
    app_status: AppStatus  # `status.appStatus`
    waits: list[float]  # seconds until an observation about an instance changes


def assemble(world: World, options: Options, now: float) -> Assembly:
    """Returns the instances with all observations on which their verdicts depend.

    `now` is the time of this sync, in seconds since the epoch.
    """
    instances, records = observe_instances(world, now), Records(world)
    # The partition replaces the template of an instance, so all later rules see the kept template.
    partition, instances = partition_of(world, records, instances)
    # Afterwards, because instances that the partition keeps do not take part in a rollback.
    rollback, instances = rollback_of(world, records, partition, instances)
    problems = find_problems(world, records, instances, options, now)
    app = app_status(instances)
    comparisons = compare(world, records, instances, options)
    resizes = resize_states(instances, world, options, now) if world.tapp.spec.resizes else {}
    paces = _paces(instances, world, now)
    removals = _removals(instances, app, world, options)
    waits = [max(each.due - now, RECHECK) for each in paces.values() if not each.is_due]
    waits += [RECHECK] if False in removals.values() else []

    # Most instances have none of these parts, and copying thousands of them would take long.
    touched = {*comparisons, *resizes, *problems.blocked, *problems.new_pod, *paces, *removals}
    if touched:
        instances = [
            with_parts(
                item,
                comparison=comparisons.get(item.id),
                resize=resizes.get(item.id),
                problems=problems.of(item),
                pace=paces.get(item.id),
                remove_finished=removals.get(item.id, False),
            )
            if item.id in touched
            else item
            for item in instances
        ]
    return Assembly(instances, records, partition, rollback, problems, app, waits)


def _removals(
    instances: Iterable[Instance], app: AppStatus, world: World, options: Options
) -> dict[int, bool]:
    """Returns number of a finished instance -> True if its pod may be deleted in this sync.

    - True: the status in the request already has the result of the instance.
    - False: the pod has to wait until Metacontroller has sent a status with the result. Without
      that status the result would be lost with the pod, and the instance would run again.
    - No entry: the pod of the finished instance stays.

    Args:
        instances: all instances of the TApp.
        app: the status of all instances together, `status.appStatus`.
        world: the TApp with its children.
        options: the operator's settings.
    """
    # With this option, finished pods are deleted together, when the last instance has finished.
    if app is AppStatus.RUNNING and options.delete_pod_after_app_finish:
        return {}
    remembered = world.tapp.status.statuses
    return {
        item.id: remembered.get(str(item.id)) == item.status
        for item in instances
        if item.finished and item.pod is not None and item.wanted
    }


def _paces(instances: Iterable[Instance], world: World, now: float) -> dict[int, Pace]:
    """Returns instance number -> when its completed pod may be replaced.

    An instance has an entry if its pod was created from its current template and ended soon after
    its creation. A pod of another template is replaced at once, because the new template may repair
    the instance. `now` is the time of this sync, in seconds since the epoch.
    """
    noted, found = world.tapp.status.failures, dict[int, Pace]()
    for instance in instances:
        pod = instance.pod
        if pod is None or pod.phase not in COMPLETED or pod.terminating or not instance.should_run:
            continue
        # A pod that this service set to Failed, because its node is lost, did not fail by itself.
        if not instance.updated or pod.failed_by_service or not gives_way(pod, instance.update):
            continue
        if (each := pace(pod, instance.id, noted, now)) is not None:
            found[instance.id] = each
    return found
