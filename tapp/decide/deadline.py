"""The progress of a rollout, and its deadline (`spec.progressDeadlineSeconds`).

A rollout is under way from the first instance that needs an update, or is new, until all instances
that should run are available (docs/progress.md, "The deadline"). Its progress is a pair of counts
of the instances below `spec.replicas`:

    begun       instances that need nothing more (their verdict is done)
    available   the instances in `begun` that are available, or should not run

The status notes the highest value of each count, with the time at which one of the two counts last
grew. The deadline counts from that time. An instance that fails and recovers repeatedly makes no
progress, because the highest values stay the same.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

from tapp.decide.cases import Case
from tapp.decide.instances import is_fresh
from tapp.decide.standing import InstanceStanding
from tapp.declared.model import TApp, TAppSpec
from tapp.pod.trouble import TROUBLE_AFTER
from tapp.words.notes import ReachedNote, decoded
from tapp.words.reasons import Standing
from tapp.words.times import UNKNOWN, noted_since, seconds


@dataclass(frozen=True)
class Rollout:
    """The rollout that is under way: its progress, the instances it waits for, and its deadline."""

    # One entry: the highest counts reached -> when they were reached, RFC 3339. Empty without a
    # rollout
    progressed: Mapping[ReachedNote, str] = field(default_factory=dict)
    since: str = ""  # when the highest counts were reached, RFC 3339; empty without a rollout
    waiting: Sequence[Case] = ()  # the instances that the rollout waits for
    exceeded: bool = False  # whether the deadline has passed
    waits: tuple[float, ...] = ()  # seconds until the deadline; empty if it has passed or is paused
    # Seconds for which a rollout that has just made progress is still expected to repair broken
    # instances; 0 if that time is over, or without a rollout
    patience: float = 0.0


NO_ROLLOUT = Rollout()


def follow_rollout(  # noqa: PLR0913 - all but the first come from other rules of this sync
    tapp: TApp,
    cases: Sequence[Case],
    standings: Mapping[int, InstanceStanding],
    available: Set[int],
    now: float,
    *,
    turned_at: float = UNKNOWN,
    is_incomplete: bool = False,
) -> Rollout:
    """Returns the rollout that is under way, or `NO_ROLLOUT`.

    `NO_ROLLOUT` also means that `spec.progressDeadlineSeconds` is 0, because then nothing is
    measured.

    Args:
        tapp: the TApp; its status has the progress that earlier syncs have noted.
        cases: all instances with the decisions on them.
        standings: instance number -> how the instance stands (`standings_of`).
        available: the numbers of the available instances.
        now: the time of this sync, in seconds since the epoch.
        turned_at: when a rollback or the retry after it began, in seconds since the epoch. Progress
            that was noted before belongs to another rollout of the same generation.
        is_incomplete: True if the status shows in another way that a rollout is on. The cache of
            Metacontroller may lack the progress that the last sync has noted.
    """
    limit = tapp.spec.progress_deadline_seconds
    if not limit:
        return NO_ROLLOUT
    noted, generation = decoded(ReachedNote, tapp.status.progressed), tapp.metadata.generation
    waiting, is_on, begun, ready = list[Case](), bool(noted) or is_incomplete, 0, 0
    for case in cases:
        instance = case.instance
        if not instance.wanted:
            continue
        done = case.verdict.reason.standing is Standing.DONE
        serves = instance.id in available or not instance.should_run
        begun += done
        # An instance of the old revision does not count, although it may be available.
        ready += done and serves
        # Instances without an entry are done.
        if instance.id not in standings or not standings[instance.id].is_awaited:
            continue
        waiting.append(case)
        is_on = is_on or case.verdict.is_update or is_fresh(tapp, instance.id)
    if not waiting or not is_on:
        return NO_ROLLOUT
    # A change of the spec starts the deadline again, because it is another rollout.
    mine = [
        one
        for one, since in noted.items()
        if one.generation == generation and seconds(since) >= turned_at
    ]
    best = max(mine, default=ReachedNote(generation, -1, -1))
    further = begun > best.begun or ready > best.available
    since, at = noted_since("" if further else noted.get(best, ""), now)
    reached = ReachedNote(generation, max(begun, best.begun), max(ready, best.available))
    requested = _requested_seconds(tapp.spec, waiting)
    left = at + limit + requested - now
    patience = max(0.0, at + min(limit, TROUBLE_AFTER) + requested - now)
    # A paused rollout keeps its progress, but its deadline does not pass.
    if tapp.spec.update_strategy.paused:
        return Rollout({reached: since}, since, waiting, patience=patience)
    waits = (left,) if left > 0 else ()
    return Rollout({reached: since}, since, waiting, left <= 0, waits, patience)


def _requested_seconds(spec: TAppSpec, waiting: Iterable[Case]) -> float:
    """Returns the seconds that the spec itself adds to updates, and by which the deadline is later.

    The seconds are the sum of `minReadySeconds`, the grace period for leaving the Services, and the
    longest termination grace period of the stopping pods in `waiting`. `waiting` are the instances
    that the rollout waits for.
    """
    stopping = [
        pod.spec.grace_seconds * max(1, len(instance.update.unfinished))
        for instance in (case.instance for case in waiting)
        if (pod := instance.pod) is not None and (pod.terminating or instance.update.unfinished)
    ]
    grace = spec.update_strategy.in_place_update_strategy.grace_period_seconds
    return spec.min_ready_seconds + grace + max(stopping, default=0.0)
