"""Tests a DecoratorController: its supported fields, when it calls the hook, and its requests."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from simulator.metacontroller.decorator import read_decorator
from simulator.objects.objects import Object, with_meta
from tests.simulator.decorator_world import (
    GATE,
    decorator_calls,
    marked,
    running,
    stage,
    touch,
    with_gate,
)
from tests.simulator.fake_hook import decorator, group, pod

SHIPPED = Path("metacontroller/components/pod-status/decorator-controller.yaml")


def test_request_has_the_controller_and_the_cached_object() -> None:
    world, _ = running()
    touch(world)
    world.settle()
    (call,) = decorator_calls(world)
    assert list(call.request) == [
        "controller", "object", "attachments", "related", "finalizing",
    ]  # fmt: skip
    assert call.request["object"] == world.get("Pod", "p")
    assert call.request["controller"]["metadata"]["name"] == "marks"
    assert call.request["attachments"] == {}
    assert call.request["related"] == {}
    assert call.request["finalizing"] is False
    assert call.parent == ("default", "p")


def test_decorator_and_composite_both_call_their_hooks() -> None:
    """Runs both kinds of controllers for pods, from their creation until a deletion: all hooks are
    called.
    """
    world, _ = stage(with_gate)
    world.apply(marked(readinessGates=[{"conditionType": GATE}]))
    world.apply(group(1))
    world.settle()
    world.delete("Pod", "p")
    world.settle()
    assert {call.hook for call in world.hook_calls} == {"sync", "customize", "decorate"}


@pytest.mark.parametrize(
    ("change", "calls"),
    [
        ({"metadata": {"annotations": {"a": "b"}}}, 1),
        ({"metadata": {"labels": {"decorated": None}}}, 0),
        ({"metadata": {"labels": {"decorated": "false"}}}, 0),
        ({"metadata": {"finalizers": ["x/y"]}}, 1),
    ],
    ids=["annotation", "removed label", "changed label", "finalizer"],
)
def test_every_update_of_a_selected_object_causes_a_sync(change: Object, calls: int) -> None:
    """Changes only the metadata of a pod: each change causes a sync while the pod has the label."""
    world, _ = running()
    world.patch("Pod", "p", change)
    world.run(10)
    assert len(decorator_calls(world)) == calls


def test_objects_that_are_not_selected_cause_no_sync() -> None:
    world, _ = running()
    world.apply(pod("other"))
    world.apply(with_meta(group(1), labels={"decorated": "true"}))
    world.settle()
    assert decorator_calls(world) == []


def test_object_is_decorated_after_it_gets_the_label() -> None:
    world, _ = running()
    world.apply(pod("late"))
    world.settle()
    world.patch("Pod", "late", {"metadata": {"labels": {"decorated": "true"}}})
    world.settle()
    assert {call.parent[1] for call in decorator_calls(world)} == {"late"}


def test_terminating_object_is_synced_and_a_deleted_one_is_not() -> None:
    """Deletes a pod: it is synced while it terminates, and `finalizing` is False.

    The DecoratorController of the test has no finalize hook.
    """
    world, _ = running()
    world.delete("Pod", "p")
    world.settle()
    assert decorator_calls(world)
    assert all(call.request["finalizing"] is False for call in decorator_calls(world))
    assert world.outcomes == {}


@pytest.mark.parametrize(("period", "calls"), [(300, 3), (10, 100), (0, 1000)])
def test_periodic_resync_syncs_every_selected_object(period: int, calls: int) -> None:
    """Counts the syncs in 1,000 seconds for several resync periods; the shortest possible one is a
    second.
    """
    world, _ = running(decorators=[decorator(resyncPeriodSeconds=period)])
    before = len(decorator_calls(world))
    world.hook_calls = type(world.hook_calls)(maxlen=5000)
    world.run(1000)
    assert abs(len(decorator_calls(world)) - before - calls) <= max(1, calls // 10)


def test_restart_of_metacontroller_syncs_every_object_and_changes_nothing() -> None:
    world, _ = running(with_gate)
    world.apply(pod("other"))
    world.settle()
    world.writes.clear()
    world.hook_calls.clear()
    world.restart()
    world.settle()
    assert [call.parent[1] for call in decorator_calls(world)] == ["p"]
    assert world.writes == []


def test_two_decorators_have_separate_syncs() -> None:
    other = with_meta(decorator(), name="others")
    world, _ = running(decorators=[decorator(), other])
    touch(world)
    world.settle()
    names = [call.request["controller"]["metadata"]["name"] for call in decorator_calls(world)]
    assert sorted(names) == ["marks", "others"]
    assert {key[0] for key in world.outcomes} == {"marks", "others"}
    assert "marks" in world.dump()


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ({"attachments": [{"apiVersion": "v1", "resource": "pods"}]}, "attachments"),
        ({"resources": [{"annotationSelector": {}}]}, "annotationSelector"),
        ({"resources": [{"ignoreStatusChanges": True}]}, "ignoreStatusChanges"),
        ({"hooks": {name: {"webhook": {"url": "x"}} for name in ("sync", "finalize")}}, "finalize"),
        ({"hooks": {n: {"webhook": {"url": "x"}} for n in ("sync", "customize")}}, "customize"),
        ({"hooks": {}}, "no sync hook"),
    ],
    ids=[
        "attachments",
        "annotation selector",
        "ignored status changes",
        "finalize hook",
        "customize hook",
        "no hooks",
    ],
)
def test_unsupported_fields_are_refused(spec: Object, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        read_decorator(decorator(**spec))


def test_shipped_manifest_is_supported() -> None:
    read = read_decorator(yaml.safe_load(SHIPPED.read_text()))
    assert [(each.api_version, each.plural) for each in read.resources] == [("v1", "pods")]
    assert read.sync.version == "v2"
    assert read.sync.strict
    assert read.sync.timeout_seconds == 10.0
    assert read.sync.url.endswith("/pod-status")
    assert read.resync_seconds == 300
