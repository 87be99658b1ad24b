"""The size limit of a response, and the pods that were requested and do not appear.

A template of 100 KB and thousands of instances would make one response of hundreds of megabytes,
and Metacontroller creates the objects one after the other anyway. So a response has at most about
`TAPP_MAX_NEW_PODS_BYTES` of new text. The remaining objects follow in the next syncs.

The space of a response is given away in this order:

1. Updates in place and adoptions, because they repair existing pods.
2. New pods and new claims, by instance number.
3. Pods that the API server has refused before, so that they do not delay other pods forever.

However large they are, at least one update and the new objects of at least one instance fit.
"""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from tapp.decide.cases import Case
from tapp.decide.changes import Adopt, Update
from tapp.decide.instances import RECHECK, Instance
from tapp.decide.verdicts import Action, Verdict, wait
from tapp.pod.trouble import TROUBLE_AFTER
from tapp.storage.claims import Claims
from tapp.words.notes import decode_since
from tapp.words.reasons import Reason
from tapp.words.times import seconds, written
from tapp.words.vocabulary import InstanceStatus
from tapp.world import World

_OBJECT_BYTES = 1_000  # Estimated bytes of an object without its template: names, labels, owners
_SOON_SEEN = 5.0  # Seconds after which a created pod should appear in a sync request
_CREATED_LATER = Verdict(
    Action.ABSENT,
    Reason.WAITING_FOR_TURN,
    "its pod follows in one of the next syncs, because this sync already creates as many objects "
    "as one response may hold (TAPP_MAX_NEW_PODS_BYTES)",
)
_UPDATED_LATER = wait(
    Reason.WAITING_FOR_TURN,
    "its update follows in one of the next syncs, because this sync already writes as many objects "
    "as one response may hold (TAPP_MAX_NEW_PODS_BYTES)",
)
_STAYING = (Action.KEEP, Action.MARK, Action.ADOPT, Action.UPDATE)


@dataclass
class AnswerSpace:
    """The instances that wait because the response is full, and the pods that do not appear.

    A pod does not appear if the service has requested it in an earlier sync and it still does not
    exist.
    """

    waiting: set[int] = field(default_factory=set)  # instances for which nothing is created now
    # Instance -> why its update or creation waits for a later sync
    delays: dict[int, Verdict] = field(default_factory=dict)
    # Since when, RFC 3339 -> instances whose pod was requested and does not appear
    not_created: dict[str, list[int]] = field(default_factory=dict)
    waits: list[float] = field(default_factory=list)  # seconds until another sync is needed
    bytes: int = 0  # estimated bytes of the updates and new objects that fit


def without_node(cases: Iterable[Case]) -> list[Instance]:
    """Returns the instances whose pod is created now, or exists and has no node yet.

    The claims of these instances are part of the response. A pod without a node may wait for a
    claim that the API server refused or that somebody deleted, so its claims are requested again.
    """
    return [
        case.instance
        for case in cases
        if (
            case.decision.action is Action.CREATE
            if (pod := case.instance.pod) is None
            else pod.phase == "Pending"
            and not pod.node
            and not pod.terminating
            and case.decision.action in _STAYING
        )
    ]


def fit_into_answer(
    world: World, cases: Iterable[Case], unscheduled: Sequence[Instance], limit: int, now: float
) -> AnswerSpace:
    """Decides which updates, new pods and new claims fit into a response of about `limit` bytes.

    Also finds the pods that earlier syncs have requested and that still do not exist.

    Args:
        world: the TApp with its children.
        cases: all instances with the decisions on them.
        unscheduled: the instances whose pods were requested and do not exist, or have no node
            (`without_node`).
        limit: the remaining bytes of the response.
        now: the time of this sync, in seconds since the epoch.
    """
    creating = [instance.id for instance in unscheduled if instance.pod is None]
    # The first sync without the pod proves nothing, because the pod is about to be created. The
    # time begins with a later sync whose parent already says `NotCreated`.
    requested = decode_since(world.tapp.status.not_created, now) if creating else {}
    refused = {id for id, since in requested.items() if now - seconds(since) >= _SOON_SEEN}
    # An update or an adoption writes all metadata of the template. Any other response repeats the
    # pod.
    updated = [
        case.instance
        for case in cases
        if case.verdict.change is not None
        and case.delay is None
        and isinstance(case.decision.change, Update | Adopt)
    ]
    updated_later, left = _beyond(_sizes_of_updates(updated), max(1, limit))
    sizes = _sizes_of_new(world, unscheduled, refused)
    waiting, left = _beyond(sizes, max(1, left))
    found = AnswerSpace({*waiting}, bytes=limit - left)
    found.delays = dict.fromkeys(updated_later, _UPDATED_LATER)
    found.delays |= dict.fromkeys(found.waiting.intersection(creating), _CREATED_LATER)
    if updated_later or waiting:
        found.waits.append(RECHECK)
    statuses = world.tapp.status.statuses
    for id in creating:
        # An instance that waited has no entry in the statuses: its pod was not requested.
        again = id not in found.waiting and statuses.get(str(id)) == InstanceStatus.NOT_CREATED
        since = requested.get(id) or (written(now) if again else "")
        if since:
            found.not_created.setdefault(since, []).append(id)
    found.not_created = dict(sorted(found.not_created.items()))
    if creating:
        began = [seconds(time) for time in found.not_created] or [now + _SOON_SEEN - TROUBLE_AFTER]
        found.waits += [wait for at in began if (wait := at + TROUBLE_AFTER - now) > 0]
    return found


Sizes = Iterable[tuple[int, int]]  # Pairs of an instance number and estimated bytes


def _sizes_of_updates(updated: Iterable[Instance]) -> Sizes:
    """Yields the number of each instance and the estimated bytes of its new metadata and images.

    `updated` are the instances whose pod this sync updates in place or adopts.
    """
    sizes = dict[int, int]()
    for instance in updated:
        template = instance.template
        if template is not None:
            if id(template) not in sizes:
                parts = (template.labels, template.annotations, template.images, template.images)
                sizes[id(template)] = len(msgspec.json.encode(parts)) + _OBJECT_BYTES
            yield instance.id, sizes[id(template)]


def _sizes_of_new(world: World, unscheduled: Iterable[Instance], refused: Container[int]) -> Sizes:
    """Yields the number of each instance and the estimated bytes of its new pod and new claims.

    Existing pods and existing claims count as 0 bytes. The instances are sorted by number, but the
    instances in `refused` come last.

    Args:
        world: the TApp with its children.
        unscheduled: the instances whose pod is created now, or exists and has no node yet.
        refused: the numbers of the instances whose pod was requested `_SOON_SEEN` seconds ago or
            earlier and does not appear.
    """
    claims, sizes = Claims(world), dict[int, int]()
    for instance in sorted(unscheduled, key=lambda one: (one.id in refused, one.id)):
        size, source = 0, instance.source
        for volume, claim in claims.of(source).items():
            template = claims.template_of(volume, source.recorded)
            if claim not in world.claims and template is not None:
                if id(template) not in sizes:
                    sizes[id(template)] = len(msgspec.json.encode(template)) + _OBJECT_BYTES
                size += sizes[id(template)]
        if instance.pod is None and instance.template is not None:
            host = len(instance.service_name.encode(errors="replace"))
            size += instance.template.size + host + _OBJECT_BYTES
        yield instance.id, size


def _beyond(sizes: Sizes, limit: int) -> tuple[list[int], int]:
    """Returns the numbers of the instances that do not fit into `limit` bytes, and the bytes left.

    The first instance always fits, however large it is. After the first instance that does not fit,
    only instances of 0 bytes fit. `sizes` has the instances in the order in which they get their
    space.
    """
    waiting, left = list[int](), limit
    for id, size in sizes:
        if left < limit and size > left:
            waiting.append(id)
            left = 0
        else:
            left -= size
    return waiting, left
