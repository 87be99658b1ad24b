"""P2 under stale caches, and the two cases in which it cannot hold: `judge.py` says it."""

import pytest

from tests.builders import template
from tests.invariants import ViolationError
from tests.model import specs
from tests.model.cluster import Cluster
from tests.reading import ready


def at_rest(replicas: int = 4, **more: object) -> Cluster:
    """Four instances and a budget of one, everything available."""
    spec = {
        "replicas": replicas,
        "template": template("app:1"),
        "templatePool": {"blue": template("app:2"), "green": template("app:3")},
        "templates": {},
        "updateStrategy": {"maxUnavailable": 1},
        **more,
    }
    cluster = Cluster(spec)
    cluster.run(30.0)
    return cluster


def restart_all(cluster: Cluster, value: str = "a") -> None:
    """A change that needs new pods."""
    cluster.edit(lambda spec: specs.set_env(spec, "default", value))


def taken(cluster: Cluster) -> list[int]:
    return sorted(cluster.judge.outages)


def test_while_the_spec_stays_a_cache_of_any_age_takes_the_same_instances() -> None:
    """The deletes are not seen for a long time, and the hook is asked again and again."""
    cluster = at_rest()
    cluster.stall("Pod")
    restart_all(cluster)
    for _ in range(20):
        cluster.sync_once_more()
        cluster.run(0.5)
    assert taken(cluster) == [0]
    cluster.comes_to_rest()
    assert not [name for name in cluster.judge.counts if name.startswith("excused")]


def test_a_new_spec_in_the_middle_of_a_roll_waits_until_the_watch_has_moved_on() -> None:
    """Pods are seen a little late, TApps at once: the new spec would leave 0 and take 1."""
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


def test_pods_seen_two_syncs_later_than_the_tapp_may_cost_one_budget_more() -> None:
    """`excused: other spec`: the hook is shown a new status, and pods from before its deletes."""
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
    """In a roll instance 3 breaks, so it is replaced at once; it recovers before the delete comes.

    Nobody is asked while instance 0, the first of the roll, comes back.
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


def test_an_instance_that_came_back_frees_no_budget() -> None:
    """Its deletion is not seen yet, but the status that was written with it is."""
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


def test_an_instance_that_came_back_behind_two_slow_watches_may_cost_one_budget_more() -> None:
    """`excused: came back`: neither the deletion nor the status that tells of it is shown."""
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


def test_the_judge_sees_what_a_careless_hook_would_do() -> None:
    """An update that takes a second instance is a violation, whoever sent it."""
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
