"""Tests podManagementPolicy OrderedReady: the order of creations and deletions, and its
exceptions.
"""

from collections.abc import Callable
from typing import Any

import pytest

from simulator.objects.objects import with_meta
from tests.builders import NOW, Document, completed, crashing, running, tapp, template, terminating
from tests.unit.world import World, condition, settled

HOLD = "apps.tkestack.io/hold"
ORDERED = {"podManagementPolicy": "OrderedReady"}
CREATES, DELETES = "Create/NoPod", "Delete/ScaledDown"
CREATES_LATER, DELETES_LATER = "Absent/WaitingForOrder", "Keep/WaitingForOrder"
UP_TO_DATE = "Keep/UpToDate"
NEW = template("nginx:2", container={"command": ["run"]})
"""Differs from the first template in more than its image, so every update replaces the pod."""


def ordered_tapp(**spec: Any) -> World:
    """Returns a TApp with podManagementPolicy OrderedReady, after it has settled; `spec` has
    further fields.
    """
    return settled(**{**ORDERED, **spec})


def unready(pod: Document) -> Document:
    return running(pod, ready=False)


def writes_until_settled(world: World) -> list[str]:
    """Runs syncs until nothing is left to do; returns a line with the writes of pods for each sync
    that writes.
    """
    lines = []
    for _ in range(60):
        world.sync()
        pods = [line for line in world.writes if " Pod/" in line]
        lines += [", ".join(pods).replace("Pod/web-", "")] if pods else []
        world.kubelet()
    return lines


# --- order of creations and deletions -------------------------------------------------------------


def test_pods_are_created_in_ascending_order_after_the_previous_one_is_available() -> None:
    world = World(tapp(replicas=3, **ORDERED))
    assert world.decisions() == {0: CREATES, 1: CREATES_LATER, 2: CREATES_LATER}
    assert writes_until_settled(world) == ["create 0", "create 1", "create 2"]


def test_pods_are_deleted_in_descending_order_after_the_previous_one_is_gone() -> None:
    world = ordered_tapp(replicas=5).change(replicas=2)
    assert world.decisions() == {
        0: UP_TO_DATE,
        1: UP_TO_DATE,
        2: DELETES_LATER,
        3: DELETES_LATER,
        4: DELETES,
    }
    world.sync()
    assert world.decisions()[3] == DELETES_LATER  # pod 4 is terminating
    assert writes_until_settled(world) == ["delete 3", "delete 2"]


@pytest.mark.parametrize("policy", [None, "Parallel"], ids=["default", "Parallel"])
def test_pods_are_created_and_deleted_together_with_parallel(policy: str | None) -> None:
    world = World(tapp(replicas=3, podManagementPolicy=policy))
    assert writes_until_settled(world) == ["create 0, create 1, create 2"]
    world.change(replicas=1)
    assert writes_until_settled(world) == ["delete 1, delete 2"]


def test_scale_down_to_zero_deletes_pods_in_descending_order() -> None:
    assert writes_until_settled(ordered_tapp(replicas=3).change(replicas=0)) == [
        "delete 2",
        "delete 1",
        "delete 0",
    ]


def test_policy_can_be_changed_while_pods_are_created() -> None:
    world = World(tapp(replicas=4, **ORDERED))
    world.sync()
    world.change(podManagementPolicy="Parallel")
    assert writes_until_settled(world) == ["create 1, create 2, create 3"]
    world.change(replicas=6, **ORDERED)
    assert writes_until_settled(world) == ["create 4", "create 5"]


def test_unknown_policy_is_refused_with_its_field_path() -> None:
    world = World(tapp(podManagementPolicy="orderedReady"))
    response = world.hook.post("/sync", world.request())
    assert response.status_code == 400
    assert response.json["path"] == "parent.spec.podManagementPolicy"


# --- which instances others wait for --------------------------------------------------------------


def without_pods(world: World, *ids: int) -> World:
    """Removes the pods of these instances, as if somebody had deleted them, and returns the
    world.
    """
    for id in ids:
        del world.pods[f"web-{id}"]
    return world


def on_unreachable_node(pod: Document) -> Document:
    """Returns a pod whose node does not report: Ready is False, and nothing else has changed."""
    status = running(pod)["status"]
    conditions = [
        {**item, "status": "False"} if item["type"] == "Ready" else item
        for item in status["conditions"]
    ]
    return {**running(pod), "status": {**status, "conditions": conditions}}


def being_deleted(pod: Document) -> Document:
    return terminating(running(pod))


CHANGES: dict[str, tuple[Callable[[Document], Document], bool]] = {
    "not ready": (unready, True),
    "crashing": (crashing, True),
    "terminating": (being_deleted, True),
    "failed": (lambda pod: completed(pod, "Failed"), True),
    "node unreachable": (on_unreachable_node, True),
    "available": (running, False),
}


@pytest.mark.parametrize("state", CHANGES)
def test_unavailable_lower_instance_delays_creation_and_deletion_of_higher_ones(state: str) -> None:
    change, blocks = CHANGES[state]
    world = without_pods(ordered_tapp(replicas=4), 2).modify(1, change)
    assert world.decisions()[2] == (CREATES_LATER if blocks else CREATES)
    world = ordered_tapp(replicas=4).change(replicas=3).modify(1, change)
    assert world.decisions()[3] == (DELETES_LATER if blocks else DELETES)


def test_unavailable_higher_instance_delays_no_creation() -> None:
    world = without_pods(ordered_tapp(replicas=4), 1).modify(2, crashing)
    assert world.decisions()[1] == CREATES


def test_lost_pods_are_recreated_in_ascending_order() -> None:
    world = without_pods(ordered_tapp(replicas=4), 3, 1, 2)
    assert world.decisions() == {0: UP_TO_DATE, 1: CREATES, 2: CREATES_LATER, 3: CREATES_LATER}
    assert writes_until_settled(world) == ["create 1", "create 2", "create 3"]


def test_killed_and_finished_instances_delay_no_creation() -> None:
    body = template(restartPolicy="Never")
    world = settled(replicas=4, template=body, statuses={"0": "Killed"}, **ORDERED)
    world.modify(1, lambda pod: completed(pod, "Succeeded")).sync()
    assert without_pods(world, 3).decisions()[3] == CREATES


def test_kills_are_not_ordered_and_starts_are_ordered() -> None:
    world = ordered_tapp(replicas=4).change(statuses={"1": "Killed", "2": "Killed", "3": "Killed"})
    assert writes_until_settled(world) == ["delete 1, delete 2, delete 3"]
    world.change(statuses=None)
    assert writes_until_settled(world) == ["create 1", "create 2", "create 3"]


def test_instance_that_cannot_be_created_delays_higher_instances() -> None:
    """Instance 1 has an unknown template: instance 2 is not created before the template is
    corrected.

    Higher instances may depend on it. If instance 1 is killed, instance 2 does not wait.
    """
    world = World(tapp(replicas=3, templates={"1": "typo"}, **ORDERED)).settle()
    assert world.decisions() == {0: UP_TO_DATE, 1: "Absent/TemplateNotFound", 2: CREATES_LATER}
    status = world.parent["status"]
    assert condition(status, "Progressing")["reason"] == "WaitingForOrder"  # type: ignore[index]
    assert condition(status, "Degraded")["reason"] == "TemplateNotFound"  # type: ignore[index]
    assert writes_until_settled(world.change(templates=None)) == ["create 1", "create 2"]
    world = World(tapp(replicas=3, templates={"1": "typo"}, statuses={"1": "Killed"}, **ORDERED))
    assert writes_until_settled(world) == ["create 0", "create 2"]


def test_next_pod_waits_for_min_ready_seconds_of_the_previous_one() -> None:
    world = World(tapp(replicas=2, minReadySeconds=9, **ORDERED))
    world.sync()
    world.modify(0, lambda pod: running(pod, since="2026-01-05T10:59:55Z"))
    assert world.decisions()[1] == CREATES_LATER
    assert world.sync()["resyncAfterSeconds"] == 4
    world.hook.now = NOW + 4
    assert world.decisions()[1] == CREATES


def test_scale_down_does_not_wait_for_broken_pods_that_will_be_deleted() -> None:
    """Scales down while three surplus pods are broken: all are deleted in their order.

    A StatefulSet waits forever if two of them are broken.
    """
    world = ordered_tapp(replicas=5).change(replicas=1)
    for id in (1, 2, 4):
        world.modify(id, crashing)
    assert writes_until_settled(world) == ["delete 4", "delete 3", "delete 2", "delete 1"]


def test_scale_up_waits_for_a_terminating_pod() -> None:
    world = ordered_tapp(replicas=4).change(replicas=2)
    world.sync()
    world.change(replicas=4)
    assert world.decisions() == {0: UP_TO_DATE, 1: UP_TO_DATE, 2: UP_TO_DATE, 3: "Keep/Terminating"}
    assert writes_until_settled(world) == ["create 3"]


def test_pod_that_somebody_deleted_does_not_wait_for_its_turn() -> None:
    world = ordered_tapp(replicas=4).change(replicas=1).modify(2, being_deleted)
    assert world.decisions() == {0: UP_TO_DATE, 1: DELETES_LATER, 2: DELETES, 3: DELETES}


def test_pod_on_hold_delays_deletions_of_lower_instances_and_no_creation() -> None:
    """Scales down while the highest instance is on hold: the next lower one waits for it.

    An available pod on hold delays no creation.
    """

    def held(pod: Document) -> Document:
        return with_meta(pod, annotations={HOLD: "match 7", **pod["metadata"]["annotations"]})

    world = ordered_tapp(replicas=4).modify(3, held).change(replicas=2)
    assert world.decisions() == {0: UP_TO_DATE, 1: UP_TO_DATE, 2: DELETES_LATER, 3: "Mark/Held"}
    status = world.sync()["status"]
    assert condition(status, "Progressing")["reason"] == "Held"  # type: ignore[index]
    world = (
        ordered_tapp(replicas=3).modify(0, held).change(template=template("nginx:2"), replicas=4)
    )
    assert world.decisions()[3] == CREATES


# --- repairs never wait ---------------------------------------------------------------------------


@pytest.mark.parametrize("body", [template("nginx:2"), NEW], ids=["in place", "replacement"])
def test_broken_instances_are_updated_together_to_the_template_that_repairs_them(
    body: Document,
) -> None:
    """Two of three instances are broken: a new template is given to both of them at once, and then
    to the third.

    A StatefulSet waits for the broken pod forever (kubernetes/kubernetes#67250).
    """
    world = ordered_tapp(replicas=3).modify(0, crashing).modify(2, crashing).change(template=body)
    verdict = "UpdateInPlace/TemplateChanged" if body is not NEW else "Recreate/TemplateChanged"
    assert world.decisions() == {0: verdict, 1: "Keep/WaitingForBudget", 2: verdict}
    lines = writes_until_settled(world)
    if body is NEW:
        assert lines == ["delete 0, delete 2", "create 0", "create 2", "delete 1", "create 1"]
    else:
        assert lines == ["update 0, update 2", "update 1"]


def test_failed_pods_are_deleted_together_and_recreated_in_ascending_order() -> None:
    world = ordered_tapp(replicas=3)
    for id in (0, 1, 2):
        world.modify(id, lambda pod: completed(pod, "Failed"))
    assert writes_until_settled(world) == [
        "delete 0, delete 1, delete 2",
        "create 0",
        "create 1",
        "create 2",
    ]


def test_next_template_repairs_the_broken_first_instance_of_a_new_tapp() -> None:
    world = World(tapp(replicas=3, **ORDERED))
    world.sync()
    world.modify(0, crashing).sync()
    assert world.decisions() == {0: UP_TO_DATE, 1: CREATES_LATER, 2: CREATES_LATER}
    world.change(template=NEW)
    assert writes_until_settled(world) == ["delete 0", "create 0", "create 1", "create 2"]


def test_scale_down_waits_for_broken_instances_that_stay_unless_they_are_killed() -> None:
    world = ordered_tapp(replicas=5).modify(1, crashing).change(replicas=3)
    assert world.decisions()[4] == DELETES_LATER
    assert writes_until_settled(world.change(statuses={"1": "Killed"})) == [
        "delete 1",
        "delete 4",
        "delete 3",
    ]


# --- together with updates ------------------------------------------------------------------------


def test_update_in_the_same_sync_delays_creations_and_deletions() -> None:
    strategy = {"updateStrategy": {"maxUnavailable": 2}}
    world = without_pods(ordered_tapp(replicas=4, **strategy), 3).change(
        template=template("nginx:2")
    )
    found = world.decisions()
    assert found[0] == "UpdateInPlace/TemplateChanged"
    assert found[3] == CREATES_LATER
    assert writes_until_settled(world)[-1] == "create 3"
    world = ordered_tapp(replicas=4).change(template=template("nginx:2"), replicas=3)
    found = world.decisions()
    assert found[0] == "UpdateInPlace/TemplateChanged"
    assert found[3] == DELETES_LATER
    assert writes_until_settled(world) == ["update 0", "update 1", "update 2", "delete 3"]


def test_creation_waits_for_the_second_sync_of_a_new_spec_during_a_rollout() -> None:
    """Changes the spec during a rollout and adds an instance: its pod is created in the second
    sync.

    A stale cache may show a pod as available that the last sync has deleted.
    """
    world = ordered_tapp(replicas=3).change(template=NEW)
    world.sync()
    stale = ordered_tapp(replicas=3)
    world.pods = stale.pods
    world.change(template=template(), replicas=4)
    assert world.decisions()[3] == "Absent/SpecJustChanged"
    assert world.sync()["resyncAfterSeconds"] == 1
    assert world.decisions()[3] == CREATES


# --- status and messages --------------------------------------------------------------------------


def test_progressing_and_plan_name_the_instance_that_others_wait_for() -> None:
    world = World(tapp(replicas=4, **ORDERED))
    world.sync()
    world.kubelet(ready=False)
    status = world.sync()["status"]
    assert condition(status, "Progressing") == {
        **condition(status, "Progressing"),  # type: ignore[dict-item]
        "status": "True",
        "reason": "WaitingForInstances",
        "message": "instance 0 is not yet available; instances 1-3 wait for another "
        "instance, which comes first (podManagementPolicy: OrderedReady)",
    }
    plan = world.hook.answer("/plan", world.request())["instances"]
    assert {item["message"] for item in plan[1:]} == {
        "its pod will be created when instance 0 is available (podManagementPolicy: OrderedReady)"
    }
    assert status["statuses"] == {"0": "Pending"}
    assert "notCreated" not in status


def test_pod_that_waits_for_its_turn_is_not_reported_as_not_created() -> None:
    world = World(tapp(replicas=3, **ORDERED))
    world.sync()
    world.kubelet(ready=False)
    for seconds in (1, 60, 500):
        world.hook.now = NOW + seconds
        assert "notCreated" not in world.sync()["status"]
    world.kubelet()
    world.sync()
    for seconds in (0, 1, 31):
        del world.pods["web-1"]  # the API server refuses the pod
        world.hook.now += seconds
        status = world.sync()["status"]
    assert list(status["notCreated"].values()) == ["1"]
    message = condition(status, "PodsNotCreated")["message"]  # type: ignore[index]
    assert message.startswith(
        "pods that the TApp service has requested do not exist: instance 1 since"
    )


def test_stalled_message_names_the_first_instance_that_never_becomes_available() -> None:
    world = World(tapp(replicas=9, **ORDERED))
    world.sync()
    world.kubelet(ready=False)
    world.sync()
    world.hook.now = NOW + 600
    message = condition(world.sync(), "Stalled")["message"]  # type: ignore[index]
    assert "instance 0: its pod is not Ready since" in message
    assert "each of instances 1-8: its pod will be created when instance 0 is available" in message


def test_deadline_restarts_with_each_instance_that_becomes_available() -> None:
    world = World(tapp(replicas=3, progressDeadlineSeconds=10, **ORDERED))
    for id in range(3):
        world.hook.now = NOW + 9 * id
        assert condition(world.sync(), "Stalled") is None
        world.kubelet()
    assert "progressed" not in world.sync()["status"]


def test_evicted_instance_that_waits_for_its_turn_starts_no_deadline() -> None:
    world = ordered_tapp(replicas=3)
    world.hook.now = NOW + 5
    without_pods(world, 0, 1)
    for _ in range(3):
        assert "progressed" not in world.sync()["status"]
        world.kubelet(ready=False)
        world.modify(2, running)
    world.modify(0, running)
    assert world.decisions()[1] == CREATES
    assert "progressed" not in world.sync()["status"]


def test_one_message_covers_a_thousand_waiting_instances() -> None:
    world = World(tapp(replicas=1000, **ORDERED))
    answer = world.hook.answer("/sync", world.request())
    made = [child["metadata"]["name"] for child in answer["children"] if child["kind"] == "Pod"]
    assert made == ["web-0"]
    assert len(condition(answer, "Progressing")["message"]) < 160  # type: ignore[index]


def test_claim_is_created_together_with_its_pod() -> None:
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    world = World(tapp(replicas=3, volumeClaimTemplates=[claim], **ORDERED))
    world.sync()
    assert [*world.claims] == ["data-web-0"]
