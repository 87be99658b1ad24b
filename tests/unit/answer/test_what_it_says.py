"""Claims of a status are true: pods that do not come to be, typos, waits, and their arithmetic."""

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


def synced(world: World) -> Document:
    """The status of a sync that Metacontroller carried out, but for what the caller takes back."""
    status: Document = world.sync()["status"]
    return status


# --- pods that do not come to be ------------------------------------------------------------------


def refused(world: World) -> Document:
    """A sync whose creations the API server refuses."""
    before = dict(world.pods)
    status = synced(world)
    world.pods = before
    return status


def test_a_pod_that_was_asked_for_and_is_not_there_is_told_of_after_thirty_seconds() -> None:
    world = World(tapp(replicas=3))
    assert "notCreated" not in refused(world)
    assert refused(world)["notCreated"] == {"2026-01-05T11:00:00Z": "0-2"}
    world.hook.now = NOW + 29
    assert condition(refused(world), "PodsNotCreated") is None
    world.hook.now = NOW + 30
    status = refused(world)
    found, degraded = condition(status, "PodsNotCreated"), condition(status, "Degraded")
    assert found is not None
    assert degraded is not None
    assert "instances 0-2 since 2026-01-05T11:00:00Z" in found["message"]
    assert "kubectl describe" in found["message"]
    assert (degraded["status"], degraded["reason"]) == ("True", "PodsNotCreated")
    assert condition(status, "Ready")["reason"] == "PodsNotCreated"  # type: ignore[index]


def test_the_hook_asks_to_be_called_when_a_pod_should_have_been_there() -> None:
    world = World(tapp())
    assert world.sync()["resyncAfterSeconds"] == 5
    world.pods.clear()
    assert world.sync()["resyncAfterSeconds"] == 30


def test_a_pod_that_comes_after_all_ends_it() -> None:
    world = World(tapp(replicas=2))
    refused(world)
    refused(world)
    world.hook.now = NOW + 60
    assert condition(synced(world), "PodsNotCreated") is not None
    status = synced(world)
    assert "notCreated" not in status
    assert condition(status, "PodsNotCreated") is None


def test_a_pod_that_is_made_anew_is_not_missing() -> None:
    """Between its deletion and its creation there is none, and that is as it should be."""
    world = settled(replicas=2).change(template=RECREATED)
    world.hook.now = NOW + 3_600
    for _ in range(6):
        status = synced(world)
        assert "notCreated" not in status
        assert condition(status, "PodsNotCreated") is None
        world.kubelet()


# --- claims ---------------------------------------------------------------------------------------


def with_claims() -> World:
    world = World(tapp(replicas=2, volumeClaimTemplates=[claim_template()]))
    world.sync()
    return world


def test_a_lost_claim_is_made_again_while_its_pod_has_no_node() -> None:
    world = with_claims()
    del world.claims["data-web-1"]
    world.sync()
    assert sorted(world.claims) == ["data-web-0", "data-web-1"]


def test_a_lost_claim_is_made_again_while_its_pod_is_updated_in_place() -> None:
    world = with_claims()
    del world.claims["data-web-1"]
    world.change(template=template("nginx:2"))
    assert set(world.decisions().values()) == {"UpdateInPlace/TemplateChanged"}
    world.sync()
    assert sorted(world.claims) == ["data-web-0", "data-web-1"]


def test_a_lost_claim_is_not_made_again_for_a_pod_that_goes() -> None:
    world = with_claims()
    del world.claims["data-web-1"]
    world.change(statuses={"1": "Killed"}).sync()
    assert sorted(world.claims) == ["data-web-0"]


def test_a_claim_of_a_pod_on_a_node_is_not_made_again() -> None:
    """Its pod runs with a volume; an empty claim beside it would help nobody."""
    world = with_claims()
    world.kubelet()
    del world.claims["data-web-1"]
    world.sync()
    assert sorted(world.claims) == ["data-web-0"]


def test_a_killed_instance_does_not_wait_for_a_claim() -> None:
    world = with_claims()
    world.kubelet()
    world.change(statuses={"1": "Killed"})
    world.settle()
    world.claims["data-web-1"] = terminating(world.claims["data-web-1"])
    status = synced(world)
    assert condition(status, "CreationBlocked") is None
    assert condition(status, "Degraded")["status"] == "False"  # type: ignore[index]


# --- labels of ours -------------------------------------------------------------------------------


def test_a_label_of_ours_never_comes_from_a_template() -> None:
    """A pod template that was copied from a Job has the Job's controller-uid."""
    copied = template(labels={"app": "web", "controller-uid": "the-jobs"})
    world = World(tapp(template=copied))
    answer = world.hook.sync(world.request())
    pod = next(child for child in answer["children"] if child["kind"] == "Pod")
    assert pod["metadata"]["labels"]["app"] == "web"
    assert "controller-uid" not in pod["metadata"]["labels"]


# --- kill and start -------------------------------------------------------------------------------

ONCE = template(restartPolicy="Never")


@pytest.mark.parametrize("gone", ["not yet", "terminating", "gone"])
def test_a_finished_instance_that_was_killed_and_started_runs_again(gone: str) -> None:
    """Whatever of the deletion is seen when it is started."""
    world = settled(replicas=2, template=ONCE)
    world.modify(0, lambda pod: completed(pod, "Succeeded"))
    assert synced(world)["statuses"]["0"] == "Succ"
    pod = world.pod(0)
    world.change(statuses={"0": "Killed"})
    assert synced(world)["statuses"]["0"] == "Killing"
    world.change(statuses=None)
    if gone == "not yet":
        world.pods["web-0"] = pod
        assert world.decisions()[0] == "Delete/Killed"
    elif gone == "gone":
        del world.pods["web-0"]
    world.settle()
    assert world.pod(0)["metadata"]["uid"] != pod["metadata"]["uid"]
    assert world.parent["status"]["statuses"]["0"] == "Running"


def test_the_new_pod_of_an_instance_that_was_killed_may_finish() -> None:
    world = settled(replicas=2, template=ONCE)
    world.modify(0, lambda pod: completed(pod, "Succeeded"))
    world.sync()
    world.change(statuses={"0": "Killed"}).sync()
    world.change(statuses=None).settle()
    world.modify(0, lambda pod: completed(pod, "Succeeded"))
    assert synced(world)["statuses"]["0"] == "Succ"


# --- typos ----------------------------------------------------------------------------------------


def test_a_missing_pod_whose_template_is_not_there_is_stuck_and_not_kept() -> None:
    world = World(tapp(replicas=2, templates={"1": "typo"})).settle()
    status = synced(world)
    progressing, found = condition(status, "Progressing"), condition(status, "TemplateNotFound")
    assert progressing is not None
    assert found is not None
    assert (progressing["status"], progressing["reason"]) == ("False", "Stuck")
    assert "instances 1 are not created" in found["message"]
    assert "kept" not in found["message"]


def widened(name: str, **strategy: Any) -> World:
    """Ten instances, whose rolling template is `name`, get another image."""
    strategy = {"template": name, "maxUnavailable": 1, **strategy}
    pool = {"spare": template()}
    world = settled(replicas=10, templatePool=pool, updateStrategy=strategy)
    return world.change(template=NEW)


def taken(world: World) -> int:
    return sum(text.startswith("UpdateInPlace") for text in world.decisions().values())


@pytest.mark.parametrize(
    ("name", "force", "expected", "reason"),
    [
        ("typo", None, 1, "NotFound"),
        ("typo", "100%", 1, "NotFound"),
        ("spare", None, 1, "Unused"),
        ("spare", 4, 4, "Unused"),
    ],
)
def test_a_rolling_template_that_nobody_runs_never_widens_a_budget(
    name: str, force: Any, expected: int, reason: str
) -> None:
    strategy = {} if force is None else {"forceUpdate": {"maxUnavailable": force}}
    world = widened(name, **strategy)
    assert taken(world) == expected
    found = condition(world.hook.sync(world.request()), "RollingTemplateUnused")
    assert found is not None
    assert found["reason"] == reason
    assert repr(name) in found["message"]


@pytest.mark.parametrize(
    ("force", "expected"), [(1, 1), ("10%", 1), ("abc", 0)], ids=["stricter", "the same", "none"]
)
def test_the_stricter_of_both_budgets_holds_for_a_name_that_leads_nowhere(
    force: Any, expected: int
) -> None:
    world = widened("typo", maxUnavailable=5, forceUpdate={"maxUnavailable": force})
    assert taken(world) == expected


@pytest.mark.parametrize("value", ["killed", "Kill", "KILLED", ""])
def test_a_status_that_changes_nothing_is_said(value: str) -> None:
    found = condition(synced(settled(replicas=3, statuses={"1": value})), "UnknownStatuses")
    assert found is not None
    assert f"spec.statuses['1'] is {value!r}" in found["message"]


@pytest.mark.parametrize("value", ["Running", "Killed", "Succ"])
def test_words_that_old_objects_carry_are_no_typo(value: str) -> None:
    assert condition(synced(settled(replicas=3, statuses={"1": value})), "UnknownStatuses") is None


def test_instances_that_are_not_below_replicas_are_named() -> None:
    world = settled(
        replicas=6, statuses={"77": "Killed"}, templates={"8": "default", "9": "default"}
    )
    status = synced(world)
    found = condition(status, "UnusedInstances")
    assert found is not None
    assert found["message"].startswith("spec.statuses: 77; spec.templates: 8, 9: not below")
    assert condition(status, "Degraded")["status"] == "False"  # type: ignore[index]


# --- why an instance waits ------------------------------------------------------------------------


def test_a_wait_is_told_with_its_arithmetic() -> None:
    world = settled(replicas=6).change(template=NEW)
    message = condition(synced(world), "Progressing")["message"]  # type: ignore[index]
    assert "waiting for the budget: 1-5 (maxUnavailable 1 of 6; unavailable: 1)" in message
    message = condition(synced(world), "Progressing")["message"]  # type: ignore[index]
    assert "waiting for the budget: 1-5 (maxUnavailable 1 of 6; unavailable: 1)" in message


def test_the_status_says_how_many_are_ready_and_which_are_outdated() -> None:
    world = settled(replicas=5).modify(3, crashing)
    status = synced(world)
    assert status["ready"] == "4/5"
    assert "outdated" not in status
    world.change(template=NEW)
    assert synced(world)["outdated"] == "0-4"
    assert synced(world)["outdated"] == "0-2,4"  # the broken one was free to be taken


def test_the_status_of_500_instances_stays_small() -> None:
    world = World(tapp(replicas=500))
    world.sync()
    world.kubelet()
    world.change(template=NEW)
    status = world.hook.answer("/sync", world.request())["status"]
    assert len(json.dumps(status)) < 16_000
