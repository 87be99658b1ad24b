"""Pods on hold: what is wanted of a pod that its program or a person asks to leave alone.

docs/design.md, "Hold". A hold keeps back whatever `judge` finds that the instance needs, as far as
that touches the pod; the pod is told what is wanted, and since when. That time, which this service
has written by its own clock, is where a limit counts from.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

from tapp.decide.changes import HoldMarks
from tapp.decide.instances import Instance
from tapp.decide.judge import Action, Verdict, wait
from tapp.decide.rollout import Budgets, is_update
from tapp.declared.model import TAppSpec
from tapp.pod.hold import NO_HOLD
from tapp.pod.pod import Pod
from tapp.words.quoted import quoted
from tapp.words.reasons import Reason
from tapp.words.times import is_written, noted_since, written
from tapp.words.vocabulary import Wish

WISHES = {Action.UPDATE: Wish.UPDATE, Action.RECREATE: Wish.RECREATE, Action.DELETE: Wish.DELETE}
"""Action -> the wish that a pod is told where it is to be done."""


@dataclass(frozen=True)
class HoldRequest:
    """A wish that a pod is told."""

    wish: Wish  # what
    since: str  # since when, RFC 3339; "" where it cannot be told
    held: bool  # whether a hold keeps it back now
    expired: bool  # whether there is one that no longer counts
    ends: float  # when the hold no longer counts, in seconds since the epoch; `inf` for never


def hold_request_of(pod: Pod, wish: Wish, limit: int | None, now: float) -> HoldRequest | None:
    """The wish that a pod is told of; None for one that nobody holds.

    One whose hold was removed is asked on until it is done: it is no hold that is to begin again. A
    hold counts for `limit` seconds, for ever where that is None.
    """
    found = pod.spec.hold
    if found is None or pod.terminating or pod.completed:
        return None  # one that has ended could not remove its hold
    covered = found.covers(wish)
    if not covered and found.wanted != wish:
        return None
    noted = found.since if found.wanted == wish and is_written(found.since) else ""
    since, at = noted_since(noted, now)
    if pod.unreadable and since != noted:
        # What is unreadable is not written to, so no limit begins; only that of 0 needs no time.
        since = ""
        limit = 0 if limit == 0 else None
    ends = inf if limit is None else at + limit
    return HoldRequest(wish, since, covered and now < ends, covered and now >= ends, ends)


@dataclass
class PodHolds:
    """The holds on pods in one sync."""

    holds: dict[int, Verdict] = field(default_factory=dict)  # instance -> why nothing happens now
    asked: dict[str, HoldRequest] = field(default_factory=dict)  # name of a pod -> what it is told
    waits: list[float] = field(default_factory=list)  # seconds after which a hold no longer counts


def apply_pod_holds(
    spec: TAppSpec,
    instances: Sequence[Instance],
    verdicts: Sequence[Verdict],
    budgets: Budgets,
    now: float,
) -> PodHolds:
    """Keeps back what pods on hold need, but for updates that are paused, or of no budget."""
    result, strategy = PodHolds(), spec.update_strategy
    for instance, verdict in zip(instances, verdicts, strict=True):
        pod, wish = instance.pod, WISHES.get(verdict.action)
        if wish is None or pod is None or pod.spec.hold is None:
            continue
        if is_update(verdict) and (
            strategy.paused or budgets.limit_of(instance, spec.rolling_name).least is None
        ):
            continue
        deleted = wish is Wish.DELETE
        limit = spec.deletion_hold_timeout_seconds if deleted else strategy.hold_timeout_seconds
        asked = hold_request_of(pod, wish, limit, now)
        if asked is None:
            continue
        result.asked[pod.name] = asked
        if asked.held:
            since = f"wanted since {asked.since}" if asked.since else "wanted"
            text = f"{sentence(pod, asked)}; {since}: {verdict.message}"
            result.holds[instance.id] = wait(Reason.HELD, text)
            if asked.ends < inf:
                result.waits.append(asked.ends - now)
    return result


def due_marks(pod: Pod, asked: HoldRequest | None) -> HoldMarks:
    """Marks that a pod is to carry, of which this is asked."""
    label = (pod.spec.hold or NO_HOLD).due_label
    return HoldMarks(label) if asked is None else HoldMarks(label, asked.wish, asked.since)


def carried_marks(pod: Pod) -> HoldMarks:
    """Marks that it carries."""
    found = pod.spec.hold or NO_HOLD
    return HoldMarks(found.label, found.wanted, found.since)


def sentence(pod: Pod, asked: HoldRequest) -> str:
    """A sentence: a pod is on hold, why, and until when if that is limited."""
    until = "" if asked.ends == inf else f", until {written(asked.ends)} at the latest"
    if not asked.since:
        until = ", and cannot be told what is wanted, as it is unreadable"
    return f"its pod is on hold ({quoted((pod.spec.hold or NO_HOLD).reason)}){until}"
