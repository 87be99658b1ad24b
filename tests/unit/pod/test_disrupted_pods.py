"""Tests that pods that were disrupted before their work was done are replaced."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.builders import NOW, Document, completed, running, template, terminating
from tests.unit.nodes import timestamp
from tests.unit.world import World, condition, settled

REASONS = (
    "PreemptionByScheduler",
    "DeletionByTaintManager",
    "EvictionByEvictionAPI",
    "DeletionByPodGC",
    "TerminationByKubelet",
)
POLICIES = ("Never", "OnFailure", "Always")


def batch_tapp(policy: str, **spec: Any) -> World:
    return settled(template=template(restartPolicy=policy), **spec)


def disrupted(
    reason: str = "DeletionByPodGC", phase: str = "Failed", status: str = "True", code: int = 137
) -> Callable[[Document], Document]:
    """Returns a function that ends a pod with a DisruptionTarget condition, in this phase and with
    this exit code.

    `reason` and `status` are those of the condition.
    """

    def change(pod: Document) -> Document:
        pod = completed(pod, phase)
        ended = pod["status"]["containerStatuses"][0]["state"]["terminated"]
        ended |= {"exitCode": code, "reason": "Error"}
        target = {
            "type": "DisruptionTarget", "status": status, "reason": reason,
            "message": "it had to go", "lastTransitionTime": timestamp(NOW - 60),
        }  # fmt: skip
        conditions = [*pod["status"]["conditions"], target]
        return {**pod, "status": {**pod["status"], "conditions": conditions}}

    return change


def runs_again(world: World) -> bool:
    """Runs syncs until nothing changes; returns True if the instance has a new pod, which runs."""
    before = world.uids()
    world.settle()
    return world.uids() != before and world.parent["status"]["statuses"] == {"0": "Running"}


@pytest.mark.parametrize("reason", REASONS)
@pytest.mark.parametrize("policy", POLICIES)
def test_disrupted_pod_is_replaced_with_every_restart_policy(policy: str, reason: str) -> None:
    world = batch_tapp(policy).modify(0, disrupted(reason))
    assert world.decisions() == {0: "Delete/Completed"}
    found = condition(world.hook.sync(world.request()), "Degraded")
    assert found is not None
    assert f"its pod was disrupted: {reason}" in found["message"]
    assert runs_again(world)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("code", [0, 1, 143])
def test_disrupted_pod_is_replaced_with_every_exit_code(policy: str, code: int) -> None:
    assert runs_again(batch_tapp(policy).modify(0, disrupted(code=code)))


def test_pod_of_a_deleted_node_is_replaced_although_no_container_has_ended() -> None:
    """The pod garbage collector has set a pod to Failed, whose containers still look as if they
    ran: it is replaced.

    The garbage collector first sets the condition and then deletes the pod. A sync between both
    must not finish the instance.
    """

    def collected(pod: Document) -> Document:
        status = disrupted()(pod)["status"]
        known = running(pod)["status"]
        return {**pod, "status": {**known, "phase": "Failed", "conditions": status["conditions"]}}

    world = batch_tapp("Never").modify(0, collected)
    assert world.hook.sync(world.request())["status"]["statuses"] == {"0": "PodFailed"}
    world.sync()
    assert runs_again(world)


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("Evicted", "The node was low on resource: memory. Threshold quantity: 100Mi"),
        ("Preempting", "Preempted in order to admit critical pod"),
        ("Terminated", "Pod was terminated in response to imminent node shutdown."),
        ("NodeShutdown", "Pod was rejected as the node is shutting down."),
        ("Shutdown", "Node is shutting, evicting pods"),
    ],
    ids=["eviction", "preemption", "shutdown", "rejected at shutdown", "old shutdown"],
)
def test_disruption_by_an_older_kubelet_is_known_by_reason_and_message(
    reason: str, message: str
) -> None:
    world = batch_tapp("Never").modify(0, _without_condition(reason, message))
    assert world.decisions() == {0: "Delete/Completed"}


@pytest.mark.parametrize(
    "reason",
    ["NodeAffinity", "NodePorts", "OutOfcpu", "TopologyAffinityError", "UnexpectedAdmissionError"],
)
@pytest.mark.parametrize("policy", POLICIES)
def test_pod_that_ran_and_is_refused_after_a_restart_of_its_kubelet_is_replaced(
    policy: str, reason: str
) -> None:
    """A kubelet that restarts may refuse a pod that has run on its node: the instance runs again.

    The status of such a pod may still show the ends of its containers.
    """
    world = batch_tapp(policy).modify(0, _without_condition(reason, "Pod was rejected: no room"))
    assert world.decisions() == {0: "Delete/Completed"}
    assert runs_again(world)


def _without_condition(reason: str, message: str) -> Callable[[Document], Document]:
    def change(pod: Document) -> Document:
        ended = disrupted(status="False")(pod)
        return {**ended, "status": {**ended["status"], "reason": reason, "message": message}}

    return change


OWN_FAULTS = {
    "emptyDir too large": ("Evicted", 'Usage of EmptyDir volume "a" exceeds the limit "1Mi".'),
    "ephemeral storage too large": (
        "Evicted",
        "Pod ephemeral local storage usage exceeds the total limit",
    ),
    "deadline exceeded": (
        "DeadlineExceeded",
        "Pod was active on the node longer than the deadline",
    ),
    "no reason": ("", ""),
}


@pytest.mark.parametrize(("reason", "message"), OWN_FAULTS.values(), ids=OWN_FAULTS)
def test_pod_that_ended_by_its_own_fault_is_finished(reason: str, message: str) -> None:
    """A pod that used too much storage or time is not replaced, and its instance is finished.

    Such a pod has no DisruptionTarget condition, or a condition with status False.
    """
    world = batch_tapp("Never").modify(0, _without_condition(reason, message))
    assert world.decisions() == {0: "Keep/Finished"}
    assert world.sync()["status"]["statuses"] == {"0": "Failed"}


@pytest.mark.parametrize(("policy", "decision"), [
("Never", "Keep/Finished"), ("OnFailure", "Keep/Finished"), ("Always", "Delete/Completed"),
], ids=["Never", "OnFailure", "Always"])  # fmt: skip
def test_disruption_of_a_succeeded_pod_has_no_effect(policy: str, decision: str) -> None:
    world = batch_tapp(policy).modify(0, disrupted(phase="Succeeded", code=0))
    assert world.decisions() == {0: decision}


def test_finished_instance_stays_finished_if_its_pod_is_evicted_later() -> None:
    """Evicts the pod of a finished instance: the instance gets no new pod.

    `kubectl drain` evicts ended pods, too. An upgrade of the service does not change that.
    """
    world = batch_tapp("Never", replicas=2).modify(0, disrupted(status="False"))
    world.sync()
    assert world.parent["status"]["statuses"]["0"] == "Failed"
    world.modify(0, disrupted("EvictionByEvictionAPI"))
    assert world.decisions()[0] == "Keep/Finished"
    world.sync()
    world.modify(0, terminating).sync()
    assert world.parent["status"]["statuses"]["0"] == "Failed"
    del world.pods["web-0"]
    world.sync()
    assert "web-0" not in world.pods


def test_disrupted_pod_stays_with_never_migrate() -> None:
    world = batch_tapp("Never", neverMigrate=True).modify(0, disrupted())
    assert world.decisions() == {0: "Keep/Finished"}
    assert world.sync()["status"]["statuses"] == {"0": "Failed"}


def test_killed_instance_stays_killed_if_its_pod_is_disrupted() -> None:
    world = batch_tapp("Never").modify(0, disrupted()).change(statuses={"0": "Killed"})
    assert world.decisions() == {0: "Delete/Killed"}
    world.settle()
    assert world.pods == {}
    assert world.parent["status"]["statuses"] == {"0": "Killed"}


def test_pod_that_is_evicted_repeatedly_waits_for_its_back_off() -> None:
    def soon(pod: Document) -> Document:
        pod = disrupted("TerminationByKubelet")(pod)
        ended = pod["status"]["containerStatuses"][0]["state"]["terminated"]
        ended["finishedAt"] = timestamp(NOW)
        meta = {**pod["metadata"], "creationTimestamp": timestamp(NOW - 60)}
        annotations = {**meta["annotations"], "apps.tkestack.io/failures": "6"}
        return {**pod, "metadata": {**meta, "annotations": annotations}}

    world = batch_tapp("Never").modify(0, soon)
    assert world.decisions() == {0: "Keep/BackOff"}


@pytest.mark.parametrize(
    "force", [True, False], ids=["with forceDeletePod", "without forceDeletePod"]
)
def test_running_pod_with_the_disruption_condition_stays(force: bool) -> None:
    """A running pod with a DisruptionTarget condition is not touched.

    The component that wrote the condition deletes the pod, or sets the condition to False.
    """

    def target(pod: Document) -> Document:
        conditions = disrupted()(pod)["status"]["conditions"][-1:]
        known = running(pod)["status"]
        return {**pod, "status": {**known, "conditions": [*known["conditions"], *conditions]}}

    world = batch_tapp("Never", forceDeletePod=force).modify(0, target)
    assert world.decisions()[0] == "Keep/UpToDate"
