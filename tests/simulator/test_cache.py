"""Tests informer caches that lag behind the cluster."""

from __future__ import annotations

from simulator.objects.kinds import POD
from simulator.objects.objects import name_of
from simulator.world import World
from tests.simulator.fake_hook import group, make_world, pod, writes


def _cached(world: World) -> list[str]:
    return [name_of(entry.obj) for entry in world.cache.entries(POD)]


def test_lagging_cache_gets_events_late_and_in_order() -> None:
    world = make_world()
    world.cache.lag["Pod"] = 10.0
    world.apply(group(1))
    world.run(1)
    assert len(world.list("Pod")) == 1
    assert _cached(world) == []
    world.run(10)
    assert _cached(world) == ["g-0"]


def test_second_creation_of_a_pod_missing_in_the_cache_is_ignored() -> None:
    world = make_world()
    world.cache.lag["Pod"] = 5.0
    world.apply(group(1))
    world.run(1)
    world.patch("Group", "g", {"metadata": {"labels": {"x": "y"}}})
    world.settle()
    assert writes(world) == ["create g-0", "create g-0"]
    assert [w.outcome for w in world.writes if w.verb == "create"] == ["ok", "AlreadyExists"]


def test_each_kind_has_its_own_lag() -> None:
    """Pauses the cache of pods only: it shows the new Group and an old pod, so an update of the pod
    conflicts.
    """
    world = make_world()
    world.apply(group(1))
    world.settle()
    world.cache.pause(POD)
    world.patch("Group", "g", {"spec": {"image": "web:2"}})
    world.settle()
    world.patch("Group", "g", {"spec": {"image": "web:3"}})
    world.settle()
    assert "Conflict" in [write.outcome for write in world.writes]
    world.cache.resume(POD)
    world.settle()
    assert world.get("Pod", "g-0")["spec"]["containers"][0]["image"] == "web:3"


def test_delete_of_an_old_pod_does_not_delete_its_successor() -> None:
    world = make_world()
    world.apply(group(1))
    world.settle()
    world.cache.pause(POD)
    world.delete("Pod", "g-0", grace_seconds=0)
    successor = world.apply(pod("g-0"))
    world.patch("Group", "g", {"spec": {"replicas": 0}})
    world.settle(allow_errors=True)
    assert world.get("Pod", "g-0")["metadata"]["uid"] == successor["metadata"]["uid"]
    assert "Conflict" in [write.outcome for write in world.writes if write.verb == "delete"]


def test_paused_cache_can_deliver_events_one_by_one() -> None:
    world = make_world()
    world.cache.pause(POD)
    world.apply(group(2))
    world.run(1)
    world.cache.advance(POD)
    assert _cached(world) == ["g-0"]
    world.cache.advance(POD)
    assert _cached(world) == ["g-0", "g-1"]


def test_relist_reports_added_changed_and_deleted_objects() -> None:
    world = make_world(nodes=0)
    world.apply(group(2))
    world.settle()
    seen: list[tuple[bool, bool]] = []
    world.cache.on_change(lambda _kind, old, new: seen.append((old is None, new is None)))
    pods = world.list("Pod")
    world.cache.replace(POD, pods)
    assert seen == []
    world.cache.replace(POD, pods[:1])
    assert seen == [(False, True)]
