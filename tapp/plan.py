"""The plan of one sync: what happens to every instance, and what becomes of the claims.

`plan(world, options, now)` is a pure function. Two phases: judge each instance alone, then spend
the budget over an explicitly ordered list.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain

from tapp.decide.deadline import Roll, follow_roll
from tapp.decide.filling import Filling, is_late
from tapp.decide.held import Holding, hold_back
from tapp.decide.instances import (
    RECHECK,
    Instance,
    app_status,
    block_creations,
    instances_of,
    mark_removals,
    set_pace,
)
from tapp.decide.judge import UP_TO_DATE, Action, Verdict, judge
from tapp.decide.marks import Marks, mark
from tapp.decide.missing import Since, missing_claims, missing_services
from tapp.decide.partition import Partition, follow_current, keep_back
from tapp.decide.pulls import Pulls, pulls
from tapp.decide.recall import recall
from tapp.decide.resizes import Resizes, follow, look
from tapp.decide.rollout import BUDGET_REASONS, Budgets, is_update, spend
from tapp.decide.serving import Serving, serving_of
from tapp.decide.turns import is_written, one_after_another, take_turns
from tapp.decide.unmade import Ahead, look_ahead
from tapp.pod.trouble import Trouble, silence, trouble
from tapp.spec.model import TAppSpec
from tapp.spec.templates import Template
from tapp.storage.claims import ClaimPlan, plan_claims
from tapp.storage.growth import Growth, grow
from tapp.storage.history import HistoryPlan, as_it_is, plan_history
from tapp.storage.services import ServicePlan, plan_services
from tapp.words.reasons import Reason
from tapp.words.vocabulary import AppStatus
from tapp.world import Options, World

_STAYING = (Action.KEEP, Action.MARK, Action.ADOPT, Action.UPDATE)


@dataclass
class Plan:
    """What one sync does.

    Attributes:
        instances: by ascending number: all below `spec.replicas`, then those that are to go.
        verdicts: what each instance needs, judged alone; one per instance, in the same order.
        holding: whose pod somebody holds, and what it is told.
        holds: instance -> why that does not happen now.
        marks: what is asked for first of pods that are drained or lost, and who should act on that
            and does not.
        decisions: what happens to each instance now: its mark, its hold, or its verdict.
        cases: the instances that do not simply run their template, with their decisions.
        partition: who is kept at which revision.
        ahead: for whom no pod could be made.
        resizes: how long pods wait for other resources.
        roll: how far the roll has come that is under way, and whether it is too late.
        pulls: what is pulled on nodes before updates there.
        claims: what becomes of the claims.
        history: what becomes of the ControllerRevisions.
        services: what becomes of the Services.
        growth: which of those that stay are to be larger, and what stands in the way.
        budgets: both budgets, resolved.
        available: numbers of the available instances, before any update of this sync.
        going_unseen: instances that look available, but may already be on their way out.
        serving: which instances serve, as the budgets see it, before any update of this sync.
        troubles: instance -> what is wrong with its pod.
        not_created: since when, RFC 3339 -> instances whose pod does not come to be.
        not_owned: since when -> instances whose pod uses a claim that the TApp does not have.
        not_exposed: since when -> instances whose Service is not there, or not as asked.
        waiting: instances whose pod is not asked for in this answer: it is full, or others come
            first.
        order: instances that wait for others to come first, to be made or to go.
        app_status: `status.appStatus`.
        recheck: seconds after which to sync again, None where an event will do.
        now: the time of this sync, in seconds since the epoch.
    """

    world: World
    instances: list[Instance]
    verdicts: list[Verdict]
    holding: Holding
    holds: dict[int, Verdict]
    decisions: list[Verdict]
    cases: list[tuple[Instance, Verdict]]
    partition: Partition
    ahead: Ahead
    pulls: Pulls
    resizes: Resizes
    roll: Roll
    claims: ClaimPlan
    history: HistoryPlan
    services: ServicePlan
    growth: Growth
    budgets: Budgets
    available: set[int]
    going_unseen: set[int]
    serving: Serving
    troubles: dict[int, Trouble]
    marks: Marks
    not_created: Since
    not_owned: Since
    not_exposed: Since
    waiting: set[int]
    order: set[int]
    app_status: AppStatus
    recheck: float | None
    now: float

    @property
    def replacing(self) -> dict[str, str]:
        """Instance -> uid of its pod, for pods replaced now that were not available.

        An entry stays while the instance waits for the budget: its deletion may still be unseen.
        Also for the completed pod of an instance that was killed: it may be started again before
        that is gone, and is not finished then.
        """
        return {
            str(instance.id): instance.pod.uid
            for instance, verdict in self.cases
            if instance.pod is not None
            and instance.pod.uid
            and instance.id not in self.available
            and (
                verdict.action is Action.RECREATE
                or instance.leaving
                or (instance.id in self.going_unseen and self._waits(instance.id))
            )
        }

    def _waits(self, id: int) -> bool:
        """Whether an update waits for the budget, or something is asked of its pod first."""
        hold = self.holds.get(id)
        waits = hold is not None and hold.reason in (*BUDGET_REASONS, Reason.HELD)
        return waits or id in self.marks.steps


def plan(world: World, options: Options, now: float) -> Plan:
    """Decides.

    Args:
        world: what was observed.
        options: the operator's choices.
        now: seconds since the epoch, for what has to last for a while (docs/design.md, "Time").
    """
    spec = world.tapp.spec
    filling = Filling(world)
    instances = instances_of(world, filling, now)
    partition = keep_back(world, instances)
    block_creations(world, instances)
    ahead = look_ahead(world, instances)
    recall(world, instances, options)
    if spec.resizes:
        look(instances, world, options, now)
    app = app_status(instances)
    removals = mark_removals(instances, app, world, options)
    paces = set_pace(instances, world, now)

    should_run = sum([instance.should_run for instance in instances])
    budgets = _budgets(spec, instances, should_run)
    serving, going_unseen, changes = serving_of(world, instances, now)
    partition.current = follow_current(world, partition, instances, serving.available)
    troubles = _troubles(spec, instances, now)

    verdicts = [judge(instance) for instance in instances]
    holding = hold_back(spec, instances, verdicts, budgets, now)
    # Who is on hold takes no turn, and no image is pulled for it.
    decisions = _with(holding.holds, instances, verdicts)
    first = pulls(world, instances, decisions, options, now)
    pairs = zip(instances, decisions, strict=True)
    pending = [pair for pair in pairs if is_update(pair[1])]
    # Who waits for an image keeps its turn: else a stale sight of two syncs would take two.
    spent = spend(pending, serving, budgets, spec.rolling_name)
    holds = holding.holds | spent | first.holds
    decisions = _with(holds, instances, verdicts)
    later = one_after_another(instances, decisions, serving) if spec.ordered else {}
    holds |= later
    decisions = _with(later, instances, decisions)
    marks = mark(world.tapp, instances, decisions, options, now, holding.asked)
    decisions = _with(marks.steps, instances, decisions)
    without_node, late = _without_node(instances, decisions), _late(instances)
    rest = options.max_new_pods_bytes - first.bytes
    recorded = plan_history(world, _running(filling, instances), partition.in_use, rest)
    # Their events would bring the next sync at once, before the pods' watch has moved on.
    early = serving.unsettled and recorded.changes
    history = as_it_is(world) if early else recorded
    just = early or Reason.SPEC_JUST_CHANGED in {held.reason for held in holds.values()}
    rest -= history.bytes
    turns = take_turns(world, without_node, _written(instances, decisions), rest, now)
    decisions = _with(turns.holds, instances, decisions)

    resizes = follow(world, instances, decisions, now) if spec.resizes else Resizes()
    roll = Roll()
    if pending or len(serving.available) < should_run:
        roll = follow_roll(world.tapp, instances, verdicts, decisions, serving.available, now)
    unowned = missing_claims(world, instances, now)
    claims = plan_claims(world, [i.made for i in without_node if i.id not in turns.waiting])
    services = _services(world, instances, max(1, rest - turns.bytes))
    unexposed = missing_services(world, services, now)
    waits = (
        *(removals, paces, changes, holding.waits, marks.waits, turns.waits),
        *(unowned.waits, unexposed.waits),
        [RECHECK] if just or services.waits or history.waits or late else [],
        first.waits,
        resizes.waits,
        roll.waits,
        [i.update.wait for i in instances if i.update.wait is not None],
        [found.wait for found in troubles.values() if found.wait is not None],
    )
    return Plan(
        world=world,
        instances=instances,
        verdicts=verdicts,
        holding=holding,
        holds=holds | turns.holds,
        decisions=decisions,
        cases=_open(instances, decisions),
        partition=partition,
        ahead=ahead,
        pulls=first,
        resizes=resizes,
        roll=roll,
        claims=claims,
        history=history,
        services=services,
        growth=grow(world, claims.keep, {i.id: i.past for i in instances if i.past is not None}),
        budgets=budgets,
        available=serving.available,
        going_unseen=going_unseen,
        serving=serving,
        troubles=troubles,
        marks=marks,
        not_created=turns.not_created,
        not_owned=unowned.since,
        not_exposed=unexposed.since,
        waiting=turns.waiting.union(later, late),
        order={*later},
        app_status=app,
        recheck=min(chain.from_iterable(waits), default=None),
        now=now,
    )


def _with(
    steps: Mapping[int, Verdict], instances: list[Instance], decisions: list[Verdict]
) -> list[Verdict]:
    """The same decisions, but for those that become a step of these."""
    if not steps:
        return decisions
    pairs = zip(instances, decisions, strict=True)
    return [steps.get(instance.id, decision) for instance, decision in pairs]


def _open(instances: list[Instance], verdicts: list[Verdict]) -> list[tuple[Instance, Verdict]]:
    pairs = zip(instances, verdicts, strict=True)
    return [
        pair for pair in pairs if pair[1].reason != UP_TO_DATE.reason or pair[1].change is not None
    ]


def _running(filling: Filling, instances: list[Instance]) -> list[Template]:
    """The templates that instances are given and that resolve, each of them once.

    Also what is held back from all of them as yet.
    """
    names = {
        item.template.name: filling.newest(item.id)
        if item.kept or not filling.whole
        else item.template
        for item in instances
        if item.wanted
    }
    return [template for template in names.values() if isinstance(template, Template)]


def _services(world: World, instances: list[Instance], most_bytes: int) -> ServicePlan:
    """A Service for each instance; who goes, or is killed, keeps one until its pod is gone."""
    name = world.tapp.metadata.name
    kept = world.tapp.spec.service_retention_policy.when_killed == "Retain"
    wanted = {
        item.id: item.pod is not None and bool(item.pod.node)
        for item in instances
        if (item.wanted and (kept or not item.killed))
        or (item.pod is not None and f"{name}-{item.id}" in world.services)
    }
    return plan_services(world, wanted, most_bytes)


def _budgets(spec: TAppSpec, instances: list[Instance], should_run: int) -> Budgets:
    name = spec.rolling_name
    used = any(item.should_run and item.template.name == name for item in instances)
    found = used or spec.find_template(name) is not None
    # Without a name of its own the rolling template is the default one: nothing can be mistyped.
    used = used or not should_run or not spec.update_strategy.template
    return Budgets(spec.update_strategy, should_run, found, used)


def _troubles(spec: TAppSpec, instances: list[Instance], now: float) -> dict[int, Trouble]:
    moved = spec.force_delete_pod and not spec.never_migrate
    return {
        instance.id: silence(pod, since, now, moved=moved)
        if (since := pod.silent_since) is not None
        else trouble(pod, instance.update, now)
        for instance in instances
        if instance.should_run
        and (pod := instance.pod) is not None
        and not pod.terminating
        and (pod.ready is not True or pod.restarts)
    }


def _late(instances: list[Instance]) -> list[int]:
    """Those whose template a later sync fills in."""
    return [item.id for item in instances if item.should_run and is_late(item.template)]


def _written(instances: list[Instance], verdicts: list[Verdict]) -> list[Instance]:
    """Instances whose pod is written anew by an update."""
    pairs = zip(instances, verdicts, strict=True)
    return [instance for instance, verdict in pairs if is_written(verdict)]


def _without_node(instances: list[Instance], verdicts: list[Verdict]) -> list[Instance]:
    """Instances whose pod is about to be created, or is there and not on a node yet."""
    return [
        instance
        for instance, verdict in zip(instances, verdicts, strict=True)
        if verdict.action is Action.CREATE
        or (
            (pod := instance.pod) is not None
            and pod.phase == "Pending"
            and not pod.terminating
            and verdict.action in _STAYING
            and not pod.node
        )
    ]
