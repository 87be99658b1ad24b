"""Tests the fields of `status`: a word for each instance and for the TApp, counts, and
conditions.
"""

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
    """Returns the status that the next sync would write."""
    status: Document = world.hook.sync(world.request())["status"]
    return status


def without_ready_condition(pod: Document) -> Document:
    """Returns a pod in the phase Running without any condition."""
    return in_phase(pod, "Running")


def updated_in_place(_pod: Document) -> Document:
    """Returns a pod during an update in place, whatever pod is given."""
    world = settled().change(template=template("nginx:2"))
    world.sync()
    return world.pod(0)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(lambda pod: in_phase(pod, "Pending"), "Pending", id="pending"),
        pytest.param(lambda pod: {**pod, "status": {}}, "Pending", id="without a phase"),
        pytest.param(running, "Running", id="running and ready"),
        pytest.param(lambda pod: running(pod, ready=False), "Pending", id="running and not ready"),
        pytest.param(without_ready_condition, "Running", id="running without a Ready condition"),
        pytest.param(crashing, "Pending", id="crashing"),
        pytest.param(updated_in_place, "Updating", id="update in place"),
        pytest.param(lambda pod: in_phase(pod, "Unknown"), "Unknown", id="unknown"),
        pytest.param(terminating, "Killing", id="terminating"),
        pytest.param(lambda pod: completed(pod, "Failed"), "PodFailed", id="failed, replaced"),
        pytest.param(lambda pod: completed(pod, "Succeeded"), "PodSucc", id="succeeded, replaced"),
        pytest.param(refused, "PodFailed", id="rejected by the kubelet"),
    ],
)
def test_status_of_an_instance_with_a_pod_depends_on_the_pod(
    change: Callable[[Document], Document], expected: str
) -> None:
    world = settled().modify(0, change)
    assert status_of(world)["statuses"] == {"0": expected}


@pytest.mark.parametrize(
    ("spec", "remembered", "expected"),
    [
        pytest.param({}, None, "NotCreated", id="new"),
        pytest.param({}, "Running", "NotCreated", id="pod lost"),
        pytest.param({}, "Killed", "NotCreated", id="started after a kill"),
        pytest.param({}, "Succ", "Succ", id="succeeded"),
        pytest.param({}, "Failed", "Failed", id="failed"),
        pytest.param({"statuses": {"0": "Killed"}}, "Running", "Killed", id="killed"),
        pytest.param({"statuses": {"0": "Killed"}}, "Succ", "Killed", id="killed after success"),
        pytest.param({}, "PodFailed", "NotCreated", id="failed pod deleted"),
    ],
)
def test_status_of_an_instance_without_a_pod_depends_on_spec_and_previous_status(
    spec: Document, remembered: str | None, expected: str
) -> None:
    memory = {"statuses": {"0": remembered}} if remembered else None
    assert status_of(World(tapp(status=memory, **spec)))["statuses"] == {"0": expected}


def test_terminating_pod_of_a_finished_instance_does_not_change_its_status() -> None:
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
    ids=lambda part: " ".join(part) if isinstance(part, tuple) else part,
)
def test_app_status_summarizes_the_statuses_of_all_instances(
    statuses: tuple[str, ...], expected: str
) -> None:
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
        updated_in_place,
    ],
    ids=["Pending", "Unknown", "PodFailed", "PodSucc", "Killing", "Updating"],
)
def test_app_status_is_running_while_an_instance_has_a_pod(
    change: Callable[[Document], Document],
) -> None:
    assert status_of(settled().modify(0, change))["appStatus"] == "Running"


def test_counts_include_only_instances_within_replicas_whose_pods_have_not_ended() -> None:
    world = settled(replicas=6, updateStrategy={"maxUnavailable": 1})
    world.modify(1, lambda pod: running(pod, ready=False))
    world.modify(2, terminating)
    world.modify(3, lambda pod: completed(pod, "Failed"))
    world.change(replicas=5)  # instance 5 is being deleted
    status = status_of(world)
    assert status["replicas"] == 4  # 0, 1, 2 (terminating), 4
    assert status["readyReplicas"] == 2
    assert status["availableReplicas"] == 2
    assert sorted(status["statuses"]) == ["0", "1", "2", "3", "4"]


def test_updated_replicas_are_those_with_the_revision_of_their_template() -> None:
    world = settled(replicas=3).change(template=template("nginx:2"))
    world.sync()
    world.kubelet()
    status = status_of(world)
    assert status["updatedReplicas"] == 1
    assert status["templates"] == {
        "default": {"replicas": 3, "readyReplicas": 3, "updatedReplicas": 1}
    }


def test_counts_are_given_for_each_template() -> None:
    pool = {"v2": template("app:v2")}
    world = settled(replicas=3, templatePool=pool, templates={"1": "v2"})
    assert world.parent["status"]["templates"] == {
        "default": {"replicas": 2, "readyReplicas": 2, "updatedReplicas": 2},
        "v2": {"replicas": 1, "readyReplicas": 1, "updatedReplicas": 1},
    }


def test_instance_is_not_available_during_an_update_in_place() -> None:
    world = settled(replicas=2).change(template=template("nginx:2"))
    world.sync()
    assert status_of(world)["availableReplicas"] == 1


def test_scale_selector_selects_only_the_pods_of_this_tapp() -> None:
    assert status_of(settled())["scaleLabelSelector"] == f"controller-uid={builders.UID}"


# --- conditions -----------------------------------------------------------------------------------


def status_and_reason(status: Document, type: str) -> tuple[str, str]:
    """Returns status and reason of the condition of this type, which must exist and have a
    message.
    """
    found = condition(status, type)
    assert found is not None
    assert found["message"]
    return found["status"], found["reason"]


def test_settled_tapp_is_available_ready_and_neither_progressing_nor_degraded() -> None:
    status = settled(replicas=2).parent["status"]
    assert status_and_reason(status, "Available") == ("True", "MinimumInstancesAvailable")
    assert status_and_reason(status, "Progressing") == ("False", "Complete")
    assert status_and_reason(status, "Ready") == ("True", "AsSpecified")
    assert status_and_reason(status, "Degraded") == ("False", "AsExpected")


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        pytest.param({"replicas": 4}, "Creating", id="creating"),
        pytest.param({"template": template("nginx:2")}, "Updating", id="updating"),
        pytest.param({"replicas": 1}, "Deleting", id="deleting"),
    ],
)
def test_tapp_with_pending_work_is_progressing_and_not_ready(edit: Document, reason: str) -> None:
    status = status_of(settled(replicas=2).change(**edit))
    assert status_and_reason(status, "Progressing") == ("True", reason)
    assert status_and_reason(status, "Ready")[0] == "False"


def test_too_few_available_instances_make_available_false() -> None:
    world = settled(replicas=3)
    world.modify(0, crashing).modify(1, crashing)
    assert status_and_reason(status_of(world), "Available") == (
        "False",
        "MinimumInstancesUnavailable",
    )
    assert status_and_reason(status_of(world), "Degraded") == ("True", "InstancesBroken")


def test_available_stays_true_with_one_unavailable_instance() -> None:
    assert (
        status_and_reason(status_of(settled(replicas=3).modify(0, crashing)), "Available")[0]
        == "True"
    )


def test_degraded_names_the_broken_instance() -> None:
    world = settled(replicas=3).modify(1, lambda pod: crashing(pod, "ErrImagePull"))
    found = condition(status_of(world), "Degraded")
    assert found is not None
    assert "instance 1: container app: image nginx:1.25 cannot be pulled" in found["message"]


def test_failed_instance_makes_the_tapp_degraded() -> None:
    world = settled(replicas=2, template=ONCE).modify(0, lambda pod: completed(pod, "Failed"))
    assert status_and_reason(status_of(world), "Degraded") == ("True", "InstancesBroken")


def test_transition_time_of_a_condition_stays_until_its_status_changes() -> None:
    world = settled(replicas=2)
    before = condition(world.parent["status"], "Available")
    later = "2026-01-05T10:59:00Z"
    world.modify(0, lambda pod: running(pod, since=later))
    assert condition(status_of(world), "Available") == before
    world.modify(0, lambda pod: running(pod, ready=False, since=later))
    world.modify(1, lambda pod: running(pod, ready=False, since=later))
    found = condition(status_of(world), "Available")
    assert found is not None
    assert found["status"] == "False"
    assert found["lastTransitionTime"] == later


def test_terminating_claim_blocks_its_instance_and_sets_a_condition() -> None:
    world = settled(replicas=2, volumeClaimTemplates=[claim_template()])
    world.claims["data-web-1"] = terminating(world.claims["data-web-1"])
    del world.pods["web-1"]
    found = condition(status_of(world), "CreationBlocked")
    assert found is not None
    assert "data-web-1" in found["message"]


def test_status_does_not_depend_on_the_time_of_the_sync() -> None:
    world = settled(replicas=3).modify(0, crashing).modify(1, lambda pod: completed(pod, "Failed"))
    first = status_of(world)
    world.hook.now += 86_400
    assert status_of(world) == first
