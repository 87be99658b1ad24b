"""Plays resizes in fixed sequences of events, and checks the numbers that the judge counts."""

import pytest

from tests.builders import template
from tests.model import specs
from tests.model.cluster import Cluster

SIZES = [{"requests": {"cpu": cpu, "memory": "16Mi"}} for cpu in ("1", "2")]


def at_rest(*, restarts: bool, mode: str = "InPlace") -> Cluster:
    """Returns a cluster with a TApp of four available instances, a readiness gate and
    `maxUnavailable: 1`.

    `restarts` is True if a change of cpu restarts the container, and `mode` is the TApp's way to
    handle changed resources.
    """
    container = {"resources": SIZES[0], "resizePolicy": specs.CPU_RESTARTS if restarts else []}
    body = template("app:1", container=container, readinessGates=[specs.GATE])
    in_place = {"resources": mode, "gracePeriodSeconds": 1}
    strategy = {"maxUnavailable": 1, "inPlaceUpdateStrategy": in_place}
    spec = {"replicas": 4, "template": body, "templates": {}, "updateStrategy": strategy}
    cluster = Cluster(spec)
    cluster.set_kubelets(resize=True)
    cluster.install_resize(installed=True)
    cluster.run(40.0)
    return cluster


def resize(cluster: Cluster, seconds: float = 120.0) -> None:
    cluster.edit(lambda spec: specs.set_resources(spec, "default", SIZES[1], helper=False))
    cluster.run(seconds)


@pytest.mark.parametrize("restarts", [False, True])
def test_each_pod_is_resized_once(restarts: bool) -> None:
    cluster = at_rest(restarts=restarts)
    cluster.component.faults = ["lost", "answer lost", "lost"]
    resize(cluster, 200.0)
    counts = cluster.judge.counts
    assert counts["resizes"] == 4
    assert counts["resizes that restart"] == 4 * restarts
    assert counts["resizes out of service"] == 4 * restarts
    assert counts["delete Pod: ok"] == 0
    cluster.comes_to_rest()


@pytest.mark.parametrize("pends", ["Deferred", "fails"])
def test_unfinished_resize_delays_the_others(pends: str) -> None:
    cluster = at_rest(restarts=False)
    cluster.set_resizing(1.0, pends, {0})
    resize(cluster)
    assert cluster.judge.counts["resizes"] == 1
    cluster.comes_to_rest()
    assert cluster.judge.counts["resizes"] == 4
    assert cluster.judge.counts["delete Pod: ok"] == 0


def test_infeasible_resize_replaces_the_pod() -> None:
    cluster = at_rest(restarts=False)
    cluster.set_resizing(1.0, "Infeasible", {0})
    resize(cluster)
    assert cluster.judge.counts["delete Pod: ok"] == 1
    cluster.comes_to_rest()


def test_ignored_resources_replace_no_pod() -> None:
    cluster = at_rest(restarts=True, mode="Ignore")
    resize(cluster)
    counts = cluster.judge.counts
    assert counts["resizes"] == 0
    assert counts["delete Pod: ok"] == 0
    cluster.comes_to_rest()
