"""The plan of one sync: what happens to every instance, and what becomes of the claims.

`plan(world, options, now)` is a pure function. Three phases: put the instances together
(`tapp/decide/assembly.py`), judge each of them alone, then send all of them through the stages of
`tapp/decide/stages.py`.
"""

from dataclasses import replace
from itertools import chain

from tapp.decide.assembly import assemble
from tapp.decide.deadline import Roll, follow_roll
from tapp.decide.filling import Filling, is_late
from tapp.decide.instances import RECHECK, Instance
from tapp.decide.judge import UP_TO_DATE, Verdict, judge
from tapp.decide.missing import missing_claims, missing_services
from tapp.decide.partition import follow_current
from tapp.decide.planned import Plan
from tapp.decide.resizes import Resizes, track_resizes
from tapp.decide.rollout import budgets_of
from tapp.decide.serving import serving_of, troubles_of
from tapp.decide.stages import Case, Course
from tapp.storage.claims import plan_claims
from tapp.storage.growth import grow
from tapp.world import Options, World

__all__ = ["Plan", "plan"]


def plan(world: World, options: Options, now: float) -> Plan:
    """Decides; `now` is for what has to last for a while (docs/design.md, "Time")."""
    spec, filling = world.tapp.spec, Filling(world)
    found = assemble(world, filling, options, now)
    instances, partition = found.instances, found.partition

    budgets = budgets_of(spec, instances)
    serving = serving_of(world, instances, now)
    available = serving.available
    current = follow_current(world, partition, instances, available)
    troubles = troubles_of(spec, instances, now)

    verdicts = [judge(instance) for instance in instances]
    cases = [Case(*pair) for pair in zip(instances, verdicts, strict=True)]
    in_use = frozenset(partition.in_use)
    course = Course(world, options, now, filling, budgets, serving, in_use, instances, cases)
    course.run()
    decisions, room = course.decisions, course.room

    resizes = track_resizes(world, instances, decisions, now) if spec.resizes else Resizes()
    roll = Roll()
    if course.pending or len(available) < budgets.should_run:
        roll = follow_roll(world.tapp, instances, verdicts, decisions, available, now)
    unowned = missing_claims(world, instances, now)
    claims = plan_claims(world, [i.made for i in course.without_node if i.id not in room.waiting])
    unexposed, late = missing_services(world, course.services, now), _late(instances)
    soon = course.just_changed or course.services.waits or course.history.waits or late
    waits = (
        *(found.waits, serving.waits, course.pod_holds.waits, course.marks.waits, room.waits),
        *(unowned.waits, unexposed.waits, course.pulls.waits, resizes.waits, roll.waits),
        [RECHECK] if soon else [],
        [i.update.wait for i in instances if i.update.wait is not None],
        [each.wait for each in troubles.values() if each.wait is not None],
    )
    return Plan(
        world=world,
        instances=instances,
        verdicts=verdicts,
        pod_holds=course.pod_holds,
        delays={case.instance.id: case.delay for case in course.cases if case.delay is not None},
        decisions=decisions,
        cases=_not_up_to_date(instances, decisions),
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
        marks=course.marks,
        not_created=room.not_created,
        not_owned=unowned.since,
        not_exposed=unexposed.since,
        waiting=room.waiting.union(course.order, late),
        order={*course.order},
        app_status=found.app_status,
        recheck=min(chain.from_iterable(waits), default=None),
        now=now,
    )


def _not_up_to_date(
    instances: list[Instance], decisions: list[Verdict]
) -> list[tuple[Instance, Verdict]]:
    """Instances that do not simply run their template, with their decisions."""
    pairs = zip(instances, decisions, strict=True)
    return [
        pair for pair in pairs if pair[1].reason != UP_TO_DATE.reason or pair[1].change is not None
    ]


def _late(instances: list[Instance]) -> list[int]:
    """Instances whose template a later sync fills in."""
    return [item.id for item in instances if item.should_run and is_late(item.template)]
