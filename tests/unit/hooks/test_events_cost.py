"""Tests the cost of Events in a sync: each instance is visited once."""

from collections.abc import Iterator

from hooks.wire.memo import Memo
from hooks.wire.request import Request, world_of
from tapp.answer.conditions import conditions_of
from tapp.answer.events import events
from tapp.decide.instances import Instance
from tapp.declared.model import TApp
from tapp.plan import make_plan
from tapp.world import Options
from tests.builders import as_sent, template
from tests.unit.world import settled

MANY = 12


class CountedList(list[Instance]):
    """Counts in `times` how often the list is iterated over."""

    times = 0

    def __iter__(self) -> Iterator[Instance]:
        self.times += 1
        return super().__iter__()


def test_events_of_a_rollout_of_many_templates_need_one_pass_over_the_instances() -> None:
    given = {str(number): f"t{number}" for number in range(MANY)}
    world = settled(
        replicas=MANY,
        templates=given,
        templatePool={name: template("web:1") for name in given.values()},
    )
    world.change(templatePool={name: template("web:2") for name in given.values()})
    asked = Request(as_sent(world.request()), TApp, Memo(0))
    decided = make_plan(world_of(asked), Options(), world.hook.now)
    conditions, instances = conditions_of(decided), CountedList(decided.instances)
    decided.instances = instances
    told = events(decided, conditions)
    assert sum(event.reason == "UpdatedInPlace" for event in told) > 1
    assert instances.times == 1
