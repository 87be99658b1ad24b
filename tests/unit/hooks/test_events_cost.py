"""The time that a sync spends on Events: each instance is visited once."""

from collections.abc import Iterator
from dataclasses import replace

from hooks.wire.memo import Memo
from hooks.wire.request import Request, world_of
from tapp.answer.events import events
from tapp.answer.status import summarize
from tapp.decide.instances import Instance
from tapp.declared.model import TApp
from tapp.plan import plan
from tapp.world import Options
from tests.builders import as_sent, template
from tests.unit.world import settled

MANY = 12


class CountedList(list[Instance]):
    """A list that counts its iterations."""

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
    decided = plan(world_of(asked), Options(), world.hook.now)
    status, instances = summarize(decided), CountedList(decided.instances)
    told = events(replace(decided, instances=instances), status)
    assert sum(event.reason == "UpdatedInPlace" for event in told) > 1
    assert instances.times == 1
