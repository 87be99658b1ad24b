"""Tests the Events of a TApp: which are sent, how many, and which names they have."""

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given

from tapp.answer.events import NOTE_BYTES, STEPS, Event
from tests import sizes
from tests.builders import Document, completed, crashing, running, tapp, template, terminating
from tests.unit.events import events_of
from tests.unit.strategies import worlds
from tests.unit.world import World, settled

ONCE = template(restartPolicy="Never")


def event_lines(world: World) -> list[str]:
    """Returns a line for each Event of the next sync: type, reason and instances."""
    lines = []
    for event in events_of(world):
        ids = re.match(r"(?:each of )?instances? ([\d, -]+)", event.note)
        kind = "Warning" if event.warning else "Normal"
        lines.append(f"{kind} {event.reason}" + (f" {ids[1].strip()}" if ids else ""))
    return lines


def after_sync(world: World, *, ready: bool = True) -> World:
    """Runs a sync and lets the kubelet act, and returns the world; `ready` is the readiness of pods
    that run.
    """
    world.sync()
    world.kubelet(ready=ready)
    return world


def all_events(world: World, most: int = 400) -> list[Event]:
    """Runs syncs until nothing changes any more; returns all Events with different names.

    Fails after `most` syncs.
    """
    found: dict[str, Event] = {}
    for _ in range(most):
        before = world.parent.get("status")
        found |= {event.name: event for event in events_of(world) if event.name not in found}
        after_sync(world)
        if not world.writes and world.parent["status"] == before:
            return list(found.values())
    raise AssertionError("the world does not settle")


# --- which events are sent ------------------------------------------------------------------------

NEW = template("nginx:2")
OTHER = template(container={"command": ["x"]})
TWO = {"maxUnavailable": 2}

CASES: list[tuple[str, Callable[[], World], list[str]]] = [
    ("new TApp", lambda: World(tapp(replicas=3)), ["Normal Created 0-2"]),
    ("created, not visible yet", lambda: after_sync_without_pods(World(tapp(replicas=3))), []),
    ("nothing to do", lambda: settled(replicas=3), []),
    ("more instances", lambda: settled(replicas=2).change(replicas=5), ["Normal Created 2-4"]),
    (
        "new TApp, OrderedReady",
        lambda: World(tapp(replicas=3, podManagementPolicy="OrderedReady")),
        ["Normal Created 0-2"],
    ),
    (
        "fewer instances, OrderedReady",
        lambda: settled(replicas=5, podManagementPolicy="OrderedReady").change(replicas=2),
        ["Normal Deleted 2-4"],
    ),
    ("fewer instances", lambda: settled(replicas=5).change(replicas=2), ["Normal Deleted 2-4"]),
    ("killed", lambda: settled(replicas=3).change(statuses={"1": "Killed"}), ["Normal Deleted 1"]),
    (
        "started again",
        lambda: settled(replicas=3, statuses={"1": "Killed"}).change(statuses=None),
        ["Normal Created 1"],
    ),
    (
        "image changed",
        lambda: settled(replicas=4).change(template=NEW, updateStrategy=TWO),
        ["Normal UpdatedInPlace 0, 1", "Normal Waiting 2, 3"],
    ),
    (
        "command changed",
        lambda: settled(replicas=4).change(template=OTHER, updateStrategy=TWO),
        ["Normal Recreated 0, 1", "Normal Waiting 2, 3"],
    ),
    (
        "budget allows all updates",
        lambda: settled(replicas=2).change(template=NEW, updateStrategy=TWO),
        ["Normal UpdatedInPlace 0, 1"],
    ),
    (
        "second step of a rollout",
        lambda: after_sync(settled(replicas=4).change(template=NEW)),
        ["Normal UpdatedInPlace 1"],
    ),
    (
        "edit during a rollout",
        lambda: after_sync(settled(replicas=4).change(template=NEW)).change(minReadySeconds=1),
        ["Normal Waiting 1-3"],
    ),
    (
        "paused",
        lambda: settled(replicas=2).change(template=NEW, updateStrategy={"paused": True}),
        ["Normal Waiting 0, 1"],
    ),
    (
        "paused, second sync",
        lambda: after_sync(
            settled(replicas=2).change(template=NEW, updateStrategy={"paused": True})
        ),
        [],
    ),
    ("rollout complete", lambda: after_sync(settled().change(template=NEW)), ["Normal Completed"]),
    ("rollout complete, second sync", lambda: settled().change(template=NEW).settle(), []),
    (
        "pod failed",
        lambda: settled(replicas=2).modify(1, lambda pod: completed(pod, "Failed")),
        ["Warning Recreated 1", "Warning InstancesBroken 1"],
    ),
    (
        "pod succeeded",
        lambda: settled(replicas=2).modify(1, lambda pod: completed(pod, "Succeeded")),
        ["Normal Recreated 1", "Warning InstancesBroken 1"],
    ),
    (
        "instance finished",
        lambda: settled(template=ONCE).modify(0, lambda pod: completed(pod, "Succeeded")),
        [],
    ),
    ("evicted", lambda: settled(replicas=3).modify(2, terminating), ["Normal Recreated 2"]),
    (
        "evicted, second sync",
        lambda: after_sync_only(settled(replicas=3).modify(2, terminating)),
        [],
    ),
    (
        "new pod after an eviction",
        lambda: after_sync(settled(replicas=3).modify(2, terminating)),
        [],
    ),
    (
        "pod deleted for its update",
        lambda: after_sync_only(settled(replicas=2).change(template=OTHER)),
        [],
    ),
    (
        "unknown template",
        lambda: settled(replicas=2).change(templates={"1": "typo"}),
        ["Warning TemplateNotFound"],
    ),
    (
        "unknown template, second sync",
        lambda: after_sync_only(settled(replicas=2).change(templates={"1": "typo"})),
        [],
    ),
    (
        "another unknown template",
        lambda: after_sync_only(settled(replicas=2).change(templates={"1": "typo"})).change(
            templates={"1": "tipo"}
        ),
        ["Warning TemplateNotFound"],
    ),
    (
        "edit without effect",
        lambda: settled(replicas=2).change(statuses={"7": "Killed"}),
        ["Normal UnusedInstances"],
    ),
    ("crash", lambda: settled(replicas=2).modify(1, crashing), ["Warning InstancesBroken 1"]),
    (
        "second crash",
        lambda: after_sync_only(settled(replicas=2).modify(1, crashing)).modify(0, crashing),
        [],
    ),
]


def after_sync_without_pods(world: World) -> World:
    """Runs a sync whose new pods are not in Metacontroller's cache yet, and returns the world."""
    world.sync()
    world.pods.clear()
    return world


def after_sync_only(world: World) -> World:
    """Runs a sync, and returns the world; the new pods exist, but no kubelet has handled them
    yet.
    """
    world.sync()
    return world


@pytest.mark.parametrize(
    ("world", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_sync_sends_the_expected_events(world: Callable[[], World], expected: list[str]) -> None:
    assert event_lines(world()) == expected


def test_note_of_an_event_has_instances_reason_and_progress() -> None:
    """Reads the notes of the two Events of an update: the note is the text that kubectl prints."""
    world = settled(replicas=4).change(template=NEW, updateStrategy=TWO)
    step, waits = events_of(world)
    assert re.sub(r"v1-\w+", "REV", step.note) == (
        "instances 0, 1 are being updated to revision REV: template 'default' changes the "
        "image of container app in place; 0 of 4 instances were up to date before"
    )
    assert waits.note.startswith(
        "instances 2, 3: the update waits for instances 0, 1 to become available, because "
        "spec.updateStrategy.maxUnavailable allows 2 of 4"
    )
    assert step.action == "UpdateInPlace"
    assert waits.action == "Keep"


def test_event_about_one_instance_names_its_pod() -> None:
    world = settled(replicas=3).change(template=NEW)
    step, _ = events_of(world)
    assert step.pod == ("web-0", world.pod(0)["metadata"]["uid"])
    both = settled(replicas=3).change(template=NEW, updateStrategy=TWO)
    assert events_of(both)[0].pod is None


# --- how many events are sent ---------------------------------------------------------------------


@pytest.mark.parametrize("change", [NEW, OTHER], ids=["in place", "replacement"])
@pytest.mark.parametrize("size", [6, 21])
def test_rollout_of_any_number_of_instances_has_at_most_a_dozen_events(
    change: Document, size: int
) -> None:
    world = settled(replicas=size).change(template=change, updateStrategy={"maxUnavailable": 1})
    counts = Counter(event.reason for event in all_events(world))
    reason = "UpdatedInPlace" if change is NEW else "Recreated"
    assert counts == {reason: min(size, STEPS), "Waiting": 1, "Completed": 1}


def test_rollout_with_any_budget_has_at_most_a_dozen_events() -> None:
    replicas = sizes.size(21, 80)
    world = settled(replicas=replicas).change(template=NEW, updateStrategy={"maxUnavailable": "5%"})
    counts = Counter(event.reason for event in all_events(world))
    assert counts == {"UpdatedInPlace": STEPS, "Waiting": 1, "Completed": 1}


def test_each_of_two_rollouts_has_its_own_events() -> None:
    """Rolls out a template and rolls it back: the Events of both have different names.

    A rollback within the hour has another generation, which is a part of the names.
    """
    world = settled(replicas=2)
    first = all_events(world.change(template=NEW))
    second = all_events(world.change(template=template()))
    assert not {event.name for event in first} & {event.name for event in second}
    assert len(first) == len(second) == 4


# --- names of events ------------------------------------------------------------------------------


@given(worlds())
def test_events_have_the_same_names_in_each_replica_and_at_any_time(world: World) -> None:
    request = world.request()
    first = events_of(world, request)
    world.hook.now += 30
    again = {event.name: event for event in events_of(world, request)}
    assert {event.name for event in first if not _ends_with_time(event)} <= set(again)
    assert len({event.name for event in first}) == len(first)


def _ends_with_time(event: Event) -> bool:
    """Returns True if the cause of the Event may end without any change of an object."""
    return event.reason in ("InstancesBroken", "PodsNotCreated", "Recreated", "PodStatusNotWritten")


@given(worlds())
def test_every_event_is_valid_for_the_api_server(world: World) -> None:
    for event in events_of(world):
        assert re.fullmatch(r"[a-z0-9]([-.a-z0-9]*[a-z0-9])?", event.name)
        assert len(event.name) <= 253
        assert 0 < len(event.note.encode()) <= 1024
        assert re.fullmatch(r"[A-Z][A-Za-z]{1,127}", event.reason)
        assert re.fullmatch(r"[A-Z][A-Za-z]{1,127}", event.action)
        assert msgspec.json.decode(msgspec.json.encode(event), type=Event) == event


def test_stale_cache_after_a_sync_causes_no_new_event() -> None:
    """Repeats a sync while the cache shows the old status and some of the written pods: no new
    Event is sent.
    """
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


def test_long_note_is_shortened_between_characters() -> None:
    parent: dict[str, Any] = tapp(replicas=1, templates={"0": "ü" * 900})
    (event,) = events_of(World(parent))
    assert NOTE_BYTES - 2 <= len(event.note.encode()) <= NOTE_BYTES
    assert event.note.endswith("...")


def test_name_of_an_event_is_valid_for_a_tapp_with_a_long_name() -> None:
    parent = tapp(replicas=1)
    parent["metadata"]["name"] = "a" * 199 + "-" + "b" * 50
    (event,) = events_of(World(parent))
    assert re.fullmatch(r"a{199}\.[0-9a-f]{20}", event.name)


def test_pod_that_is_ready_again_does_not_complete_the_rollout_again() -> None:
    world = settled(replicas=2).change(template=NEW)
    done = {event.name for event in all_events(world) if event.reason == "Completed"}
    world.modify(0, lambda pod: running(pod, ready=False))
    again = {event.name for event in all_events(world)}
    assert again == done
