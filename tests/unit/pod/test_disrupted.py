"""A pod that was ended before its work was done runs again, whoever ended it and however."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.builders import NOW, Document, completed, running, template, terminating
from tests.unit.decide.test_lost_node import stamp
from tests.unit.world import World, condition, settled

REASONS = (
    "PreemptionByScheduler",
    "DeletionByTaintManager",
    "EvictionByEvictionAPI",
    "DeletionByPodGC",
    "TerminationByKubelet",
)
POLICIES = ("Never", "OnFailure", "Always")


def batch(policy: str, **spec: Any) -> World:
    return settled(template=template(restartPolicy=policy), **spec)


def disrupted(
    reason: str = "DeletionByPodGC", phase: str = "Failed", status: str = "True", code: int = 137
) -> Callable[[Document], Document]:
    """A pod that has ended with this condition; its container with this exit code."""

    def change(pod: Document) -> Document:
        pod = completed(pod, phase)
        ended = pod["status"]["containerStatuses"][0]["state"]["terminated"]
        ended |= {"exitCode": code, "reason": "Error"}
        target = {
            "type": "DisruptionTarget", "status": status, "reason": reason,
            "message": "it had to go", "lastTransitionTime": stamp(NOW - 60),
        }  # fmt: skip
        conditions = [*pod["status"]["conditions"], target]
        return {**pod, "status": {**pod["status"], "conditions": conditions}}

    return change


def runs_again(world: World) -> bool:
    """True if the instance's pod is replaced, and the next one runs."""
    before = world.uids()
    world.settle()
    return world.uids() != before and world.parent["status"]["statuses"] == {"0": "Running"}


@pytest.mark.parametrize("reason", REASONS)
@pytest.mark.parametrize("policy", POLICIES)
def test_a_disrupted_pod_runs_again_under_every_policy(policy: str, reason: str) -> None:
    world = batch(policy).modify(0, disrupted(reason))
    assert world.decisions() == {0: "Delete/Completed"}
    found = condition(world.hook.sync(world.request()), "Degraded")
    assert found is not None
    assert f"its pod was disrupted: {reason}" in found["message"]
    assert runs_again(world)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_disrupted_pod_runs_again_whatever_its_containers_ended_with(policy: str) -> None:
    for code in (0, 1, 143):
        assert runs_again(batch(policy).modify(0, disrupted(code=code)))


def test_a_pod_of_a_node_that_is_gone_runs_again_between_the_two_writes_of_pod_gc() -> None:
    """A sync between the two must not finish the instance for good.

    No container has ended, because nobody could say so.
    """

    def collected(pod: Document) -> Document:
        status = disrupted()(pod)["status"]
        known = running(pod)["status"]
        return {**pod, "status": {**known, "phase": "Failed", "conditions": status["conditions"]}}

    world = batch("Never").modify(0, collected)
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
)
def test_kubelets_without_the_condition_say_it_in_the_status(reason: str, message: str) -> None:
    world = batch("Never").modify(0, _without_condition(reason, message))
    assert world.decisions() == {0: "Delete/Completed"}


def _without_condition(reason: str, message: str) -> Callable[[Document], Document]:
    def change(pod: Document) -> Document:
        ended = disrupted(status="False")(pod)
        return {**ended, "status": {**ended["status"], "reason": reason, "message": message}}

    return change


OWN_FAULTS = {
    "emptyDir": ("Evicted", 'Usage of EmptyDir volume "a" exceeds the limit "1Mi".'),
    "ephemeral storage": ("Evicted", "Pod ephemeral local storage usage exceeds the total limit"),
    "deadline": ("DeadlineExceeded", "Pod was active on the node longer than the deadline"),
    "failed": ("", ""),
}


@pytest.mark.parametrize(("reason", "message"), OWN_FAULTS.values(), ids=OWN_FAULTS)
def test_a_pod_that_ended_by_a_fault_of_its_own_is_finished(reason: str, message: str) -> None:
    """These have no condition, or one that was taken back: the eviction did not come about."""
    world = batch("Never").modify(0, _without_condition(reason, message))
    assert world.decisions() == {0: "Keep/Finished"}
    assert world.sync()["status"]["statuses"] == {"0": "Failed"}


@pytest.mark.parametrize(("policy", "decision"), [
    ("Never", "Keep/Finished"), ("OnFailure", "Keep/Finished"), ("Always", "Delete/Completed"),
])  # fmt: skip
def test_a_pod_that_has_succeeded_is_done_disrupted_or_not(policy: str, decision: str) -> None:
    world = batch(policy).modify(0, disrupted(phase="Succeeded", code=0))
    assert world.decisions() == {0: decision}


def test_a_finished_instance_stays_finished_if_its_pod_is_evicted_afterwards() -> None:
    """`kubectl drain` evicts ended pods, too. Nor does an upgrade of the service run them again."""
    world = batch("Never", replicas=2).modify(0, disrupted(status="False"))
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


def test_never_migrate_keeps_a_disrupted_pod() -> None:
    world = batch("Never", neverMigrate=True).modify(0, disrupted())
    assert world.decisions() == {0: "Keep/Finished"}
    assert world.sync()["status"]["statuses"] == {"0": "Failed"}


def test_a_killed_instance_whose_pod_is_disrupted_stays_killed() -> None:
    world = batch("Never").modify(0, disrupted()).change(statuses={"0": "Killed"})
    assert world.decisions() == {0: "Delete/Killed"}
    world.settle()
    assert world.pods == {}
    assert world.parent["status"]["statuses"] == {"0": "Killed"}


def test_a_pod_that_is_evicted_again_and_again_waits_longer_each_time() -> None:
    def soon(pod: Document) -> Document:
        pod = disrupted("TerminationByKubelet")(pod)
        ended = pod["status"]["containerStatuses"][0]["state"]["terminated"]
        ended["finishedAt"] = stamp(NOW)
        meta = {**pod["metadata"], "creationTimestamp": stamp(NOW - 60)}
        annotations = {**meta["annotations"], "apps.tkestack.io/failures": "6"}
        return {**pod, "metadata": {**meta, "annotations": annotations}}

    world = batch("Never").modify(0, soon)
    assert world.decisions() == {0: "Keep/BackOff"}


@pytest.mark.parametrize("force", [True, False])
def test_a_running_pod_that_is_about_to_be_disrupted_is_left_alone(force: bool) -> None:
    """The one who wrote the condition deletes the pod, or takes the condition back."""

    def target(pod: Document) -> Document:
        conditions = disrupted()(pod)["status"]["conditions"][-1:]
        known = running(pod)["status"]
        return {**pod, "status": {**known, "conditions": [*known["conditions"], *conditions]}}

    world = batch("Never", forceDeletePod=force).modify(0, target)
    assert world.decisions()[0] == "Keep/UpToDate"
