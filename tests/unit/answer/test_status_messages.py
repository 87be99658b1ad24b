"""Tests that the statements of a status are true: missing pods, claims, typos, waits, and their
numbers.
"""

import json
from typing import Any

import pytest

from tests.builders import (
    NOW,
    Document,
    claim_template,
    completed,
    crashing,
    tapp,
    template,
    terminating,
)
from tests.unit.world import World, condition, settled

NEW = template("nginx:2")
RECREATED = template(container={"env": [{"name": "A", "value": "1"}]})


def status_after_sync(world: World) -> Document:
    """Runs a sync whose writes all succeed, and returns its status."""
    status: Document = world.sync()["status"]
    return status


# --- pods that are not created --------------------------------------------------------------------


def status_after_refused_sync(world: World) -> Document:
    """Runs a sync whose new pods the API server refuses, and returns its status."""
    before = dict(world.pods)
    status = status_after_sync(world)
    world.pods = before
    return status


def test_pod_that_is_not_created_is_reported_after_thirty_seconds() -> None:
    world = World(tapp(replicas=3))
    assert "notCreated" not in status_after_refused_sync(world)
    assert status_after_refused_sync(world)["notCreated"] == {"2026-01-05T11:00:00Z": "0-2"}
    world.hook.now = NOW + 29
    assert condition(status_after_refused_sync(world), "PodsNotCreated") is None
    world.hook.now = NOW + 30
    status = status_after_refused_sync(world)
    found, degraded = condition(status, "PodsNotCreated"), condition(status, "Degraded")
    assert found is not None
    assert degraded is not None
    assert "instances 0-2 since 2026-01-05T11:00:00Z" in found["message"]
    assert "kubectl describe" in found["message"]
    assert degraded["status"] == "True"
    assert degraded["reason"] == "PodsNotCreated"
    assert condition(status, "Ready")["reason"] == "PodsNotCreated"  # type: ignore[index]


def test_resync_is_due_when_a_new_pod_should_exist() -> None:
    world = World(tapp())
    assert world.sync()["resyncAfterSeconds"] == 5
    world.pods.clear()
    assert world.sync()["resyncAfterSeconds"] == 30


def test_condition_ends_when_the_pod_is_created() -> None:
    world = World(tapp(replicas=2))
    status_after_refused_sync(world)
    status_after_refused_sync(world)
    world.hook.now = NOW + 60
    assert condition(status_after_sync(world), "PodsNotCreated") is not None
    status = status_after_sync(world)
    assert "notCreated" not in status
    assert condition(status, "PodsNotCreated") is None


def test_pod_that_is_being_replaced_is_not_reported_as_missing() -> None:
    """Replaces pods an hour later: between the deletion of a pod and the creation of the next, none
    is missing.
    """
    world = settled(replicas=2).change(template=RECREATED)
    world.hook.now = NOW + 3_600
    for _ in range(6):
        status = status_after_sync(world)
        assert "notCreated" not in status
        assert condition(status, "PodsNotCreated") is None
        world.kubelet()


# --- claims ---------------------------------------------------------------------------------------


def with_claims() -> World:
    world = World(tapp(replicas=2, volumeClaimTemplates=[claim_template()]))
    world.sync()
    return world


def test_lost_claim_is_created_again_if_its_pod_is_not_scheduled() -> None:
    world = with_claims()
    del world.claims["data-web-1"]
    world.sync()
    assert sorted(world.claims) == ["data-web-0", "data-web-1"]


def test_lost_claim_is_created_again_during_an_update_in_place() -> None:
    world = with_claims()
    del world.claims["data-web-1"]
    world.change(template=template("nginx:2"))
    assert set(world.decisions().values()) == {"UpdateInPlace/TemplateChanged"}
    world.sync()
    assert sorted(world.claims) == ["data-web-0", "data-web-1"]


def test_lost_claim_of_a_killed_instance_is_not_created_again() -> None:
    world = with_claims()
    del world.claims["data-web-1"]
    world.change(statuses={"1": "Killed"}).sync()
    assert sorted(world.claims) == ["data-web-0"]


def test_lost_claim_is_not_created_again_if_its_pod_runs_on_a_node() -> None:
    """Deletes a claim whose pod runs: the pod still has its volume, so a new empty claim would not
    help.
    """
    world = with_claims()
    world.kubelet()
    del world.claims["data-web-1"]
    world.sync()
    assert sorted(world.claims) == ["data-web-0"]


def test_terminating_claim_of_a_killed_instance_sets_no_condition() -> None:
    world = with_claims()
    world.kubelet()
    world.change(statuses={"1": "Killed"})
    world.settle()
    world.claims["data-web-1"] = terminating(world.claims["data-web-1"])
    status = status_after_sync(world)
    assert condition(status, "CreationBlocked") is None
    assert condition(status, "Degraded")["status"] == "False"  # type: ignore[index]


# --- labels of the service ------------------------------------------------------------------------


def test_labels_of_the_service_are_not_copied_from_a_template() -> None:
    """A template that was copied from a Job has the Job's label controller-uid, which pods do not
    get.
    """
    copied = template(labels={"app": "web", "controller-uid": "the-jobs"})
    world = World(tapp(template=copied))
    answer = world.hook.sync(world.request())
    pod = next(child for child in answer["children"] if child["kind"] == "Pod")
    assert pod["metadata"]["labels"]["app"] == "web"
    assert "controller-uid" not in pod["metadata"]["labels"]


# --- kill and start -------------------------------------------------------------------------------

ONCE = template(restartPolicy="Never")


@pytest.mark.parametrize("state", ["not deleted", "terminating", "gone"])
def test_finished_instance_runs_again_after_kill_and_start(state: str) -> None:
    """Kills and starts a finished instance: it gets a new pod, in each state of its old one."""
    world = settled(replicas=2, template=ONCE)
    world.modify(0, lambda pod: completed(pod, "Succeeded"))
    assert status_after_sync(world)["statuses"]["0"] == "Succ"
    pod = world.pod(0)
    world.change(statuses={"0": "Killed"})
    assert status_after_sync(world)["statuses"]["0"] == "Killing"
    world.change(statuses=None)
    if state == "not deleted":
        world.pods["web-0"] = pod
        assert world.decisions()[0] == "Delete/Killed"
    elif state == "gone":
        del world.pods["web-0"]
    world.settle()
    assert world.pod(0)["metadata"]["uid"] != pod["metadata"]["uid"]
    assert world.parent["status"]["statuses"]["0"] == "Running"


def test_new_pod_of_a_killed_and_started_instance_can_finish() -> None:
    world = settled(replicas=2, template=ONCE)
    world.modify(0, lambda pod: completed(pod, "Succeeded"))
    world.sync()
    world.change(statuses={"0": "Killed"}).sync()
    world.change(statuses=None).settle()
    world.modify(0, lambda pod: completed(pod, "Succeeded"))
    assert status_after_sync(world)["statuses"]["0"] == "Succ"


# --- typos ----------------------------------------------------------------------------------------


def test_missing_pod_with_an_unknown_template_makes_the_rollout_stuck() -> None:
    world = World(tapp(replicas=2, templates={"1": "typo"})).settle()
    status = status_after_sync(world)
    progressing, found = condition(status, "Progressing"), condition(status, "TemplateNotFound")
    assert progressing is not None
    assert found is not None
    assert progressing["status"] == "False"
    assert progressing["reason"] == "Stuck"
    assert "instance 1 gets no pod" in found["message"]
    assert "kept" not in found["message"]


def tapp_with_rolling_template(name: str, **strategy: Any) -> World:
    """Returns a TApp with ten instances whose default template has changed.

    `name` is the name of its rolling template, and `strategy` has further fields of the update
    strategy.
    """
    strategy = {"template": name, "maxUnavailable": 1, **strategy}
    pool = {"spare": template()}
    world = settled(replicas=10, templatePool=pool, updateStrategy=strategy)
    return world.change(template=NEW)


def updates_in_next_sync(world: World) -> int:
    return sum(text.startswith("UpdateInPlace") for text in world.decisions().values())


@pytest.mark.parametrize(
    ("name", "force", "expected", "reason"),
    [
        ("typo", None, 1, "NotFound"),
        ("typo", "100%", 1, "NotFound"),
        ("spare", None, 1, "Unused"),
        ("spare", 4, 4, "Unused"),
    ],
    ids=["unknown", "unknown with force budget", "unused", "unused with force budget"],
)
def test_unused_or_unknown_rolling_template_does_not_raise_the_budget(
    name: str, force: Any, expected: int, reason: str
) -> None:
    strategy = {} if force is None else {"forceUpdate": {"maxUnavailable": force}}
    world = tapp_with_rolling_template(name, **strategy)
    assert updates_in_next_sync(world) == expected
    found = condition(world.hook.sync(world.request()), "RollingTemplateUnused")
    assert found is not None
    assert found["reason"] == reason
    assert repr(name) in found["message"]


@pytest.mark.parametrize(
    ("force", "expected"), [(1, 1), ("10%", 1), ("abc", 0)], ids=["smaller", "equal", "invalid"]
)
def test_smaller_budget_applies_if_the_rolling_template_is_unknown(
    force: Any, expected: int
) -> None:
    world = tapp_with_rolling_template(
        "typo", maxUnavailable=5, forceUpdate={"maxUnavailable": force}
    )
    assert updates_in_next_sync(world) == expected


@pytest.mark.parametrize("value", ["killed", "Kill", "KILLED", ""])
def test_unknown_word_in_statuses_sets_a_condition(value: str) -> None:
    found = condition(
        status_after_sync(settled(replicas=3, statuses={"1": value})), "UnknownStatuses"
    )
    assert found is not None
    assert f"spec.statuses['1'] is {value!r}" in found["message"]


@pytest.mark.parametrize("value", ["Running", "Killed", "Succ"])
def test_words_of_old_objects_in_statuses_set_no_condition(value: str) -> None:
    assert (
        condition(status_after_sync(settled(replicas=3, statuses={"1": value})), "UnknownStatuses")
        is None
    )


def test_entries_of_instances_outside_replicas_set_a_condition() -> None:
    world = settled(
        replicas=6, statuses={"77": "Killed"}, templates={"8": "default", "9": "default"}
    )
    status = status_after_sync(world)
    found = condition(status, "UnusedInstances")
    assert found is not None
    assert found["message"].startswith(
        "spec.statuses names 77 and spec.templates names 8, 9: instance"
    )
    assert condition(status, "Degraded")["status"] == "False"  # type: ignore[index]


# --- why an instance waits ------------------------------------------------------------------------


def test_message_of_a_wait_has_the_numbers_of_the_budget() -> None:
    world = settled(replicas=6).change(template=NEW)
    message = condition(status_after_sync(world), "Progressing")["message"]  # type: ignore[index]
    assert (
        "instances 1-5 wait for the budget (maxUnavailable 1 of 6 is used up by instance 0)"
        in message
    )
    message = condition(status_after_sync(world), "Progressing")["message"]  # type: ignore[index]
    assert (
        "instances 1-5 wait for the budget (maxUnavailable 1 of 6 is used up by instance 0)"
        in message
    )


def test_status_has_ready_and_outdated_instances() -> None:
    world = settled(replicas=5).modify(3, crashing)
    status = status_after_sync(world)
    assert status["ready"] == "4/5"
    assert "outdated" not in status
    world.change(template=NEW)
    assert status_after_sync(world)["outdated"] == "0-4"
    # The broken instance is updated without using the budget.
    assert status_after_sync(world)["outdated"] == "0-2,4"


def test_status_of_500_instances_has_at_most_16_kb() -> None:
    world = World(tapp(replicas=500))
    world.sync()
    world.kubelet()
    world.change(template=NEW)
    status = world.hook.answer("/sync", world.request())["status"]
    assert len(json.dumps(status)) < 16_000
