"""A long roll of equal instances, played as a short one and unfolded: exactly what all would do.

Instances that wait for the same update with equal pods are interchangeable: the budget sees only
how many there are. So most of a long row are left out, the others are played, and the record is
looked through for two moments that are the same but for whose turn it is: the same fraction of a
second, the same timers, and what is on its way has come equally far. From there on all goes on in
the same way, turn by turn, until the row ends; so what lies between the two is repeated as often as
there are instances for it. All times are multiples of a sixteenth of a second, which makes "the
same" exact. Where no such moments are found, everything is played: nothing is ever estimated.

What stays the same without those that are left out: whoever is left out is available, so it counts
once among those that should run and once among the available ones, and a budget in numbers leaves
the same number free. Percentages are resolved against all before.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import lcm
from typing import Any

import msgspec

from kubectl_tapp.base.observed import Document, Observed
from kubectl_tapp.base.reading import containers
from tapp.decide.instances import Instance
from tapp.decide.judge import DISRUPTIVE, judge
from tapp.decide.rollout import DELAYED, turn
from tapp.plan import Plan
from tapp.words.vocabulary import InstanceStatus

TURNS = 20
"""Budgets' worth of instances that are played: a moment has 16 fractions, and some come before."""
_ENCODE = msgspec.json.Encoder(order="sorted").encode


@dataclass(frozen=True)
class Turn:
    """A moment at which an instance of a row is taken.

    Attributes:
        at: when, in seconds since the epoch.
        timers: seconds until whatever is due.
        away: the instances that are to run and do not serve, ascending.
    """

    at: float
    timers: tuple[float, ...]
    away: tuple[int, ...]


@dataclass(frozen=True)
class Row:
    """Equal instances that wait for the same, in the order in which their turn comes.

    Attributes:
        ids: their numbers.
        played: how many of them, the first ones, are played.
        cycle: seconds after which the clock is as good as the same for them: the API's times are
            whole seconds, and a startup probe goes on ticking whatever starts.
    """

    ids: tuple[int, ...]
    played: int
    cycle: int = 1

    @property
    def left_out(self) -> tuple[int, ...]:
        """Those that are not played."""
        return self.ids[self.played :]


def long_row(plan: Plan, pods: Sequence[Document]) -> Row | None:
    """The longest row of equal instances that wait, if it is so long that folding it pays.

    Args:
        plan: what is decided about the edited TApp, before anything is done.
        pods: as the API server has them.
    """
    if plan.budgets.strategy.paused or plan.serving.silent:
        return None
    shown = {each["metadata"]["name"]: each for each in pods}
    best: tuple[int, ...] = ()
    limit = plan.budgets.rolling
    for rolling, group in groupby(_waiting(plan), key=lambda each: each[0]):
        for _, same in groupby(group, key=lambda each: _shape(each[1], shown)):
            ids = tuple(instance.id for _, instance in same)
            if len(ids) > len(best):
                best, limit = ids, plan.budgets.rolling if rolling else plan.budgets.force
    if limit.least is None:
        return None
    played = TURNS * max(limit.should_run - limit.least, 1) + 8
    if len(best) < 2 * played:
        return None
    return Row(best, played, _cycle(shown[f"{plan.world.tapp.metadata.name}-{best[0]}"]))


def _cycle(pod: Document) -> int:
    probes = [each.get("startupProbe") for each in pod["spec"]["containers"]]
    return lcm(*(int(each.get("periodSeconds") or 10) for each in probes if each))


def _waiting(plan: Plan) -> list[tuple[bool, Instance]]:
    """Who serves, and is to be updated: in the order in which `spend` goes."""
    rolling = plan.world.tapp.spec.rolling_name
    found = [
        (instance.template.name == rolling, instance)
        for instance, verdict in plan.cases
        if instance.id in plan.available
        and (verdict.action in DISRUPTIVE or verdict.reason in DELAYED)
    ]
    strategy = plan.budgets.strategy
    return sorted(found, key=lambda each: turn(each[1], strategy, rolling))


def _shape(instance: Instance, shown: Mapping[str, Document]) -> bytes:
    """All that makes a difference to how an instance is updated, without what is its own."""
    pod = instance.pod
    if pod is None:
        return b"%d" % instance.id
    document, verdict = shown.get(pod.name) or {}, judge(instance)
    told = msgspec.structs.replace(pod.spec, claims=())  # whose names contain its number
    spec, status = document.get("spec") or {}, document.get("status") or {}
    bodies = [
        {key: value for key, value in item.items() if key not in _OWN} for item in containers(spec)
    ]
    return _ENCODE(
        [
            *(instance.template.name, verdict.action, verdict.reason, verdict.message),
            *(told, pod.phase, pod.update_over, bool(pod.restarts), bodies),
            [(each.get("type"), each.get("status")) for each in status.get("conditions") or []],
            [_ran(each) for each in status.get("initContainerStatuses") or []],
            [_ran(each) for each in status.get("containerStatuses") or []],
            bool(status.get("observedGeneration")),
            bool(document.get("metadata", {}).get("managedFields")),
            document.get("metadata", {}).get("finalizers"),
        ]
    )


_OWN = ("env", "envFrom", "volumeMounts")


def _ran(status: Mapping[str, Any]) -> list[Any]:
    parts = [status.get(name) for name in ("name", "image", "imageID", "ready", "started")]
    return [*parts, sorted(status.get("state") or {}), sorted(status.get("lastState") or {})]


def without(observed: Observed, row: Row) -> Observed:
    """The same cluster without the pods of those that are left out."""
    gone = {f"{observed.name}-{id}" for id in row.left_out}
    kept = [each for each in observed.pods if each["metadata"]["name"] not in gone]
    return replace(observed, pods=kept)


def shortened(edited: Document, row: Row, first: Plan) -> Document:
    """The edited TApp without those that are left out, and with budgets in numbers.

    Where they are the last ones, it has fewer replicas; elsewhere they are stopped.
    """
    spec, budgets = edited.get("spec") or {}, first.budgets
    strategy = dict(spec.get("updateStrategy") or {})
    if budgets.rolling.least is not None:
        strategy["maxUnavailable"] = _allowed(budgets.should_run, budgets.rolling.least)
    force = strategy.get("forceUpdate") or {}
    if "maxUnavailable" in force and budgets.force.least is not None:
        allowed = _allowed(budgets.should_run, budgets.force.least)
        strategy["forceUpdate"] = {**force, "maxUnavailable": allowed}
    known = first.world.tapp.spec
    replicas, left_out = known.replicas, set(row.left_out)
    if known.persistent_volume_claim_retention_policy.when_scaled != "Delete":
        while replicas - 1 in left_out:
            replicas -= 1
    stopped = {str(id): str(InstanceStatus.KILLED) for id in row.left_out if id < replicas}
    statuses = {**(spec.get("statuses") or {}), **stopped}
    changes = {"updateStrategy": strategy, "statuses": statuses, "replicas": replicas}
    # The deadline decides nothing, and what is left of it is another timer at each turn.
    return {**edited, "spec": {**spec, **changes, "progressDeadlineSeconds": 0}}


def _allowed(should_run: int, least: int) -> int:
    return max(should_run - least, 1)
