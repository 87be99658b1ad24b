"""The Kubernetes Events that report the actions and conditions of one sync.

They are computed from the plan and the conditions of the sync alone. The name of an Event is a hash
of what it reports. A repeated sync returns Events of the same names, even in another replica or
with stale observations. So the API server keeps each Event once. An Event reports one of two kinds
of change:

- A change that the spec requests. It is reported once for each generation.
- A change that the TApp's status does not show yet.

A rollout has at most one Event for each tenth of its instances (docs/monitoring.md, "Events").
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from hashlib import sha256
from typing import Any

import msgspec

from tapp.answer.conditions import Conditions
from tapp.decide.cases import Case, ids_of
from tapp.decide.instances import is_fresh
from tapp.decide.rollout import BUDGET_REASONS
from tapp.decide.verdicts import Action, Verdict
from tapp.declared.observed import ObservedCondition
from tapp.plan import Plan
from tapp.pod.pod import Pod
from tapp.words.conditions import ALWAYS, HARMLESS, Type
from tapp.words.groups import grouped
from tapp.words.quoted import quoted
from tapp.words.ranges import about, each_instance, instance_list, numbers
from tapp.words.reasons import Reason
from tapp.words.vocabulary import InstanceStatus

STEPS = 10  # Most Events about the rollout of one template
# Most bytes of an Event's note. Kubernetes accepts 1,024 (pkg/apis/core/validation,
# `NoteLengthLimit`).
NOTE_BYTES = 1_000
_NAME = 200  # Most characters of the TApp's name at the beginning of an Event's name
# Conditions without an Event of their own, because other Events describe their cause.
_WITHOUT_EVENT = {*ALWAYS, Type.RECONCILING}


class EventReason(StrEnum):
    """The reasons of Events about actions, the completion of a rollout, and broken instances.

    An Event about a refusal has the type of the refusal's condition as its reason.
    """

    CREATED = "Created"
    DELETED = "Deleted"
    UPDATED_IN_PLACE = "UpdatedInPlace"
    RECREATED = "Recreated"
    WAITING = "Waiting"
    HELD = "Held"
    COMPLETED = "Completed"
    BROKEN = "InstancesBroken"


class Event(msgspec.Struct, frozen=True, gc=False):
    """One Kubernetes Event about a TApp, without its time and its reporter."""

    name: str
    warning: bool  # True for type `Warning`: a person should look at it. False for type `Normal`
    reason: str  # a CamelCase word
    action: str  # the action that the service does, or that it does not do because of a refusal
    note: str  # a sentence for a person, of at most `NOTE_BYTES` bytes
    pod: tuple[str, str] | None = None  # name and uid of the pod, if the Event is about one pod


class _News(msgspec.Struct, frozen=True, gc=False):
    """A change to report as an Event.

    `reason` and `key` together identify the change among all changes of the TApp. The name of the
    Event is a hash of them, so that a change is reported only once.
    """

    reason: str
    action: str
    note: str
    key: tuple[Any, ...]
    warning: bool = False
    pod: Pod | None = None


def events(plan: Plan, conditions: Conditions) -> list[Event]:
    """Returns the Events of one sync, in a fixed order.

    `conditions` are the conditions of this sync. The status of the TApp has the conditions of the
    last sync. A comparison of both shows which conditions are new.
    """
    before = {condition.type: condition for condition in plan.world.tapp.status.conditions}
    news = [each for rule in _RULES for each in rule(plan)]
    news += _refused(conditions, before)
    news += _broken(plan, conditions, before)
    news += _completed(plan, conditions, before)
    meta = plan.world.tapp.metadata
    return [_event(meta.name, meta.uid, each) for each in news]


def _event(tapp: str, uid: str, news: _News) -> Event:
    """Returns the Event about a change; its name is a hash of the uid, the reason and the key.

    Args:
        tapp: the name of the TApp.
        uid: the uid of the TApp.
        news: the change.
    """
    text = msgspec.json.encode((uid, news.reason, news.key))
    name = f"{tapp[:_NAME].rstrip('-.')}.{sha256(text).hexdigest()[:20]}"
    pod = None if news.pod is None else (news.pod.name, news.pod.uid)
    return Event(name, news.warning, news.reason, news.action, _cut(news.note), pod)


def _cut(note: str) -> str:
    """Returns the note of an Event, shortened to at most `NOTE_BYTES` bytes."""
    text = note.encode("utf-8", "replace")
    if len(text) <= NOTE_BYTES:
        return text.decode()
    return text[: NOTE_BYTES - 3].decode("utf-8", "ignore") + "..."


# --- actions on instances -------------------------------------------------------------------------

Cases = list[Case]


def _created(plan: Plan) -> Iterator[_News]:
    """Yields the creation of pods for instances that are new or that a user has started again.

    The creation is reported once for each generation, template and revision. A pod that replaces
    another pod is left out, because `_replaced` and `_updated` report it.
    """
    tapp = plan.world.tapp
    fresh = [case for case in _of(plan, Action.CREATE) if is_fresh(tapp, case.instance.id)]
    for (name, revision), cases in _by_template(fresh).items():
        pods = "pod" if len(cases) == 1 else "pods"
        note = f"{_ids(cases)}: {pods} created from template {quoted(name)} (revision {revision})"
        yield _News(EventReason.CREATED, Action.CREATE, note, (_generation(plan), name, revision))


def _deleted(plan: Plan) -> Iterator[_News]:
    """Yields the deletion of pods whose instance gets no new pod.

    The instance is killed, has finished, or has a number that is not below `spec.replicas`.
    """
    for reason, cases in _deletions(plan, replaced=False):
        note = about(ids_of(cases), _due(plan, cases[0]).message)
        key = (reason, *((_generation(plan),) if reason in _BY_SPEC else _uids(cases)))
        yield _News(EventReason.DELETED, Action.DELETE, note, key, pod=_only_pod(cases))


# Reasons of deletions that the spec requests, often of many pods at once. These are reported once
# for each generation, and all other deletions once for each pod.
_BY_SPEC = (Reason.SCALED_DOWN, Reason.KILLED)


def _updated(plan: Plan) -> Iterator[_News]:
    """Yields updates in place and replacements by updates.

    There are at most `STEPS` changes of each action for each template and revision in a generation.
    """
    rolling = {action: _by_template(_of(plan, action)) for action in _STEPS}
    progress = _progress(plan) if any(rolling.values()) else {}
    for action, reason in _STEPS.items():
        for (name, revision), cases in rolling[action].items():
            run, total = progress.get(name, (0, 1))
            first = cases[0].decision
            note = (
                f"{_ids(cases)} {'is' if len(cases) == 1 else 'are'} being updated to revision "
                f"{revision}: {first.message}; {run} of {total} instances were up to date before"
            )
            step = STEPS * run // total
            key = (_generation(plan), name, revision, step)
            yield _News(reason, action, note, key, pod=_only_pod(cases))


_STEPS = {Action.UPDATE: EventReason.UPDATED_IN_PLACE, Action.RECREATE: EventReason.RECREATED}


def _replaced(plan: Plan) -> Iterator[_News]:
    """Yields the replacement of pods that have ended; it is a warning if a pod has failed."""
    for reason, cases in _deletions(plan, replaced=True):
        failed = [case for case in cases if case.instance.status is not InstanceStatus.POD_SUCC]
        note = about(ids_of(cases), _due(plan, (failed or cases)[0]).message)
        yield _News(
            EventReason.RECREATED,
            Action.DELETE,
            note,
            (reason, *_uids(cases)),
            warning=bool(failed),
            pod=_only_pod(cases),
        )


def _taken(plan: Plan) -> Iterator[_News]:
    """Yields the deletion of up-to-date pods that an eviction or a person requested.

    The service has not requested it, so a new pod follows.
    """
    known = plan.world.tapp.status.statuses
    cases = [
        case
        for case in plan.by_reason.get(Reason.TERMINATING, [])
        if (instance := case.instance).should_run
        and not instance.leaving
        and known.get(str(instance.id)) != InstanceStatus.KILLING
        and (pod := instance.pod) is not None
        and instance.template is not None
        and pod.spec.template_hash == instance.template.revision
    ]
    if cases:
        note = (
            f"{each_instance(ids_of(cases))}: the pod is being deleted by an eviction or a person, "
            "not by an update; a new pod follows"
        )
        yield _News(EventReason.RECREATED, Action.KEEP, note, _uids(cases), pod=_only_pod(cases))


def _waiting(plan: Plan) -> Iterator[_News]:
    """Yields updates that begin to wait for the budget (`maxUnavailable`) or for another failure
    domain, or that are paused.

    During a rollout, some update always waits, so only the first wait is reported.
    """
    tapp = plan.world.tapp
    before = [c.reason for c in tapp.status.conditions if c.type == Type.PROGRESSING]
    quiet = before in ([], [Reason.COMPLETE], [Reason.STUCK])
    if tapp.status.observed_generation == _generation(plan) and not quiet:
        return
    for reasons in (BUDGET_REASONS, (Reason.WAITING_FOR_DOMAIN,), (Reason.PAUSED,)):
        cases = [case for case in plan.notable if case.decision.reason in reasons]
        if cases:
            note = about(ids_of(cases), cases[0].decision.message)
            key = (_generation(plan), reasons[0])
            yield _News(EventReason.WAITING, Action.KEEP, note, key)


def _held(plan: Plan) -> Iterator[_News]:
    """Yields the holds that begin to prevent an action.

    They are reported once for each generation and action.
    """
    before = set(numbers(plan.world.tapp.status.held))
    found = grouped(
        (plan.findings.holds.requests[pod.name].action, case)
        for case in plan.by_reason.get(Reason.HELD, [])
        if case.instance.id not in before and (pod := case.instance.pod)
    )
    for action, cases in sorted(found.items()):
        note = about(ids_of(cases), cases[0].decision.message)
        key = (_generation(plan), action)
        yield _News(EventReason.HELD, Action.KEEP, note, key, pod=_only_pod(cases))


_RULES: tuple[Callable[[Plan], Iterator[_News]], ...] = (
    _created, _deleted, _updated, _replaced, _taken, _waiting, _held,
)  # fmt: skip


def _deletions(plan: Plan, *, replaced: bool) -> list[tuple[Reason, Cases]]:
    """Returns reason -> instances whose pod this sync deletes, sorted by reason.

    If `replaced` is True, only instances are included that get a new pod. If it is False, only
    instances are included that get no new pod.
    """
    found = grouped(
        (_due(plan, case).reason, case)
        for case in _of(plan, Action.DELETE)
        if replaced == (case.instance.should_run and not case.instance.leaving)
    )
    return sorted(found.items())


def _of(plan: Plan, action: Action) -> Cases:
    """Returns the instances for which the sync decides on the given action.

    With `podManagementPolicy: OrderedReady`, instances are included whose creation or deletion
    waits for its turn.
    """
    return [case for case in plan.notable if _due(plan, case).action is action]


def _due(plan: Plan, case: Case) -> Verdict:
    """Returns the decision on an instance, or its verdict if the instance waits for its turn.

    With `podManagementPolicy: OrderedReady`, an instance waits for its turn to be created or
    deleted. Its verdict is used, so that one Event reports all instances that are created or
    deleted one after the other.
    """
    verdict = case.verdict
    ordered = case.instance.id in plan.findings.ordered
    return verdict if ordered and verdict.action in _ORDERED else case.decision


_ORDERED = (Action.CREATE, Action.DELETE)


def _by_template(cases: Cases) -> dict[tuple[str, str], Cases]:
    """Returns (name, revision) of a template -> the given instances with this template, sorted.

    Instances without a template are left out.
    """
    found = grouped(
        ((template.name, template.revision), case)
        for case in cases
        if (template := case.instance.template) is not None
    )
    return dict(sorted(found.items()))


def _progress(plan: Plan) -> dict[str, tuple[int, int]]:
    """Returns template name -> (number of updated instances, number of all instances).

    Only instances that should run count.
    """
    run, total = Counter[str](), Counter[str]()
    for instance in plan.instances:
        if instance.should_run:
            total[instance.template_name] += 1
            run[instance.template_name] += instance.updated and not instance.kept
    return {name: (run[name], count) for name, count in total.items()}


def _generation(plan: Plan) -> int:
    return plan.world.tapp.metadata.generation


def _ids(cases: Cases) -> str:
    """Returns the numbers of the given instances for a sentence, such as `instances 0-3`."""
    return instance_list(ids_of(cases))


def _uids(cases: Cases) -> tuple[str, ...]:
    """Returns the uids of the pods of the given instances, leaving out instances without a pod."""
    return tuple(case.instance.pod.uid for case in cases if case.instance.pod is not None)


def _only_pod(cases: Cases) -> Pod | None:
    """Returns the pod of the instance if there is only one instance.

    Returns None if there are several instances, or if the only instance has no pod.
    """
    return cases[0].instance.pod if len(cases) == 1 else None


# --- changes of conditions ------------------------------------------------------------------------

Before = Mapping[str, ObservedCondition]


def _refused(conditions: Conditions, before: Before) -> Iterator[_News]:
    """Yields refusals that are new or have another message than in the last sync.

    The message of a stalled rollout changes with every crash, so a stalled rollout is reported only
    once.

    Args:
        conditions: the conditions of this sync.
        before: type -> condition of the last sync.
    """
    for finding in conditions.all:
        old = before.get(finding.type)
        if finding.type in _WITHOUT_EVENT or (
            old is not None and (old.status, old.message) == ("True", finding.text)
        ):
            continue
        exceeded = finding.reason in (Reason.PROGRESS_DEADLINE_EXCEEDED, Reason.ROLLED_BACK)
        if finding.type is Type.STALLED and (
            not exceeded or (old is not None and old.reason == finding.reason)
        ):
            continue
        warning = finding.type not in HARMLESS
        yield _News(finding.type, "Refuse", finding.text, (finding.text,), warning=warning)


def _broken(plan: Plan, conditions: Conditions, before: Before) -> Iterator[_News]:
    """Yields a warning if Degraded begins to report broken instances.

    Broken instances are reported once, because the message of Degraded changes with every crash.

    Args:
        plan: the decisions of this sync.
        conditions: the conditions of this sync.
        before: type -> condition of the last sync.
    """
    degraded = conditions.degraded
    old = before.get(Type.DEGRADED, ObservedCondition())
    if degraded.reason != Reason.BROKEN or old.reason == Reason.BROKEN:
        return
    key = (_generation(plan), old.last_transition_time)
    yield _News(EventReason.BROKEN, Action.KEEP, degraded.text, key, warning=True)


def _completed(plan: Plan, conditions: Conditions, before: Before) -> Iterator[_News]:
    """Yields the completion of a changed spec when Ready becomes True.

    It is reported once for each generation.

    Args:
        plan: the decisions of this sync.
        conditions: the conditions of this sync.
        before: type -> condition of the last sync.
    """
    ready, old = conditions.ready, before.get(Type.READY)
    if ready.status != "True" or old is None or old.status == "True":
        return
    generation = _generation(plan)
    note = f"{ready.text} (generation {generation})"
    yield _News(EventReason.COMPLETED, Action.KEEP, note, (generation,))
