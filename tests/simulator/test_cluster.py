"""Deletion, finalizers, garbage collection, namespaces and claims of the simulated cluster."""

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


def test_names_are_unique_and_uids_are_not_reused() -> None:
    """A name can be used again once its object is gone, with another uid."""
    world = make_world()
    first = world.cluster.create(world.kinds.find("ConfigMap"), with_namespace(_config("a")))
    with pytest.raises(AlreadyExistsError):
        world.cluster.create(world.kinds.find("ConfigMap"), with_namespace(_config("a")))
    world.delete("ConfigMap", "a")
    assert uid_of(world.apply(_config("a"))) != uid_of(first)


def with_namespace(obj: Object) -> Object:
    """The object, in the namespace `default`."""
    return with_meta(obj, namespace="default")


def test_delete_checks_the_uid() -> None:
    """A delete with the uid of a predecessor is a conflict."""
    world = make_world()
    world.apply(_config("a"))
    with pytest.raises(ConflictError):
        world.cluster.delete(
            world.kinds.find("ConfigMap"), "default", "a", DeleteOptions(uid="other")
        )


def test_finalizers_hold_an_object() -> None:
    """A deleted object stays until its last finalizer goes."""
    world = make_world()
    world.apply(_config("a", finalizers=("x/y",)))
    world.delete("ConfigMap", "a")
    assert is_terminating(world.get("ConfigMap", "a"))
    world.patch("ConfigMap", "a", {"metadata": {"finalizers": None}})
    assert not _exists(world, "ConfigMap", "a")


def test_a_pod_without_a_node_goes_at_once() -> None:
    """Only a pod that was bound gets its grace period."""
    world = make_world(nodes=0)
    world.apply(pod("p"))
    world.delete("Pod", "p")
    assert not _exists(world, "Pod", "p")


def test_grace_period_and_force() -> None:
    """A running pod terminates for a while; grace period zero removes it now."""
    world = make_world()
    world.apply(pod("p"))
    world.settle()
    world.delete("Pod", "p")
    terminating = world.get("Pod", "p")
    assert terminating["metadata"]["deletionGracePeriodSeconds"] == 30
    assert terminating["metadata"]["generation"] == 2
    world.delete("Pod", "p", grace_seconds=0)
    assert not _exists(world, "Pod", "p")


def test_background_collects_dependents() -> None:
    """Dependents go after their owner."""
    world = make_world()
    owner = world.apply(_config("owner"))
    world.apply(_config("child", owner))
    world.delete("ConfigMap", "owner")
    assert not _exists(world, "ConfigMap", "owner")
    assert _exists(world, "ConfigMap", "child")
    world.settle()
    assert not _exists(world, "ConfigMap", "child")


def test_foreground_waits_for_dependents() -> None:
    """The owner goes last."""
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


def test_orphan_cuts_the_references() -> None:
    """Dependents stay, and no longer name the owner."""
    world = make_world()
    owner = world.apply(_config("owner"))
    world.apply(_config("child", owner))
    world.delete("ConfigMap", "owner", propagation="Orphan")
    world.settle()
    assert not _exists(world, "ConfigMap", "owner")
    assert owners_of(world.get("ConfigMap", "child")) == []


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_one_solid_owner_is_enough(propagation: str) -> None:
    """A child that the namespace owns too is kept, and loses only the other reference."""
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


def test_a_child_of_nobody_is_collected() -> None:
    """An object created with an owner that does not exist goes soon."""
    world = make_world()
    owner = world.apply(_config("owner"))
    world.delete("ConfigMap", "owner")
    world.apply(_config("late", owner))
    world.settle()
    assert not _exists(world, "ConfigMap", "late")


def test_an_owner_in_another_namespace_is_no_owner() -> None:
    """References do not cross namespaces."""
    world = make_world()
    world.namespace("other")
    owner = world.apply(with_meta(_config("owner"), namespace="other"))
    world.apply(_config("child", owner))
    world.settle()
    assert not _exists(world, "ConfigMap", "child")


def test_a_namespace_takes_its_contents_along() -> None:
    """Everything in a deleted namespace goes, then the namespace."""
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


def test_claims_are_bound_and_protected() -> None:
    """A claim in use stays Terminating until no scheduled pod mounts it."""
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


def test_a_pod_waits_for_its_claim() -> None:
    """The scheduler leaves a pod alone whose claim is not there, and says which."""
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


def test_status_is_a_resource_of_its_own() -> None:
    """A status in an apply is ignored, and a spec in a status update is."""
    world = make_world()
    world.metacontroller.queue.clear()
    created = world.apply({**group(), "status": {"x": 1}})
    assert "status" not in created
    kind = world.kinds.of(created)
    updated = world.cluster.update_status(kind, {**created, "status": {"x": 2}, "spec": {}})
    assert updated["spec"] == created["spec"]
    assert updated["status"] == {"x": 2}
    assert updated["metadata"]["generation"] == 1


def test_apply_like_kubectl() -> None:
    """A field that left the manifest leaves the object; fields that others added stay."""
    world = make_world(nodes=0)
    world.apply(group(1, extra="x"))
    world.patch("Group", "g", {"spec": {"foreign": True}})
    spec = world.apply(group(2))["spec"]
    assert spec == {"replicas": 2, "image": "web:1", "foreign": True}
