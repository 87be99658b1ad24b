"""Tests a CompositeController at work: its requests, writes, ignored errors and retries."""

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


def test_periodic_syncs_without_changes_write_nothing() -> None:
    world = _settled()
    calls = len(world.hook_calls)
    assert _idle(world)
    assert len(world.hook_calls) > calls


def test_every_hook_is_called() -> None:
    """Plays the life of a parent from its creation to its end: sync, customize and finalize are
    called.
    """
    world = _settled()
    world.patch("Group", "g", {"spec": {"image": "web:2", "replicas": 1}})
    world.settle()
    world.delete("Group", "g")
    world.settle()
    assert {call.hook for call in world.hook_calls} == {"sync", "customize", "finalize"}


def test_in_place_update_is_one_put_per_pod() -> None:
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
def test_recreate_replaces_pods_and_on_delete_keeps_them(method: str, image: str) -> None:
    world = _settled(manifest=controller(method))
    world.patch("Group", "g", {"spec": {"image": "web:2"}})
    world.settle()
    assert {child["spec"]["containers"][0]["image"] for child in world.list("Pod")} == {image}


def test_deletes_come_before_creates() -> None:
    hook = FakeHook()
    world = _settled(hook, replicas=1)
    world.writes.clear()
    hook.sync = lambda _request: {"status": {}, "children": [pod("other")]}
    world.run(400)
    assert writes(world) == ["delete g-0", "create other"]


def test_illegal_update_fails_every_sync() -> None:
    """Responds with an illegal change of a pod: the update of this pod fails in each sync.

    The other pods and the status are still written.
    """
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


def test_two_ports_with_the_same_number_are_updated_forever() -> None:
    """Responds with pods that have one port number for TCP and UDP: syncs never stop to write.

    Dynamic apply merges both ports into one, unless the last-applied annotation is missing.
    """
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


def test_equal_status_is_not_written() -> None:
    """A status that equals the observed one is not written; one with 1.0 instead of 1 is written in
    each sync.
    """
    hook = FakeHook()
    hook.sync = lambda request: {**desired(request), "status": {"ratio": 1}}
    world = _settled(hook)
    assert _idle(world)
    hook.sync = lambda request: {**desired(request), "status": {"ratio": 1.0}}
    assert not _idle(world)


def test_pod_of_another_owner_blocks_its_name_silently() -> None:
    world = make_world()
    world.apply(pod("g-0"))
    world.apply(group(1))
    world.settle()
    assert controller_of(world.get("Pod", "g-0")) is None
    assert any(write.outcome == "AlreadyExists" for write in world.writes)


def test_conflict_is_no_error_and_the_next_sync_repeats_the_write() -> None:
    world = _settled(replicas=1)
    world.store.fail(1, verb="update", kind="Pod", code=409)
    world.patch("Group", "g", {"spec": {"image": "web:2"}})
    world.settle()
    assert world.get("Pod", "g-0")["spec"]["containers"][0]["image"] == "web:1"
    world.run(400)
    assert world.get("Pod", "g-0")["spec"]["containers"][0]["image"] == "web:2"


def test_failed_write_is_retried_after_a_moment() -> None:
    world = make_world()
    world.store.fail(2, verb="create", kind="Pod", code=500)
    world.apply(group(2))
    world.settle()
    assert len(world.list("Pod")) == 2


@pytest.mark.parametrize("after_deciding", [False, True])
@pytest.mark.parametrize("status", [500, 0, 429])
def test_failed_hook_writes_nothing_until_it_succeeds(status: int, *, after_deciding: bool) -> None:
    world = _settled()
    world.hook.fail(5, status=status, path="/sync", after_deciding=after_deciding)
    world.writes.clear()
    world.patch("Group", "g", {"spec": {"replicas": 0}})
    world.run(0.11)
    assert world.writes == []
    world.settle()
    assert world.list("Pod") == []


def test_deleted_parent_waits_for_its_finalize_hook() -> None:
    world = _settled()
    world.delete("Group", "g")
    world.run(0.3)
    assert world.get("Group", "g")["metadata"]["deletionTimestamp"]
    world.settle()
    assert world.list("Group") == world.list("Pod") == []


def test_without_a_finalize_hook_the_garbage_collector_deletes_the_pods() -> None:
    world = _settled(manifest=controller(finalize=False))
    assert finalizers_of(world.get("Group", "g")) == []
    world.writes.clear()
    world.delete("Group", "g")
    world.settle()
    assert world.list("Pod") == []
    assert writes(world) == []


def test_orphaning_deletion_keeps_the_pods() -> None:
    world = _settled()
    world.delete("Group", "g", propagation="Orphan")
    world.settle()
    assert world.list("Group") == []
    assert [controller_of(child) for child in world.list("Pod")] == [None, None]


def test_child_without_the_selected_labels_is_released() -> None:
    """Changes the label of a child: its owner reference is removed, and the hook does not get the
    child any more.

    No new child can be created under its name.
    """
    world = _settled()
    world.patch("Pod", "g-0", {"metadata": {"labels": {"controller-uid": "x"}}})
    world.settle()
    assert controller_of(world.get("Pod", "g-0")) is None
    assert len(world.hook_calls[-1].request["children"]["Pod.v1"]) == 1


def test_pod_without_an_owner_is_adopted_if_its_labels_match() -> None:
    world = _settled(replicas=1)
    parent = world.get("Group", "g")
    labels = selector_of(parent)["matchLabels"]
    world.patch("Group", "g", {"spec": {"replicas": 2}})
    world.apply(with_meta(pod("g-1"), labels=labels))
    world.settle()
    ref = controller_of(world.get("Pod", "g-1"))
    assert ref is not None
    assert ref["uid"] == uid_of(parent)


def test_related_objects_of_any_scope_cause_a_sync() -> None:
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


def test_hook_version_1_gets_children_by_their_names() -> None:
    """A hook of version 1 gets the children by name, without their namespace, and no cluster-scoped
    related objects.
    """
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
    ids=[
        "unknown field",
        "child without a kind",
        "null child",
        "children are no list",
        "status is a number",
    ],
)
def test_invalid_response_fails_the_sync_and_deletes_nothing(answer: Any, error: str) -> None:
    hook = FakeHook()
    world = _settled(hook)
    hook.sync = lambda _request: answer
    world.patch("Group", "g", {"spec": {"image": "web:2"}})
    with pytest.raises(UnsettledError, match=error):
        world.settle()
    assert len(world.list("Pod")) == 2


def test_empty_response_deletes_all_children() -> None:
    hook = FakeHook()
    world = _settled(hook)
    hook.sync = lambda _request: {}
    world.patch("Group", "g", {"spec": {"image": "web:2"}})
    world.settle()
    assert world.list("Pod") == []
    assert world.get("Group", "g")["status"] == {"observedGeneration": 2}


def test_resync_after_seconds_causes_one_more_sync() -> None:
    hook = FakeHook()
    world = _settled(hook)
    hook.sync = lambda request: {**desired(request), "resyncAfterSeconds": 30}
    world.patch("Group", "g", {"metadata": {"labels": {"x": "y"}}})
    world.run(100)
    times = [call.time for call in world.hook_calls if call.hook == "sync"][-4:]
    assert [round(b - a) for a, b in pairwise(times)] == [30, 30, 30]


def test_restart_of_metacontroller_changes_nothing() -> None:
    world = _settled()
    world.metacontroller.restart()
    assert _idle(world)


def test_writes_after_a_change_during_the_hook_conflict() -> None:
    """A pod changes while the hook decides: the write of the response conflicts, and the next sync
    repeats it.
    """
    world = _settled(replicas=1)
    world.metacontroller.hook_seconds = 2.0
    world.patch("Group", "g", {"spec": {"image": "web:2"}})
    world.run(1)
    world.patch("Pod", "g-0", {"metadata": {"labels": {"touched": "yes"}}})
    world.settle()
    assert "Conflict" in [write.outcome for write in world.writes]
    assert world.get("Pod", "g-0")["spec"]["containers"][0]["image"] == "web:2"
    assert _idle(world)
