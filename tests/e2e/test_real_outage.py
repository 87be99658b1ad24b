"""A silent node, and restarts of kubelet and containerd during a rollout."""

from __future__ import annotations

import pytest

from .realnode.kubelet import node_is_ready
from .realnode.trial import Trial
from .realnode.workloads import container, environment

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


def silence_until_lost(real: Trial) -> None:
    """Silences the node, and waits until the control plane treats it as lost."""
    real.node.silence()
    real.app.until(lambda: not node_is_ready(real.app.kube, real.node.name), "the node is lost", 60)
    real.app.until(lambda: not any(map(real.ready, real.app.pods)), "no pod is Ready", 120)


def test_budget_holds_after_a_silent_node_returns(real: Trial) -> None:
    """No pod is Ready in the API, but all containers run.

    After the node's return, the budget must still hold.
    """
    real.create("1", replicas=4)
    born = real.app.uids()
    silence_until_lost(real)
    real.change("2").wait(4)
    meanwhile = real.tags()
    real.node.rest()
    real.app.settle(120)
    assert real.never_fewer_than(3)
    assert meanwhile == "1 1 1 1"
    assert real.tags() == "2 2 2 2"
    assert real.app.uids() == born
    assert set(real.app.restarts().values()) == {1}


def test_rollout_survives_a_silent_node(real: Trial) -> None:
    slow = {"env": environment(IGNORE_TERM=1)}
    pod = {"terminationGracePeriodSeconds": 4}
    real.create(container("1", **slow), replicas=4, pod=pod)
    real.change(container("2", **slow), **pod)
    real.app.until(lambda: real.tags().startswith("2 2"), "the rollout has begun", 60)
    silence_until_lost(real)
    real.change(container("3", **slow), **pod).wait(4)
    real.node.rest()
    real.app.settle(120)
    assert real.never_fewer_than(3)
    assert real.tags() == "3 3 3 3"


@pytest.mark.parametrize("part", ["kubelet", "containerd"])
def test_rollout_survives_a_restart_on_the_node(real: Trial, part: str) -> None:
    """The process is killed, as on a machine without free memory.

    The containers continue to run.
    """
    slow = {"env": environment(TERM_SECONDS=1)}
    pod = {"terminationGracePeriodSeconds": 4}
    real.create(container("1", **slow), replicas=4, pod=pod)
    born = real.app.uids()
    real.change(container("2", **slow), **pod)
    real.app.until(lambda: real.tags().startswith("2 2"), "the rollout has begun", 60)
    restarted = getattr(real.node, part)
    restarted.stop(kill=True)
    real.wait(1)
    restarted.start()
    real.app.settle(150)
    assert real.never_fewer_than(3)
    assert real.app.uids() == born
    assert real.tags() == "2 2 2 2"


def test_image_changed_twice_without_a_kubelet_ends_with_the_newest(real: Trial) -> None:
    """The kubelet has never seen the image in between."""
    real.create("1")
    real.change("2").node.kubelet.stop()
    real.change("3").wait(2)
    real.node.kubelet.start()
    real.app.settle(120)
    assert real.never_fewer_than(2)
    assert real.tags() == "3 3 3"


def test_slow_pull_counts_against_the_budget(real: Trial) -> None:
    """While the new image is pulled the old container has ended, so the instance counts against the
    budget.
    """
    real.node.registry.publish("late-slow")
    real.node.registry.delay = 3
    real.create("1").roll("late-slow")
    assert real.never_fewer_than(2)
