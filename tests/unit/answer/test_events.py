"""Events of a TApp: which, how many, and the same names for the same happenings."""

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given

from hooks.wire.memo import Memo
from hooks.wire.request import Request, world_of
from tapp.answer.events import NOTE_BYTES, STEPS, Event, events
from tapp.answer.status import summarize
from tapp.declared.model import TApp
from tapp.plan import plan
from tapp.world import Options
from tests import sizes
from tests.builders import (
    Document,
    as_sent,
    completed,
    crashing,
    running,
    tapp,
    template,
    terminating,
)
from tests.unit.strategies import worlds
from tests.unit.world import World, settled

ONCE = template(restartPolicy="Never")
MEMO = Memo(1 << 24)


def events_of(world: World, request: Document | None = None) -> list[Event]:
    """Events that a sync of this world tells."""
    asked = Request(as_sent(request or world.request()), TApp, MEMO)
    decided = plan(world_of(asked), Options(), world.hook.now)
    return events(decided, summarize(decided))


def told(world: World) -> list[str]:
    """The same in words: type, reason, and the instances where the note begins with them."""
    lines = []
    for event in events_of(world):
        ids = re.match(r"instances? ([\d, -]+)", event.note)
        kind = "Warning" if event.warning else "Normal"
        lines.append(f"{kind} {event.reason}" + (f" {ids[1].strip()}" if ids else ""))
    return lines


def synced(world: World, *, ready: bool = True) -> World:
    """After a sync and its effects."""
    world.sync()
    world.kubelet(ready=ready)
    return world


def history(world: World, most: int = 400) -> list[Event]:
    """All events of different names until nothing happens any more."""
    found: dict[str, Event] = {}
    for _ in range(most):
        before = world.parent.get("status")
        found |= {event.name: event for event in events_of(world) if event.name not in found}
        synced(world)
        if not world.writes and world.parent["status"] == before:
            return list(found.values())
    raise AssertionError("it does not end")


# --- the rules ------------------------------------------------------------------------------------

NEW = template("nginx:2")
OTHER = template(container={"command": ["x"]})
TWO = {"maxUnavailable": 2}

CASES: list[tuple[str, Callable[[], World], list[str]]] = [
    ("a new TApp", lambda: World(tapp(replicas=3)), ["Normal Created 0-2"]),
    ("asked for, and not seen yet", lambda: emptied(World(tapp(replicas=3))), []),
    ("nothing to do", lambda: settled(replicas=3), []),
    ("more instances", lambda: settled(replicas=2).change(replicas=5), ["Normal Created 2-4"]),
    (
        "one after another",
        lambda: World(tapp(replicas=3, podManagementPolicy="OrderedReady")),
        ["Normal Created 0-2"],
    ),
    (
        "fewer, one after another",
        lambda: settled(replicas=5, podManagementPolicy="OrderedReady").change(replicas=2),
        ["Normal Deleted 2-4"],
    ),
    ("fewer", lambda: settled(replicas=5).change(replicas=2), ["Normal Deleted 2-4"]),
    ("killed", lambda: settled(replicas=3).change(statuses={"1": "Killed"}), ["Normal Deleted 1"]),
    (
        "started again",
        lambda: settled(replicas=3, statuses={"1": "Killed"}).change(statuses=None),
        ["Normal Created 1"],
    ),
    (
        "an image",
        lambda: settled(replicas=4).change(template=NEW, updateStrategy=TWO),
        ["Normal UpdatedInPlace 0, 1", "Normal Waiting 2, 3"],
    ),
    (
        "a command",
        lambda: settled(replicas=4).change(template=OTHER, updateStrategy=TWO),
        ["Normal Recreated 0, 1", "Normal Waiting 2, 3"],
    ),
    (
        "within the budget",
        lambda: settled(replicas=2).change(template=NEW, updateStrategy=TWO),
        ["Normal UpdatedInPlace 0, 1"],
    ),
    (
        "the second step of a roll: what waits is no news",
        lambda: synced(settled(replicas=4).change(template=NEW)),
        ["Normal UpdatedInPlace 1"],
    ),
    (
        "an edit of the budget in the middle of a roll",
        lambda: synced(settled(replicas=4).change(template=NEW)).change(minReadySeconds=1),
        ["Normal Waiting 1-3"],
    ),
    (
        "paused",
        lambda: settled(replicas=2).change(template=NEW, updateStrategy={"paused": True}),
        ["Normal Waiting 0, 1"],
    ),
    (
        "paused, and said",
        lambda: synced(settled(replicas=2).change(template=NEW, updateStrategy={"paused": True})),
        [],
    ),
    ("the end of a roll", lambda: synced(settled().change(template=NEW)), ["Normal Completed"]),
    ("the end, and said", lambda: settled().change(template=NEW).settle(), []),
    (
        "a pod that has failed",
        lambda: settled(replicas=2).modify(1, lambda pod: completed(pod, "Failed")),
        ["Warning Recreated 1", "Warning InstancesBroken 1"],
    ),
    (
        "a pod that has ended",
        lambda: settled(replicas=2).modify(1, lambda pod: completed(pod, "Succeeded")),
        ["Normal Recreated 1", "Warning InstancesBroken 1"],
    ),
    (
        "an instance that has run to its end",
        lambda: settled(template=ONCE).modify(0, lambda pod: completed(pod, "Succeeded")),
        [],
    ),
    ("evicted", lambda: settled(replicas=3).modify(2, terminating), ["Normal Recreated 2"]),
    ("evicted, and said", lambda: once(settled(replicas=3).modify(2, terminating)), []),
    (
        "the new pod of an instance whose pod is gone",
        lambda: synced(settled(replicas=3).modify(2, terminating)),
        [],
    ),
    ("deleted for its update", lambda: once(settled(replicas=2).change(template=OTHER)), []),
    (
        "a typo",
        lambda: settled(replicas=2).change(templates={"1": "typo"}),
        ["Warning TemplateNotFound"],
    ),
    ("a typo, and said", lambda: once(settled(replicas=2).change(templates={"1": "typo"})), []),
    (
        "another typo",
        lambda: once(settled(replicas=2).change(templates={"1": "typo"})).change(
            templates={"1": "tipo"}
        ),
        ["Warning TemplateNotFound"],
    ),
    (
        "something without effect",
        lambda: settled(replicas=2).change(statuses={"7": "Killed"}),
        ["Normal UnusedInstances"],
    ),
    ("a crash", lambda: settled(replicas=2).modify(1, crashing), ["Warning InstancesBroken 1"]),
    ("more crashes", lambda: once(settled(replicas=2).modify(1, crashing)).modify(0, crashing), []),
]


def emptied(world: World) -> World:
    """A sync whose pods are not seen yet."""
    world.sync()
    world.pods.clear()
    return world


def once(world: World) -> World:
    """After a sync that nothing has come of yet."""
    world.sync()
    return world


@pytest.mark.parametrize(
    ("world", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_what_is_told(world: Callable[[], World], expected: list[str]) -> None:
    assert told(world()) == expected


def test_an_event_says_what_why_and_how_far() -> None:
    """The words that kubectl prints."""
    world = settled(replicas=4).change(template=NEW, updateStrategy=TWO)
    step, waits = events_of(world)
    assert re.sub(r"v1-\w+", "REV", step.note) == (
        "instances 0, 1 to REV: template 'default' changes images of app in place; "
        "done before: 0 of 4"
    )
    assert waits.note.startswith("instances 2, 3: spec.updateStrategy.maxUnavailable: 2 allows")
    assert (step.action, waits.action) == ("UpdateInPlace", "Keep")


def test_one_pod_is_named_with_its_uid() -> None:
    world = settled(replicas=3).change(template=NEW)
    step, _ = events_of(world)
    assert step.pod == ("web-0", world.pod(0)["metadata"]["uid"])
    both = settled(replicas=3).change(template=NEW, updateStrategy=TWO)
    assert events_of(both)[0].pod is None


# --- how many -------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", [NEW, OTHER], ids=["in place", "by new pods"])
@pytest.mark.parametrize("size", [6, 21])
def test_a_roll_has_a_dozen_events_however_many_instances_it_has(
    change: Document, size: int
) -> None:
    world = settled(replicas=size).change(template=change, updateStrategy={"maxUnavailable": 1})
    counts = Counter(event.reason for event in history(world))
    reason = "UpdatedInPlace" if change is NEW else "Recreated"
    assert counts == {reason: min(size, STEPS), "Waiting": 1, "Completed": 1}


def test_the_events_of_a_roll_do_not_grow_with_the_budget_either() -> None:
    replicas = sizes.size(21, 80)
    world = settled(replicas=replicas).change(template=NEW, updateStrategy={"maxUnavailable": "5%"})
    counts = Counter(event.reason for event in history(world))
    assert counts == {"UpdatedInPlace": STEPS, "Waiting": 1, "Completed": 1}


def test_two_rolls_are_told_of_twice() -> None:
    """Back to the first template within the hour: another generation, another name."""
    world = settled(replicas=2)
    first = history(world.change(template=NEW))
    second = history(world.change(template=template()))
    assert not {event.name for event in first} & {event.name for event in second}
    assert len(first) == len(second) == 4


# --- names ----------------------------------------------------------------------------------------


@given(worlds())
def test_the_same_is_told_under_the_same_name(world: World) -> None:
    """By whichever replica, and whatever the clock says."""
    request = world.request()
    first = events_of(world, request)
    world.hook.now += 30
    again = {event.name: event for event in events_of(world, request)}
    assert {event.name for event in first if not _timed(event)} <= set(again)
    assert len({event.name for event in first}) == len(first)


def _timed(event: Event) -> bool:
    """True if time alone may end what it tells of."""
    return event.reason in ("InstancesBroken", "PodsNotCreated", "Recreated", "PodStatusNotWritten")


@given(worlds())
def test_every_event_is_one_that_kubernetes_takes(world: World) -> None:
    for event in events_of(world):
        assert re.fullmatch(r"[a-z0-9]([-.a-z0-9]*[a-z0-9])?", event.name)
        assert len(event.name) <= 253
        assert 0 < len(event.note.encode()) <= 1024
        assert re.fullmatch(r"[A-Z][A-Za-z]{1,127}", event.reason)
        assert re.fullmatch(r"[A-Z][A-Za-z]{1,127}", event.action)
        assert msgspec.json.decode(msgspec.json.encode(event), type=Event) == event


def test_a_cache_that_lags_behind_its_own_writes_tells_nothing_new() -> None:
    """Right after a sync: the parent's status unseen, and pods seen in part."""
    for before, change in (
        (World(tapp(replicas=20)), {}),
        (settled(replicas=20), {"replicas": 5}),
        (settled(replicas=20), {"template": NEW, "updateStrategy": {"maxUnavailable": 9}}),
        (settled(replicas=20), {"template": OTHER, "updateStrategy": {"maxUnavailable": 9}}),
    ):
        world = before.change(**change)
        stale, old = world.parent, dict(world.pods)
        names = {event.name for event in events_of(world)}
        world.sync()
        for seen in (0, 1):
            lagging = {
                name: pod if index > seen else world.pods.get(name, pod)
                for index, (name, pod) in enumerate({**world.pods, **old}.items())
                if name in old or index <= seen
            }
            world.parent, world.pods = stale, lagging
            assert {event.name for event in events_of(world)} <= names


def test_a_long_note_is_cut_between_characters() -> None:
    parent: dict[str, Any] = tapp(replicas=1, templates={"0": "ü" * 900})
    (event,) = events_of(World(parent))
    assert NOTE_BYTES - 2 <= len(event.note.encode()) <= NOTE_BYTES
    assert event.note.endswith("...")


def test_a_long_name_leaves_room_for_the_rest() -> None:
    parent = tapp(replicas=1)
    parent["metadata"]["name"] = "a" * 199 + "-" + "b" * 50
    (event,) = events_of(World(parent))
    assert re.fullmatch(r"a{199}\.[0-9a-f]{20}", event.name)


def test_a_pod_that_comes_back_is_no_news() -> None:
    """Not Ready and Ready again, within one generation, completes nothing anew."""
    world = settled(replicas=2).change(template=NEW)
    done = {event.name for event in history(world) if event.reason == "Completed"}
    world.modify(0, lambda pod: running(pod, ready=False))
    again = {event.name for event in history(world)}
    assert again == done
