"""Tests the PodDisruptionBudget of a TApp (`spec.disruptionBudget`): its number, and whose it is.

The tests count the evictions that the disruption controller would allow.
"""

from typing import Any

import pytest

from tests.builders import NOW, Document, completed, running, tapp, template, terminating, with_meta
from tests.unit.world import World, condition

TYPE = "DisruptionBudgetNotApplied"


def guarded(replicas: int = 3, most: int | str | None = 1, **spec: Any) -> World:
    """Returns a TApp with a budget of evictions, after it has settled.

    `most` is `maxUnavailable`; with None the field is not set.
    """
    budget = {} if most is None else {"maxUnavailable": most}
    parent = tapp(replicas=replicas, disruptionBudget=budget, **spec)
    return World(parent, guarding=True).settle()


def on_hold(pod: Document) -> Document:
    """Returns the pod with the annotation that holds it."""
    notes = pod["metadata"]["annotations"] | {"apps.tkestack.io/hold": "match 7"}
    return with_meta(pod, annotations=notes)


def least(world: World) -> int:
    """Returns `minAvailable` of the PodDisruptionBudget."""
    number: int = world.budgets["web"]["spec"]["minAvailable"]
    return number


def evictions(world: World) -> int:
    """Returns how many evictions the disruption controller would allow now.

    Source: Kubernetes 1.37, pkg/controller/disruption/disruption.go.
    """
    spec = world.budgets["web"]["spec"]
    uid = world.parent["metadata"]["uid"]
    assert spec["selector"]["matchLabels"] == {"controller-uid": uid}
    healthy = [
        pod
        for pod in world.pods.values()
        if "deletionTimestamp" not in pod["metadata"]
        and pod["metadata"]["labels"]["controller-uid"] == uid
        and any(
            each["type"] == "Ready" and each["status"] == "True"
            for each in pod["status"].get("conditions") or []
        )
    ]
    return max(0, len(healthy) - spec["minAvailable"])


def message(answer: Document) -> str:
    """Returns reason and message of the condition in a response, or "" without the condition."""
    found = condition(answer, TYPE)
    return "" if found is None else f"{found['reason']}: {found['message']}"


def foreign_budget(world: World) -> Document:
    """Returns a PodDisruptionBudget with the name of the TApp that a user has created."""
    meta = {
        "name": "web",
        "namespace": "shop",
        "uid": "u-1",
        "resourceVersion": "7",
        "labels": {"controller-uid": world.parent["metadata"]["uid"]},
    }
    spec = {"maxUnavailable": 5, "selector": {"matchLabels": {"app": "mine"}}}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": meta,
        "spec": spec,
    }


# --- the number -----------------------------------------------------------------------------------

NUMBERS = {
    "one of one": (1, 1, 0),
    "one of three": (3, 1, 2),
    "unset means one": (3, None, 2),
    "one of twelve": (12, 1, 11),
    "a percentage is rounded up": (12, "30%", 8),
    "a percentage of one": (1, "30%", 0),
    "none": (3, 0, 3),
    "no percent": (3, "0%", 3),
    "all": (3, "100%", 0),
    "more than all": (3, 7, 0),
    "no instances": (0, 1, 0),
}


@pytest.mark.parametrize("case", NUMBERS)
def test_min_available_is_derived_from_the_instances_that_should_run(case: str) -> None:
    replicas, most, wanted = NUMBERS[case]
    world = guarded(replicas, most)
    assert least(world) == wanted
    assert world.budgets["web"]["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
    world.sync()
    assert world.writes == []
    assert message(world.parent["status"]) == ""
    assert "unguarded" not in world.parent["status"]


def test_killed_instance_does_not_use_up_the_budget() -> None:
    world = guarded()
    world.change(statuses={"2": "Killed"}).sync()
    # The pod of the killed instance is still Ready, so it must not make room for an eviction.
    assert world.writes == ["delete Pod/web-2"]
    world.settle()
    assert least(world) == 1
    assert evictions(world) == 1
    world.change(statuses=None).sync()
    assert least(world) == 2
    assert evictions(world) == 0
    world.settle()
    assert least(world) == 2
    assert evictions(world) == 1


def test_killed_pod_on_hold_makes_no_room_for_an_eviction() -> None:
    """The pod stays Ready beside the instances that should run, and the budget has to ignore it."""
    world = guarded()
    world.modify(2, on_hold)
    world.change(statuses={"2": "Killed"}).settle()
    assert len(world.pods) == 3
    assert least(world) == 2
    assert evictions(world) == 1
    world.modify(0, lambda pod: running(pod, ready=False)).sync()
    assert evictions(world) == 0


def test_finished_instance_does_not_use_up_the_budget() -> None:
    world = guarded(template=template(restartPolicy="Never"))
    world.modify(2, lambda pod: completed(pod, "Succeeded")).settle()
    assert least(world) == 1
    assert evictions(world) == 1


def test_nothing_is_guarded_if_no_instance_should_run() -> None:
    """The pods that remain are about to be deleted, so a drain need not wait for them."""
    world = guarded(2)
    world.modify(1, on_hold)
    world.change(replicas=0).settle()
    assert [*world.pods] == ["web-1"]
    assert least(world) == 0
    assert evictions(world) == 1


def test_evictions_wait_while_pods_start_one_after_another() -> None:
    world = World(
        tapp(replicas=3, disruptionBudget={}, podManagementPolicy="OrderedReady"), guarding=True
    )
    world.sync()
    world.kubelet()
    world.sync()
    assert [*world.pods] == ["web-0", "web-1"]
    assert least(world) == 2
    assert evictions(world) == 0
    world.settle()
    assert evictions(world) == 1


def test_unavailable_instance_uses_up_the_budget() -> None:
    world = guarded()
    world.modify(0, lambda pod: running(pod, ready=False)).sync()
    assert least(world) == 2
    assert evictions(world) == 0
    world.modify(0, terminating).sync()
    assert least(world) == 2
    assert evictions(world) == 0


def test_ready_pod_that_is_not_available_yet_makes_no_room_for_an_eviction() -> None:
    """The disruption controller does not know `minReadySeconds`."""
    world = guarded(minReadySeconds=30)
    since = "2026-01-05T10:59:50Z"
    world.hook.now = NOW
    world.modify(0, lambda pod: running(pod, since=since))
    before = evictions(world)
    world.sync()
    assert before == 1
    assert evictions(world) == 0


def test_update_in_place_and_evictions_share_the_budget() -> None:
    """A pod that is updated in place looks Ready until its kubelet acts."""
    world = guarded()
    world.change(template=template("app:2")).sync()
    # The first sync of a new spec with a quiet sync before it updates one instance.
    assert "update Pod/web-0" in world.writes
    assert evictions(world) == 0
    world.sync()
    assert evictions(world) == 0
    world.kubelet()
    world.sync()
    assert evictions(world) == 0
    world.settle()
    assert least(world) == 2
    assert evictions(world) == 1


def test_update_by_a_new_pod_and_evictions_share_the_budget() -> None:
    world = guarded()
    world.change(template=template(env={"A": "2"})).sync()
    assert world.writes == ["delete Pod/web-0"]
    assert evictions(world) == 0
    world.settle()
    assert evictions(world) == 1


def test_evicted_instance_counts_in_the_budget_of_updates() -> None:
    world = guarded()
    world.modify(1, terminating)
    world.change(template=template("app:2")).sync()
    assert not [each for each in world.writes if "Pod/" in each]


def test_evictions_have_another_limit_than_updates() -> None:
    world = guarded(4, "50%", updateStrategy={"maxUnavailable": 1})
    assert evictions(world) == 2
    world.change(template=template("app:2")).sync()
    assert evictions(world) == 1


# --- the object -----------------------------------------------------------------------------------


def test_no_budget_is_created_without_the_field() -> None:
    world = World(tapp(replicas=2), guarding=True).settle()
    assert world.budgets == {}


def test_budget_is_deleted_with_the_field() -> None:
    world = guarded()
    world.change(disruptionBudget=None).sync()
    assert world.writes == ["delete PodDisruptionBudget/web"]
    assert message(world.parent["status"]) == ""


def test_edit_of_the_budget_writes_no_pod() -> None:
    world = guarded()
    world.change(disruptionBudget={"maxUnavailable": 2}).sync()
    assert world.writes == ["update PodDisruptionBudget/web"]


def test_budget_that_a_user_has_edited_is_written_again() -> None:
    world = guarded()
    budget = world.budgets["web"]
    world.budgets["web"] = {**budget, "spec": {**budget["spec"], "minAvailable": 0}}
    world.sync()
    assert world.writes == ["update PodDisruptionBudget/web"]
    assert least(world) == 2


def test_condition_is_set_without_the_component() -> None:
    world = World(tapp(replicas=1, disruptionBudget={})).settle()
    assert message(world.parent["status"]).startswith("NotRegistered: no PodDisruptionBudget is")
    assert world.budgets == {}


def test_foreign_budget_of_the_same_name_is_reported_and_left_unchanged() -> None:
    """Its label lets Metacontroller show it as a child of the TApp, and its spec is a user's."""
    world = World(tapp(replicas=2, disruptionBudget={}), guarding=True)
    made = foreign_budget(world)
    world.budgets["web"] = made
    world.settle()
    assert world.budgets["web"]["spec"] == made["spec"]
    found = message(world.parent["status"])
    assert found.startswith("NoDisruptionBudget: a PodDisruptionBudget 'web' exists and does not")
    world.change(disruptionBudget=None).sync()
    assert world.writes == []
    assert message(world.parent["status"]) == ""


def test_budget_that_does_not_appear_is_reported_after_half_a_minute() -> None:
    """Metacontroller does not show an object of another owner, and the API server refuses a second
    one of its name.
    """
    world = guarded()
    world.budgets = {}
    answer = world.hook.sync(world.request())
    assert message(answer) == ""
    assert answer["resyncAfterSeconds"] <= 30
    world.parent["status"]["unguarded"] = "2026-01-05T10:00:00Z"
    found = message(world.hook.sync(world.request()))
    assert "the PodDisruptionBudget 'web' has been requested since 2026-01-05T10:00:00Z" in found
    world.sync()
    assert message(world.sync()) == ""
    assert "unguarded" not in world.parent["status"]


@pytest.mark.parametrize("value", [-1, "30", "101%", "many", ""])
def test_invalid_budget_changes_nothing_and_is_reported(value: int | str) -> None:
    """The CRD refuses these values; a TApp may have been stored before the CRD had the rule."""
    world = guarded()
    world.change(disruptionBudget={"maxUnavailable": value}).sync()
    assert world.writes == []
    assert least(world) == 2
    found = message(world.parent["status"])
    assert found.startswith("NotABudget: spec.disruptionBudget.maxUnavailable: ")
    assert "a percentage from 0% to 100%" in found


def test_budget_goes_at_once_when_the_tapp_is_deleted() -> None:
    """Only pods on hold remain then, and their evictions need no budget."""
    world = guarded()
    world.modify(0, on_hold)
    answer = world.hook.finalize(world.request(finalizing=True))
    kinds = {child["kind"] for child in answer["children"]}
    assert kinds == {"Pod"}
    world.budgets["web"] = foreign_budget(world)
    answer = world.hook.finalize(world.request(finalizing=True))
    assert "PodDisruptionBudget" in {child["kind"] for child in answer["children"]}


def test_pods_that_pull_images_are_not_selected() -> None:
    selector = guarded().budgets["web"]["spec"]["selector"]
    assert selector["matchExpressions"] == [
        {"key": "apps.tkestack.io/puller", "operator": "DoesNotExist"}
    ]


def test_foreign_ready_pod_makes_no_room_for_an_eviction() -> None:
    """A pod with the TApp's label and the name of no instance serves nothing for the TApp."""
    world = guarded()
    world.pods["other"] = with_meta(world.pod(0), name="other", uid="u-9")
    world.sync()
    assert evictions(world) == 1
