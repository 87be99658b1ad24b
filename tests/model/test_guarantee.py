"""Tests promise P2 (the budget) with stale caches, and the cases in which it cannot hold.

The module docstring of `judge.py` describes the promise and its exceptions, which the judge counts
as `excused`. `taken` lists the instances that updates have made unavailable.
"""

import pytest

from tests.builders import template
from tests.hook_calls import ready
from tests.invariants import ViolationError
from tests.model import specs
from tests.model.available_cluster import at_rest, restart_all, taken
from tests.model.cluster import Cluster


def test_stale_cache_of_any_age_selects_the_same_instances_while_the_spec_stays() -> None:
    """Calls the hook again and again while the watch of pods does not show the first deletion.

    The budget is one instance, so only instance 0 may be updated, whatever the age of the cache.
    """
    cluster = at_rest()
    cluster.stall("Pod")
    restart_all(cluster)
    for _ in range(20):
        cluster.sync_once_more()
        cluster.run(0.5)
    assert taken(cluster) == [0]
    cluster.comes_to_rest()
    assert not [name for name in cluster.judge.counts if name.startswith("excused")]


def test_new_spec_during_a_rollout_waits_until_the_watch_shows_the_deletions() -> None:
    """Changes the spec while the cache shows the new TApp but not yet the deletion of pod 0.

    By the new spec, instance 0 needs no update, so a hasty service would also update instance 1.
    """
    cluster = at_rest()
    cluster.edit(lambda spec: spec["templatePool"].update(old=template("app:1")))
    cluster.run(5.0)
    cluster.set_lag("Pod", 0.25)
    restart_all(cluster)
    cluster.run(0.15)
    assert taken(cluster) == [0]
    cluster.edit(lambda spec: spec["templates"].update({"0": "old"}))
    cluster.run(0.2)
    assert taken(cluster) == [0]
    cluster.comes_to_rest()
    assert not cluster.judge.counts["excused: other spec"]


def test_slow_watch_of_pods_may_exceed_the_budget_by_one_after_two_new_specs() -> None:
    """Shows the exception `excused: other spec`: two instances are out with a budget of one.

    The request has a new status, and pods from before the deletions, so no service could know
    better.
    """
    cluster = at_rest()
    cluster.stall("Pod")
    restart_all(cluster)
    cluster.run(0.5)
    assert taken(cluster) == [0]
    cluster.edit(lambda spec: spec["templates"].update({"0": "default", "1": "blue"}))
    cluster.edit(lambda spec: specs.set_env(spec, "blue", "b"))
    cluster.edit(lambda spec: specs.set_env(spec, "default", "a"))
    cluster.edit(lambda spec: spec["updateStrategy"].update(template="blue"))
    cluster.edit(lambda spec: spec["updateStrategy"].update(forceUpdate={"maxUnavailable": 1}))
    cluster.edit(lambda spec: spec["template"]["spec"]["containers"][0].pop("env"))
    for _ in range(4):
        cluster.run(1.0)
        cluster.sync_once_more()
    assert taken(cluster) == [0, 1]
    assert cluster.judge.counts["excused: other spec"] == 1
    cluster.comes_to_rest()


def recovers_while_the_hook_decides() -> Cluster:
    """Returns a cluster in which instance 3 becomes available again before its deletion arrives.

    Instance 3 breaks, so the sync replaces it without the budget. The hook fails while instance 0,
    which was updated first, becomes available again.
    """
    cluster = at_rest()
    restart_all(cluster)
    while "web-0 create" not in last_writes(cluster):
        cluster.run(0.1)
    cluster.world.hook.fail(1000)
    cluster.run(10.0)
    cluster.world.kubelet.finish(cluster.pod(3) or {}, 1)
    while ready(cluster.pod(3) or {}):  # the kubelet finds out within a second
        cluster.run(0.1)
    cluster.world.hook.heal()
    cluster.world.metacontroller.hook_seconds = 3.0
    cluster.world.metacontroller.restart()
    cluster.run(2.5)
    assert taken(cluster) == []
    return cluster


def last_writes(cluster: Cluster) -> list[str]:
    return [f"{write.name} {write.verb}" for write in cluster.world.writes[-3:]]


def test_recovered_instance_that_is_being_deleted_frees_no_budget() -> None:
    """Instance 3 is being deleted, so no other instance may be updated.

    The request does not show the deletion of the pod yet, but shows the status that was written
    with it.
    """
    cluster = recovers_while_the_hook_decides()
    cluster.stall("Pod")
    cluster.run(1.0)
    cluster.world.metacontroller.hook_seconds = 0.0
    for _ in range(4):
        cluster.sync_once_more()
        cluster.run(4.0)
    assert taken(cluster) == [3]
    cluster.comes_to_rest()
    assert not cluster.judge.counts["excused: came back"]


def test_recovered_instance_may_exceed_the_budget_by_one_if_both_watches_are_slow() -> None:
    """Shows the exception `excused: came back`: two instances are out with a budget of one.

    The request shows neither the deletion of the pod nor the status that was written with it.
    """
    cluster = recovers_while_the_hook_decides()
    cluster.stall("Pod")
    cluster.stall("TApp")
    cluster.run(1.0)
    cluster.world.metacontroller.hook_seconds = 0.0
    cluster.sync_once_more()
    cluster.run(4.0)
    assert taken(cluster) == [1, 3]
    assert cluster.judge.counts["excused: came back"] == 1
    cluster.comes_to_rest()


def test_judge_reports_an_update_beyond_the_budget() -> None:
    """Deletes a second pod in the name of Metacontroller and expects that the judge reports it."""
    cluster = at_rest()
    restart_all(cluster)
    cluster.run(0.3)
    assert taken(cluster) == [0]
    snapshot = cluster.judge.snapshot
    assert snapshot is not None
    snapshot.available.add(1)
    cluster.delete_as_metacontroller(1)
    with pytest.raises(ViolationError, match=r"P2: web-1 is taken, \[0, 1\] are out, budget 1"):
        cluster.run(0.0)
