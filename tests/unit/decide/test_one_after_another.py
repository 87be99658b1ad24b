"""OrderedReady: who is made, or goes, after whom, and what never waits."""

from collections.abc import Callable
from typing import Any

import pytest

from simulator.objects.objects import with_meta
from tests.builders import NOW, Document, completed, crashing, running, tapp, template, terminating
from tests.unit.world import World, condition, settled

HOLD = "apps.tkestack.io/hold"
ORDERED = {"podManagementPolicy": "OrderedReady"}
CREATES, GOES = "Create/NoPod", "Delete/ScaledDown"
MADE_LATER, GOES_LATER = "Absent/WaitingForOrder", "Keep/WaitingForOrder"
FINE = "Keep/UpToDate"
NEW = template("nginx:2", container={"command": ["run"]})
"""Differs in more than images: by a new pod."""


def ordered(**spec: Any) -> World:
    """A settled TApp with that policy."""
    return settled(**{**ORDERED, **spec})


def unready(pod: Document) -> Document:
    return running(pod, ready=False)


def lived(world: World) -> list[str]:
    """The fates of pods until nothing is left to do, a line for each sync that writes."""
    lines = []
    for _ in range(60):
        world.sync()
        pods = [line for line in world.writes if " Pod/" in line]
        lines += [", ".join(pods).replace("Pod/web-", "")] if pods else []
        world.kubelet()
    return lines


# --- the order ------------------------------------------------------------------------------------


def test_pods_are_made_upward_each_when_the_one_before_is_available() -> None:
    world = World(tapp(replicas=3, **ORDERED))
    assert world.decisions() == {0: CREATES, 1: MADE_LATER, 2: MADE_LATER}
    assert lived(world) == ["create 0", "create 1", "create 2"]


def test_pods_go_downward_each_when_the_one_before_is_gone() -> None:
    world = ordered(replicas=5).change(replicas=2)
    assert world.decisions() == {0: FINE, 1: FINE, 2: GOES_LATER, 3: GOES_LATER, 4: GOES}
    world.sync()
    assert world.decisions()[3] == GOES_LATER  # the pod above is ending
    assert lived(world) == ["delete 3", "delete 2"]


@pytest.mark.parametrize("policy", [None, "Parallel"])
def test_without_it_all_at_once(policy: str | None) -> None:
    world = World(tapp(replicas=3, podManagementPolicy=policy))
    assert lived(world) == ["create 0, create 1, create 2"]
    world.change(replicas=1)
    assert lived(world) == ["delete 1, delete 2"]


def test_all_go_one_after_another_down_to_none() -> None:
    assert lived(ordered(replicas=3).change(replicas=0)) == ["delete 2", "delete 1", "delete 0"]


def test_it_may_be_switched_on_and_off_while_pods_are_made() -> None:
    world = World(tapp(replicas=4, **ORDERED))
    world.sync()
    world.change(podManagementPolicy="Parallel")
    assert lived(world) == ["create 1, create 2, create 3"]
    world.change(replicas=6, **ORDERED)
    assert lived(world) == ["create 4", "create 5"]


def test_another_policy_is_refused_with_its_path() -> None:
    world = World(tapp(podManagementPolicy="orderedReady"))
    response = world.hook.post("/sync", world.request())
    assert response.status_code == 400
    assert response.json["path"] == "parent.spec.podManagementPolicy"


# --- what blocks, and what does not ---------------------------------------------------------------


def lost(world: World, *ids: int) -> World:
    """Their pods are gone, and nobody has asked for that."""
    for id in ids:
        del world.pods[f"web-{id}"]
    return world


def silent(pod: Document) -> Document:
    """Nothing is heard of its node: Ready is False, and nothing else."""
    status = running(pod)["status"]
    conditions = [
        {**item, "status": "False"} if item["type"] == "Ready" else item
        for item in status["conditions"]
    ]
    return {**running(pod), "status": {**status, "conditions": conditions}}


def evicted(pod: Document) -> Document:
    return terminating(running(pod))


CHANGES: dict[str, tuple[Callable[[Document], Document], bool]] = {
    "starts": (unready, True),
    "crashes": (crashing, True),
    "is ending": (evicted, True),
    "has failed": (lambda pod: completed(pod, "Failed"), True),
    "is on a silent node": (silent, True),
    "is well": (running, False),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_lower_number_whose_pod(what: str) -> None:
    """Blocks both ways unless it is available."""
    change, blocks = CHANGES[what]
    world = lost(ordered(replicas=4), 2).modify(1, change)
    assert world.decisions()[2] == (MADE_LATER if blocks else CREATES)
    world = ordered(replicas=4).change(replicas=3).modify(1, change)
    assert world.decisions()[3] == (GOES_LATER if blocks else GOES)


def test_a_higher_number_that_is_not_available_blocks_nothing() -> None:
    world = lost(ordered(replicas=4), 1).modify(2, crashing)
    assert world.decisions()[1] == CREATES


def test_of_several_that_lost_their_pods_the_lowest_comes_first() -> None:
    world = lost(ordered(replicas=4), 3, 1, 2)
    assert world.decisions() == {0: FINE, 1: CREATES, 2: MADE_LATER, 3: MADE_LATER}
    assert lived(world) == ["create 1", "create 2", "create 3"]


def test_who_is_killed_or_has_finished_blocks_nobody() -> None:
    body = template(restartPolicy="Never")
    world = settled(replicas=4, template=body, statuses={"0": "Killed"}, **ORDERED)
    world.modify(1, lambda pod: completed(pod, "Succeeded")).sync()
    assert lost(world, 3).decisions()[3] == CREATES


def test_kills_are_done_at_once_and_starts_one_after_another() -> None:
    world = ordered(replicas=4).change(statuses={"1": "Killed", "2": "Killed", "3": "Killed"})
    assert lived(world) == ["delete 1, delete 2, delete 3"]
    world.change(statuses=None)
    assert lived(world) == ["create 1", "create 2", "create 3"]


def test_an_instance_that_cannot_be_made_blocks_those_above() -> None:
    """The first one may be what the others need: a refused template is mended, not skipped."""
    world = World(tapp(replicas=3, templates={"1": "typo"}, **ORDERED)).settle()
    assert world.decisions() == {0: FINE, 1: "Absent/TemplateNotFound", 2: MADE_LATER}
    status = world.parent["status"]
    assert condition(status, "Progressing")["reason"] == "WaitingForOrder"  # type: ignore[index]
    assert condition(status, "Degraded")["reason"] == "TemplateNotFound"  # type: ignore[index]
    assert lived(world.change(templates=None)) == ["create 1", "create 2"]
    world = World(tapp(replicas=3, templates={"1": "typo"}, statuses={"1": "Killed"}, **ORDERED))
    assert lived(world) == ["create 0", "create 2"]


def test_min_ready_seconds_count() -> None:
    world = World(tapp(replicas=2, minReadySeconds=9, **ORDERED))
    world.sync()
    world.modify(0, lambda pod: running(pod, since="2026-01-05T10:59:55Z"))
    assert world.decisions()[1] == MADE_LATER
    assert world.sync()["resyncAfterSeconds"] == 4
    world.hook.now = NOW + 4
    assert world.decisions()[1] == CREATES


def test_of_pods_that_are_to_go_none_needs_to_be_well() -> None:
    """A StatefulSet waits for ever where two of them are broken."""
    world = ordered(replicas=5).change(replicas=1)
    for id in (1, 2, 4):
        world.modify(id, crashing)
    assert lived(world) == ["delete 4", "delete 3", "delete 2", "delete 1"]


def test_scaled_down_and_up_again_what_goes_is_waited_for() -> None:
    world = ordered(replicas=4).change(replicas=2)
    world.sync()
    world.change(replicas=4)
    assert world.decisions() == {0: FINE, 1: FINE, 2: FINE, 3: "Keep/Terminating"}
    assert lived(world) == ["create 3"]


def test_a_pod_that_goes_already_is_left_to_go() -> None:
    """Somebody has deleted it: it is not kept, whoever comes first."""
    world = ordered(replicas=4).change(replicas=1).modify(2, evicted)
    assert world.decisions() == {0: FINE, 1: GOES_LATER, 2: GOES, 3: GOES}


def test_a_pod_on_hold_keeps_those_below_it_and_nobody_above() -> None:
    """The order is its author's; who serves meanwhile blocks nobody."""

    def held(pod: Document) -> Document:
        return with_meta(pod, annotations={HOLD: "match 7", **pod["metadata"]["annotations"]})

    world = ordered(replicas=4).modify(3, held).change(replicas=2)
    assert world.decisions() == {0: FINE, 1: FINE, 2: GOES_LATER, 3: "Mark/Held"}
    status = world.sync()["status"]
    assert condition(status, "Progressing")["reason"] == "Held"  # type: ignore[index]
    world = ordered(replicas=3).modify(0, held).change(template=template("nginx:2"), replicas=4)
    assert world.decisions()[3] == CREATES


# --- what mends is never blocked ------------------------------------------------------------------


@pytest.mark.parametrize("body", [template("nginx:2"), NEW], ids=["in place", "by a new pod"])
def test_a_broken_instance_gets_the_update_that_mends_it(body: Document) -> None:
    """A StatefulSet waits for it for ever (kubernetes/kubernetes#67250)."""
    world = ordered(replicas=3).modify(0, crashing).modify(2, crashing).change(template=body)
    verdict = "UpdateInPlace/TemplateChanged" if body is not NEW else "Recreate/TemplateChanged"
    assert world.decisions() == {0: verdict, 1: "Keep/WaitingForBudget", 2: verdict}
    lines = lived(world)
    if body is NEW:
        assert lines == ["delete 0, delete 2", "create 0", "create 2", "delete 1", "create 1"]
    else:
        assert lines == ["update 0, update 2", "update 1"]


def test_pods_that_have_ended_make_room_at_once_and_come_back_upward() -> None:
    world = ordered(replicas=3)
    for id in (0, 1, 2):
        world.modify(id, lambda pod: completed(pod, "Failed"))
    assert lived(world) == ["delete 0, delete 1, delete 2", "create 0", "create 1", "create 2"]


def test_a_broken_first_instance_of_a_new_app_is_mended() -> None:
    world = World(tapp(replicas=3, **ORDERED))
    world.sync()
    world.modify(0, crashing).sync()
    assert world.decisions() == {0: FINE, 1: MADE_LATER, 2: MADE_LATER}
    world.change(template=NEW)
    assert lived(world) == ["delete 0", "create 0", "create 1", "create 2"]


def test_a_scale_down_waits_for_those_that_stay_until_they_are_mended_or_killed() -> None:
    world = ordered(replicas=5).modify(1, crashing).change(replicas=3)
    assert world.decisions()[4] == GOES_LATER
    assert lived(world.change(statuses={"1": "Killed"})) == ["delete 1", "delete 4", "delete 3"]


# --- beside updates -------------------------------------------------------------------------------


def test_an_update_that_begins_goes_before_what_is_made_or_goes() -> None:
    strategy = {"updateStrategy": {"maxUnavailable": 2}}
    world = lost(ordered(replicas=4, **strategy), 3).change(template=template("nginx:2"))
    found = world.decisions()
    assert (found[0], found[3]) == ("UpdateInPlace/TemplateChanged", MADE_LATER)
    assert lived(world)[-1] == "create 3"
    world = ordered(replicas=4).change(template=template("nginx:2"), replicas=3)
    found = world.decisions()
    assert (found[0], found[3]) == ("UpdateInPlace/TemplateChanged", GOES_LATER)
    assert lived(world) == ["update 0", "update 1", "update 2", "delete 3"]


def test_the_first_sync_of_a_new_spec_in_mid_roll_waits() -> None:
    """A cache that lags may show a pod as available that the last sync took down."""
    world = ordered(replicas=3).change(template=NEW)
    world.sync()
    stale = ordered(replicas=3)
    world.pods = stale.pods
    world.change(template=template(), replicas=4)
    assert world.decisions()[3] == "Absent/SpecJustChanged"
    assert world.sync()["resyncAfterSeconds"] == 1
    assert world.decisions()[3] == CREATES


# --- what is said ---------------------------------------------------------------------------------


def test_progressing_and_why_name_who_comes_first() -> None:
    world = World(tapp(replicas=4, **ORDERED))
    world.sync()
    world.kubelet(ready=False)
    status = world.sync()["status"]
    assert condition(status, "Progressing") == {
        **condition(status, "Progressing"),  # type: ignore[dict-item]
        "status": "True",
        "reason": "WaitingForInstances",
        "message": "not yet available: 0; waiting for those before them: 1-3",
    }
    plan = world.hook.answer("/plan", world.request())["instances"]
    assert {item["message"] for item in plan[1:]} == {
        "its pod is made when instance 0 is available (podManagementPolicy: OrderedReady)"
    }
    assert status["statuses"] == {"0": "Pending"}
    assert "notCreated" not in status


def test_who_was_not_asked_for_is_never_missing() -> None:
    world = World(tapp(replicas=3, **ORDERED))
    world.sync()
    world.kubelet(ready=False)
    for seconds in (1, 60, 500):
        world.hook.now = NOW + seconds
        assert "notCreated" not in world.sync()["status"]
    world.kubelet()
    world.sync()
    for seconds in (0, 1, 31):
        del world.pods["web-1"]  # it is refused, again and again
        world.hook.now += seconds
        status = world.sync()["status"]
    assert list(status["notCreated"].values()) == ["1"]
    message = condition(status, "PodsNotCreated")["message"]  # type: ignore[index]
    assert message.startswith("instances 1 since")


def test_the_deadline_of_an_app_whose_first_instance_never_comes_up() -> None:
    world = World(tapp(replicas=9, **ORDERED))
    world.sync()
    world.kubelet(ready=False)
    world.sync()
    world.hook.now = NOW + 600
    message = condition(world.sync(), "Stalled")["message"]  # type: ignore[index]
    assert "instance 0: its pod is not Ready since" in message
    assert "instances 1-8: its pod is made when instance 0 is available" in message


def test_each_instance_that_comes_up_begins_the_deadline_anew() -> None:
    world = World(tapp(replicas=3, progressDeadlineSeconds=10, **ORDERED))
    for id in range(3):
        world.hook.now = NOW + 9 * id
        assert condition(world.sync(), "Stalled") is None
        world.kubelet()
    assert "progressed" not in world.sync()["status"]


def test_who_lost_its_pod_and_comes_later_makes_no_roll() -> None:
    """An instance that is evicted has no deadline, also where it has to wait for another."""
    world = ordered(replicas=3)
    world.hook.now = NOW + 5
    lost(world, 0, 1)
    for _ in range(3):
        assert "progressed" not in world.sync()["status"]
        world.kubelet(ready=False)
        world.modify(2, running)
    world.modify(0, running)
    assert world.decisions()[1] == CREATES
    assert "progressed" not in world.sync()["status"]


def test_a_thousand_cost_one_look() -> None:
    """Linear, and one verdict for all that wait for the same."""
    world = World(tapp(replicas=1000, **ORDERED))
    answer = world.hook.answer("/sync", world.request())
    made = [child["metadata"]["name"] for child in answer["children"] if child["kind"] == "Pod"]
    assert made == ["web-0"]
    assert len(condition(answer, "Progressing")["message"]) < 100  # type: ignore[index]


def test_claims_are_made_with_the_pod() -> None:
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    world = World(tapp(replicas=3, volumeClaimTemplates=[claim], **ORDERED))
    world.sync()
    assert [*world.claims] == ["data-web-0"]
