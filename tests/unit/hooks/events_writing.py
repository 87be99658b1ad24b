"""Starts the thread that writes Events to the fake API server, and creates Events for it."""

import time

from hooks.service import events, metrics
from hooks.wire.memo import Memo
from hooks.wire.request import Request, world_of
from tapp.answer.conditions import conditions_of
from tapp.declared.model import TApp
from tapp.plan import Plan, make_plan
from tapp.world import Options
from tests.builders import NOW, Document, as_sent, request, tapp

OUTCOMES = [each.value for each in events.Outcome]


def decided(parent: Document) -> tuple[Plan, Document]:
    """Returns the plan of a sync for a TApp without pods, and the conditions of its status."""
    asked = Request(as_sent(request(parent, [])), TApp, Memo(0))
    found = make_plan(world_of(asked), Options(), NOW)
    return found, conditions_of(found)


def new_event(generation: int) -> tuple[Plan, Document]:
    """Returns a plan and conditions that cause one new Event; each generation causes another
    one.
    """
    return decided(tapp(generation=generation))


def counted() -> dict[str, float]:
    """Returns outcome -> number of Events with this outcome since the process started."""
    return {each: metrics.EVENTS.labels(each)._value.get() for each in OUTCOMES}


def counted_since(before: dict[str, float]) -> dict[str, float]:
    """Returns outcome -> number of Events with this outcome since `before`, without zeros."""
    now = counted()
    return {each: now[each] - before[each] for each in OUTCOMES if now[each] != before[each]}


def until(before: dict[str, float], **expected: int) -> None:
    """Waits until exactly these numbers of Events have been counted since `before`; fails after a
    minute.
    """
    end = time.monotonic() + 60
    while counted_since(before) != expected:
        assert time.monotonic() < end, counted_since(before)
        time.sleep(0.01)
