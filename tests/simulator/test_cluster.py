"""Tests deletion, finalizers, garbage collection, namespaces and claims of the simulated
cluster.
"""

from __future__ import annotations

import pytest

from simulator.api.store import AlreadyExistsError, ConflictError, DeleteOptions, NotFoundError
from simulator.objects.kinds import NAMESPACE
from simulator.objects.objects import (
    Object,
    finalizers_of,
    is_terminating,
    owners_of,
    uid_of,
    with_meta,
)
from simulator.world import World
from tests.simulator.fake_hook import claim, group, make_world, pod


def _config(name: str, *owners: Object, finalizers: tuple[str, ...] = ()) -> Object:
    references = [
        {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": owner["metadata"]["name"],
            "uid": uid_of(owner),
            "blockOwnerDeletion": True,
        }
        for owner in owners
    ]
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    return with_meta(manifest, ownerReferences=references, finalizers=list(finalizers))


def _exists(world: World, kind: str, name: str) -> bool:
    return any(obj["metadata"]["name"] == name for obj in world.list(kind))


def test_name_can_be_used_again_with_another_uid_after_a_deletion() -> None:
    world = make_world()
    first = world.cluster.create(world.kinds.find("ConfigMap"), with_namespace(_config("a")))
    with pytest.raises(AlreadyExistsError):
        world.cluster.create(world.kinds.find("ConfigMap"), with_namespace(_config("a")))
    world.delete("ConfigMap", "a")
    assert uid_of(world.apply(_config("a"))) != uid_of(first)


def with_namespace(obj: Object) -> Object:
    """Returns the object with the namespace `default`."""
    return with_meta(obj, namespace="default")


def test_delete_with_another_uid_is_a_conflict() -> None:
    world = make_world()
    world.apply(_config("a"))
    with pytest.raises(ConflictError):
        world.cluster.delete(
            world.kinds.find("ConfigMap"), "default", "a", DeleteOptions(uid="other")
        )


def test_deleted_object_stays_until_its_last_finalizer_is_removed() -> None:
    world = make_world()
    world.apply(_config("a", finalizers=("x/y",)))
    world.delete("ConfigMap", "a")
    assert is_terminating(world.get("ConfigMap", "a"))
    world.patch("ConfigMap", "a", {"metadata": {"finalizers": None}})
    assert not _exists(world, "ConfigMap", "a")


def test_pod_without_a_node_is_deleted_without_a_grace_period() -> None:
    world = make_world(nodes=0)
    world.apply(pod("p"))
    world.delete("Pod", "p")
    assert not _exists(world, "Pod", "p")


def test_grace_period_of_zero_deletes_a_running_pod_at_once() -> None:
    world = make_world()
    world.apply(pod("p"))
    world.settle()
    world.delete("Pod", "p")
    terminating = world.get("Pod", "p")
    assert terminating["metadata"]["deletionGracePeriodSeconds"] == 30
    assert terminating["metadata"]["generation"] == 2
    world.delete("Pod", "p", grace_seconds=0)
    assert not _exists(world, "Pod", "p")


def test_background_deletion_deletes_dependents_after_the_owner() -> None:
    world = make_world()
    owner = world.apply(_config("owner"))
    world.apply(_config("child", owner))
    world.delete("ConfigMap", "owner")
    assert not _exists(world, "ConfigMap", "owner")
    assert _exists(world, "ConfigMap", "child")
    world.settle()
    assert not _exists(world, "ConfigMap", "child")


def test_foreground_deletion_deletes_dependents_before_the_owner() -> None:
    world = make_world()
    owner = world.apply(_config("owner"))
    world.apply(_config("child", owner, finalizers=("x/y",)))
    world.delete("ConfigMap", "owner", propagation="Foreground")
    world.settle()
    assert is_terminating(world.get("ConfigMap", "child"))
    assert finalizers_of(world.get("ConfigMap", "owner")) == ["foregroundDeletion"]
    world.patch("ConfigMap", "child", {"metadata": {"finalizers": None}})
    world.settle()
    assert not _exists(world, "ConfigMap", "owner")


def test_orphaning_deletion_keeps_dependents_without_the_owner() -> None:
    world = make_world()
    owner = world.apply(_config("owner"))
    world.apply(_config("child", owner))
    world.delete("ConfigMap", "owner", propagation="Orphan")
    world.settle()
    assert not _exists(world, "ConfigMap", "owner")
    assert owners_of(world.get("ConfigMap", "child")) == []


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_child_with_another_owner_is_kept_without_the_deleted_owner(propagation: str) -> None:
    world = make_world()
    home = world.cluster.get(NAMESPACE, "", "default")
    owner = world.apply(_config("owner"))
    world.apply(_config("child", owner, home))
    world.delete("ConfigMap", "owner", propagation=propagation)  # type: ignore[arg-type]
    world.settle()
    assert not _exists(world, "ConfigMap", "owner")
    kept = world.get("ConfigMap", "child")
    assert not is_terminating(kept)
    assert [ref["kind"] for ref in owners_of(kept)] == ["Namespace"]


def test_object_whose_owner_does_not_exist_is_deleted() -> None:
    world = make_world()
    owner = world.apply(_config("owner"))
    world.delete("ConfigMap", "owner")
    world.apply(_config("late", owner))
    world.settle()
    assert not _exists(world, "ConfigMap", "late")


def test_owner_in_another_namespace_does_not_count() -> None:
    world = make_world()
    world.namespace("other")
    owner = world.apply(with_meta(_config("owner"), namespace="other"))
    world.apply(_config("child", owner))
    world.settle()
    assert not _exists(world, "ConfigMap", "child")


def test_deletion_of_a_namespace_deletes_its_contents_first() -> None:
    world = make_world()
    world.namespace("gone")
    world.apply(with_meta(pod("p"), namespace="gone"))
    world.settle()
    world.delete("Namespace", "gone", "")
    world.settle()
    assert not _exists(world, "Namespace", "gone")
    assert world.list("Pod") == []
    with pytest.raises(NotFoundError):
        world.apply(with_meta(_config("a"), namespace="gone"))


def test_claim_in_use_is_not_deleted_before_its_pods() -> None:
    world = make_world()
    world.apply(claim("c"))
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
    world.apply(pod("p", volumes=[volume]))
    world.settle()
    assert world.get("PersistentVolumeClaim", "c")["status"]["phase"] == "Bound"
    world.delete("PersistentVolumeClaim", "c")
    world.settle()
    assert is_terminating(world.get("PersistentVolumeClaim", "c"))
    world.delete("Pod", "p")
    world.settle()
    assert not _exists(world, "PersistentVolumeClaim", "c")


def test_pod_without_its_claim_is_not_scheduled() -> None:
    """A pod whose claim does not exist gets no node, and its condition names the claim.

    After the claim has been created, the pod runs.
    """
    world = make_world()
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
    world.apply(pod("p", volumes=[volume]))
    world.settle()
    waiting = world.get("Pod", "p")
    assert "nodeName" not in waiting["spec"]
    scheduled = next(c for c in waiting["status"]["conditions"] if c["type"] == "PodScheduled")
    assert scheduled["message"] == 'persistentvolumeclaim "c" not found'
    world.apply(claim("c"))
    world.settle()
    assert world.get("Pod", "p")["status"]["phase"] == "Running"


def test_apply_ignores_the_status_and_a_status_update_ignores_the_spec() -> None:
    world = make_world()
    world.metacontroller.queue.clear()
    created = world.apply({**group(), "status": {"x": 1}})
    assert "status" not in created
    kind = world.kinds.of(created)
    updated = world.cluster.update_status(kind, {**created, "status": {"x": 2}, "spec": {}})
    assert updated["spec"] == created["spec"]
    assert updated["status"] == {"x": 2}
    assert updated["metadata"]["generation"] == 1


def test_apply_removes_only_fields_that_left_the_manifest() -> None:
    world = make_world(nodes=0)
    world.apply(group(1, extra="x"))
    world.patch("Group", "g", {"spec": {"foreign": True}})
    spec = world.apply(group(2))["spec"]
    assert spec == {"replicas": 2, "image": "web:1", "foreign": True}
