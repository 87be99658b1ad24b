"""Progress of a roll, and its end where there is none for `spec.progressDeadlineSeconds`.

docs/design.md, "The deadline". A roll is on from the first instance that is to be updated, or is
new, until all that should run are available. How far it has come are two counts, and the status
notes the highest of each with the time: an instance that falls back and recovers, however often, is
no progress.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

from tapp.decide.instances import Instance, is_fresh
from tapp.decide.judge import Verdict
from tapp.decide.rollout import is_update
from tapp.declared.model import TApp, TAppSpec
from tapp.pod.trouble import TROUBLE_AFTER
from tapp.words.notes import ReachedNote, decoded
from tapp.words.reasons import Disposition, Reason
from tapp.words.times import noted_since


@dataclass(frozen=True)
class Roll:
    """The course of a roll."""

    # how far it has come -> since when, RFC 3339; empty where there is no roll
    progressed: Mapping[ReachedNote, str] = field(default_factory=dict)
    since: str = ""  # that time
    waiting: Sequence[tuple[Instance, Verdict]] = ()  # those that are waited for, with decisions
    late: bool = False  # whether nothing has come further for too long
    waits: tuple[float, ...] = ()  # seconds after which it will be too long
    # seconds for which what is wrong may still be put right by it, because it has come further just
    # now; 0 where there is no roll
    patience: float = 0.0


def follow_roll(  # noqa: PLR0913, PLR0917 - what is known of it
    tapp: TApp,
    instances: Sequence[Instance],
    verdicts: Sequence[Verdict],
    decisions: Sequence[Verdict],
    available: Set[int],
    now: float,
) -> Roll:
    """Follows the roll that is under way, if one is; the status says how far it had come.

    The verdicts are judged alone; the decisions are what happens now.
    """
    limit = tapp.spec.progress_deadline_seconds
    if not limit:
        return Roll()
    noted, generation = decoded(ReachedNote, tapp.status.progressed), tapp.metadata.generation
    waiting, is_on, begun, ready = list[tuple[Instance, Verdict]](), bool(noted), 0, 0
    for instance, verdict, decision in zip(instances, verdicts, decisions, strict=True):
        if not instance.wanted:
            continue
        done = verdict.reason.disposition is Disposition.DONE
        serves = instance.id in available or not instance.should_run
        begun += done
        ready += done and serves
        if (done and serves) or not _is_waited_for(instance, decision, serves=serves):
            continue
        waiting.append((instance, decision))
        is_on = is_on or is_update(verdict) or is_fresh(tapp, instance.id)
    if not waiting or not is_on:
        return Roll()
    mine = [one for one in noted if one.generation == generation]
    had = max(mine, default=ReachedNote(generation, -1, -1))
    further = begun > had.begun or ready > had.available
    since, at = noted_since("" if further else noted.get(had, ""), now)
    reached = ReachedNote(generation, max(begun, had.begun), max(ready, had.available))
    asked = _asked_to_wait(tapp.spec, waiting)
    left = at + limit + asked - now
    patience = max(0.0, at + min(limit, TROUBLE_AFTER) + asked - now)
    if tapp.spec.update_strategy.paused:
        return Roll({reached: since}, since, waiting, patience=patience)
    waits = (left,) if left > 0 else ()
    return Roll({reached: since}, since, waiting, left <= 0, waits, patience)


def _is_waited_for(instance: Instance, decision: Verdict, *, serves: bool) -> bool:
    """True if it is to come further, and neither its author nor a refusal keeps it where it is."""
    if decision.reason in (Reason.PAUSED, Reason.HELD) or not instance.should_run:
        return False
    refused = decision.reason.disposition is Disposition.BLOCKED
    return not (refused and (serves or instance.pod is None))


def _asked_to_wait(spec: TAppSpec, waiting: Iterable[tuple[Instance, Verdict]]) -> float:
    """Seconds that an update may take because its author has asked for that."""
    stopping = [
        pod.spec.grace_seconds * max(1, len(instance.update.unfinished))
        for instance, _ in waiting
        if (pod := instance.pod) is not None and (pod.terminating or instance.update.unfinished)
    ]
    grace = spec.update_strategy.in_place_update_strategy.grace_period_seconds
    return spec.min_ready_seconds + grace + max(stopping, default=0.0)
