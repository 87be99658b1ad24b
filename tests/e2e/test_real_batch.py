"""Instances whose containers may end, on a real kubelet: a container that an update ended is not
finished.
"""

from __future__ import annotations

import pytest

from .kube import Json
from .realnode.images import app as image
from .realnode.trial import Trial
from .realnode.workloads import container, environment

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]
LATE = 240.0
"""Seconds to wait for the kubelet and the control plane on a busy machine."""


@pytest.mark.parametrize("policy", ["OnFailure", "Never"])
def test_invalid_image_breaks_only_one_batch_instance(real: Trial, policy: str) -> None:
    """The update ends the process and the pull fails.

    An instance that counted as finished would let the rollout continue.
    """
    pod = {"restartPolicy": policy}
    real.create("1", pod=pod)
    real.change("missing", **pod)
    real.app.until(
        lambda: image("missing") in real.app.condition("Degraded"),
        "the failed pull is reported",
        LATE,
    )
    real.wait(10)  # by now a second instance would have been updated
    assert real.never_fewer_than(2)
    assert real.tags() == "missing 1 1"
    assert "Succ" not in real.app.statuses
    assert real.app.condition("Degraded").startswith("True ")
    real.roll("2", **pod)
    assert real.never_fewer_than(2)
    assert real.tags() == "2 2 2"


@pytest.mark.parametrize("policy", ["Always", "OnFailure", "Never"])
def test_update_finishes_when_the_pull_recovers(real: Trial, policy: str) -> None:
    late = image(f"late-{policy.lower()}")
    real.node.images.add(late, {"VERSION": "late"})
    pod = {"restartPolicy": policy}
    real.create("1", pod=pod).change(late, **pod)
    real.app.until(
        lambda: late in real.app.condition("Degraded"), "the failed pull is reported", LATE
    )
    real.node.registry.published.add(late)
    real.app.settle(LATE)
    assert real.never_fewer_than(2)
    assert set(real.runs().values()) == {late.rpartition(":")[2]}


@pytest.mark.parametrize("policy", ["OnFailure", "Never"])
def test_update_finishes_after_a_kubelet_restart_between_stop_and_start(
    real: Trial, policy: str
) -> None:
    """The kubelet finds an ended container with an image that the spec no longer has."""
    pod = {"restartPolicy": policy, "terminationGracePeriodSeconds": 3}
    slow = {"lifecycle": {"preStop": {"exec": {"command": ["sleep", "2"]}}}}
    real.create(container("1", **slow), pod=pod)
    real.change(container("2", **slow), **pod)
    real.app.until(lambda: real.tags() == "2 1 1", "instance 0 is being updated", LATE)
    real.node.kubelet.stop(kill=True)
    real.kill(0)
    real.wait(1).node.kubelet.start()
    real.app.settle(LATE)
    assert real.never_fewer_than(2)
    assert set(real.runs().values()) == {"2"}


@pytest.mark.parametrize("policy", ["OnFailure", "Never"])
def test_batch_instances_run_once_with_the_wanted_image(real: Trial, policy: str) -> None:
    """With the image of the template, no instance may run a second time."""
    pod = {"restartPolicy": policy}
    real.create("1", pod=pod)
    real.change("ends", **pod)
    real.app.until(
        lambda: real.app.statuses == "Succ Succ Succ", "all instances have succeeded", LATE
    )
    moments = real.witness.timeline
    ran = {each.pod for moment in moments for each in moment.running if each.image == image("ends")}
    assert ran == {"web-0", "web-1", "web-2"}
    assert [len(real.app.watcher.seen(name)) for name in sorted(ran)] == [1, 1, 1]
    assert real.app.condition("Degraded").startswith("False ")


def test_container_in_back_off_is_updated_in_place(real: Trial) -> None:
    """With OnFailure the kubelet shows a container in back-off as terminated, and starts it
    again.
    """
    pod = {"restartPolicy": "OnFailure"}
    real.create("1", replicas=1, pod=pod)
    born = real.app.uids()
    real.change("crash", **pod)
    real.app.until(lambda: real.container(0)["restartCount"] >= 3, "the container crashes", LATE)
    real.app.until(
        lambda: "terminated" in real.container(0)["state"], "the container is in back-off", LATE
    )
    real.roll("2", **pod)
    assert real.app.uids() == born


def rule(action: str, *codes: int) -> Json:
    """Returns a restart policy rule of a container for these exit codes."""
    return {"action": action, "exitCodes": {"operator": "In", "values": list(codes)}}


OWN: dict[str, Json] = {
    "a policy": {"restartPolicy": "Never"},
    "rules about other codes": {
        "restartPolicy": "Never",
        "restartPolicyRules": [rule("Restart", 3)],
    },
}


@pytest.mark.since(35, "restart policies of containers by default")
@pytest.mark.parametrize("own", OWN.values(), ids=OWN)
def test_instance_is_finished_if_its_containers_never_restart(real: Trial, own: Json) -> None:
    """The containers have their own policy, while the pod's policy is Always."""
    real.create(container("1", **own))
    assert real.app.pod(0)["spec"]["restartPolicy"] == "Always"
    real.change(container("ends", **own))
    real.app.until(
        lambda: real.app.statuses == "Succ Succ Succ", "all instances have succeeded", LATE
    )
    real.wait(20)
    assert real.app.statuses == "Succ Succ Succ"
    assert [len(real.app.watcher.seen(f"web-{id}")) for id in range(3)] == [1, 1, 1]
    assert real.app.condition("Degraded").startswith("False ")


@pytest.mark.since(36, "rules of containers and RestartAllContainers by default")
@pytest.mark.parametrize("action", ["Restart", "RestartAllContainers"])
def test_restart_rule_restarts_containers_in_the_same_pod(real: Trial, action: str) -> None:
    """The kubelet restarts one container, or all with the init containers.

    The instance has not ended.
    """
    own = {"restartPolicy": "Never", "restartPolicyRules": [rule(action, 3)]}
    pod = {"initContainers": [container("1", "first", env=environment(EXIT_AFTER=0))]}
    real.create(container("1", **own), replicas=1, pod=pod)
    born = real.app.uids()
    real.change(container("crash-late", **own), **pod)
    real.app.until(lambda: real.container(0)["restartCount"] >= 3, "the container restarts", LATE)
    first = real.app.pod(0)["status"]["initContainerStatuses"][0]
    assert (first["restartCount"] > 0) is (action == "RestartAllContainers")
    real.roll(container("1", **own), **pod)
    assert real.app.uids() == born


@pytest.mark.since(36, "RestartAllContainers by default")
def test_restart_of_all_containers_by_a_rule_causes_no_action(real: Trial) -> None:
    """The kubelet restarts all containers as often as the rule says, so nothing else has to act."""
    own = {"restartPolicy": "Never", "restartPolicyRules": [rule("RestartAllContainers", 137)]}
    pod = {"initContainers": [container("1", "first", env=environment(EXIT_AFTER=0))]}
    real.create(container("1", **own), container("1", "side"), pod=pod)
    born, told = real.app.uids(), set[str]()
    for count in (1, 2, 3):
        real.kill(0)

        def again(count: int = count) -> bool:
            told.update((real.app.statuses, real.app.condition("Degraded")))
            return real.container(0)["restartCount"] >= count and real.ready(0)

        real.app.until(again, "the containers run again", LATE)
    assert {text for text in told if not text.startswith("False ")} <= {
        f"{word} Running Running" for word in ("Running", "Pending")
    }
    pods = [real.app.pod(number) for number in range(3)]
    assert real.app.uids() == born
    assert [each["metadata"]["generation"] for each in pods] == [1, 1, 1]
    first = [each["status"]["initContainerStatuses"][0]["restartCount"] for each in pods]
    assert first[1:] == [0, 0]
    assert real.never_fewer_than(2)
