"""Pods that the kubelet refuses or cannot start: the rate of the attempts, and the messages."""

from __future__ import annotations

from typing import Any

import pytest

from .kube import Json
from .realnode.trial import Trial
from .realnode.workloads import container, real_spec

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
SYSCTL = {"securityContext": {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}}


def too_large(tag: str) -> Json:
    """Returns a container that requests more than the node has."""
    return container(tag, resources={"requests": {"cpu": "900"}})


@pytest.mark.parametrize("refused", ["OutOfcpu", "SysctlForbidden"])
def test_pod_refused_by_the_kubelet_is_replaced_with_growing_pauses(
    real: Trial, refused: str
) -> None:
    """The refused pod stays for diagnosis, a condition names the reason, and a new template repairs
    the instance.
    """
    # With a node name the pod bypasses the scheduler, as in a race for the last place on a node.
    pod: dict[str, Any] = {"nodeName": real.node.name}
    real.create("1", pod=pod)
    if refused == "OutOfcpu":
        real.change(too_large("1"), **pod)
    else:
        real.change("1", **pod, **SYSCTL)
    real.app.until(
        lambda: len(real.app.watcher.seen("web-0")) >= 2, "the pod was created twice", 120
    )
    real.wait(15)
    assert len(real.app.watcher.seen("web-0")) <= 7
    assert real.never_fewer_than(2)
    degraded = real.app.condition("Degraded")
    assert degraded.startswith("True ")
    assert refused in degraded
    # Between two attempts there is no pod for a moment.
    real.app.until(
        lambda: real.app.pods.get(0, {}).get("status", {}).get("reason") == refused,
        "the next pod is refused as well",
        60,
    )
    # A merge patch must remove each field of the previous template explicitly.
    real.roll("2", seconds=60, **pod, securityContext=None)
    assert real.never_fewer_than(2)


def test_refused_instance_runs_as_soon_as_the_kubelet_admits_it(real: Trial) -> None:
    """Another pod used the node's CPU, and is deleted."""
    other = container("1", resources={"requests": {"cpu": "1"}})
    taken = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "other"}}
    big = container("1", resources={"requests": {"cpu": "1200m"}})
    pod = {"nodeName": real.node.name}
    kube, namespace = real.app.kube, real.app.namespace
    taken["metadata"]["namespace"] = namespace  # type: ignore[index]
    kube.create(taken | {"spec": real_spec(other)})
    real.create("1", replicas=1, pod=pod)
    real.change(big, **pod)
    real.app.until(
        lambda: "OutOfcpu" in real.app.condition("Degraded"), "the refusal is reported", 120
    )
    kube.delete("v1", "pods", namespace, "other")
    real.app.settle(90)
    assert real.ready(0)


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (container("127.0.0.1:1/app:1"), "127.0.0.1:1/app:1"),
        (container("e2e.local/App:1"), "CreationBlocked"),
        (container("missing", imagePullPolicy="Never"), "ErrImageNeverPull"),
    ],
    ids=["no such registry", "no image reference", "ErrImageNeverPull"],
)
def test_unavailable_image_stops_the_rollout_and_is_named(
    real: Trial, broken: Json, reason: str
) -> None:
    policy = {"imagePullPolicy": broken["imagePullPolicy"]}
    real.create(container("1", **policy))
    real.change(broken).wait(12)
    assert len([tag for tag in real.tags().split() if tag == "1"]) >= 2
    degraded = real.app.condition("Degraded")
    assert degraded.startswith("True ")
    assert reason in degraded
    assert "CrashLoopBackOff" not in degraded
    real.roll(container("2", **policy))
    assert real.never_fewer_than(2)
