"""Pods on a real kubelet that wait or never become available: messages, and moves to other
nodes.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from .app import tapp
from .kube import Json
from .nodes import mobile
from .realnode.kubelet import LABEL
from .realnode.trial import Trial
from .realnode.workloads import container, real_template

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
GATE = "example.com/registered"
LATE = 240.0
"""Seconds to wait for retries of the kubelet, whose back-off grows to two minutes."""


def alone(*containers: Json | str, **pod: object) -> Json:
    """Returns a TApp of one instance on the real node."""
    return tapp(replicas=1, template=real_template(*containers, **pod))


def open_gate(real: Trial) -> None:
    """Opens the readiness gate without a time, as some controllers do."""
    known = {"type": GATE, "status": "True", "lastTransitionTime": None}
    real.app.edit(0, [{"op": "add", "path": "/status/conditions/-", "value": known}], "status")


def test_readiness_gate_without_a_time_does_not_keep_an_instance_on_a_lost_node(
    real: Trial,
) -> None:
    """The API server stores null, so the time of Ready must count."""
    gates = [{"conditionType": GATE}]
    app = real.app.apply(mobile(alone("1", readinessGates=gates)))
    app.until(
        lambda: app.statuses == "Pending" and "0" in app.condition("Progressing"),
        "Progressing names the waiting instance",
    )
    app.until(
        lambda: (
            f"its readiness gate {GATE} is unmet: no controller has set its condition yet"
            in app.condition("Progressing")
        ),
        "the gate is named",
    )
    open_gate(real)
    born = app.settle().uids()
    stored = {item["type"]: item for item in app.pods[0]["status"]["conditions"]}[GATE]
    assert stored["lastTransitionTime"] is None
    real.node.silence()
    app.wait_until_replaced(0, born)
    real.node.rest()


@pytest.mark.parametrize("moves", [True, False], ids=["with forceDeletePod", "without"])
def test_pod_bound_to_a_dead_node_is_reported_and_moves_if_allowed(
    real: Trial, moves: bool
) -> None:
    """The pod is bound, but no kubelet acknowledges it. With forceDeletePod, the instance moves."""
    real.node.silence()
    made = mobile(alone("1"))
    made["spec"]["forceDeletePod"] = moves
    app = real.app.apply(made)
    app.until(lambda: bool(app.pods.get(0, {}).get("spec", {}).get("nodeName")), "the pod is bound")
    born = app.uids()
    if moves:
        app.wait_until_replaced(0, born)
    else:
        words = f"its pod was bound to node {real.node.name}"
        app.until(lambda: words in app.condition("Degraded"), "the node is named")
        assert app.uids() == born
    real.node.rest()
    app.settle()


def test_hanging_pull_is_named_until_it_ends(real: Trial) -> None:
    """The kubelet reports only ContainerCreating, so only time shows that a pull hangs."""
    real.node.registry.publish("hangs")
    real.node.registry.open.clear()
    app = real.app.apply(alone("hangs"))
    image = container("hangs")["image"]
    words = "container main has not started since "
    app.until(lambda: words in app.condition("Progressing"), "the pull is named", LATE)
    assert f"its image {image} is still being pulled, or it is being created" in app.condition(
        "Progressing"
    )
    assert app.condition("Degraded").startswith("False ")
    real.node.registry.open.set()
    app.settle(LATE)


def test_volume_that_cannot_be_mounted_is_named_until_it_exists(
    real: Trial, tmp_path: Path
) -> None:
    """The kubelet tries again, and starts the pod when the directory of the volume exists."""
    place = tmp_path / "later"
    volume = {"name": "v", "hostPath": {"path": str(place), "type": "Directory"}}
    mounting = container("1", volumeMounts=[{"name": "v", "mountPath": "/data"}])
    app = real.app.apply(alone(mounting, volumes=[volume]))
    words = f"volumes or network of its pod are not ready on node {real.node.name}"
    app.until(lambda: words in app.condition("Degraded"), "the volume is named", LATE)
    place.mkdir()
    app.settle(LATE)
    assert app.condition("Degraded").startswith("False ")


def test_pod_deleted_by_the_taint_manager_is_reported_until_its_node_is_back(real: Trial) -> None:
    """Without forceDeletePod the pod stays Terminating, and the alarm lasts as long as that."""
    soon: Json = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3}
    tolerations = [
        {"key": LABEL, "operator": "Exists"},
        *({"key": f"node.kubernetes.io/{key}", **soon} for key in ("unreachable", "not-ready")),
    ]
    app = real.app.apply(alone("1", tolerations=tolerations))
    born = app.settle().uids()
    real.node.silence()
    app.until(lambda: "deletionTimestamp" in app.pods[0]["metadata"], "the pod is deleted", LATE)
    degraded = "True PodsNotDeleted"
    app.until(lambda: app.condition("Degraded").startswith(degraded), "it is reported", LATE)
    assert f"node {real.node.name} has stopped reporting" in app.condition("Degraded")
    assert app.uids() == born
    real.node.rest()
    app.until(lambda: app.uids().get(0, born[0]) != born[0], "another pod is created", LATE)
    app.settle(LATE)
    assert app.condition("Degraded").startswith("False ")


def test_init_container_that_does_not_end_is_named(real: Trial) -> None:
    app = real.app.apply(alone("1", initContainers=[container("1", name="fetch")]))
    app.until(
        lambda: "init container fetch runs since" in app.condition("Progressing"),
        "the init container is named",
    )
    assert app.condition("Degraded").startswith("False ")


def test_failed_container_is_named_while_another_container_runs(real: Trial) -> None:
    both = container("crash"), container("1", name="side")
    app = real.app.apply(alone(*both, restartPolicy="Never"))
    app.until(
        lambda: "container main has ended with exit code 3" in app.condition("Degraded"),
        "the container is named",
    )
    assert "container side still runs, and its pod is not Ready" in app.condition("Degraded")
    assert app.statuses == "Pending"
