"""How many new pods and claims one answer carries, and which pods were asked for and do not come.

A template of 100 KB and thousands of instances would make one answer of hundreds of megabytes, and
Metacontroller creates one object after the other anyway: the others follow with the next answers.
"""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from tapp.decide.instances import RECHECK, Instance
from tapp.decide.judge import Action, Verdict
from tapp.decide.missing import as_noted
from tapp.pod.trouble import PATIENCE
from tapp.spec.templates import Template
from tapp.storage.claims import claim_templates
from tapp.words.reasons import Reason
from tapp.words.times import seconds, written
from tapp.words.vocabulary import InstanceStatus
from tapp.world import World

_OWN = 1_000
"""Bytes of an object that are not from its template: names, labels and owners, about."""
_SOON_SEEN = 5.0
"""Seconds after which a pod that was created should have been seen."""
_WAITING = Verdict(
    Action.ABSENT,
    Reason.WAITING_FOR_TURN,
    "its pod follows with one of the next answers: this one is full (TAPP_MAX_NEW_PODS_BYTES)",
)


@dataclass
class Turns:
    """Whose turn it is.

    Attributes:
        waiting: instances for which nothing is created in this answer, because it is full.
        holds: the decision on those of them that have no pod.
        not_created: since when, RFC 3339 -> instances whose pod does not come to be.
        waits: seconds after which to look again.
    """

    waiting: set[int] = field(default_factory=set)
    holds: dict[int, Verdict] = field(default_factory=dict)
    not_created: dict[str, list[int]] = field(default_factory=dict)
    waits: list[float] = field(default_factory=list)


def take_turns(world: World, candidates: Sequence[Instance], limit: int, now: float) -> Turns:
    """Decides whose pods and claims this answer carries.

    Args:
        world: what was observed.
        candidates: instances whose pod is to be made, or has no node and may wait for a claim.
        limit: bytes of new objects in an answer, about; at least one instance is served.
        now: seconds since the epoch.
    """
    creating = [instance.id for instance in candidates if instance.pod is None]
    # That a pod is missing says nothing: it is about to be created. That it is missing again, at a
    # sync whose parent says `NotCreated` already, begins the time.
    asked = as_noted(world.tapp.status.not_created, now) if creating else {}
    refused = {id for id, since in asked.items() if now - seconds(since) >= _SOON_SEEN}
    turns = Turns(_waiting(world, candidates, limit, refused))
    if turns.waiting:
        turns.holds = dict.fromkeys(turns.waiting.intersection(creating), _WAITING)
        turns.waits.append(RECHECK)
    statuses = world.tapp.status.statuses
    for id in creating:
        # One that waited has no entry in the statuses: it was not asked for.
        again = id not in turns.waiting and statuses.get(str(id)) == InstanceStatus.NOT_CREATED
        since = asked.get(id) or (written(now) if again else "")
        if since:
            turns.not_created.setdefault(since, []).append(id)
    turns.not_created = dict(sorted(turns.not_created.items()))
    if creating:
        began = [seconds(time) for time in turns.not_created] or [now + _SOON_SEEN - PATIENCE]
        turns.waits += [left for at in began if (left := at + PATIENCE - now) > 0]
    return turns


def _waiting(
    world: World, candidates: Iterable[Instance], limit: int, refused: Container[int]
) -> set[int]:
    """Those for which nothing is created now.

    What was asked for and refused goes last, so that it keeps nobody waiting for ever.
    """
    name = world.tapp.metadata.name
    sizes = {
        f"{claim}-{name}-": len(msgspec.json.encode(template)) + _OWN
        for claim, template in claim_templates(world.tapp.spec).items()
    }
    waiting, left = set[int](), limit
    for instance in sorted(candidates, key=lambda one: (one.id in refused, one.id)):
        size = sum(
            [size for prefix, size in sizes.items() if f"{prefix}{instance.id}" not in world.claims]
        )
        if instance.pod is None and isinstance(instance.template, Template):
            size += instance.template.size + _OWN
        if left < limit and size > left:
            waiting.add(instance.id)
            left = 0
        else:
            left -= size
    return waiting
