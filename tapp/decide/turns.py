"""Whose turn it is to be created, or to go, and which pods were asked for and do not come.

With `podManagementPolicy: OrderedReady` that is one instance after another (docs/design.md, "One
after another"). And an answer writes only so much anew.

A template of 100 KB and thousands of instances would make one answer of hundreds of megabytes, and
Metacontroller creates one object after the other anyway: the others follow with the next answers.
"""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from tapp.decide.changes import Adopt, Update
from tapp.decide.instances import RECHECK, Instance
from tapp.decide.judge import Action, Verdict, wait
from tapp.decide.rollout import is_update
from tapp.decide.serving import Serving
from tapp.declared.templates import Template
from tapp.pod.trouble import TROUBLE_AFTER
from tapp.storage.claims import Claims
from tapp.words.notes import decode_since
from tapp.words.reasons import Reason
from tapp.words.times import seconds, written
from tapp.words.vocabulary import InstanceStatus
from tapp.world import World

_OWN = 1_000  # Bytes of an object that are not from its template: names, labels and owners, about
_SOON_SEEN = 5.0  # Seconds after which a pod that was created should have been seen
_WAITING = Verdict(
    Action.ABSENT,
    Reason.WAITING_FOR_TURN,
    "its pod follows with one of the next answers: this one is full (TAPP_MAX_NEW_PODS_BYTES)",
)

_LATER = wait(
    Reason.WAITING_FOR_TURN,
    "it is updated with one of the next answers: this one is full (TAPP_MAX_NEW_PODS_BYTES)",
)


class _After(NamedTuple):
    """Decisions on instances that wait for the same: to be made, and to go."""

    made: Verdict
    gone: Verdict


def _after(what: str, reason: Reason = Reason.WAITING_FOR_ORDER) -> _After:
    """Decisions on whoever waits until this is so."""
    return _After(
        Verdict(Action.ABSENT, reason, f"its pod is made when {what} ({_POLICY})"),
        wait(reason, f"its pod goes when {what} ({_POLICY})"),
    )


_POLICY = "podManagementPolicy: OrderedReady"
_UNSETTLED = _after("the last spec's updates are known to be over", Reason.SPEC_JUST_CHANGED)


def one_after_another(
    instances: Sequence[Instance], decisions: Sequence[Verdict], serving: Serving
) -> dict[int, Verdict]:
    """Keeps the order in which pods are made, or go: instance -> `Absent` or `Keep`.

    A pod is made when all lower numbers that should run are available, and no update of this sync
    takes one of them down. Of the pods beyond `spec.replicas` the highest goes, under the same
    condition, and the next one when it is gone. Nothing else waits, so nothing that mends an
    instance does: no update, no kill, no pod that has ended and makes room. The decisions are those
    after the budget.
    """
    waiting, first = dict[int, Verdict](), _UNSETTLED if serving.unsettled else None
    surplus = [instance.id for instance in instances if not instance.wanted]
    above = _after(f"instance {surplus[-1]} is gone") if surplus else None
    for instance, decision in zip(instances, decisions, strict=True):
        id, pod = instance.id, instance.pod
        if decision.action is Action.CREATE and first is not None:
            waiting[id] = first.made
        elif decision.reason is Reason.SCALED_DOWN and pod is not None and not pod.terminating:
            ahead = first if id == surplus[-1] else first or above
            if ahead is not None:
                waiting[id] = ahead.gone
        serves = id in serving.available and not is_update(decision)
        if first is None and instance.should_run and not serves:
            first = _after(f"instance {id} is available")
    return waiting


@dataclass
class AnswerRoom:
    """The room in an answer, and who has none in it."""

    waiting: set[int] = field(default_factory=set)  # for whom this answer creates nothing
    # the decision on those of them that have no pod, and on those whose pod is to be written and is
    # not
    holds: dict[int, Verdict] = field(default_factory=dict)
    # since when, RFC 3339 -> instances whose pod does not come to be
    not_created: dict[str, list[int]] = field(default_factory=dict)
    waits: list[float] = field(default_factory=list)  # seconds after which to look again
    bytes: int = 0  # of what is written, about


def is_written(decision: Verdict) -> bool:
    """True if an answer has more of a pod's template than the request has: all its metadata."""
    return isinstance(decision.change, Update | Adopt)


def room_in_the_answer(
    world: World,
    candidates: Sequence[Instance],
    updated: Iterable[Instance],
    limit: int,
    now: float,
) -> AnswerRoom:
    """Decides whose pods and claims an answer of about `limit` bytes carries; of one at least.

    Candidates are instances whose pod is to be made, or has no node and may wait for a claim; a pod
    that is `updated` is brought to its template.
    """
    creating = [instance.id for instance in candidates if instance.pod is None]
    # That a pod is missing says nothing: it is about to be created. That it is missing again, at a
    # sync whose parent says `NotCreated` already, begins the time.
    asked = decode_since(world.tapp.status.not_created, now) if creating else {}
    refused = {id for id, since in asked.items() if now - seconds(since) >= _SOON_SEEN}
    later, room = _later(updated, max(1, limit))
    waiting, room = _waiting(world, candidates, max(1, room), refused)
    found = AnswerRoom({*waiting}, bytes=limit - room)
    found.holds = dict.fromkeys(later, _LATER)
    found.holds |= dict.fromkeys(found.waiting.intersection(creating), _WAITING)
    if later or waiting:
        found.waits.append(RECHECK)
    statuses = world.tapp.status.statuses
    for id in creating:
        # One that waited has no entry in the statuses: it was not asked for.
        again = id not in found.waiting and statuses.get(str(id)) == InstanceStatus.NOT_CREATED
        since = asked.get(id) or (written(now) if again else "")
        if since:
            found.not_created.setdefault(since, []).append(id)
    found.not_created = dict(sorted(found.not_created.items()))
    if creating:
        began = [seconds(time) for time in found.not_created] or [now + _SOON_SEEN - TROUBLE_AFTER]
        found.waits += [left for at in began if (left := at + TROUBLE_AFTER - now) > 0]
    return found


def _later(updated: Iterable[Instance], limit: int) -> tuple[list[int], int]:
    """Instances whose pod is not written now, and the bytes that are left."""
    sizes, sized = dict[int, int](), list[tuple[int, int]]()
    for instance in updated:
        template = instance.template
        if isinstance(template, Template):
            if id(template) not in sizes:
                parts = (template.labels, template.annotations, template.images, template.images)
                sizes[id(template)] = len(msgspec.json.encode(parts)) + _OWN
            sized.append((instance.id, sizes[id(template)]))
    return _beyond(sized, limit)


def _waiting(
    world: World, candidates: Iterable[Instance], limit: int, refused: Container[int]
) -> tuple[list[int], int]:
    """Instances for which nothing is created now, and the bytes that are left.

    What was asked for and refused goes last, so that it keeps nobody waiting for ever.
    """
    claims, sizes, sized = Claims(world), dict[int, int](), list[tuple[int, int]]()
    for instance in sorted(candidates, key=lambda one: (one.id in refused, one.id)):
        size, made = 0, instance.made
        for volume, claim in claims.of(made).items():
            template = claims.template_of(volume, made.past)
            if claim not in world.claims and template is not None:
                if id(template) not in sizes:
                    sizes[id(template)] = len(msgspec.json.encode(template)) + _OWN
                size += sizes[id(template)]
        if instance.pod is None and isinstance(instance.template, Template):
            host = len(instance.service_name.encode(errors="replace"))
            size += instance.template.size + host + _OWN
        sized.append((instance.id, size))
    return _beyond(sized, limit)


def _beyond(sized: Iterable[tuple[int, int]], limit: int) -> tuple[list[int], int]:
    """Instances for whose bytes there is no room, and the bytes that are left; the first has it."""
    waiting, left = list[int](), limit
    for id, size in sized:
        if left < limit and size > left:
            waiting.append(id)
            left = 0
        else:
            left -= size
    return waiting, left
