"""One CompositeController at work: what it asks, writes, swallows and retries."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from simulator.api.apply import LAST_APPLIED
from simulator.metacontroller.claiming import selector_of
from simulator.objects.objects import (
    Object,
    annotations_of,
    controller_of,
    finalizers_of,
    uid_of,
    with_meta,
)
from simulator.world import UnsettledError, World
from tests.simulator.fake_hook import (
    FakeHook,
    controller,
    desired,
    group,
    is_ready,
    make_world,
    pod,
    writes,
)


def _settled(hook: FakeHook | None = None, replicas: int = 2, **options: Any) -> World:
    world = make_world(hook, **options)
    world.apply(group(replicas))
    world.settle()
    return world


def _idle(world: World) -> bool:
    world.writes.clear()
    world.run(1000)
    return not world.writes


def test_children_are_created_with_owner_label_and_annotation() -> None:
    """A created pod belongs to its parent and records what was applied."""
    world = _settled()
    parent, child = world.get("Group", "g"), world.get("Pod", "g-0")
    ref = controller_of(child)
    assert ref is not None
    assert ref["uid"] == uid_of(parent)
    assert child["metadata"]["labels"] == {"controller-uid": uid_of(parent)}
    assert '"image":"web:1"' in annotations_of(child)[LAST_APPLIED]
    assert finalizers_of(parent) == ["metacontroller.io/compositecontroller-groups"]
    assert parent["status"] == {"pods": 2, "observedGeneration": 1}
    assert all(is_ready(child) for child in world.list("Pod"))


def test_nothing_is_written_when_nothing_changes() -> None:
    """Periodic syncs of a settled world ask the hook, and write nothing."""
    world = _settled()
    calls = len(world.hook_calls)
    assert _idle(world)
    assert len(world.hook_calls) > calls


def test_every_hook_is_asked() -> None:
    """From the creation of a parent to its end."""
    world = _settled()
    world.patch("Group", "g", {"spec": {"image": "web:2", "replicas": 1}})
    world.settle()
    world.delete("Group", "g")
    world.settle()
    assert {call.hook for call in world.hook_calls} == {"sync", "customize", "finalize"}


def test_update_in_place() -> None:
    """An image change is one PUT per pod, and the pods stay the same objects."""
    world = _settled()
    uids = [uid_of(child) for child in world.list("Pod")]
    world.writes.clear()
    world.patch("Group", "g", {"spec": {"image": "web:2"}})
    world.settle()
    assert writes(world) == ["update g-0", "update g-1"]
    annotation = f"metadata.annotations.{LAST_APPLIED}"
    assert world.writes[0].paths == (annotation, "spec.containers[0].image")
    assert [uid_of(child) for child in world.list("Pod")] == uids
    assert _idle(world)


@pytest.mark.parametrize(("method", "image"), [("Recreate", "web:2"), ("OnDelete", "web:1")])
def test_other_strategies(method: str, image: str) -> None:
    """Recreate replaces the pods, OnDelete leaves them alone."""
    world = _settled(manifest=controller(method))
    world.patch("Group", "g", {"spec": {"image": "web:2"}})
    world.settle()
    assert {child["spec"]["containers"][0]["image"] for child in world.list("Pod")} == {image}


def test_deletes_come_before_creates() -> None:
    """A child left out goes, a new one comes, in this order."""
    hook = FakeHook()
    world = _settled(hook, replicas=1)
    world.writes.clear()
    hook.sync = lambda _request: {"status": {}, "children": [pod("other")]}
    world.run(400)
    assert writes(world) == ["delete g-0", "create other"]


def test_illegal_updates_are_retried_for_ever() -> None:
    """A 422 on one pod is an error of the sync; other pods and the status are written."""
    hook = FakeHook()
    world = _settled(hook)

    def meddle(request: Object) -> Object:
        answer = desired(request)
        answer["children"][0]["spec"]["hostNetwork"] = True
        answer["children"][1]["metadata"]["labels"] = {"a": "b"}
        answer["status"] = {"meddled": True}
        return answer

    hook.sync = meddle
    world.writes.clear()
    world.patch("Group", "g", {"metadata": {"labels": {"x": "y"}}})
    with pytest.raises(UnsettledError, match="hostNetwork"):
        world.settle()
    assert world.get("Pod", "g-1")["metadata"]["labels"]["a"] == "b"
    assert world.get("Group", "g")["status"]["meddled"] is True
    refused = [write for write in world.writes if write.outcome == "Invalid"]
    assert len(refused) > 5


def test_two_ports_of_one_number_never_settle() -> None:
    """TCP and UDP on one port collapse in dynamic apply; without the annotation they do not."""
    hook = FakeHook()
    ports = [{"containerPort": 53, "protocol": "TCP"}, {"containerPort": 53, "protocol": "UDP"}]

    def both(request: Object) -> Object:
        answer = desired(request)
        for child in answer["children"]:
            child["spec"]["containers"][0]["ports"] = ports
        return answer

    hook.sync = both
    with pytest.raises(UnsettledError):
        _settled(hook)


def test_own_status_must_be_stable() -> None:
    """A status that compares equal is not written; 1.0 never compares equal to 1."""
    hook = FakeHook()
    hook.sync = lambda request: {**desired(request), "status": {"ratio": 1}}
    world = _settled(hook)
    assert _idle(world)
    hook.sync = lambda request: {**desired(request), "status": {"ratio": 1.0}}
    assert not _idle(world)


def test_taken_names_are_swallowed() -> None:
    """A pod that exists and is not ours blocks its name silently."""
    world = make_world()
    world.apply(pod("g-0"))
    world.apply(group(1))
    world.settle()
    assert controller_of(world.get("Pod", "g-0")) is None
    assert any(write.outcome == "AlreadyExists" for write in world.writes)


def test_conflicts_are_swallowed() -> None:
    """A PUT on a stale pod is no error; the next sync repeats it."""
    world = _settled(replicas=1)
    world.store.fail(1, verb="update", kind="Pod", code=409)
    world.patch("Group", "g", {"spec": {"image": "web:2"}})
    world.settle()
    assert world.get("Pod", "g-0")["spec"]["containers"][0]["image"] == "web:1"
    world.run(400)
    assert world.get("Pod", "g-0")["spec"]["containers"][0]["image"] == "web:2"


def test_failed_writes_are_retried() -> None:
    """A 500 fails the sync, which is tried again after a moment."""
    world = make_world()
    world.store.fail(2, verb="create", kind="Pod", code=500)
    world.apply(group(2))
    world.settle()
    assert len(world.list("Pod")) == 2


@pytest.mark.parametrize("after_deciding", [False, True])
@pytest.mark.parametrize("status", [500, 0, 429])
def test_hook_failures_change_nothing(status: int, *, after_deciding: bool) -> None:
    """While the hook fails nothing is written; afterwards everything is."""
    world = _settled()
    world.hook.fail(5, status=status, path="/sync", after_deciding=after_deciding)
    world.writes.clear()
    world.patch("Group", "g", {"spec": {"replicas": 0}})
    world.run(0.11)
    assert world.writes == []
    world.settle()
    assert world.list("Pod") == []


def test_finalize_waits_for_the_children() -> None:
    """A deleted parent goes when its hook says so, after its pods."""
    world = _settled()
    world.delete("Group", "g")
    world.run(0.3)
    assert world.get("Group", "g")["metadata"]["deletionTimestamp"]
    world.settle()
    assert world.list("Group") == world.list("Pod") == []


def test_without_a_finalize_hook_the_collector_cleans_up() -> None:
    """No finalizer, no finalize call; the pods go by garbage collection."""
    world = _settled(manifest=controller(finalize=False))
    assert finalizers_of(world.get("Group", "g")) == []
    world.writes.clear()
    world.delete("Group", "g")
    world.settle()
    assert world.list("Pod") == []
    assert writes(world) == []


def test_orphaning_keeps_the_pods() -> None:
    """With --cascade=orphan the children are left alone."""
    world = _settled()
    world.delete("Group", "g", propagation="Orphan")
    world.settle()
    assert world.list("Group") == []
    assert [controller_of(child) for child in world.list("Pod")] == [None, None]


def test_drifted_labels_release_a_child() -> None:
    """A pod whose labels no longer match is let go, and its name stays taken."""
    world = _settled()
    world.patch("Pod", "g-0", {"metadata": {"labels": {"controller-uid": "x"}}})
    world.settle()
    assert controller_of(world.get("Pod", "g-0")) is None
    assert len(world.hook_calls[-1].request["children"]["Pod.v1"]) == 1


def test_orphans_that_match_are_adopted() -> None:
    """A pod of nobody with the right labels gets the parent as its controller."""
    world = _settled(replicas=1)
    parent = world.get("Group", "g")
    labels = selector_of(parent)["matchLabels"]
    world.patch("Group", "g", {"spec": {"replicas": 2}})
    world.apply(with_meta(pod("g-1"), labels=labels))
    world.settle()
    ref = controller_of(world.get("Pod", "g-1"))
    assert ref is not None
    assert ref["uid"] == uid_of(parent)


def test_related_objects() -> None:
    """Customize rules bring objects of any scope; their changes cause a sync."""
    hook = FakeHook()
    hook.rules = [
        {"apiVersion": "v1", "resource": "namespaces", "names": ["default"]},
        {"apiVersion": "v1", "resource": "nodes", "labelSelector": {"matchLabels": {"a": "b"}}},
    ]
    world = _settled(hook)
    related = world.hook_calls[-1].request["related"]
    assert list(related["Namespace.v1"]) == ["default"]
    assert related["Node.v1"] == {}
    calls = len(world.hook_calls)
    world.patch("Node", "node-0", {"metadata": {"labels": {"a": "b"}}}, "")
    world.settle()
    assert len(world.hook_calls) > calls
    assert list(world.hook_calls[-1].request["related"]["Node.v1"]) == ["node-0"]


def test_version_one_keys_by_name() -> None:
    """A v1 hook gets bare names, and nothing from outside the parent's namespace."""
    manifest = controller()
    manifest["spec"]["hooks"]["sync"]["version"] = "v1"
    hook = FakeHook()
    hook.rules = [{"apiVersion": "v1", "resource": "nodes"}]
    world = _settled(hook, manifest=manifest)
    request = [call for call in world.hook_calls if call.hook == "sync"][-1].request
    assert sorted(request["children"]["Pod.v1"]) == ["g-0", "g-1"]
    assert request["related"]["Node.v1"] == {}


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ({"children": [], "extra": 1}, "unknown field"),
        ({"children": [{"apiVersion": "v1"}]}, "kind"),
        ({"children": [None]}, "panics"),
        ({"children": {}}, "unmarshal"),
        ({"status": 3}, "unmarshal"),
    ],
)
def test_answers_that_are_refused(answer: Any, error: str) -> None:
    """A malformed answer fails the sync and deletes nothing."""
    hook = FakeHook()
    world = _settled(hook)
    hook.sync = lambda _request: answer
    world.patch("Group", "g", {"spec": {"image": "web:2"}})
    with pytest.raises(UnsettledError, match=error):
        world.settle()
    assert len(world.list("Pod")) == 2


def test_an_empty_answer_deletes_everything() -> None:
    """`{}` means that no children are wanted."""
    hook = FakeHook()
    world = _settled(hook)
    hook.sync = lambda _request: {}
    world.patch("Group", "g", {"spec": {"image": "web:2"}})
    world.settle()
    assert world.list("Pod") == []
    assert world.get("Group", "g")["status"] == {"observedGeneration": 2}


def test_resync_requests() -> None:
    """A resyncAfterSeconds brings one more sync, that much later."""
    hook = FakeHook()
    world = _settled(hook)
    hook.sync = lambda request: {**desired(request), "resyncAfterSeconds": 30}
    world.patch("Group", "g", {"metadata": {"labels": {"x": "y"}}})
    world.run(100)
    times = [call.time for call in world.hook_calls if call.hook == "sync"][-4:]
    assert [round(b - a) for a, b in pairwise(times)] == [30, 30, 30]


def test_restart_changes_nothing() -> None:
    """A new Metacontroller finds everything as it should be."""
    world = _settled()
    world.metacontroller.restart()
    assert _idle(world)


def test_writes_after_a_slow_hook_are_stale() -> None:
    """A change while the hook thinks makes its writes conflict, and the next sync repairs."""
    world = _settled(replicas=1)
    world.metacontroller.hook_seconds = 2.0
    world.patch("Group", "g", {"spec": {"image": "web:2"}})
    world.run(1)
    world.patch("Pod", "g-0", {"metadata": {"labels": {"touched": "yes"}}})
    world.settle()
    assert "Conflict" in [write.outcome for write in world.writes]
    assert world.get("Pod", "g-0")["spec"]["containers"][0]["image"] == "web:2"
    assert _idle(world)
