"""News of a sync for the TApp's Events: a pure function of its plan and its status.

An event is named by what happened, so that a sync which is repeated, by whichever replica and on
however stale an observation, tells the same again under the same name, and the API server keeps
one. Therefore only what an author has asked for, and what the parent's status has not said yet, is
told; and a roll is told of in steps of a tenth, however many instances it has
(docs/watch.md, "Events").
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from hashlib import sha256
from typing import Any

import msgspec

from tapp.decide.instances import Instance, is_fresh
from tapp.decide.judge import Action, Verdict
from tapp.decide.rollout import BUDGET_REASONS
from tapp.declared.observed import ObservedCondition
from tapp.declared.templates import Template
from tapp.plan import Plan
from tapp.pod.pod import Pod
from tapp.words.conditions import ALWAYS, HARMLESS, Type
from tapp.words.groups import grouped
from tapp.words.quoted import quoted
from tapp.words.ranges import id_list, numbers
from tapp.words.reasons import Reason
from tapp.words.vocabulary import InstanceStatus

STEPS = 10  # Events of a roll of one template at most: up to so many instances have one each
NOTE_BYTES = 1_000  # Kubernetes takes 1,024 (pkg/apis/core/validation, `NoteLengthLimit`)
_NAME = 200  # Characters of the TApp's name that an event's name begins with
_TOLD_ELSEWHERE = {*ALWAYS, Type.RECONCILING}


class EventReason(StrEnum):
    """Reasons of events; what is refused has its condition's type as the reason."""

    CREATED = "Created"
    DELETED = "Deleted"
    UPDATED_IN_PLACE = "UpdatedInPlace"
    RECREATED = "Recreated"
    WAITING = "Waiting"
    HELD = "Held"
    COMPLETED = "Completed"
    BROKEN = "InstancesBroken"


class Event(msgspec.Struct, frozen=True, gc=False):
    """One event of a TApp, without its time and who reports it."""

    name: str  # the same whenever the same is told
    warning: bool  # whether a person should look at it
    reason: str  # a CamelCase word
    action: str  # what was done, or is not
    note: str  # a sentence for a person, of at most `NOTE_BYTES`
    pod: tuple[str, str] | None = None  # name and uid of the one pod that it is about, if it is one


class _News(msgspec.Struct, frozen=True, gc=False):
    """News: what happened; `key` tells it from whatever else happens to the TApp."""

    reason: str
    action: str
    note: str
    key: tuple[Any, ...]
    warning: bool = False
    pod: Pod | None = None


def events(plan: Plan, status: Mapping[str, Any]) -> list[Event]:
    """The events of one sync, in a fixed order; `status` is the one that it answers."""
    conditions = {condition["type"]: condition for condition in status["conditions"]}
    before = {condition.type: condition for condition in plan.world.tapp.status.conditions}
    news = [each for rule in _RULES for each in rule(plan)]
    news += _refused(conditions, before)
    news += _broken(plan, conditions, before)
    news += _completed(plan, conditions, before)
    meta = plan.world.tapp.metadata
    return [_event(meta.name, meta.uid, each) for each in news]


def _event(tapp: str, uid: str, news: _News) -> Event:
    text = msgspec.json.encode((uid, news.reason, news.key))
    name = f"{tapp[:_NAME].rstrip('-.')}.{sha256(text).hexdigest()[:20]}"
    pod = None if news.pod is None else (news.pod.name, news.pod.uid)
    return Event(name, news.warning, news.reason, news.action, _cut(news.note), pod)


def _cut(note: str) -> str:
    """As much of a note as Kubernetes takes, which counts bytes."""
    text = note.encode("utf-8", "replace")
    if len(text) <= NOTE_BYTES:
        return text.decode()
    return text[: NOTE_BYTES - 3].decode("utf-8", "ignore") + "..."


# --- what is done to instances --------------------------------------------------------------------

Cases = list[tuple[Instance, Verdict]]


def _created(plan: Plan) -> Iterator[_News]:
    """Pods of instances that are new or started again. Another pod in a place is not: see below.

    Creation waits for no budget, so one generation does it once. A status that knows of the
    instance says that its pod was asked for before.
    """
    tapp = plan.world.tapp
    cases = [pair for pair in _of(plan, Action.CREATE) if is_fresh(tapp, pair[0].id)]
    for (name, revision), pairs in _by_template(cases).items():
        note = f"{_ids(pairs)} from template {quoted(name)} ({revision})"
        yield _News(EventReason.CREATED, Action.CREATE, note, (_generation(plan), name, revision))


def _deleted(plan: Plan) -> Iterator[_News]:
    """Pods that are not wanted any more: scaled down, killed, or finished."""
    for reason, pairs in _deletions(plan, replaced=False):
        note = f"{_ids(pairs)}: {pairs[0][1].message}"
        asked = (_generation(plan),) if reason in _ASKED else _uids(pairs)
        key = (reason, *asked)
        yield _News(EventReason.DELETED, Action.DELETE, note, key, pod=_only_pod(pairs))


_ASKED = (Reason.SCALED_DOWN, Reason.KILLED)  # Asked for by a spec, of many at once


def _updated(plan: Plan) -> Iterator[_News]:
    rolling = {action: _by_template(_of(plan, action)) for action in _STEPS}
    progress = _progress(plan) if any(rolling.values()) else {}
    for action, reason in _STEPS.items():
        for (name, revision), pairs in rolling[action].items():
            run, all_of_them = progress.get(name, (0, 1))
            note = (
                f"{_ids(pairs)} to {revision}: {pairs[0][1].message}; "
                f"done before: {run} of {all_of_them}"
            )
            step = STEPS * run // all_of_them
            key = (_generation(plan), name, revision, step)
            yield _News(reason, action, note, key, pod=_only_pod(pairs))


_STEPS = {Action.UPDATE: EventReason.UPDATED_IN_PLACE, Action.RECREATE: EventReason.RECREATED}


def _replaced(plan: Plan) -> Iterator[_News]:
    """Pods that have ended and make room for others."""
    for reason, pairs in _deletions(plan, replaced=True):
        failed = [pair for pair in pairs if pair[0].status is not InstanceStatus.POD_SUCC]
        note = f"{_ids(pairs)}: {(failed or pairs)[0][1].message}"
        yield _News(
            EventReason.RECREATED,
            Action.DELETE,
            note,
            (reason, *_uids(pairs)),
            warning=bool(failed),
            pod=_only_pod(pairs),
        )


def _taken(plan: Plan) -> Iterator[_News]:
    """Pods at their template's revision that somebody else has deleted: an eviction, a person."""
    known = plan.world.tapp.status.statuses
    pairs = [
        (instance, verdict)
        for instance, verdict in plan.cases
        if verdict.reason == Reason.TERMINATING
        and instance.should_run
        and not instance.leaving
        and known.get(str(instance.id)) != InstanceStatus.KILLING
        and (pod := instance.pod) is not None
        and isinstance(instance.template, Template)
        and pod.spec.template_hash == instance.template.revision
    ]
    if pairs:
        note = f"{_ids(pairs)}: its pod is deleted, but not for an update; another one follows"
        yield _News(EventReason.RECREATED, Action.KEEP, note, _uids(pairs), pod=_only_pod(pairs))


def _waiting(plan: Plan) -> Iterator[_News]:
    """Updates that wait for the budget, or are paused: when that begins, with a new spec or late.

    In the middle of a roll something always waits, and that is no news.
    """
    tapp = plan.world.tapp
    before = [c.reason for c in tapp.status.conditions if c.type == Type.PROGRESSING]
    quiet = before in ([], [Reason.COMPLETE], [Reason.STUCK])
    if tapp.status.observed_generation == _generation(plan) and not quiet:
        return
    for reasons in (BUDGET_REASONS, (Reason.PAUSED,)):
        pairs = [pair for pair in plan.cases if pair[1].reason in reasons]
        if pairs:
            note = f"{_ids(pairs)}: {pairs[0][1].message}"
            key = (_generation(plan), reasons[0])
            yield _News(EventReason.WAITING, Action.KEEP, note, key)


def _held(plan: Plan) -> Iterator[_News]:
    """Holds that keep something back now: once for each generation and what is wanted."""
    before = set(numbers(plan.world.tapp.status.held))
    found = grouped(
        (plan.pod_holds.asked[instance.pod.name].wish, (instance, decision))
        for instance, decision in plan.cases
        if decision.reason is Reason.HELD and instance.id not in before and instance.pod
    )
    for asked, pairs in sorted(found.items()):
        note = f"{_ids(pairs)}, {asked} is wanted: {pairs[0][1].message}"
        key = (_generation(plan), asked)
        yield _News(EventReason.HELD, Action.KEEP, note, key, pod=_only_pod(pairs))


_RULES: tuple[Callable[[Plan], Iterator[_News]], ...] = (
    _created, _deleted, _updated, _replaced, _taken, _waiting, _held,
)  # fmt: skip


def _deletions(plan: Plan, *, replaced: bool) -> list[tuple[Reason, Cases]]:
    """By reason, the instances whose pod is deleted: those that get another one for it, or not."""
    found = grouped(
        (verdict.reason, (instance, verdict))
        for instance, verdict in _of(plan, Action.DELETE)
        if replaced == (instance.should_run and not instance.leaving)
    )
    return sorted(found.items())


def _of(plan: Plan, action: Action) -> Cases:
    found = [pair for pair in plan.cases if pair[1].action is action]
    if plan.order and action in (Action.CREATE, Action.DELETE):
        # Who comes after others is told of with the first of them.
        pairs = zip(plan.instances, plan.verdicts, strict=True)
        waiting = [pair for pair in pairs if pair[0].id in plan.order and pair[1].action is action]
        found = sorted([*found, *waiting], key=lambda pair: pair[0].id)
    return found


def _by_template(cases: Cases) -> dict[tuple[str, str], Cases]:
    found = grouped(
        ((template.name, template.revision), (instance, verdict))
        for instance, verdict in cases
        if isinstance(template := instance.template, Template)
    )
    return dict(sorted(found.items()))


def _progress(plan: Plan) -> dict[str, tuple[int, int]]:
    """Template -> how many of its instances run its revision, and how many there are."""
    run, all_of_them = Counter[str](), Counter[str]()
    for instance in plan.instances:
        if instance.should_run:
            all_of_them[instance.template.name] += 1
            run[instance.template.name] += instance.updated and not instance.kept
    return {name: (run[name], count) for name, count in all_of_them.items()}


def _generation(plan: Plan) -> int:
    return plan.world.tapp.metadata.generation


def _ids(pairs: Cases) -> str:
    numbers = id_list(instance.id for instance, _ in pairs)
    return f"instance {numbers}" if len(pairs) == 1 else f"instances {numbers}"


def _uids(pairs: Cases) -> tuple[str, ...]:
    return tuple(instance.pod.uid for instance, _ in pairs if instance.pod is not None)


def _only_pod(pairs: Cases) -> Pod | None:
    return pairs[0][0].pod if len(pairs) == 1 else None


# --- what the conditions say ----------------------------------------------------------------------

Conditions = Mapping[str, Mapping[str, str]]
Before = Mapping[str, ObservedCondition]


def _refused(conditions: Conditions, before: Before) -> Iterator[_News]:
    """A condition that turns True, or says something else than before.

    What a stalled roll waits for changes with every crash, and is told once.
    """
    for type, condition in conditions.items():
        message = condition["message"]
        old = before.get(type)
        if type in _TOLD_ELSEWHERE or (
            old is not None and (old.status, old.message) == ("True", message)
        ):
            continue
        late = condition["reason"] == Reason.PROGRESS_DEADLINE_EXCEEDED
        if type == Type.STALLED and (
            not late or (old is not None and old.reason == condition["reason"])
        ):
            continue
        yield _News(type, "Refuse", message, (message,), warning=type not in HARMLESS)


def _broken(plan: Plan, conditions: Conditions, before: Before) -> Iterator[_News]:
    """Instances that do not get well by waiting; the message changes with every crash."""
    degraded = conditions[Type.DEGRADED]
    old = before.get(Type.DEGRADED, ObservedCondition())
    if degraded["reason"] != Reason.BROKEN or old.reason == Reason.BROKEN:
        return
    key = (_generation(plan), old.last_transition_time)
    yield _News(EventReason.BROKEN, Action.KEEP, degraded["message"], key, warning=True)


def _completed(plan: Plan, conditions: Conditions, before: Before) -> Iterator[_News]:
    """Everything is as the spec asks, and was not before: once per generation."""
    ready, old = conditions[Type.READY], before.get(Type.READY)
    if ready["status"] != "True" or old is None or old.status == "True":
        return
    generation = _generation(plan)
    note = f"{ready['message']} (generation {generation})"
    yield _News(EventReason.COMPLETED, Action.KEEP, note, (generation,))
