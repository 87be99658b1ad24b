"""The partition: which instances are kept at an older revision, and at which revision.

A partition applies to all instances with the rolling template (docs/partition.md). Of `n` such
instances, `k` are kept and the others run the newest revision:

    k = min(partition, n)                 for a number
    k = ceil(n * percentage / 100)        for a percentage; one less if k = n > 1 and the
                                          percentage is below 100%

Instances that were kept in the last sync stay kept. If they are fewer than `k`, the instances that
are last in the order of updates are kept as well. Each is kept at the revision of its pod or,
without a pod, at the one that the status notes (`status.kept`). A revision is named by its content
(`storage/records.py`): the hash of its template and the digest of its values.

The history has the template of that revision (`kept_instances.py`). This template replaces the
template of the instance before any other rule uses the instance, so no other rule needs to know of
partitions.
"""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field

from tapp.decide.instances import Instance, runs
from tapp.decide.kept_instances import KeptInstances, label_of
from tapp.decide.rollout import FULL, portion, update_order
from tapp.declared.revision import is_ours
from tapp.storage.records import Records
from tapp.words.notes import decode_kept
from tapp.words.quoted import quoted
from tapp.words.reasons import Reason
from tapp.world import World

UNKNOWN = "unknown"
"""The note for a pod whose revision is not known: it is unreadable, or of another controller."""


def revision_phrase(revision: str) -> str:
    """Returns `revision REVISION` for a message, or a phrase for `UNKNOWN`."""
    return "an unknown revision" if revision == UNKNOWN else f"revision {revision}"


@dataclass(frozen=True)
class Partition:
    """The instances that a partition keeps at an older revision, and these revisions."""

    # The newest revision of the rolling template. If that template cannot be resolved, the revision
    # in `status.updateRevision`, which may be ""
    update: str
    # The revision of the last complete rollout. As in a StatefulSet, new instances that the
    # partition keeps are created at this revision
    current: str
    is_set: bool = False  # whether `spec.updateStrategy.partition` is anything but 0
    size: int = 0  # how many instances are kept
    problem: str = ""  # why the value is invalid, or ""
    # Revision -> the instances that are kept at it. Instances beyond `spec.replicas` are included,
    # with the revision that they had when `spec.replicas` was lowered
    kept: Mapping[str, list[int]] = field(default_factory=dict)
    # Revision that the history lacks -> instances that get no pod because of it
    missing: Mapping[str, list[int]] = field(default_factory=dict)

    @property
    def in_use(self) -> Set[str]:
        """Returns the revisions that the history must not lose; empty without a partition.

        The current revision is always included, because new instances that are kept get it.
        """
        return {*self.kept, self.current} if self.is_set else set()


def partition_size(value: int | str, group: int) -> int:
    """Returns how many instances of a group stay at an older revision.

    Raises ValueError if the value is neither a number nor a percentage.

    Args:
        value: `spec.updateStrategy.partition`, such as `2` or `"30%"`.
        group: the number of instances in the group.
    """
    size = min(portion(value, group, 0), group)
    # As in a CloneSet, a percentage below 100% does not keep all of several instances: otherwise a
    # roll-out in percentages would begin with nothing.
    is_part = isinstance(value, str) and portion(value, FULL, 0) < FULL
    return size - 1 if is_part and size == group > 1 else size


def partition_of(
    world: World, records: Records, instances: list[Instance]
) -> tuple[Partition, list[Instance]]:
    """Decides which instances the partition keeps, and gives them the template of their revision.

    Returns two values:

    - The partition: how many instances are kept at which older revisions, and whether
      `spec.updateStrategy.partition` is valid.
    - All instances. The instances that the partition keeps have the template, claims and Service of
      the revision at which they are kept.

    Args:
        world: the TApp with its children.
        records: the revisions in the history.
        instances: all instances of the TApp.
    """
    spec, status = world.tapp.spec, world.tapp.status
    strategy, rolling = spec.update_strategy, spec.rolling_name
    update = records.current.get(rolling, "")
    shown, current = update or status.update_revision, status.current_revision
    if current and strategy.partition == 0:
        return Partition(shown, current), instances
    noted, wanted = decode_kept(status.kept), [item for item in instances if item.wanted]
    group = [item for item in wanted if item.template_name == rolling]
    current = current or _before(update, group, records)
    unnamed = not group and spec.find_template(rolling) is None
    if unnamed:
        # A mistyped name of the rolling template: nothing says which instances the partition
        # means, so all of them stay as they are.
        group = [item for item in wanted if item.pod is not None or item.id in noted]
    size, problem = len(group), ""
    # An invalid value keeps all instances: a typing error must not update anything.
    try:
        if not partition_size(strategy.partition, FULL):
            return Partition(shown, current), instances
        size = partition_size(strategy.partition, size)
    except ValueError as error:
        problem = f"spec.updateStrategy.partition: {error}, so no instance of {quoted(rolling)}"
    if unnamed:
        size = len(group)
        problem = (
            f"spec.updateStrategy.template: there is no template {quoted(rolling)}, so no instance"
        )
    same_rollout = not update or status.update_revision == update
    # Without a pod an instance stays kept in the next rollout, too: it has to come back as it was.
    stays = {item.id for item in group if item.id in noted and (same_rollout or item.pod is None)}
    group.sort(key=lambda item: (item.id in stays, update_order(item, strategy, rolling)))
    revisions = _KeptRevisions(world, records, noted, update, current)
    history = KeptInstances(world, records, update)
    kept, missing, found = dict[str, list[int]](), dict[str, list[int]](), dict[int, Instance]()
    for item in sorted(group[len(group) - size :], key=lambda item: item.id):
        revision = revisions.of(item)
        kept.setdefault(revision, []).append(item.id)
        found[item.id] = history.keep(item, revision)
        decided = found[item.id].decided
        if decided is not None and decided.reason is Reason.REVISION_NOT_FOUND and item.should_run:
            missing.setdefault(revision, []).append(item.id)
    for id, revision in noted.items():
        if id >= spec.replicas and revision != UNKNOWN:
            kept.setdefault(revision, []).append(id)
    kept = dict(sorted(kept.items()))
    instances = [found.get(item.id, item) for item in instances]
    return Partition(shown, current, True, size, problem, kept, missing), instances


def follow_current(
    world: World, partition: Partition, instances: Iterable[Instance], available: Set[int]
) -> str:
    """Returns `status.currentRevision`: the revision of the last complete rollout.

    A rollout is complete when all instances with the rolling template
    (`spec.updateStrategy.template`) run its newest revision and are available. With a partition the
    current revision stays as it is.

    Args:
        world: the TApp with its children.
        partition: the partition, with the current revision so far.
        instances: all instances of the TApp.
        available: the numbers of the available instances.
    """
    if partition.is_set:
        return partition.current
    rolling = world.tapp.spec.rolling_name
    if world.tapp.spec.find_template(rolling) is None:
        return partition.current
    complete = all(
        item.updated and item.id in available
        for item in instances
        if item.should_run and item.template_name == rolling
    )
    return partition.update if complete else partition.current


def _before(update: str, group: list[Instance], records: Records) -> str:
    """Returns the newest older revision that pods of a group have, or `update` if there is none.

    This is for a status that has no current revision yet.

    Args:
        update: the newest revision of the rolling template.
        group: the instances with the rolling template.
        records: the revisions in the history.
    """
    had = {
        revision
        for item in group
        if (pod := item.pod) is not None
        and not pod.unreadable
        and is_ours(revision := label_of(pod))
        and revision is not None
        and not runs(pod, item.template)
    }
    return (records.newest_of(had) or max(had)) if had else update


@dataclass(frozen=True)
class _KeptRevisions:
    """Finds the revision at which the partition keeps an instance."""

    world: World
    records: Records
    noted: Mapping[int, str]  # instance -> revision, from `status.kept`
    update: str  # The newest revision of the rolling template, or "".
    current: str  # The revision of the last complete rollout.

    def of(self, instance: Instance) -> str:
        """Returns the revision at which an instance stays: that of its pod, or the noted one.

        Without a pod, or with an unreadable pod, the revision that the status notes counts. Returns
        `UNKNOWN` if the pod is of another controller, or if the pod is unreadable and the status
        notes no revision.
        """
        pod, noted = instance.pod, self.noted.get(instance.id, "")
        if pod is None:
            # Without a note the instance was not kept in the last sync. Then it runs the revision
            # that was the newest at that time. A new instance gets the revision before, as in a
            # StatefulSet.
            status = self.world.tapp.status
            is_known = str(instance.id) in status.statuses
            return noted or (status.update_revision if is_known else "") or self.current
        if pod.unreadable:
            return noted or UNKNOWN
        if pod.foreign:
            return UNKNOWN
        if self.update and runs(pod, instance.template):
            return self.update
        likely = filter(None, (noted, self.current))
        label = label_of(pod) or UNKNOWN
        # If the record is missing, the note in the status says more than the label of the pod,
        # because only the note has the hash of the values.
        fallback = noted if noted.startswith(f"{label}-") else label
        return self.records.of_pod(pod, instance.id, instance.template_name, likely) or fallback
