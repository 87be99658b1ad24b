"""The instances that a partition keeps, and at which revision.

docs/design.md, "The partition". Who is kept runs the template that it has, or had: it is looked up
here, once, in the ControllerRevisions, and is the instance's template before anything else looks
at it. So no other rule knows of partitions.
"""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field

from tapp.decide.as_recorded import AsKept, AsRecorded, label_of
from tapp.decide.instances import Instance, runs
from tapp.decide.rollout import FULL, portion, update_order
from tapp.declared.revision import is_ours
from tapp.declared.templates import Unresolved
from tapp.storage.records import Contents, Recorded, content_name
from tapp.words.notes import decode_kept
from tapp.words.quoted import quoted
from tapp.words.reasons import Reason
from tapp.world import World

UNKNOWN = "unknown"
"""The note of a revision that is not known: that of a pod that nobody can read, or of another
controller's."""


@dataclass(frozen=True)
class Partition:
    """The work of a partition in one sync; revisions are named as by `content_name`."""

    update: str  # the revision of the rolling template, "" where it does not resolve and never has
    current: str  # the revision before that, from which what is new is made as far as it is kept
    is_set: bool = False  # whether `spec.updateStrategy.partition` is anything but 0
    size: int = 0  # how many instances are kept
    problem: str = ""  # why the value makes no sense, or ""
    # revision -> the instances that are kept at it; and of those that were scaled away, what they
    # had
    kept: Mapping[str, list[int]] = field(default_factory=dict)
    # revision that the history does not have -> instances that are not made for it
    missing: Mapping[str, list[int]] = field(default_factory=dict)

    @property
    def in_use(self) -> Set[str]:
        """The revisions that the history has to keep for it."""
        return {*self.kept, self.current} if self.is_set else set()


def partition_size(value: int | str, group: int) -> int:
    """Resolves a partition, `2` or `"30%"`: the number of instances of a group that are kept.

    A percentage is rounded up, but below 100% it does not keep all of several, as in a CloneSet. To
    the group belong all with the rolling template, whatever they do. Raises ValueError: it is
    neither.
    """
    size = min(portion(value, group, 0), group)
    is_part = isinstance(value, str) and portion(value, FULL, 0) < FULL
    return size - 1 if is_part and size == group > 1 else size


def partition_of(
    world: World, recorded: Recorded, instances: Iterable[Instance]
) -> tuple[Partition, dict[int, AsKept]]:
    """Finds who is kept, and what each of them has, or had."""
    spec, status = world.tapp.spec, world.tapp.status
    strategy, rolling = spec.update_strategy, spec.rolling_name
    content = Contents(world).of(rolling)
    update = content_name(content) if content is not None else ""
    shown, current = update or status.update_revision, status.current_revision
    if current and strategy.partition == 0:
        return Partition(shown, current), {}
    noted, wanted = decode_kept(status.kept), [item for item in instances if item.wanted]
    group = [item for item in wanted if item.template.name == rolling]
    current = current or _before(update, group, recorded)
    unnamed = not group and spec.find_template(rolling) is None
    if unnamed:  # then nobody can tell whom it is about: all stay as they are
        group = [item for item in wanted if item.pod is not None or item.id in noted]
    size, problem = len(group), ""
    # A typo must not let anything be updated.
    try:
        if not partition_size(strategy.partition, FULL):
            return Partition(shown, current), {}
        size = partition_size(strategy.partition, size)
    except ValueError as error:
        problem = f"spec.updateStrategy.partition: {error}: no instance of {quoted(rolling)}"
    if unnamed:
        size = len(group)
        problem = f"spec.updateStrategy.template: there is no template {quoted(rolling)}: nobody"
    same_roll = not update or status.update_revision == update
    stays = {item.id for item in group if item.id in noted and (same_roll or item.pod is None)}
    # Who was kept is kept on, whatever becomes of its pod or the order; then the last in the order.
    group.sort(key=lambda item: (item.id in stays, update_order(item, strategy, rolling)))
    keeper = _Keeper(world, recorded, AsRecorded(world, recorded), noted, update, current)
    kept, missing, found = dict[str, list[int]](), dict[str, list[int]](), dict[int, AsKept]()
    for item in sorted(group[len(group) - size :], key=lambda item: item.id):
        revision = keeper.revision_of(item)
        kept.setdefault(revision, []).append(item.id)
        if (as_kept := keeper.as_kept(item, revision)) is None:
            continue
        found[item.id] = as_kept
        template = as_kept.template
        lacks = isinstance(template, Unresolved) and template.reason is Reason.REVISION_NOT_FOUND
        if lacks and item.should_run:
            missing.setdefault(revision, []).append(item.id)
    for id, revision in noted.items():
        if id >= spec.replicas and revision != UNKNOWN:
            kept.setdefault(revision, []).append(id)
    kept = dict(sorted(kept.items()))
    return Partition(shown, current, True, size, problem, kept, missing), found


def follow_current(
    world: World, partition: Partition, instances: Iterable[Instance], available: Set[int]
) -> str:
    """`status.currentRevision`: as soon as a roll is complete, the revision that it brought."""
    if partition.is_set:
        return partition.current
    rolling = world.tapp.spec.rolling_name
    if world.tapp.spec.find_template(rolling) is None:
        return partition.current
    complete = all(
        item.updated and item.id in available
        for item in instances
        if item.should_run and item.template.name == rolling
    )
    return partition.update if complete else partition.current


def _before(update: str, group: Iterable[Instance], recorded: Recorded) -> str:
    """The revision before `update`, if no status says: the newest that a pod has, else `update`."""
    had = {
        revision
        for item in group
        if (pod := item.pod) is not None
        and not pod.unreadable
        and is_ours(revision := label_of(pod))
        and revision is not None
        and not (runs(pod, item.template) or item.updated)
    }
    return (recorded.newest_of(had) or max(had)) if had else update


@dataclass(frozen=True)
class _Keeper:
    """Knows what each instance has or had."""

    world: World
    recorded: Recorded
    as_recorded: AsRecorded
    noted: Mapping[int, str]
    update: str
    current: str

    def revision_of(self, instance: Instance) -> str:
        """The revision of its pod; or, where there is none, what is noted of the last one."""
        pod, had = instance.pod, self.noted.get(instance.id, "")
        if pod is None:
            # Without a note it was not kept before: it was to run what was the rolling template
            # then. One that is new is made of the revision before, as a StatefulSet's.
            status = self.world.tapp.status
            is_known = str(instance.id) in status.statuses
            return had or (status.update_revision if is_known else "") or self.current
        if pod.unreadable:
            return had or UNKNOWN
        if pod.foreign:
            return UNKNOWN
        newest = instance.template
        if self.update and (runs(pod, newest) or instance.updated):
            return self.update
        likely = filter(None, (had, self.current))
        label = label_of(pod) or UNKNOWN
        # While the record is away, what is noted tells its values, too.
        noted = had if had.startswith(f"{label}-") else label
        return self.recorded.of_pod(pod, instance.id, newest.name, likely) or noted

    def as_kept(self, instance: Instance, revision: str) -> AsKept | None:
        """An instance as it is at a revision; None where it is as the spec has it."""
        if revision == self.update:
            return self.as_recorded.at_newest(instance, revision)
        pod, called = instance.pod, instance.template.name
        template = self.recorded.template(revision, instance.id, called)
        if pod is not None and (pod.unreadable or pod.foreign):
            # It is left alone, or taken over if it fits the template as it is.
            return AsKept(instance.template, instance.updated, instance.service_name, revision)
        if template is not None:
            return self.as_recorded.at(instance, revision, template)
        lacks = f"the partition keeps it at revision {revision}, which the history does not have"
        stays = pod is not None and not pod.completed
        reason = Reason.KEPT if stays else Reason.REVISION_NOT_FOUND
        unresolved = Unresolved(called, lacks, reason)
        return AsKept(unresolved, False, instance.service_name, revision)
