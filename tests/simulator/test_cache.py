"""Informer caches that lag behind the cluster."""

from __future__ import annotations

from simulator.objects.kinds import POD
from simulator.objects.objects import name_of
from simulator.world import World
from tests.simulator.fake_hook import group, make_world, pod, writes


def _cached(world: World) -> list[str]:
    return [name_of(entry.obj) for entry in world.cache.entries(POD)]


def test_a_lagging_cache_sees_the_past() -> None:
    """Events arrive in order, late."""
    world = make_world()
    world.cache.lag["Pod"] = 10.0
    world.apply(group(1))
    world.run(1)
    assert len(world.list("Pod")) == 1
    assert _cached(world) == []
    world.run(10)
    assert _cached(world) == ["g-0"]


def test_creating_again_is_harmless() -> None:
    """A pod that is not seen yet is created twice; the second attempt is swallowed."""
    world = make_world()
    world.cache.lag["Pod"] = 5.0
    world.apply(group(1))
    world.run(1)
    world.patch("Group", "g", {"metadata": {"labels": {"x": "y"}}})
    world.settle()
    assert writes(world) == ["create g-0", "create g-0"]
    assert [w.outcome for w in world.writes if w.verb == "create"] == ["ok", "AlreadyExists"]


def test_kinds_lag_independently() -> None:
    """A parent can be new while its pods are old: deletes and PUTs then meet other objects."""
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


def test_a_successor_is_protected_by_its_uid() -> None:
    """A delete meant for a pod that is gone does not hit the one that took its name."""
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


def test_events_can_be_delivered_one_by_one() -> None:
    """A paused cache can be moved on step by step, without skipping."""
    world = make_world()
    world.cache.pause(POD)
    world.apply(group(2))
    world.run(1)
    world.cache.advance(POD)
    assert _cached(world) == ["g-0"]
    world.cache.advance(POD)
    assert _cached(world) == ["g-0", "g-1"]


def test_a_relist_reports_the_differences() -> None:
    """Replacing the contents tells handlers about what came, changed and went."""
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
