"""Tests holds: which pods the service leaves alone and for how long, and what their annotations
say.

A hold is an annotation on a pod that asks the service not to change the pod. The service writes the
*pending action* to the pod: Update, Recreate or Delete, which follows when the hold is removed.
"""

from collections.abc import Callable
from typing import Any

import pytest
from prometheus_client.registry import REGISTRY

from tests.builders import (
    NOW,
    Document,
    claim_template,
    completed,
    in_phase,
    running,
    tapp,
    template,
    terminating,
)
from tests.hook_calls import desired
from tests.unit.events import events_of
from tests.unit.world import Hook, World, condition, settled

GROUP = "apps.tkestack.io"
HOLD, FOR, WANTED, SINCE = (
    f"{GROUP}/{key}" for key in ("hold", "hold-for", "wanted", "wanted-since")
)
HELD = f"{GROUP}/held"
BEGAN = "2026-01-05T11:00:00Z"
"""`NOW` as a timestamp: when each world begins."""

Change = Callable[[World], World]


def annotated(**marks: str | None) -> Callable[[Document], Document]:
    """Returns a function that sets annotations of a hold on a pod; None removes an annotation.

    The arguments are `hold` (the reason), `only` (hold-for), `wanted` and `since` (the pending
    action and its time).
    """
    keys = {"hold": HOLD, "only": FOR, "wanted": WANTED, "since": SINCE}

    def change(pod: Document) -> Document:
        meta = pod["metadata"]
        notes = {**meta["annotations"], **{keys[name]: text for name, text in marks.items()}}
        notes = {key: text for key, text in notes.items() if text is not None}
        return {**pod, "metadata": {**meta, "annotations": notes}}

    return change


def tapp_on_hold(id: int = 0, only: str | None = None, **spec: Any) -> World:
    """Returns a TApp with one pod on hold, after it has settled.

    `id` is the number of its instance, `only` is the annotation hold-for, and `spec` has fields of
    the TApp's spec.
    """
    world = settled(**{"replicas": 3, **spec})
    return world.modify(id, annotated(hold="match 42", only=only)).settle()


def pending_action(world: World, id: int = 0) -> tuple[str | None, ...]:
    """Returns a pod's pending action, the time of the action, and the hold label; None for each
    that is missing.
    """
    meta = world.pod(id)["metadata"]
    return (*(meta["annotations"].get(key) for key in (WANTED, SINCE)), meta["labels"].get(HELD))


def on_lost_node(pod: Document, since: str) -> Document:
    """Returns a pod as the node lifecycle controller changes it when its node stops reporting: not
    Ready.

    `since` is the time of this change.
    """
    turned = {"status": "False", "lastTransitionTime": since}
    found = pod["status"]["conditions"]
    conditions = [{**item, **(turned if item["type"] == "Ready" else {})} for item in found]
    return {**pod, "status": {**pod["status"], "conditions": conditions}}


def is_on_hold(world: World, id: int = 0) -> bool:
    return world.decisions()[id].endswith("/Held")


def at_second(world: World, seconds: float) -> World:
    """Sets the clock of the service to `seconds` seconds after `NOW`, and returns the world."""
    world.hook.now = NOW + seconds
    return world


# --- which actions a hold prevents ----------------------------------------------------------------


def in_place(world: World) -> World:
    return world.change(template=template("nginx:2"))


def by_new_pods(world: World) -> World:
    return world.change(template=template("nginx:1.25", container={"command": ["run"]}))


def labels_only(world: World) -> World:
    return world.change(template=template(labels={"app": "web", "more": "x"}))


def restarted(world: World) -> World:
    def change(pod: Document) -> Document:
        notes = {**pod["metadata"]["annotations"], f"{GROUP}/restart-instance": "now"}
        return {**pod, "metadata": {**pod["metadata"], "annotations": notes}}

    return world.modify(0, change)


def resized(world: World) -> World:
    resources = {"requests": {"cpu": "2"}}
    return world.change(template=template(container={"resources": resources}))


def other_template(world: World) -> World:
    body = template("nginx:1.25", container={"command": ["other"]})
    return world.change(templatePool={"blue": body}, templates={"0": "blue"})


def killed(world: World) -> World:
    return world.change(statuses={"0": "Killed"})


def scaled_down(world: World) -> World:
    return world.change(replicas=0)


PENDING: list[tuple[Change, str, Document]] = [
    (in_place, "Update", {}),
    (labels_only, "Update", {}),
    (restarted, "Recreate", {}),
    (by_new_pods, "Recreate", {}),
    (other_template, "Recreate", {}),
    (resized, "Recreate", {}),
    (killed, "Delete", {}),
    (scaled_down, "Delete", {}),
]
IDS = [change.__name__ for change, _, _ in PENDING]


@pytest.mark.parametrize(("change", "action", "spec"), PENDING, ids=IDS)
@pytest.mark.parametrize("only", [None, "update", "delete", "both", ""])
def test_hold_prevents_the_actions_named_by_hold_for_and_no_others(
    change: Change, action: str, spec: Document, only: str | None
) -> None:
    world = change(tapp_on_hold(only=only, **spec))
    uid = world.pod(0)["metadata"]["uid"]
    covered = {"update": action != "Delete", "delete": action != "Update"}.get(only or "", True)
    assert world.decisions()[0].endswith("/Held") == covered
    if not covered:
        return
    image = world.container(0)["image"]
    for _ in range(4):
        world.sync()
        world.kubelet()
    assert world.pod(0)["metadata"]["uid"] == uid
    assert world.container(0)["image"] == image
    assert pending_action(world) == (action, BEGAN, "true")
    assert world.parent["status"]["held"] == "0"


@pytest.mark.parametrize(("change", "action", "spec"), PENDING, ids=IDS)
def test_pending_action_is_carried_out_when_the_hold_is_removed(
    change: Change, action: str, spec: Document
) -> None:
    world = change(tapp_on_hold(**spec)).settle().modify(0, annotated(hold=None))
    first = world.decisions()[0]
    assert first.split("/")[0] == {"Update": "UpdateInPlace"}.get(action, action)
    world.settle()
    assert "held" not in world.parent["status"]
    if "web-0" in world.pods:
        assert pending_action(world) == (None, None, None)
        assert world.decisions()[0] == "Keep/UpToDate"


@pytest.mark.parametrize("empty", ["", None], ids=["empty", "absent"])
def test_hold_annotation_without_a_reason_has_no_effect(empty: str | None) -> None:
    world = by_new_pods(settled().modify(0, annotated(hold=empty, only="update")))
    assert world.decisions()[0] == "Recreate/TemplateChanged"


ENDED: dict[str, Callable[[Document], Document]] = {
    "terminating": terminating,
    "failed": lambda pod: completed(pod, "Failed"),
    "succeeded": lambda pod: completed(pod, "Succeeded"),
}


@pytest.mark.parametrize("change", ENDED.values(), ids=ENDED)
def test_pod_that_has_ended_or_is_being_deleted_cannot_be_on_hold(
    change: Callable[[Document], Document],
) -> None:
    """Kills an instance whose pod has a hold and has ended: the pod is deleted.

    A program that has ended could not remove its hold any more.
    """
    world = tapp_on_hold().modify(0, change)
    assert not killed(world).decisions()[0].endswith("/Held")
    world.settle()
    assert "web-0" not in world.pods


def test_pending_pod_can_be_on_hold() -> None:
    world = by_new_pods(tapp_on_hold().modify(0, lambda pod: in_phase(pod, "Pending")))
    assert is_on_hold(world)


def test_pod_without_an_instance_number_is_not_written() -> None:
    world = tapp_on_hold()
    stray = {**world.pod(0), "metadata": {**world.pod(0)["metadata"], "name": "web-x"}}
    world.pods["web-x"] = stray
    scaled_down(world).sync()
    meta = world.pods["web-x"]["metadata"]
    assert "deletionTimestamp" not in meta
    assert not {WANTED, SINCE} & meta["annotations"].keys()


def test_pending_action_is_written_to_pods_without_the_last_applied_annotation() -> None:
    """Kills an instance whose pod has no annotation of Metacontroller: it gets the pending action
    all the same.

    Another controller created the pod, or somebody removed Metacontroller's annotation.
    """
    world = World(tapp(replicas=2), strip=True).settle().modify(0, annotated(hold="x"))
    killed(world).settle()
    assert pending_action(world) == ("Delete", BEGAN, "true")
    world.change(statuses=None).modify(0, annotated(hold=None)).settle()
    assert not any(pending_action(world))


def with_invalid_status(pod: Document) -> Document:
    return {**pod, "status": {**pod["status"], "conditions": [None]}}


@pytest.mark.parametrize("change", [killed, scaled_down])
def test_time_limit_of_a_hold_does_not_start_for_a_pod_with_an_invalid_status(
    change: Change,
) -> None:
    """A pod on hold cannot be read, so the pending action is not written to it: its hold never
    expires.

    The program cannot know about the limit if the pending action is not written to its pod.
    """
    world = change(tapp_on_hold(deletionHoldTimeoutSeconds=90).modify(0, with_invalid_status))
    for seconds in (0, 90, 10**7):
        answer = at_second(world, seconds).sync()
        assert "resyncAfterSeconds" not in answer
        assert "delete Pod/web-0" not in world.writes
        assert pending_action(world) == (None, None, "true")
        assert planned(world)["message"].startswith(
            "its pod is on hold ('match 42'), and is not told the pending action, because it "
            "cannot be read; pending: "
        )
    assert answer["status"]["held"] == "0"
    world.change(deletionHoldTimeoutSeconds=0)
    assert world.decisions()[0].startswith("Delete/")


def test_time_limit_counts_from_a_pending_action_that_the_pod_already_has() -> None:
    world = (
        killed(tapp_on_hold(deletionHoldTimeoutSeconds=90)).settle().modify(0, with_invalid_status)
    )
    assert at_second(world, 89).decisions()[0] == "Keep/Held"
    assert at_second(world, 90).decisions()[0] == "Delete/Killed"


# --- the pending action ---------------------------------------------------------------------------


def test_hold_without_a_pending_action_changes_the_label_and_not_the_status() -> None:
    """Sets and removes a hold while the service has nothing to do with the pod: only the label of
    the pod changes.

    Programs set and remove a hold with every match. The TApp stays Ready meanwhile.
    """
    world = settled(replicas=3)
    status = world.parent["status"]
    for text, label in (("match 1", "true"), (None, None)):
        world.modify(0, annotated(hold=text))
        assert world.decisions()[0] == "Mark/UpToDate"
        world.sync()
        assert world.writes == ["update Pod/web-0"]
        assert pending_action(world) == (None, None, label)
        assert world.parent["status"] == status
        world.sync()
        assert not world.writes


CANCELED: dict[str, tuple[Change, Document]] = {
    "a rollback": (in_place, {"template": template()}),
    "a pause": (by_new_pods, {"updateStrategy": {"paused": True}}),
    "no budget": (by_new_pods, {"updateStrategy": {"maxUnavailable": "x"}}),
    "a start": (killed, {"statuses": None}),
    "a scale up": (scaled_down, {"replicas": 3}),
}


@pytest.mark.parametrize(("change", "back"), CANCELED.values(), ids=CANCELED)
def test_pending_action_is_removed_from_the_pod_when_the_edit_is_reverted(
    change: Change, back: Document
) -> None:
    world = change(tapp_on_hold()).settle()
    uid = world.pod(0)["metadata"]["uid"]
    assert pending_action(world)[0]
    world.change(**back).settle()
    assert pending_action(world) == (None, None, "true")
    assert world.pod(0)["metadata"]["uid"] == uid
    assert "held" not in world.parent["status"]


def test_time_of_the_pending_action_restarts_if_the_action_changes() -> None:
    world = in_place(tapp_on_hold()).settle()
    by_new_pods(at_second(world, 60)).settle()
    assert pending_action(world) == ("Recreate", "2026-01-05T11:01:00Z", "true")
    killed(at_second(world, 120)).settle()
    assert pending_action(world) == ("Delete", "2026-01-05T11:02:00Z", "true")


def test_time_of_the_pending_action_stays_if_another_update_of_the_same_kind_follows() -> None:
    world = in_place(tapp_on_hold()).settle()
    at_second(world, 60).change(template=template("nginx:3")).settle()
    assert pending_action(world) == ("Update", BEGAN, "true")


@pytest.mark.parametrize(
    "marks",
    [
        {"since": None},
        {"since": "yesterday"},
        {"since": "2026-01-05"},
        {"since": "9" * 5000},
        {"since": "2026-01-05T12:00:00Z"},
        {"wanted": None},
        {"wanted": "Tea"},
        {"wanted": None, "since": None},
    ],
    ids=[
        "no time",
        "no timestamp",
        "only a date",
        "a long number",
        "in the future",
        "no action",
        "unknown action",
        "neither",
    ],
)
def test_time_of_the_pending_action_restarts_if_somebody_removed_or_changed_it(marks: Any) -> None:
    """Damages the pending action or its time on a pod: the service writes both again, with the
    present time.

    A time in the future is replaced, too, because time limits follow the service's clock.
    """
    spec = {"updateStrategy": {"holdTimeoutSeconds": 600}}
    world = at_second(in_place(tapp_on_hold(**spec)).settle(), 300).modify(0, annotated(**marks))
    world.settle()
    assert pending_action(world) == ("Update", "2026-01-05T11:05:00Z", "true")
    assert at_second(world, 899).decisions()[0] == "Keep/Held"
    assert at_second(world, 900).decisions()[0] == "UpdateInPlace/TemplateChanged"


def test_pending_action_stays_on_a_released_pod_until_the_update_runs() -> None:
    """Removes a hold while the update of the pod has to wait for the budget: the pending action
    stays on the pod.

    A program that sees no pending action would start another match.
    """
    world = tapp_on_hold(id=1, replicas=3)
    by_new_pods(world).sync()  # instance 0 is replaced
    assert pending_action(world, 1)[0] == "Recreate"
    world.modify(1, annotated(hold=None))
    world.sync()
    world.kubelet()
    assert world.decisions()[1] == "Keep/WaitingForBudget"
    assert pending_action(world, 1) == ("Recreate", BEGAN, None)
    world.settle()
    assert not any(pending_action(world, 1))


# --- time limits ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "spec"),
    [
        (in_place, {"updateStrategy": {"holdTimeoutSeconds": 90}}),
        (by_new_pods, {"updateStrategy": {"holdTimeoutSeconds": 90}}),
        (killed, {"deletionHoldTimeoutSeconds": 90}),
        (scaled_down, {"deletionHoldTimeoutSeconds": 90}),
    ],
)
def test_hold_ends_at_its_time_limit_and_a_resync_is_due_then(
    change: Change, spec: Document
) -> None:
    world = change(tapp_on_hold(**spec))
    world.settle()
    assert world.sync()["resyncAfterSeconds"] == 90
    message = planned(at_second(world, 89))["message"]
    assert "until 2026-01-05T11:01:30Z at the latest; pending since 2026-01-05T11:00:00Z" in message
    assert world.sync()["resyncAfterSeconds"] == 1
    decision = at_second(world, 90).decisions()[0]
    assert decision.split("/")[0] in ("UpdateInPlace", "Recreate", "Delete")


@pytest.mark.parametrize(
    ("change", "other"),
    [
        (in_place, {"deletionHoldTimeoutSeconds": 0}),
        (by_new_pods, {"deletionHoldTimeoutSeconds": 0}),
        (killed, {"updateStrategy": {"holdTimeoutSeconds": 0}}),
        (scaled_down, {"updateStrategy": {"holdTimeoutSeconds": 0}}),
    ],
)
def test_time_limits_of_updates_and_deletions_are_independent_and_unlimited_by_default(
    change: Change, other: Document
) -> None:
    world = change(tapp_on_hold(**other)).settle()
    answer = at_second(world, 10**8).sync()
    assert world.decisions()[0] == "Keep/Held"
    assert "resyncAfterSeconds" not in answer


def test_hold_has_no_effect_with_a_time_limit_of_0() -> None:
    world = tapp_on_hold(deletionHoldTimeoutSeconds=0, updateStrategy={"holdTimeoutSeconds": 0})
    assert by_new_pods(world).decisions()[0] == "Recreate/TemplateChanged"
    assert killed(world).decisions()[0] == "Delete/Killed"


def test_time_of_the_pending_action_stays_while_an_expired_hold_waits_for_the_budget() -> None:
    """A hold has expired, and the update waits for the budget: the time of the pending action does
    not change.

    If the time started again, the limit would never be reached.
    """
    world = tapp_on_hold(id=2, updateStrategy={"holdTimeoutSeconds": 30})
    by_new_pods(world).sync()
    for seconds in (40, 50, 60):
        at_second(world, seconds).sync()
        assert world.decisions()[2] == "Keep/WaitingForBudget"
        assert pending_action(world, 2) == ("Recreate", BEGAN, "true")


def test_update_after_the_time_limit_keeps_the_hold_annotation_and_label() -> None:
    world = in_place(tapp_on_hold(updateStrategy={"holdTimeoutSeconds": 30})).settle()
    at_second(world, 31).settle()
    assert world.container(0)["image"] == "nginx:2"
    assert pending_action(world) == (None, None, "true")
    assert world.pod(0)["metadata"]["annotations"][HOLD] == "match 42"


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


# --- what users write -----------------------------------------------------------------------------


def planned(world: World, id: int = 0) -> Document:
    plan = world.hook.answer("/plan", world.request())["instances"]
    return next(item for item in plan if item["id"] == id)


def test_reason_of_a_hold_is_quoted_and_shortened_in_messages() -> None:
    world = settled().modify(0, annotated(hold="a\nb\x00" + "x" * 200_000))
    item = planned(by_new_pods(world))
    assert item["message"].startswith("its pod is on hold ('a\\nb\\x00xxx")
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
        "instance 25: a hold prevents Recreate: its pod is on hold ('late'); pending"
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


# --- deletion of a TApp ---------------------------------------------------------------------------


def finalize(world: World) -> Document:
    answer = world.hook.finalize(world.request(finalizing=True))
    world.apply(answer)
    world.parent = {**world.parent, "status": answer["status"]}
    return answer


def test_deletion_of_a_tapp_waits_for_pods_on_hold_and_says_how_to_continue() -> None:
    world = tapp_on_hold(replicas=3)
    answer = finalize(world)
    assert set(desired(answer, "Pod")) == {"web-0"}
    assert not answer["finalized"]
    assert answer["resyncAfterSeconds"] == 5
    assert pending_action(world) == ("Delete", BEGAN, "true")
    progressing = condition(answer, "Progressing")
    assert progressing is not None
    assert progressing["status"] == "True"
    assert progressing["reason"] == "Held"
    assert "pod web-0" in progressing["message"]
    assert "'match 42'" in progressing["message"]
    assert "set spec.deletionHoldTimeoutSeconds to 0" in progressing["message"]
    assert condition(answer, "Degraded")["status"] == "False"  # type: ignore[index]
    world.kubelet()
    assert finalize(world)["resyncAfterSeconds"] == 60
    world.modify(0, annotated(hold=None))
    assert not desired(finalize(world), "Pod")
    world.kubelet()
    answer = finalize(world)
    assert answer["finalized"]
    assert condition(answer, "Progressing")["reason"] == "Deleting"  # type: ignore[index]


@pytest.mark.parametrize("limit", [0, 90])
def test_deletion_hold_limit_applies_although_the_rest_of_the_spec_is_invalid(limit: int) -> None:
    world = tapp_on_hold(replicas=1)
    world.change(replicas="many", deletionHoldTimeoutSeconds=limit)
    assert bool(desired(finalize(world), "Pod")) == bool(limit)
    assert not desired(finalize(at_second(world, limit)), "Pod")


@pytest.mark.parametrize("limit", [-1, "90", 1e3, 10**12, True])
def test_invalid_deletion_hold_limit_means_no_limit(limit: Any) -> None:
    world = tapp_on_hold(replicas=1).change(deletionHoldTimeoutSeconds=limit)
    finalize(world)
    assert desired(finalize(at_second(world, 10**7)), "Pod")


@pytest.mark.parametrize("finalizer", ["orphan", "foregroundDeletion"])
def test_hold_does_not_delay_deletions_by_the_garbage_collector(finalizer: str) -> None:
    world = tapp_on_hold(replicas=1)
    meta = {**world.parent["metadata"], "finalizers": [finalizer]}
    world.parent = {**world.parent, "metadata": meta}
    assert finalize(world)["finalized"]


def test_deletion_message_names_pods_on_lost_nodes_and_pods_on_hold() -> None:
    world = tapp_on_hold(replicas=2, forceDeletePod=True)
    world.modify(1, lambda pod: on_lost_node(pod, "2026-01-05T10:59:00Z"))
    answer = finalize(world)
    assert set(desired(answer, "Pod")) == {"web-0", "web-1"}
    message = condition(answer, "Progressing")["message"]  # type: ignore[index]
    assert "on nodes that have stopped reporting" in message
    assert "'match 42'" in message


def test_deletion_waits_for_a_pod_with_an_invalid_status_and_its_status_stays_the_same() -> None:
    """Deletes a TApp whose pod on hold cannot be read: the pod stays, and each response has the
    same status.

    A status that changes would trigger the next sync immediately.
    """
    world = tapp_on_hold(replicas=1, deletionHoldTimeoutSeconds=90).modify(0, with_invalid_status)
    first = finalize(world)
    assert set(desired(first, "Pod")) == {"web-0"}
    assert pending_action(world) == (None, None, "true")
    assert "is not told" in condition(first, "Progressing")["message"]  # type: ignore[index]
    again = finalize(at_second(world, 10**6))
    assert again["status"] == first["status"]
    assert set(desired(again, "Pod")) == {"web-0"}
    assert not desired(finalize(world.change(deletionHoldTimeoutSeconds=0)), "Pod")


def test_pending_action_stays_on_a_pod_whose_node_is_lost_later() -> None:
    """The node of a pod on hold is lost during the deletion of its TApp: the pod keeps its pending
    action.

    The node may come back while the match is still running.
    """
    world = tapp_on_hold(replicas=1, forceDeletePod=True)
    finalize(world)
    assert pending_action(world) == ("Delete", BEGAN, "true")
    finalize(world.modify(0, lambda pod: on_lost_node(pod, "2026-01-05T10:30:00Z")))
    assert world.pod(0)["metadata"]["annotations"][f"{GROUP}/lost-node"]
    assert pending_action(world) == ("Delete", BEGAN, "true")


@pytest.mark.parametrize("status", [None, {}, {"conditions": []}, {"conditions": None}])
def test_deletion_sets_all_conditions_of_a_tapp_without_a_status(status: Any) -> None:
    """Deletes a TApp without conditions while a pod is on hold: all conditions are set.

    A TApp was deleted before its first sync, or its status was lost in a restore.
    """
    world = tapp_on_hold(replicas=1)
    world.parent = {**world.parent, "status": status}
    if status is None:
        del world.parent["status"]
    answer = finalize(world)
    found = {name: condition(answer, name) for name in ("Available", "Progressing", "Ready")}
    assert {name: (item or {}).get("reason") for name, item in found.items()} == {
        "Available": "Deleting",
        "Progressing": "Held",
        "Ready": "Held",
    }
    assert {(item or {}).get("lastTransitionTime") for item in found.values()} == {BEGAN}


# --- a status that the service did not write ------------------------------------------------------


@pytest.mark.parametrize("noted_before", [5, None, [], "0-99999999999999999999", "x", {"0": "1"}])
def test_invalid_list_of_pods_on_hold_in_the_status_is_ignored(noted_before: Any) -> None:
    world = by_new_pods(tapp_on_hold()).settle()
    status = {**world.parent["status"], "held": noted_before}
    world.parent = {**world.parent, "status": status}
    assert world.sync()["status"]["held"] == "0"


def test_upgrade_of_the_service_writes_no_pod_without_a_hold() -> None:
    world = settled(replicas=3)
    world.hook = Hook()
    world.sync()
    assert not world.writes
    assert "held" not in world.parent["status"]


def test_pod_with_an_unknown_phase_can_be_on_hold() -> None:
    assert is_on_hold(killed(tapp_on_hold().modify(0, lambda pod: in_phase(pod, "Unknown"))))
