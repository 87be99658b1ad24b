"""Pods on a real kubelet that wait, or will never serve: what the TApp says, and what it moves."""

from __future__ import annotations

import pytest

from .app import tapp
from .kube import Json
from .realnode.trial import Trial
from .realnode.workloads import container, real_template
from .test_real_lost_node import mobile

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
GATE = "example.com/registered"


def alone(*containers: Json | str, **pod: object) -> Json:
    """A TApp of one instance on the real node."""
    return tapp(replicas=1, template=real_template(*containers, **pod))


def open_gate(real: Trial) -> None:
    """Another controller opens its gate, and leaves out the time, as some do."""
    known = {"type": GATE, "status": "True", "lastTransitionTime": None}
    real.app.edit(0, [{"op": "add", "path": "/status/conditions/-", "value": known}], "status")


def test_a_gate_without_a_time_keeps_no_instance_on_a_lost_node(real: Trial) -> None:
    """The API server stores null; the time of Ready counts."""
    gates = [{"conditionType": GATE}]
    app = real.app.apply(mobile(alone("1", readinessGates=gates)))
    app.until(lambda: app.statuses == "Pending" and "0" in app.condition("Progressing"), "it waits")
    app.until(
        lambda: (
            f"its readiness gate {GATE} is unmet: nobody has set its condition yet"
            in app.condition("Progressing")
        ),
        "the gate is named",
    )
    open_gate(real)
    born = app.settle().uids()
    stored = {item["type"]: item for item in app.pods[0]["status"]["conditions"]}[GATE]
    assert stored["lastTransitionTime"] is None
    real.node.silence()
    app.anew(0, born)
    real.node.rest()


@pytest.mark.parametrize("moves", [True, False])
def test_a_node_that_dies_before_its_kubelet_sees_the_pod(real: Trial, moves: bool) -> None:
    """Bound, and never acknowledged: it is said, and with forceDeletePod the instance moves."""
    real.node.silence()
    made = mobile(alone("1"))
    made["spec"]["forceDeletePod"] = moves
    app = real.app.apply(made)
    app.until(lambda: bool(app.pods.get(0, {}).get("spec", {}).get("nodeName")), "it is bound")
    born = app.uids()
    if moves:
        app.anew(0, born)
    else:
        words = f"its pod was bound to node {real.node.name}"
        app.until(lambda: words in app.condition("Degraded"), "it is said")
        assert app.uids() == born
    real.node.rest()
    app.settle()


def test_an_init_container_that_does_not_end_is_named(real: Trial) -> None:
    app = real.app.apply(alone("1", initContainers=[container("1", name="fetch")]))
    app.until(
        lambda: "init container fetch runs since" in app.condition("Progressing"), "it is named"
    )
    assert app.condition("Degraded").startswith("False ")


def test_a_container_that_has_failed_for_good_is_named_while_another_runs(real: Trial) -> None:
    both = container("crash"), container("1", name="side")
    app = real.app.apply(alone(*both, restartPolicy="Never"))
    app.until(
        lambda: "container main has ended with exit code 3" in app.condition("Degraded"), "named"
    )
    assert "its pod goes on with side and is not Ready" in app.condition("Degraded")
    assert app.statuses == "Pending"
