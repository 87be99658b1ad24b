"""One DecoratorController: what it is made of, when it asks, and what it sends."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from simulator.metacontroller.decorator import read_decorator
from simulator.objects.objects import Object, with_meta
from tests.simulator.decorated import GATE, asked, marked, running, stage, touch, with_gate
from tests.simulator.fake_hook import decorator, group, pod

SHIPPED = Path("metacontroller/components/pod-status/decorator-controller.yaml")


def test_the_request() -> None:
    """The controller, the object as it is cached, and three fields that are always there."""
    world, _ = running()
    touch(world)
    world.settle()
    (call,) = asked(world)
    assert list(call.request) == [
        "controller", "object", "attachments", "related", "finalizing",
    ]  # fmt: skip
    assert call.request["object"] == world.get("Pod", "p")
    assert call.request["controller"]["metadata"]["name"] == "marks"
    assert (call.request["attachments"], call.request["related"]) == ({}, {})
    assert call.request["finalizing"] is False
    assert call.parent == ("default", "p")


def test_both_kinds_of_controllers_ask() -> None:
    """From creation to the end of a pod, beside a composite."""
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
)
def test_an_update_counts_by_what_it_leads_to(change: Object, calls: int) -> None:
    """Every event of an object that is selected is a reason, also one of metadata alone."""
    world, _ = running()
    world.patch("Pod", "p", change)
    world.run(10)
    assert len(asked(world)) == calls


def test_other_objects_cost_nothing() -> None:
    """A pod without the label is never asked about, nor is another kind with it."""
    world, _ = running()
    world.apply(pod("other"))
    world.apply(with_meta(group(1), labels={"decorated": "true"}))
    world.settle()
    assert asked(world) == []


def test_a_label_that_comes_later() -> None:
    """From then on the object is decorated."""
    world, _ = running()
    world.apply(pod("late"))
    world.settle()
    world.patch("Pod", "late", {"metadata": {"labels": {"decorated": "true"}}})
    world.settle()
    assert {call.parent[1] for call in asked(world)} == {"late"}


def test_deleted_objects_are_not_asked_about() -> None:
    """While it terminates the hook is still asked, by sync: there is no finalize hook."""
    world, _ = running()
    world.delete("Pod", "p")
    world.settle()
    assert asked(world)
    assert all(call.request["finalizing"] is False for call in asked(world))
    assert world.outcomes == {}


@pytest.mark.parametrize(("period", "calls"), [(300, 3), (10, 100), (0, 1000)])
def test_periodic_resync(period: int, calls: int) -> None:
    """Every selected object, that often; never more than once a second."""
    world, _ = running(decorators=[decorator(resyncPeriodSeconds=period)])
    before = len(asked(world))
    world.hook_calls = type(world.hook_calls)(maxlen=5000)
    world.run(1000)
    assert abs(len(asked(world)) - before - calls) <= max(1, calls // 10)


def test_restart() -> None:
    """A new Metacontroller asks about every selected object, and changes nothing."""
    world, _ = running(with_gate)
    world.apply(pod("other"))
    world.settle()
    world.writes.clear()
    world.hook_calls.clear()
    world.restart()
    world.settle()
    assert [call.parent[1] for call in asked(world)] == ["p"]
    assert world.writes == []


def test_two_decorators() -> None:
    """Each asks for itself; their outcomes are told apart."""
    other = with_meta(decorator(), name="others")
    world, _ = running(decorators=[decorator(), other])
    touch(world)
    world.settle()
    names = [call.request["controller"]["metadata"]["name"] for call in asked(world)]
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
)
def test_what_is_not_modelled_is_refused(spec: Object, error: str) -> None:
    """Rather than half done."""
    with pytest.raises(ValueError, match=error):
        read_decorator(decorator(**spec))


def test_the_shipped_manifest_is_modelled() -> None:
    """It has one kind, one hook, version v2 and so strict."""
    read = read_decorator(yaml.safe_load(SHIPPED.read_text()))
    assert [(each.api_version, each.plural) for each in read.resources] == [("v1", "pods")]
    assert (read.sync.version, read.sync.strict, read.sync.timeout_seconds) == ("v2", True, 10.0)
    assert read.sync.url.endswith("/pod-status")
    assert read.resync_seconds == 300
