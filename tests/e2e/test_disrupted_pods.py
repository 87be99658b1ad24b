"""Pods of a batch that are disrupted before their work is done, on the real API server: all run
again.

The eviction API itself writes the condition DisruptionTarget. For evictions by the kubelet, the
tests write the condition as its eviction manager does.
"""

from __future__ import annotations

import time

import pytest

from .app import App, tapp, template
from .kube import Json

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


def batch(app: App, **pod: object) -> App:
    """Creates a batch of three whose containers never restart on their node."""
    return app.apply(tapp(template=template(restartPolicy="Never", **pod))).settle()


def stamp() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def fail(app: App, number: int, *conditions: Json) -> None:
    """Sets a pod's status to Failed, as its kubelet would, with additional conditions."""
    known = app.pods[number]["status"]["conditions"]
    status = {"phase": "Failed", "reason": "Evicted", "message": "it had to go"}
    app.edit(number, {"status": {**status, "conditions": [*known, *conditions]}}, "status")


def test_evicted_batch_pod_runs_again(app: App) -> None:
    born = batch(app).uids()
    app.evict(1)
    app.wait_until_replaced(1, born).settle()
    assert app.statuses == "Running Running Running"


def test_pod_evicted_by_its_kubelet_runs_again(app: App) -> None:
    """The pod is Failed and not Terminating, so only the service can delete it."""
    born = batch(app).uids()
    target = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}
    fail(
        app, 1, {**target, "message": "The node was low on resource", "lastTransitionTime": stamp()}
    )
    app.wait_until_replaced(1, born).settle()
    assert app.statuses == "Running Running Running"


def test_preempted_pod_runs_again_when_there_is_room(app: App) -> None:
    """The real scheduler marks the pod, and deletes it for a pod of a higher priority."""
    node, slot, name = "fake-0", "example.com/slot", f"urgent-{app.namespace}"
    room = app.kube.path("v1", "nodes", None, node) + "/status"
    app.kube.request(
        "PATCH", room, {"status": {"capacity": {slot: "1"}, "allocatable": {slot: "1"}}}
    )
    ranked = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 1000}
    app.kube.create({**ranked, "metadata": {"name": name}})
    try:
        one = template(restartPolicy="Never", terminationGracePeriodSeconds=1)
        one["spec"]["containers"][0]["resources"] = {"limits": {slot: "1"}}
        born = app.apply(tapp(replicas=1, template=one)).settle().uids()
        urgent: Json = {
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "urgent", "namespace": app.namespace},
            "spec": {**one["spec"], "priorityClassName": name},
        }  # fmt: skip
        app.kube.create(urgent)
        app.until(lambda: app.uids().get(0, born[0]) != born[0], "another pod", 200)
        app.until(lambda: slot in app.condition("Progressing"), "it says what is missing", 120)
        assert app.statuses == "Pending"
        app.kube.delete("v1", "pods", app.namespace, "urgent")
        app.settle(200)
        assert app.statuses == "Running"
    finally:
        gone = {"status": {"capacity": {slot: None}, "allocatable": {slot: None}}}
        app.kube.request("PATCH", room, gone)
        app.kube.delete("scheduling.k8s.io/v1", "priorityclasses", None, name)


def test_pod_that_fails_without_disruption_is_finished(app: App) -> None:
    """A pod that exceeds its limit of ephemeral storage has no condition about a disruption."""
    born = batch(app).uids()
    fail(app, 1)
    app.until(lambda: app.statuses == "Running Failed Running", "the instance is Failed")
    app.quiet()
    assert app.uids() == born


def test_pod_of_a_deleted_node_runs_again(app: App) -> None:
    """PodGC writes Failed with the condition and then deletes the pod, without any kubelet."""
    name = f"gone-{app.namespace}"
    app.kube.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
    pod = template(restartPolicy="Never", nodeName=name)
    app.apply(tapp(replicas=1, template=pod))
    app.until(lambda: 0 in app.pods, "the pod is bound to that node")
    app.edit(0, {"status": {"phase": "Running"}}, "status")
    app.until(lambda: app.statuses == "Running", "the instance runs")
    born = app.uids()
    app.kube.delete("v1", "nodes", None, name)
    app.until(lambda: app.uids().get(0, born[0]) != born[0], "the pod is replaced", 200)
    assert app.statuses != "Failed"
