"""Restarts of containers in their pods with the same image, on a real kubelet."""

from __future__ import annotations

from typing import Any

import pytest

from .kube import Json
from .pods import container as status_of
from .realnode.trial import Trial
from .realnode.workloads import PROBE, container, environment, real_template

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
RESTART = "apps.tkestack.io/restart-in-place"
TIER = {
    "name": "TIER",
    "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.labels['tier']"}},
}
DEAF = {"env": environment(IGNORE_TERM=1)}
GRACE = {"terminationGracePeriodSeconds": 4}


@pytest.fixture(autouse=True)
def published(real: Trial) -> None:
    """Publishes images in the registry, because images that are loaded into a node have no
    digest.
    """
    for tag in ("r1", "r2", "r3"):
        real.node.registry.publish(tag)


def asking(*containers: Json | str, restart: str, only: str = "", **pod: Any) -> Json:
    """Returns the template with an annotation that requests a restart of all containers, or
    of one.
    """
    made = real_template(*containers, **pod)
    key = f"{RESTART}.{only}" if only else RESTART
    made["metadata"]["annotations"] = {key: restart}
    return made


def counts(real: Trial, index: int = 0, group: str = "containerStatuses") -> list[int]:
    """Returns the restart count of a container in each instance."""
    found = sorted(real.app.pods.items())
    return [int(status_of(pod, index, group)["restartCount"]) for _, pod in found]


def contents(real: Trial) -> set[str]:
    """Returns the digests of the running images."""
    found = real.app.pods.values()
    return {str(status_of(pod)["imageID"]).rpartition("@")[2] for pod in found}


@pytest.mark.parametrize("policy", ["IfNotPresent", "Never"])
def test_successive_restarts_need_no_registry(real: Trial, policy: str) -> None:
    """Both containers restart. A later update back to plain names is one restart."""
    images = (("r1", "main"), ("r3", "side"))
    real.create(*(container(*each) for each in images), container("r2", "other"))
    both = [container(*each, imagePullPolicy=policy) for each in images]
    real.roll(*both)
    real.witness.begin(real.app.namespace, "main", "side")
    real.node.registry.failing = True
    born, ran = real.app.uids(), contents(real)
    for number in (1, 2, 3):
        real.app.patch(template=asking(*both, restart=f"{number}")).settle(120)
        assert counts(real) == [number] * 3
        assert counts(real, 1) == [number] * 3
    assert real.app.uids() == born
    assert contents(real) == ran
    assert real.never_fewer_than(2)
    moved = container("r2", imagePullPolicy=policy)
    real.app.patch(template=asking(moved, both[1], restart="3")).settle(120)
    assert counts(real) == [4] * 3
    assert counts(real, 1) == [3] * 3
    assert real.tags() == "r2 r2 r2"
    assert real.app.uids() == born
    assert real.never_fewer_than(2)


def test_restart_keeps_the_image_after_its_tag_moved(real: Trial) -> None:
    """The kubelet pulls the digest, even with pull policy Always."""
    registry = real.node.registry
    registry.publish("moving")
    body = container("moving", imagePullPolicy="Always")
    real.create(body)
    born, ran = real.app.uids(), contents(real)
    registry.publish("moving", VERSION="moved")
    for text in ("1", "2"):
        real.app.patch(template=asking(body, restart=text)).settle(120)
    assert counts(real) == [2] * 3
    assert contents(real) == ran
    assert real.app.uids() == born
    assert real.never_fewer_than(2)


def test_restart_of_one_container_keeps_the_other_running(real: Trial) -> None:
    """The restarted container is a sidecar, which is among the init containers of the pod."""
    sidecar = {"initContainers": [container("r1", "side", restartPolicy="Always")]}
    real.create("r1", pod=sidecar)
    kept = {each.id for each in real.witness.now(real.app.namespace) if each.container == "main"}
    real.app.patch(template=asking("r1", restart="now", only="side", **sidecar)).settle(120)
    running = real.witness.now(real.app.namespace)
    assert {each.id for each in running if each.container == "main"} == kept
    assert counts(real) == [0] * 3
    assert counts(real, 0, "initContainerStatuses") == [1] * 3
    assert real.never_fewer_than(3)


def test_restart_with_another_image_restarts_once(real: Trial) -> None:
    real.create("r1")
    real.app.patch(template=asking("r2", restart="now")).settle(120)
    assert counts(real) == [1] * 3
    assert real.tags() == "r2 r2 r2"
    assert real.never_fewer_than(2)


def test_second_restart_request_while_a_container_is_stopped_restarts_all(real: Trial) -> None:
    """All containers at the end must have started after the last edit."""
    deaf = container("r1", **DEAF)
    real.create(deaf, pod=GRACE)
    real.app.patch(template=asking(deaf, restart="1", **GRACE))
    real.wait(2).app.patch(template=asking(deaf, restart="2", **GRACE))
    before = {each.id for each in real.witness.now(real.app.namespace)}
    real.app.settle(150)
    after = {each.id for each in real.witness.now(real.app.namespace)}
    assert before.isdisjoint(after)
    assert real.never_fewer_than(2)


def test_changed_label_restarts_the_container_that_reads_it(real: Trial) -> None:
    """The other container must survive."""

    def labelled(tier: str) -> Json:
        made = real_template(container("r1", env=[TIER]), container("r1", "side"))
        made["metadata"]["labels"]["tier"] = tier
        return made

    real.create(container("r1", env=[TIER]), container("r1", "side"))
    for number, tier in enumerate(("gold", "silver"), start=1):
        real.app.patch(template=labelled(tier)).settle(120)
        assert counts(real) == [number] * 3
        assert counts(real, 1) == [0] * 3
        for instance in range(3):
            assert f"TIER={tier}" in real.environment(instance)
    assert real.never_fewer_than(2)


def test_restart_annotation_of_a_pod_restarts_its_instance(real: Trial) -> None:
    real.create("r1")
    for number in (0, 2):
        real.app.annotate(number, restart_instance="now")
    real.app.until(lambda: counts(real) == [1, 0, 1], "both instances have restarted", 60)
    real.app.settle(60)
    assert real.never_fewer_than(2)


@pytest.mark.parametrize("fails", ["liveness", "crash"])
def test_restart_request_during_a_failure_starts_new_containers(real: Trial, fails: str) -> None:
    """The kubelet starts the container of the older spec once more, just before the newest one."""
    alive = {"livenessProbe": PROBE | {"failureThreshold": 1}} if fails == "liveness" else {}
    deaf = container("r1", **DEAF, **alive)
    real.create(deaf, pod=GRACE)
    if fails == "liveness":
        real.spoil(0)
        real.wait(2.5)  # by now the probe has failed, and the container is being killed
    else:
        real.kill(0)
    before = {each.id for each in real.witness.now(real.app.namespace)}
    real.app.patch(template=asking(deaf, restart="1", **GRACE)).settle(150)
    after = {each.id for each in real.witness.now(real.app.namespace)}
    assert before.isdisjoint(after)
    assert real.never_fewer_than(1 if fails == "crash" else 2)
