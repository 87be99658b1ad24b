"""`status`: a word per instance, a word for the app, counts and conditions."""

from collections.abc import Callable

import pytest

from tests import builders
from tests.builders import (
    Document,
    claim_template,
    completed,
    crashing,
    in_phase,
    refused,
    running,
    tapp,
    template,
    terminating,
)
from tests.unit.world import World, condition, settled

ONCE = template(restartPolicy="Never")


def status_of(world: World) -> Document:
    """The status that the next sync writes."""
    status: Document = world.hook.sync(world.request())["status"]
    return status


def no_ready_condition(pod: Document) -> Document:
    """A pod that runs, and nobody has said whether it is Ready."""
    return in_phase(pod, "Running")


def in_place(_pod: Document) -> Document:
    """A pod in the middle of an in-place update."""
    world = settled().change(template=template("nginx:2"))
    world.sync()
    return world.pod(0)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(lambda pod: in_phase(pod, "Pending"), "Pending", id="pending"),
        pytest.param(lambda pod: {**pod, "status": {}}, "Pending", id="without a phase"),
        pytest.param(running, "Running", id="running and ready"),
        pytest.param(lambda pod: running(pod, ready=False), "Pending", id="running, not ready"),
        pytest.param(no_ready_condition, "Running", id="running without a Ready condition"),
        pytest.param(crashing, "Pending", id="crashing"),
        pytest.param(in_place, "Updating", id="during an in-place update"),
        pytest.param(lambda pod: in_phase(pod, "Unknown"), "Unknown", id="unknown"),
        pytest.param(terminating, "Killing", id="terminating"),
        pytest.param(lambda pod: completed(pod, "Failed"), "PodFailed", id="failed, replaced"),
        pytest.param(lambda pod: completed(pod, "Succeeded"), "PodSucc", id="ended, replaced"),
        pytest.param(refused, "PodFailed", id="refused by the kubelet"),
    ],
)
def test_an_instance_with_a_pod_has_the_status_of_its_pod(
    change: Callable[[Document], Document], expected: str
) -> None:
    world = settled().modify(0, change)
    assert status_of(world)["statuses"] == {"0": expected}


@pytest.mark.parametrize(
    ("spec", "remembered", "expected"),
    [
        pytest.param({}, None, "NotCreated", id="new"),
        pytest.param({}, "Running", "NotCreated", id="its pod was lost"),
        pytest.param({}, "Killed", "NotCreated", id="started again after a kill"),
        pytest.param({}, "Succ", "Succ", id="finished well"),
        pytest.param({}, "Failed", "Failed", id="finished badly"),
        pytest.param({"statuses": {"0": "Killed"}}, "Running", "Killed", id="killed"),
        pytest.param({"statuses": {"0": "Killed"}}, "Succ", "Killed", id="killed after the end"),
        pytest.param({}, "PodFailed", "NotCreated", id="its completed pod is gone"),
    ],
)
def test_an_instance_without_a_pod_has_the_status_that_was_asked_or_remembered(
    spec: Document, remembered: str | None, expected: str
) -> None:
    memory = {"statuses": {"0": remembered}} if remembered else None
    assert status_of(World(tapp(status=memory, **spec)))["statuses"] == {"0": expected}


def test_a_terminating_pod_of_a_finished_instance_does_not_change_its_status() -> None:
    world = settled(template=ONCE).modify(0, lambda pod: completed(pod, "Succeeded"))
    world.sync()
    world.modify(0, terminating)
    assert status_of(world)["statuses"] == {"0": "Succ"}


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ((), "Pending"),
        (("Succ", "Running"), "Running"),
        (("Failed", "NotCreated"), "Running"),
        (("Killed", "NotCreated"), "Running"),
        (("Succ", "Failed", "Killed"), "Failed"),
        (("Failed",), "Failed"),
        (("Succ", "Killed"), "Succ"),
        (("Succ",), "Succ"),
        (("Killed", "Killed"), "Killed"),
    ],
)
def test_the_app_status_sums_up_its_instances(statuses: tuple[str, ...], expected: str) -> None:
    killed = {str(id): "Killed" for id, status in enumerate(statuses) if status == "Killed"}
    memory = {str(id): status for id, status in enumerate(statuses) if status in ("Succ", "Failed")}
    world = World(
        tapp(replicas=len(statuses), statuses=killed, status={"statuses": memory}, template=ONCE)
    )
    for id, status in enumerate(statuses):
        if status == "Running":
            child = settled(replicas=id + 1, template=ONCE).pod(id)
            world.pods[f"web-{id}"] = child
    assert status_of(world)["appStatus"] == expected


@pytest.mark.parametrize(
    "change",
    [
        lambda pod: in_phase(pod, "Pending"),
        lambda pod: in_phase(pod, "Unknown"),
        lambda pod: completed(pod, "Failed"),
        lambda pod: completed(pod, "Succeeded"),
        terminating,
        in_place,
    ],
    ids=["Pending", "Unknown", "PodFailed", "PodSucc", "Killing", "Updating"],
)
def test_an_app_is_running_while_any_instance_is_alive(
    change: Callable[[Document], Document],
) -> None:
    assert status_of(settled().modify(0, change))["appStatus"] == "Running"


def test_counts_are_of_instances_below_replicas_whose_pods_live() -> None:
    world = settled(replicas=6, updateStrategy={"maxUnavailable": 1})
    world.modify(1, lambda pod: running(pod, ready=False))
    world.modify(2, terminating)
    world.modify(3, lambda pod: completed(pod, "Failed"))
    world.change(replicas=5)  # instance 5 is on its way out
    status = status_of(world)
    assert status["replicas"] == 4  # 0, 1, 2 (still there), 4
    assert status["readyReplicas"] == 2
    assert status["availableReplicas"] == 2
    assert sorted(status["statuses"]) == ["0", "1", "2", "3", "4"]


def test_updated_replicas_carry_the_revision_of_their_template() -> None:
    world = settled(replicas=3).change(template=template("nginx:2"))
    world.sync()
    world.kubelet()
    status = status_of(world)
    assert status["updatedReplicas"] == 1
    assert status["templates"] == {
        "default": {"replicas": 3, "readyReplicas": 3, "updatedReplicas": 1}
    }


def test_counts_are_given_per_template() -> None:
    pool = {"v2": template("app:v2")}
    world = settled(replicas=3, templatePool=pool, templates={"1": "v2"})
    assert world.parent["status"]["templates"] == {
        "default": {"replicas": 2, "readyReplicas": 2, "updatedReplicas": 2},
        "v2": {"replicas": 1, "readyReplicas": 1, "updatedReplicas": 1},
    }


def test_an_instance_being_updated_in_place_is_not_available() -> None:
    world = settled(replicas=2).change(template=template("nginx:2"))
    world.sync()
    assert status_of(world)["availableReplicas"] == 1


def test_the_scale_selector_selects_exactly_this_tapps_pods() -> None:
    assert status_of(settled())["scaleLabelSelector"] == f"controller-uid={builders.UID}"


# --- conditions -----------------------------------------------------------------------------------


def truth(status: Document, type: str) -> tuple[str, str]:
    """Status and reason of a condition."""
    found = condition(status, type)
    assert found is not None
    assert found["message"]
    return found["status"], found["reason"]


def test_a_settled_tapp_is_available_ready_and_neither_progressing_nor_degraded() -> None:
    status = settled(replicas=2).parent["status"]
    assert truth(status, "Available") == ("True", "MinimumInstancesAvailable")
    assert truth(status, "Progressing") == ("False", "Complete")
    assert truth(status, "Ready") == ("True", "AsSpecified")
    assert truth(status, "Degraded") == ("False", "AsExpected")


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        pytest.param({"replicas": 4}, "Creating", id="creating"),
        pytest.param({"template": template("nginx:2")}, "Updating", id="updating"),
        pytest.param({"replicas": 1}, "Deleting", id="deleting"),
    ],
)
def test_work_to_do_is_progress_and_not_readiness(edit: Document, reason: str) -> None:
    status = status_of(settled(replicas=2).change(**edit))
    assert truth(status, "Progressing") == ("True", reason)
    assert truth(status, "Ready")[0] == "False"


def test_too_few_available_instances_are_said() -> None:
    world = settled(replicas=3)
    world.modify(0, crashing).modify(1, crashing)
    assert truth(status_of(world), "Available") == ("False", "MinimumInstancesUnavailable")
    assert truth(status_of(world), "Degraded") == ("True", "InstancesBroken")


def test_one_unavailable_instance_is_within_the_budget() -> None:
    assert truth(status_of(settled(replicas=3).modify(0, crashing)), "Available")[0] == "True"


def test_what_is_broken_is_named() -> None:
    world = settled(replicas=3).modify(1, lambda pod: crashing(pod, "ErrImagePull"))
    found = condition(status_of(world), "Degraded")
    assert found is not None
    assert "instance 1: container app: ImagePullBackOff" in found["message"]


def test_a_failed_instance_degrades_the_app() -> None:
    world = settled(replicas=2, template=ONCE).modify(0, lambda pod: completed(pod, "Failed"))
    assert truth(status_of(world), "Degraded") == ("True", "InstancesBroken")


def test_a_condition_keeps_its_time_until_it_flips() -> None:
    world = settled(replicas=2)
    before = condition(world.parent["status"], "Available")
    later = "2026-01-05T10:59:00Z"
    world.modify(0, lambda pod: running(pod, since=later))
    assert condition(status_of(world), "Available") == before
    world.modify(0, lambda pod: running(pod, ready=False, since=later))
    world.modify(1, lambda pod: running(pod, ready=False, since=later))
    found = condition(status_of(world), "Available")
    assert found is not None
    assert (found["status"], found["lastTransitionTime"]) == ("False", later)


def test_a_claim_on_its_way_out_blocks_its_instance_and_is_named() -> None:
    world = settled(replicas=2, volumeClaimTemplates=[claim_template()])
    world.claims["data-web-1"] = terminating(world.claims["data-web-1"])
    del world.pods["web-1"]
    found = condition(status_of(world), "CreationBlocked")
    assert found is not None
    assert "data-web-1" in found["message"]


def test_nothing_in_a_status_counts_up_or_tells_the_time_of_the_sync() -> None:
    world = settled(replicas=3).modify(0, crashing).modify(1, lambda pod: completed(pod, "Failed"))
    first = status_of(world)
    world.hook.now += 86_400
    assert status_of(world) == first
