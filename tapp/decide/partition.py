"""The partition: which instances are kept at an older revision, and at which revision.

A partition applies to all instances with the rolling template (docs/partition.md). Of `n` such
instances, `k` are kept and the others run the newest revision:

    k = min(partition, n)                 for a number
    k = ceil(n * percentage / 100)        for a percentage, one less if that were all of several

Instances that were kept in the last sync stay kept. Further ones are the last in the order of
updates. Each is kept at the revision of its pod or, without a pod, at the one that the status notes
(`status.kept`). The history has the template of that revision. It replaces the template of the
instance before any other rule uses the instance, so no other rule needs to know of partitions.
"""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field

from tapp.decide.instances import FromHistory, Instance, runs
from tapp.decide.kept_instances import KeptInstance, KeptInstances, label_of
from tapp.decide.rollout import FULL, portion, update_order
from tapp.decide.verdicts import no_template
from tapp.declared.revision import is_ours
from tapp.storage.records import Contents, Records, content_name
from tapp.words.notes import decode_kept
from tapp.words.quoted import quoted
from tapp.words.reasons import Reason
from tapp.world import World

UNKNOWN = "unknown"
"""The note for a pod whose revision is not known: it is unreadable, or of another controller."""


@dataclass(frozen=True)
class Partition:
    """The instances that a partition keeps at an older revision, and these revisions.

    The name of a revision includes a digest of values if its template reads any (`content_name`).
    """

    # The revision of the rolling template; "" if that does not resolve and never has
    update: str
    # The revision before that. Kept instances that are new are created of it, as in a StatefulSet
    current: str
    is_set: bool = False  # whether `spec.updateStrategy.partition` is anything but 0
    size: int = 0  # how many instances are kept
    problem: str = ""  # why the value is invalid, or ""
    # Revision -> the instances that are kept at it, those above `spec.replicas` included: the
    # revision that they had when they were scaled away
    kept: Mapping[str, list[int]] = field(default_factory=dict)
    # Revision that the history lacks -> instances that get no pod because of it
    missing: Mapping[str, list[int]] = field(default_factory=dict)

    @property
    def in_use(self) -> Set[str]:
        """Returns the revisions that the history must not lose; empty without a partition."""
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
    world: World, records: Records, instances: Iterable[Instance]
) -> tuple[Partition, dict[int, KeptInstance]]:
    """Returns the partition, and the changes that it makes to the instances that it keeps.

    The first value says how many instances are kept at which older revisions, and whether the field
    is valid. The second value maps the number of a kept instance to the changes.

    Args:
        world: the TApp with its children.
        records: the revisions in the history.
        instances: all instances of the TApp.
    """
    spec, status = world.tapp.spec, world.tapp.status
    strategy, rolling = spec.update_strategy, spec.rolling_name
    content = Contents(world).of(rolling)
    update = content_name(content) if content is not None else ""
    shown, current = update or status.update_revision, status.current_revision
    if current and strategy.partition == 0:
        return Partition(shown, current), {}
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
            return Partition(shown, current), {}
        size = partition_size(strategy.partition, size)
    except ValueError as error:
        problem = f"spec.updateStrategy.partition: {error}: no instance of {quoted(rolling)}"
    if unnamed:
        size = len(group)
        problem = (
            f"spec.updateStrategy.template: there is no template {quoted(rolling)}: no instance"
        )
    same_rollout = not update or status.update_revision == update
    # Without a pod an instance stays kept in the next rollout, too: it has to come back as it was.
    stays = {item.id for item in group if item.id in noted and (same_rollout or item.pod is None)}
    group.sort(key=lambda item: (item.id in stays, update_order(item, strategy, rolling)))
    keeper = _Keeper(world, records, KeptInstances(world, records), noted, update, current)
    kept, missing, found = dict[str, list[int]](), dict[str, list[int]](), dict[int, KeptInstance]()
    for item in sorted(group[len(group) - size :], key=lambda item: item.id):
        revision = keeper.revision_of(item)
        kept.setdefault(revision, []).append(item.id)
        if (instance := keeper.keep(item, revision)) is None:
            continue
        found[item.id] = instance
        decided = instance.decided
        if decided is not None and decided.reason is Reason.REVISION_NOT_FOUND and item.should_run:
            missing.setdefault(revision, []).append(item.id)
    for id, revision in noted.items():
        if id >= spec.replicas and revision != UNKNOWN:
            kept.setdefault(revision, []).append(id)
    kept = dict(sorted(kept.items()))
    return Partition(shown, current, True, size, problem, kept, missing), found


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


def _before(update: str, group: Iterable[Instance], records: Records) -> str:
    """Returns the newest of the older revisions that pods have, or `update` if there is none.

    The caller has checked that the status does not have the revision before `update`.

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
        and not (runs(pod, item.template) or item.updated)
    }
    return (records.newest_of(had) or max(had)) if had else update


@dataclass(frozen=True)
class _Keeper:
    """Finds the older revision at which the partition keeps an instance, and the changes to it."""

    world: World
    records: Records
    instances: KeptInstances
    noted: Mapping[int, str]  # instance -> revision, from `status.kept`
    update: str
    current: str

    def revision_of(self, instance: Instance) -> str:
        """Returns the revision at which an instance stays: that of its pod, or of the status.

        Returns `UNKNOWN` if the pod is unreadable or of another controller and the status has no
        revision either.
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
        if self.update and (runs(pod, instance.template) or instance.updated):
            return self.update
        likely = filter(None, (noted, self.current))
        label = label_of(pod) or UNKNOWN
        # The label has no hash of the values, the note has: the note counts while the record is
        # missing.
        fallback = noted if noted.startswith(f"{label}-") else label
        return self.records.of_pod(pod, instance.id, instance.template_name, likely) or fallback

    def keep(self, instance: Instance, revision: str) -> KeptInstance | None:
        """Returns the changes to an instance that the partition keeps at a revision.

        Returns None if the instance is as the current spec has it. If the history lacks the
        revision, a pod that runs stays as it is, and an instance without a pod gets none.
        """
        if revision == self.update:
            return self.instances.at_newest(instance, revision)
        pod = instance.pod
        template = self.records.template(revision, instance.id, instance.template_name)
        history = FromHistory(revision)
        if pod is not None and (pod.unreadable or pod.foreign):
            # An unreadable pod is left alone. A pod of another controller is adopted if it fits the
            # newest template as it is.
            return KeptInstance(
                instance.template,
                instance.decided,
                instance.updated,
                instance.service_name,
                history,
            )
        if template is not None:
            return self.instances.at(instance, revision, template)
        # Without the record, a pod that runs stays as it is, which is all that the partition wants.
        # Any other instance cannot get a pod.
        stays = pod is not None and not pod.completed
        decided = no_template(
            Reason.KEPT if stays else Reason.REVISION_NOT_FOUND,
            f"the partition keeps it at revision {revision}, which is not in the history",
            has_pod=pod is not None,
        )
        return KeptInstance(None, decided, False, instance.service_name, history)
