"""Automatic rollback: what a rollout does at its deadline (`updateStrategy.onDeadline: Rollback`).

Entry point: `rollback_of`. When the rollout of a revision exceeds its deadline (`deadline.py`), the
sync only notes the revision, the time and the cause in `status.rolledBack`. All later syncs give
the instances of the rolling group the revision `status.currentRevision`, by the same means by which
a partition keeps instances (`kept_instances.py`). So the return is an ordinary update: in place if
possible, within the budget, and prevented by a hold or `paused`. The spec stays as it is.

    template of the spec              instances of the rolling group run
    a revision without a note         the template of the spec; the rollout has its own deadline
    a revision with a note            `currentRevision`, whatever happens: never back and forth
    `currentRevision` itself          the template of the spec; all notes are dropped

The notes are dropped as well when a rollout completes, and when `onDeadline` is not `Rollback`. The
annotation RETRY of the TApp drops the note that it names. Without a note (somebody has removed the
status) the revision is rolled out again, until its next deadline.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tapp.decide.cases import Case
from tapp.decide.instances import Instance
from tapp.decide.kept_instances import KeptInstances
from tapp.decide.partition import Partition
from tapp.declared.model import TApp
from tapp.storage.records import Records
from tapp.words.conditions import Type
from tapp.words.notes import RolledBackNote, decode_rolled_back
from tapp.words.reasons import Reason
from tapp.words.times import UNKNOWN, seconds
from tapp.words.vocabulary import RETRY
from tapp.world import World


@dataclass(frozen=True)
class Rollback:
    """The rollbacks of a TApp, and whether the newest revision is rolled back."""

    is_set: bool = False  # whether `spec.updateStrategy.onDeadline` is `Rollback`
    update: str = ""  # the newest revision of the rolling template; "" if it cannot be resolved
    to: str = ""  # `status.currentRevision`, to which instances return
    # Revision -> the note about its rollback. Notes that a retry or a complete rollout has ended
    # are left out
    notes: Mapping[str, RolledBackNote] = field(default_factory=dict)
    active: RolledBackNote | None = None  # the note about `update`; None if it is not rolled back
    obstacle: str = ""  # why no rollback is possible now, as a clause; "" if it is possible
    # True if this sync is the first of a rollback, or of the retry that ends a rollback. The last
    # sync has chosen instances for another revision
    is_turned: bool = False
    # Since when the status notes the progress of the present direction, in seconds since the epoch
    turned_at: float = UNKNOWN
    missing: Sequence[int] = ()  # instances that get no pod, because the history lacks `to`
    # True if the rollout has exceeded its deadline in this sync, and the next sync rolls it back
    begins: bool = False

    @property
    def in_use(self) -> frozenset[str]:
        """The revision that the history must not lose, as a set that may be empty."""
        is_older = self.is_set and self.to not in ("", self.update)
        return frozenset({self.to}) if is_older else frozenset()

    def after(self, waiting: Sequence[Case], rolling: str) -> "Rollback":
        """Returns this rollback after a rollout has exceeded its deadline, with `begins`.

        The rollback begins if the rollout waits for an instance that runs the rolling template and
        that no partition keeps at an older revision.

        Args:
            waiting: the instances that the rollout waits for.
            rolling: the name of the rolling template.
        """
        if not self.is_set or self.active is not None or self.obstacle:
            return self
        return replace(self, begins=any(_is_rolled(case, rolling) for case in waiting))


NO_ROLLBACK = Rollback()


def rollback_of(
    world: World, records: Records, partition: Partition, instances: list[Instance]
) -> tuple[Rollback, list[Instance]]:
    """Decides whether the newest revision is rolled back.

    Returns the rollback, and all instances. If the newest revision is rolled back, the instances of
    the rolling group have the template, claims and Service of `status.currentRevision`. Instances
    that the partition keeps at an older revision stay at that revision.

    Args:
        world: the TApp with its children.
        records: the revisions in the history.
        partition: the partition of the TApp.
        instances: all instances, as the partition has left them.
    """
    tapp, rolling = world.tapp, world.tapp.spec.rolling_name
    if tapp.spec.update_strategy.on_deadline != "Rollback":
        return NO_ROLLBACK, instances
    update, to = records.current.get(rolling, ""), partition.current
    noted = decode_rolled_back(tapp.status.rolled_back)
    # A complete rollout, or a change back to the revision of the last one, ends all rollbacks.
    notes = {} if update and update == to else _without_retried(tapp, noted)
    active, was_active = notes.get(update), _was_active(tapp)
    if active is None:
        ended = update in noted
        found = Rollback(
            is_set=True,
            update=update,
            to=to,
            notes=notes,
            obstacle=_obstacle(records, rolling, update, to),
            is_turned=ended,
            # The status has the progress of the return, with which a retry has nothing to do.
            turned_at=float("inf") if ended else UNKNOWN,
        )
        return found, instances
    history = KeptInstances(world, records, update, rolled_back=True)
    returned = [
        history.keep(item, to)
        if item.wanted and item.template_name == rolling and not item.kept
        else item
        for item in instances
    ]
    missing = [
        item.id
        for item in returned
        if item.is_rolled_back
        and item.should_run
        and item.decided is not None
        and item.decided.reason is Reason.REVISION_NOT_FOUND
    ]
    found = Rollback(
        is_set=True,
        update=update,
        to=to,
        notes=notes,
        active=active,
        is_turned=not was_active,
        turned_at=seconds(active.at),
        missing=missing,
    )
    return found, returned


def _without_retried(tapp: TApp, noted: Mapping[str, RolledBackNote]) -> dict[str, RolledBackNote]:
    """Returns the notes about rollbacks without the one that the annotation RETRY names."""
    retry = tapp.metadata.annotations.get(RETRY)
    return {revision: note for revision, note in noted.items() if note.retry != retry}


def _was_active(tapp: TApp) -> bool:
    """Returns True if the last sync already returned instances to an older revision."""
    return any(
        condition.type == Type.STALLED and condition.reason == Reason.ROLLED_BACK
        for condition in tapp.status.conditions
    )


def _obstacle(records: Records, rolling: str, update: str, to: str) -> str:
    """Returns why instances cannot return to revision `to`, as a clause, or an empty string.

    Args:
        records: the revisions in the history.
        rolling: the name of the rolling template.
        update: the newest revision of the rolling template; "" if it cannot be resolved.
        to: `status.currentRevision`.
    """
    if not update or to in ("", update):
        return "no other revision has been rolled out before"
    if records.templates_of(to, rolling) is None:
        return f"the history lacks revision {to}, which was rolled out before"
    return ""


def _is_rolled(case: Case, rolling: str) -> bool:
    """Returns True if an instance follows the newest revision of the rolling template.

    `rolling` is the name of the rolling template.
    """
    return case.instance.template_name == rolling and not case.instance.kept
