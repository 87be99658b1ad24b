"""How far a TApp is: which instances are as the spec asks, which move, and what holds the others.

A pure function of a plan; who waits for it to change is `waiting.py`.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from kubectl_tapp.base.observed import Document
from kubectl_tapp.base.reading import conditions, generation_seen
from kubectl_tapp.base.words import instances
from kubectl_tapp.decide.obstacles import STILL
from kubectl_tapp.decide.refused import short
from tapp.decide.changes import Mark
from tapp.decide.instances import Instance
from tapp.decide.judge import Action, Verdict
from tapp.plan import Plan
from tapp.pod.trouble import PATIENCE
from tapp.words.conditions import Type
from tapp.words.groups import grouped
from tapp.words.ranges import some
from tapp.words.reasons import Disposition, Reason
from tapp.words.times import seconds
from tapp.words.vocabulary import InstanceStatus

Ids = list[int]
_UNKNOWN: Mapping[int, str] = {}
_MISSING = "its pod is not created; the events of the TApp say why"
_ACTING = {
    Action.CREATE: "being created",
    Action.ADOPT: "being labelled",
    Action.MARK: "leaving their Services",
    Action.UPDATE: "being updated in place",
    Action.RECREATE: "getting new pods",
    Action.DELETE: "being stopped",
}
_MARKED = "being marked"
_ON_HOLD = "their pods are on hold; `kubectl tapp why` has the reasons"
_PREPARING = {Reason.TERMINATING: "ending", Reason.PULLING: "pulling images first"}
_DONE = (Reason.UP_TO_DATE, Reason.KEPT)
_STARTING = {
    InstanceStatus.UPDATING: "being updated in place",
    InstanceStatus.PENDING: "starting",
    InstanceStatus.RUNNING: "not yet available",
}


@dataclass
class Standing:
    """How far a TApp is at one moment.

    Attributes:
        generation: of its spec.
        answered: whether the service has answered for this spec.
        ready: whether its condition `Ready` is True for this spec.
        enough: whether its condition `Available` is True for this spec.
        stalled: what its condition `Stalled` says, if that is True for this spec.
        done: instances that are as the spec asks.
        moving: what happens -> the instances that it happens to.
        held: what they wait for -> instances that are not to be touched now.
        broken: instance -> why it does not get on.
        paused: whether it is a person who holds them.
        mark: another one where anything has changed: what was created, deleted, started, reported.
    """

    generation: int
    answered: bool
    ready: bool
    enough: bool
    stalled: str = ""
    done: Ids = field(default_factory=list)
    moving: dict[str, Ids] = field(default_factory=dict)
    held: dict[str, Ids] = field(default_factory=dict)
    broken: dict[int, str] = field(default_factory=dict)
    paused: bool = False
    mark: int = 0

    def is_done(self, ids: Collection[int] | None) -> bool:
        """Whether these instances, or all, are as the spec asks; then the TApp is not Stalled."""
        return self.answered and not self.left(ids) and not (ids is None and self.stalled)

    def left(self, ids: Collection[int] | None) -> Ids:
        """Those of these instances, or of all, that are not as the spec asks."""
        groups = (*self.moving.values(), *self.held.values(), self.broken)
        found = sorted(id for group in groups for id in group)
        return found if ids is None else [id for id in found if id in ids]

    def stuck(self, ids: Collection[int] | None) -> str:
        """Why nothing will change for what is left of these instances, "" if something will.

        As long as any instance moves, a budget may be free again; unless the TApp itself is waited
        for, and says that it comes no further. A pod on hold will be let go, and then those go on
        that come after it.
        """
        on_hold = set(self.held.get(_ON_HOLD, []))
        left = [id for id in self.left(ids) if id not in on_hold]
        if left and not self.moving and (self.broken or not on_hold):
            return self.describe(left)
        return self.stalled if ids is None else ""

    def describe(self, ids: Collection[int]) -> str:
        """What holds these instances: a sentence for a person."""
        kept = set(ids)
        waiting = {why: [id for id in held if id in kept] for why, held in self.held.items()}
        texts = [f"{instances(held)}: waiting: {why}" for why, held in waiting.items() if held]
        # Who waits for a budget waits for those that spent it, whoever they are.
        broken = self.broken if texts else {id: self.broken[id] for id in self.broken if id in kept}
        named = [f"{instances(found)}: {why}" for why, found in by_reason(broken).items()]
        more = [f"and {len(named) - _SHOWN} more"] if len(named) > _SHOWN else []
        return "; ".join([*named[:_SHOWN], *more, *texts])

    def line(self, ids: Collection[int] | None) -> str:
        """One line of progress: `3 of 6 done; starting: 2; wait: 4,5 (maxUnavailable ...)`."""
        total = len(self.done) + len(self.left(None)) if ids is None else len(ids)
        parts = [f"{total - len(self.left(ids))} of {total} done"]
        parts += [] if self.answered else ["its newest spec has not been looked at yet"]
        parts += [f"{what}: {some(found)}" for what, found in self.moving.items()]
        held = [(why.removeprefix(_PREFIX), found) for why, found in self.held.items()]
        parts += [f"waiting: {some(found)} ({why})" for why, found in held]
        broken = list(by_reason(self.broken).items())[:_FEW]
        parts += [f"{some(found)}: {short(why, _LONGEST)}" for why, found in broken]
        return "; ".join(parts)


def by_reason(broken: Mapping[int, str]) -> dict[str, Ids]:
    """Reason -> the instances that have it, by the lowest of each."""
    return grouped((why, id) for id, why in sorted(broken.items()))


_SHOWN, _FEW, _LONGEST = 5, 2, 60
"""Of progress, a line; the whole of a reason is told in the end."""
_PREFIX = "spec.updateStrategy."


def standing(plan: Plan, tapp: Document, obstacles: Mapping[int, str] = _UNKNOWN) -> Standing:
    """How far a TApp is.

    Args:
        plan: what a sync would decide now.
        tapp: the TApp, with the status that the service wrote last.
        obstacles: instance -> what keeps its pod from being made, as far as anybody looked.
    """
    generation = int(tapp["metadata"].get("generation") or 0)
    # A spec without a number was acted on by nobody, as far as anybody can tell.
    answered = 0 < generation <= generation_seen(tapp)
    told = {type: each for type, each in conditions(tapp).items() if each.get("status") == "True"}
    found = Standing(
        generation=generation,
        answered=answered,
        ready=answered and "Ready" in told,
        enough=answered and "Available" in told,
        stalled=str(told[Type.STALLED].get("message")) if answered and Type.STALLED in told else "",
        paused=plan.budgets.strategy.paused,
        mark=_mark(plan, tapp),
    )
    missing = {
        id: f"not created: {obstacles[id]}" if id in obstacles else _MISSING
        for since, ids in plan.not_created.items()
        if plan.now - seconds(since) >= PATIENCE
        for id in ids
    }
    for instance, verdict in zip(plan.instances, plan.decisions, strict=True):
        _note(found, plan, instance, verdict, missing)
    return found


def _mark(plan: Plan, tapp: Document) -> int:
    """A number for all that shows whether anybody does anything."""
    pods = frozenset(
        (pod.uid, pod.generation, pod.terminating, pod.phase, pod.ready)
        for instance in plan.instances
        if (pod := instance.pod) is not None
    )
    return hash((tapp["metadata"].get("resourceVersion"), pods, frozenset(plan.world.claims)))


def _note(
    found: Standing, plan: Plan, instance: Instance, verdict: Verdict, missing: Mapping[int, str]
) -> None:
    id, stands = instance.id, verdict.reason.disposition
    why = _broken(plan, instance, verdict, missing)
    if why:
        found.broken[id] = why
    elif stands is Disposition.DONE and not instance.should_run and verdict.action in STILL:
        found.done.append(id)
    elif verdict.reason is Reason.HELD:  # also while its pod is told of it
        found.held.setdefault(_ON_HOLD, []).append(id)  # each for a reason of its own
    elif isinstance(verdict.change, Mark) and not verdict.change.drain:
        found.moving.setdefault(_MARKED, []).append(id)
    elif verdict.action in _ACTING:
        found.moving.setdefault(_ACTING[verdict.action], []).append(id)
    elif stands is Disposition.HELD:
        found.held.setdefault(verdict.message, []).append(id)
    elif verdict.reason in _PREPARING:
        found.moving.setdefault(_PREPARING[verdict.reason], []).append(id)
    elif id in plan.available and verdict.reason in _DONE:
        found.done.append(id)
    elif id in plan.available:
        found.held.setdefault(verdict.message, []).append(id)  # as somebody set it by hand
    else:
        word = _STARTING.get(instance.status, "not yet available")
        found.moving.setdefault(word, []).append(id)


def _broken(plan: Plan, instance: Instance, verdict: Verdict, missing: Mapping[int, str]) -> str:
    if instance.id in missing:
        return missing[instance.id]
    if verdict.reason.disposition is Disposition.BLOCKED:
        return verdict.message
    if instance.status is InstanceStatus.FAILED and instance.wanted and not instance.killed:
        return "it has failed"
    trouble = plan.troubles.get(instance.id)
    return trouble.text if trouble is not None and verdict.action is Action.KEEP else ""


def touched(before: Plan, after: Plan) -> Ids:
    """The instances to which an edit of the spec means something else than before.

    Args:
        before: the plan of the TApp as it is.
        after: the plan of the edited one.
    """
    known, wanted = _meanings(before), _meanings(after)
    return sorted(id for id in {*known, *wanted} if known.get(id) != wanted.get(id))


def _meanings(plan: Plan) -> dict[int, tuple[object, ...]]:
    return {
        each.id: (each.killed, getattr(each.template, "revision", each.template.name))
        for each in plan.instances
        if each.wanted
    }
