"""The cost of telling, for which a sync waits: one look at each instance, whatever happens."""

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


class Counted(list[Instance]):
    """A list that counts how often somebody goes through it."""

    times = 0

    def __iter__(self) -> Iterator[Instance]:
        self.times += 1
        return super().__iter__()


def test_a_roll_of_many_templates_looks_at_the_instances_once() -> None:
    given = {str(number): f"t{number}" for number in range(MANY)}
    world = settled(
        replicas=MANY,
        templates=given,
        templatePool={name: template("web:1") for name in given.values()},
    )
    world.change(templatePool={name: template("web:2") for name in given.values()})
    asked = Request(as_sent(world.request()), TApp, Memo(0))
    decided = plan(world_of(asked), Options(), world.hook.now)
    status, instances = summarize(decided), Counted(decided.instances)
    told = events(replace(decided, instances=instances), status)
    assert sum(event.reason == "UpdatedInPlace" for event in told) > 1
    assert instances.times == 1
