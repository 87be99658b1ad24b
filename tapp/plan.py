"""The plan of one sync: what happens to every instance, and what becomes of the claims.

`plan(world, options, now)` is a pure function. Three phases: put the instances together
(`tapp/decide/assembly.py`), judge each of them alone, then send all of them through the stages of
`tapp/decide/stages.py`.
"""

from dataclasses import dataclass, replace
from itertools import chain

from tapp.decide.assembly import assemble
from tapp.decide.deadline import Roll, follow_roll
from tapp.decide.instances import RECHECK, Instance
from tapp.decide.judge import UP_TO_DATE, Action, Verdict, judge
from tapp.decide.marks import Marks
from tapp.decide.missing import Since, missing, without_claim
from tapp.decide.overdue import Overdue, overdue_of
from tapp.decide.partition import Partition, follow_current
from tapp.decide.pod_holds import PodHolds
from tapp.decide.pulls import Pulls
from tapp.decide.resizes import Resizes, track_resizes
from tapp.decide.rollout import BUDGET_REASONS, Budgets, budgets_of
from tapp.decide.serving import Serving, serving_of, troubles_of
from tapp.decide.stages import Case, Course
from tapp.decide.unmade import Ahead
from tapp.pod.waiting import Trouble
from tapp.storage.claims import ClaimPlan, plan_claims
from tapp.storage.growth import Growth, grow
from tapp.storage.history import HistoryPlan
from tapp.storage.services import ServicePlan
from tapp.words.reasons import Reason
from tapp.words.vocabulary import AppStatus
from tapp.world import Options, World


@dataclass
class Plan:
    """Everything that one sync does."""

    world: World
    instances: list[Instance]  # ascending: all below `spec.replicas`, then those that are to go
    verdicts: list[Verdict]  # what each instance needs, judged alone; in the same order
    pod_holds: PodHolds  # whose pod somebody holds, and what it is told
    delays: dict[int, Verdict]  # instance -> why that does not happen now
    decisions: list[Verdict]  # what happens to each now: its step, its delay, or its verdict
    cases: list[tuple[Instance, Verdict]]  # those that do not simply run their template
    partition: Partition  # who is kept at which revision
    ahead: Ahead  # for whom no pod could be made
    pulls: Pulls  # what is pulled on nodes before updates there
    resizes: Resizes  # how long pods wait for other resources
    roll: Roll  # how far the roll has come that is under way, and whether it is too late
    claims: ClaimPlan  # what becomes of the claims
    history: HistoryPlan  # what becomes of the ControllerRevisions
    services: ServicePlan  # what becomes of the Services
    growth: Growth  # which of those that stay are to be larger, and what stands in the way
    budgets: Budgets  # both budgets, resolved
    available: set[int]  # numbers of the available instances, before any update of this sync
    serving: Serving  # which instances serve, as the budgets see it, before any update of this sync
    troubles: dict[int, Trouble]  # instance -> what is wrong with its pod
    overdue: Overdue  # objects that are being deleted and do not go
    # what is asked for first of pods that are drained or lost, and who should act on that and does
    # not
    marks: Marks
    not_created: Since  # since when, RFC 3339 -> instances whose pod does not come to be
    not_owned: Since  # since when -> instances whose pod uses a claim that the TApp does not have
    not_exposed: Since  # since when -> instances whose Service is not there, or not as asked
    waiting: set[int]  # whose pod this answer does not ask for: it is full, or others come first
    order: set[int]  # instances that wait for others to come first, to be made or to go
    app_status: AppStatus  # `status.appStatus`
    recheck: float | None  # seconds after which to sync again, None where an event will do
    now: float  # the time of this sync, in seconds since the epoch

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
                or (instance.id in self.serving.deletion_unconfirmed and self._waits(instance.id))
            )
        }

    def _waits(self, id: int) -> bool:
        """Tells whether an update waits for the budget, or something is asked of its pod first."""
        delay = self.delays.get(id)
        waits = delay is not None and delay.reason in (*BUDGET_REASONS, Reason.HELD)
        return waits or id in self.marks.steps


def plan(world: World, options: Options, now: float) -> Plan:
    """Decides; `now` is for what has to last for a while (docs/design.md, "Time")."""
    spec, status = world.tapp.spec, world.tapp.status
    found = assemble(world, options, now)
    instances, partition = found.instances, found.partition

    budgets = budgets_of(spec, instances)
    serving = serving_of(world, instances, now)
    available = serving.available
    current = follow_current(world, partition, instances, available)
    troubles = troubles_of(world.tapp, instances, options, now)
    services = chain.from_iterable(each.values() for each in world.plain.values())
    pods = chain(world.pods.values(), world.pullers.values(), world.foreign)
    overdue = overdue_of(pods, world.claims.values(), services, now)

    verdicts = [judge(instance) for instance in instances]
    cases = [Case(*pair) for pair in zip(instances, verdicts, strict=True)]
    in_use = frozenset(partition.in_use)
    course = Course(world, options, now, budgets, serving, in_use, instances, cases)
    course.run()
    decisions, room = course.decisions, course.room

    resizes = track_resizes(world, instances, decisions, now) if spec.resizes else Resizes()
    roll = Roll()
    if course.pending or len(available) < budgets.should_run:
        roll = follow_roll(world.tapp, instances, verdicts, decisions, available, now)
    unowned = missing(status.not_owned, without_claim(world, instances), now)
    unexposed = missing(status.not_exposed, course.services.missing, now)
    claims = plan_claims(world, [i.made for i in course.without_node if i.id not in room.waiting])
    soon = course.just_changed or course.services.waits or course.history.waits
    waits = (
        *(found.waits, serving.waits, course.pod_holds.waits, course.marks.waits, room.waits),
        *(unowned.waits, unexposed.waits, course.pulls.waits, resizes.waits, roll.waits),
        [RECHECK] if soon else [],
        [i.update.wait for i in instances if i.update.wait is not None],
        [each.wait for each in troubles.values() if each.wait is not None],
        overdue.waits,
    )
    return Plan(
        world=world,
        instances=instances,
        verdicts=verdicts,
        pod_holds=course.pod_holds,
        delays={case.instance.id: case.delay for case in course.cases if case.delay is not None},
        decisions=decisions,
        cases=[
            (instance, decision)
            for instance, decision in zip(instances, decisions, strict=True)
            if decision.reason != UP_TO_DATE.reason or decision.change is not None
        ],
        partition=replace(partition, current=current),
        ahead=found.ahead,
        pulls=course.pulls,
        resizes=resizes,
        roll=roll,
        claims=claims,
        history=course.history,
        services=course.services,
        growth=grow(world, claims.keep, {i.id: i.past for i in instances if i.past is not None}),
        budgets=budgets,
        available=available,
        serving=serving,
        troubles=troubles,
        overdue=overdue,
        marks=course.marks,
        not_created=room.not_created,
        not_owned=unowned.since,
        not_exposed=unexposed.since,
        waiting=room.waiting.union(course.order),
        order={*course.order},
        app_status=found.app_status,
        recheck=min(chain.from_iterable(waits), default=None),
        now=now,
    )
