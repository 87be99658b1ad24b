"""Tests holds together with other features: the budget, claims, lost nodes, readiness gates, Events
and metrics.
"""

from typing import Any

from prometheus_client.registry import REGISTRY

from tests.builders import Document, claim_template, running, tapp, template
from tests.unit.decide.holds import (
    BEGAN,
    FOR,
    GROUP,
    HELD,
    HOLD,
    SINCE,
    WANTED,
    annotated,
    at_second,
    by_new_pods,
    in_place,
    is_on_hold,
    on_lost_node,
    pending_action,
    planned,
    tapp_on_hold,
)
from tests.unit.events import events_of
from tests.unit.world import World, condition, settled

# --- other instances, the budget, and other features ----------------------------------------------


def test_other_instances_are_updated_and_a_ready_pod_on_hold_counts_as_available() -> None:
    world = tapp_on_hold(id=0, replicas=4)
    by_new_pods(world)
    assert world.decisions() == {
        0: "Mark/Held",
        1: "Recreate/TemplateChanged",
        2: "Keep/WaitingForBudget",
        3: "Keep/WaitingForBudget",
    }
    world.settle()
    assert world.decisions() == {0: "Keep/Held", **dict.fromkeys((1, 2, 3), "Keep/UpToDate")}
    assert world.parent["status"]["availableReplicas"] == 4


def test_unready_pod_on_hold_uses_the_budget() -> None:
    world = tapp_on_hold(id=0).modify(0, lambda pod: running(pod, ready=False))
    assert by_new_pods(world).decisions()[1] == "Keep/WaitingForBudget"


def test_all_pods_on_hold_get_the_pending_action_in_one_sync() -> None:
    """Changes the template while all pods are on hold: one sync writes the pending action to all of
    them.

    Otherwise the last of a thousand matches would learn about the update last.
    """
    world = settled(replicas=5)
    for id in range(5):
        world.modify(id, annotated(hold=f"match {id}"))
    by_new_pods(world).sync()
    assert {pending_action(world, id)[0] for id in range(5)} == {"Recreate"}
    assert world.parent["status"]["held"] == "0-4"


def test_rollout_that_waits_only_for_a_hold_has_no_deadline() -> None:
    world = by_new_pods(tapp_on_hold(replicas=2)).settle()
    status = at_second(world, 10**6).sync()["status"]
    progressing = condition(status, "Progressing")
    assert progressing is not None
    assert progressing["status"] == "True"
    assert progressing["reason"] == "Held"
    assert progressing["message"] == "instance 0 is on hold"
    assert condition(status, "Ready")["reason"] == "Held"  # type: ignore[index]
    assert condition(status, "Degraded")["status"] == "False"  # type: ignore[index]
    assert "progressed" not in status


def test_images_are_not_pulled_in_advance_for_a_pod_on_hold() -> None:
    strategy = {"inPlaceUpdateStrategy": {"prePull": True}}
    world = in_place(tapp_on_hold(replicas=1, updateStrategy=strategy))
    assert is_on_hold(world)
    assert "pulling" not in world.sync()["status"]


def test_instance_on_hold_keeps_its_claim_and_service_after_a_scale_down() -> None:
    policy = {"whenScaled": "Delete"}
    world = World(
        tapp(
            replicas=2,
            volumeClaimTemplates=[claim_template()],
            persistentVolumeClaimRetentionPolicy=policy,
            serviceTemplate={"spec": {"ports": [{"port": 80}]}},
        ),
        exposing=True,
    ).settle()
    world.modify(1, annotated(hold="x")).change(replicas=1).settle()
    assert set(world.pods) == {"web-0", "web-1"}
    assert set(world.claims) == {"data-web-0", "data-web-1"}
    assert set(world.services) == {"web-0", "web-1"}
    assert world.parent["status"]["held"] == "1"
    world.modify(1, annotated(hold=None)).settle()
    assert set(world.pods) == {"web-0"}
    assert set(world.claims) == {"data-web-0"}
    assert set(world.services) == {"web-0"}


def test_pod_on_a_lost_node_is_not_on_hold() -> None:
    """A pod on hold is on a lost node: it is marked as lost, because a match on a lost node cannot
    end.
    """
    world = tapp_on_hold(replicas=2, forceDeletePod=True)
    by_new_pods(world.modify(0, lambda pod: on_lost_node(pod, "2026-01-05T10:30:00Z"))).sync()
    assert world.pod(0)["metadata"]["annotations"][f"{GROUP}/lost-node"]


# --- leaving the Services -------------------------------------------------------------------------


def draining(**strategy: Any) -> World:
    """Returns a TApp whose next update in place waits until the pod has left its Services."""
    gate = {"conditionType": f"{GROUP}/InPlaceUpdateReady"}
    in_place_strategy = {"inPlaceUpdateStrategy": {"gracePeriodSeconds": 30}, **strategy}
    body = template(readinessGates=[gate])
    world = settled(replicas=2, template=body, updateStrategy=in_place_strategy)
    return world.change(template=template("nginx:2", readinessGates=[gate]))


def test_hold_returns_a_leaving_pod_to_its_services_without_a_restart() -> None:
    world = draining()
    world.sync()
    world.pod_status()
    assert world.decisions()[0] == "Keep/Draining"
    world.modify(0, annotated(hold="match 42"))
    world.sync()
    assert f"{GROUP}/drain" not in world.pod(0)["metadata"]["annotations"]
    assert pending_action(world) == ("Update", BEGAN, "true")
    world.pod_status()
    gate = next(c for c in world.pod(0)["status"]["conditions"] if "InPlace" in c["type"])
    assert gate["status"] == "True"
    assert world.container(0)["image"] == "nginx:1.25"
    world.sync()
    assert world.decisions() == {0: "Keep/Held", 1: "Keep/Draining"}


def test_pod_with_an_expired_hold_leaves_its_services_before_the_update() -> None:
    world = draining(holdTimeoutSeconds=60)
    for id in range(2):
        world.modify(id, annotated(hold="match 42"))
    world.sync()
    at_second(world, 60).sync()
    assert f"{GROUP}/drain" in world.pod(0)["metadata"]["annotations"]
    assert pending_action(world) == ("Update", BEGAN, "true")


def test_reason_of_a_hold_is_quoted_and_shortened_in_messages() -> None:
    world = settled().modify(0, annotated(hold="a\nb\x00" + "x" * 200_000))
    item = planned(by_new_pods(world))
    assert item["message"].startswith("its pod is on hold (reason: 'a\\nb\\x00xxx")
    assert len(item["message"]) < 400
    assert len(str(world.sync()["status"])) < 4_000


def test_unknown_hold_for_prevents_all_actions_and_sets_a_condition() -> None:
    world = settled(replicas=3)
    for id, text in ((0, "Update"), (1, "updates"), (2, "delete")):
        world.modify(id, annotated(hold="x", only=text))
    found = condition(world.settle().parent["status"], "InvalidHoldFor")
    assert found is not None
    assert "instance 0: 'Update'; instance 1: 'updates'" in found["message"]
    assert condition(world.parent["status"], "Ready")["status"] == "True"  # type: ignore[index]
    assert is_on_hold(world.change(statuses={"1": "Killed"}), 1)


def test_hold_annotations_of_a_template_are_not_copied_to_pods() -> None:
    """A template has the annotations and the label of a hold: pods do not get them.

    Metacontroller would set a hold again after the program has removed it.
    """
    pasted = template(
        annotations={HOLD: "x", FOR: "update", WANTED: "Delete", SINCE: BEGAN, "mine": "y"}
    )
    pasted["metadata"]["labels"] = {"app": "web", HELD: "true"}
    meta = settled(template=pasted).pod(0)["metadata"]
    assert not {HOLD, FOR, WANTED, SINCE} & meta["annotations"].keys()
    assert HELD not in meta["labels"]
    assert meta["annotations"]["mine"] == "y"


def test_hold_label_and_pending_action_that_somebody_wrote_are_removed() -> None:
    """A pod without a hold has the label and a pending action: the service removes both.

    Metacontroller removes only keys that it has written, so the response sets them empty.
    """
    world = settled()

    def change(pod: Document) -> Document:
        pod = annotated(wanted="Delete", since=BEGAN)(pod)
        meta = pod["metadata"]
        return {**pod, "metadata": {**meta, "labels": {**meta["labels"], HELD: "true"}}}

    world.modify(0, change).settle()
    assert not any(pending_action(world))


# --- events and metrics ---------------------------------------------------------------------------


def test_hold_event_is_sent_once_for_each_generation_and_pending_action() -> None:
    world = settled(replicas=30)
    for id in range(20):
        world.modify(id, annotated(hold=f"match {id}"))
    by_new_pods(world)
    names = set()
    for id in range(29, 24, -1):
        found = [event for event in events_of(world) if event.reason == "Held"]
        names |= {event.name for event in found}
        assert len(found) == 1
        world.sync()
        assert not [event for event in events_of(world) if event.reason == "Held"]
        world.modify(id, annotated(hold="late"))
    assert len(names) == 1
    note = next(e.note for e in events_of(world) if e.reason == "Held")
    assert note.startswith(
        "instance 25: its pod is on hold (reason: 'late'); the replacement has been pending"
    )


def counted(outcome: str) -> float:
    found = REGISTRY.get_sample_value("tapp_hook_holds_total", {"outcome": outcome})
    return found or 0.0


def test_metric_counts_pods_with_a_pending_action_and_expired_holds() -> None:
    before = counted("asked"), counted("expired")
    world = by_new_pods(tapp_on_hold(id=0, replicas=1, updateStrategy={"holdTimeoutSeconds": 60}))
    world.sync()
    world.sync()
    assert counted("asked") - before[0] == 1
    assert counted("expired") - before[1] == 0
    at_second(world, 60).sync()
    assert counted("asked") - before[0] == 1
    assert counted("expired") - before[1] == 1
