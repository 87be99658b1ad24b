"""Computes the Kubernetes Events that a sync would report, without the HTTP service."""

from hooks.wire.memo import Memo
from hooks.wire.request import Request, world_of
from tapp.answer.conditions import conditions_of
from tapp.answer.events import Event, events
from tapp.declared.model import TApp
from tapp.plan import make_plan
from tapp.world import Options
from tests.builders import Document, as_sent
from tests.unit.world import World

MEMO = Memo(1 << 24)


def events_of(world: World, request: Document | None = None) -> list[Event]:
    """Returns the Events of a sync: of the world's next request, or of `request` if it is given."""
    asked = Request(as_sent(request or world.request()), TApp, MEMO)
    decided = make_plan(world_of(asked), Options(), world.hook.now)
    return events(decided, conditions_of(decided))
