"""Holds: who is left alone and for how long, what the pod is told, and that others go on."""

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
from tests.reading import desired
from tests.unit.answer.test_events import events_of
from tests.unit.world import Hook, World, condition, settled

GROUP = "apps.tkestack.io"
HOLD, FOR, WANTED, SINCE = (
    f"{GROUP}/{key}" for key in ("hold", "hold-for", "wanted", "wanted-since")
)
HELD = f"{GROUP}/held"
BEGAN = "2026-01-05T11:00:00Z"
"""`NOW` as a timestamp."""

Change = Callable[[World], World]


def noted(**marks: str | None) -> Callable[[Document], Document]:
    """A person or a program annotates a pod; None removes an annotation."""
    keys = {"hold": HOLD, "only": FOR, "wanted": WANTED, "since": SINCE}

    def change(pod: Document) -> Document:
        meta = pod["metadata"]
        notes = {**meta["annotations"], **{keys[name]: text for name, text in marks.items()}}
        notes = {key: text for key, text in notes.items() if text is not None}
        return {**pod, "metadata": {**meta, "annotations": notes}}

    return change


def held(id: int = 0, only: str | None = None, **spec: Any) -> World:
    """A settled TApp with one pod on hold."""
    world = settled(**{"replicas": 3, **spec})
    return world.modify(id, noted(hold="match 42", only=only)).settle()


def told(world: World, id: int = 0) -> tuple[str | None, ...]:
    """The marks of a pod: wanted, since, and the label."""
    meta = world.pod(id)["metadata"]
    return (*(meta["annotations"].get(key) for key in (WANTED, SINCE)), meta["labels"].get(HELD))


def silent(pod: Document, since: str) -> Document:
    """A pod after the node lifecycle controller: not Ready, and all else as it was."""
    turned = {"status": "False", "lastTransitionTime": since}
    found = pod["status"]["conditions"]
    conditions = [{**item, **(turned if item["type"] == "Ready" else {})} for item in found]
    return {**pod, "status": {**pod["status"], "conditions": conditions}}


def is_held(world: World, id: int = 0) -> bool:
    return world.decisions()[id].endswith("/Held")


def after(world: World, seconds: float) -> World:
    """So many seconds after the beginning."""
    world.hook.now = NOW + seconds
    return world


# --- what is held back ----------------------------------------------------------------------------


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


WISHES: list[tuple[Change, str, Document]] = [
    (in_place, "Update", {}),
    (labels_only, "Update", {}),
    (restarted, "Recreate", {}),
    (by_new_pods, "Recreate", {}),
    (other_template, "Recreate", {}),
    (resized, "Recreate", {}),
    (killed, "Delete", {}),
    (scaled_down, "Delete", {}),
]
IDS = [change.__name__ for change, _, _ in WISHES]


@pytest.mark.parametrize(("change", "wish", "spec"), WISHES, ids=IDS)
@pytest.mark.parametrize("only", [None, "update", "delete", "both", ""])
def test_a_hold_keeps_back_what_it_is_for_and_nothing_else(
    change: Change, wish: str, spec: Document, only: str | None
) -> None:
    world = change(held(only=only, **spec))
    uid = world.pod(0)["metadata"]["uid"]
    covered = {"update": wish != "Delete", "delete": wish != "Update"}.get(only or "", True)
    assert world.decisions()[0].endswith("/Held") == covered
    if not covered:
        return
    image = world.container(0)["image"]
    for _ in range(4):
        world.sync()
        world.kubelet()
    assert world.pod(0)["metadata"]["uid"] == uid
    assert world.container(0)["image"] == image
    assert told(world) == (wish, BEGAN, "true")
    assert world.parent["status"]["held"] == "0"


@pytest.mark.parametrize(("change", "wish", "spec"), WISHES, ids=IDS)
def test_released_it_happens_and_nothing_is_left_of_it(
    change: Change, wish: str, spec: Document
) -> None:
    world = change(held(**spec)).settle().modify(0, noted(hold=None))
    first = world.decisions()[0]
    assert first.split("/")[0] == {"Update": "UpdateInPlace"}.get(wish, wish)
    world.settle()
    assert "held" not in world.parent["status"]
    if "web-0" in world.pods:
        assert told(world) == (None, None, None)
        assert world.decisions()[0] == "Keep/UpToDate"


@pytest.mark.parametrize("empty", ["", None])
def test_without_a_reason_there_is_no_hold(empty: str | None) -> None:
    world = by_new_pods(settled().modify(0, noted(hold=empty, only="update")))
    assert world.decisions()[0] == "Recreate/TemplateChanged"


ENDED: dict[str, Callable[[Document], Document]] = {
    "terminating": terminating,
    "failed": lambda pod: completed(pod, "Failed"),
    "succeeded": lambda pod: completed(pod, "Succeeded"),
}


@pytest.mark.parametrize("change", ENDED.values(), ids=ENDED)
def test_what_has_ended_or_is_ending_cannot_be_held(change: Callable[[Document], Document]) -> None:
    """A program that has ended could not remove its hold."""
    world = held().modify(0, change)
    assert not killed(world).decisions()[0].endswith("/Held")
    world.settle()
    assert "web-0" not in world.pods


def test_a_pod_that_is_pending_can_be_held() -> None:
    world = by_new_pods(held().modify(0, lambda pod: in_phase(pod, "Pending")))
    assert is_held(world)


def test_a_pod_that_is_no_instances_stays_as_it_is() -> None:
    world = held()
    stray = {**world.pod(0), "metadata": {**world.pod(0)["metadata"], "name": "web-x"}}
    world.pods["web-x"] = stray
    scaled_down(world).sync()
    meta = world.pods["web-x"]["metadata"]
    assert "deletionTimestamp" not in meta
    assert not {WANTED, SINCE} & meta["annotations"].keys()


def test_a_pod_without_metacontrollers_annotation_is_told_too() -> None:
    """Another controller made it, or somebody removed the annotation."""
    world = World(tapp(replicas=2), strip=True).settle().modify(0, noted(hold="x"))
    killed(world).settle()
    assert told(world) == ("Delete", BEGAN, "true")
    world.change(statuses=None).modify(0, noted(hold=None)).settle()
    assert not any(told(world))


def unreadable(pod: Document) -> Document:
    return {**pod, "status": {**pod["status"], "conditions": [None]}}


@pytest.mark.parametrize("change", [killed, scaled_down])
def test_a_pod_that_cannot_be_read_is_held_and_no_limit_begins(change: Change) -> None:
    """A wish that it cannot be told must not end its match."""
    world = change(held(deletionHoldTimeoutSeconds=90).modify(0, unreadable))
    for seconds in (0, 90, 10**7):
        answer = after(world, seconds).sync()
        assert "resyncAfterSeconds" not in answer
        assert "delete Pod/web-0" not in world.writes
        assert told(world) == (None, None, "true")
        assert explained(world)["message"].startswith(
            "its pod is on hold ('match 42'), and cannot be told what is wanted, as it is "
            "unreadable; wanted: "
        )
    assert answer["status"]["held"] == "0"
    world.change(deletionHoldTimeoutSeconds=0)
    assert world.decisions()[0].startswith("Delete/")


def test_what_it_was_told_before_counts() -> None:
    world = killed(held(deletionHoldTimeoutSeconds=90)).settle().modify(0, unreadable)
    assert after(world, 89).decisions()[0] == "Keep/Held"
    assert after(world, 90).decisions()[0] == "Delete/Killed"


# --- the wish -------------------------------------------------------------------------------------


def test_a_hold_alone_writes_the_label_and_says_nothing() -> None:
    """Programs hold and release with every match: the TApp stays Ready and its status the same."""
    world = settled(replicas=3)
    status = world.parent["status"]
    for text, label in (("match 1", "true"), (None, None)):
        world.modify(0, noted(hold=text))
        assert world.decisions()[0] == "Mark/UpToDate"
        world.sync()
        assert world.writes == ["update Pod/web-0"]
        assert told(world) == (None, None, label)
        assert world.parent["status"] == status
        world.sync()
        assert not world.writes


TAKEN_BACK: dict[str, tuple[Change, Document]] = {
    "a rollback": (in_place, {"template": template()}),
    "a pause": (by_new_pods, {"updateStrategy": {"paused": True}}),
    "no budget": (by_new_pods, {"updateStrategy": {"maxUnavailable": "x"}}),
    "a start": (killed, {"statuses": None}),
    "a scale up": (scaled_down, {"replicas": 3}),
}


@pytest.mark.parametrize(("change", "back"), TAKEN_BACK.values(), ids=TAKEN_BACK)
def test_where_the_wish_is_taken_back_so_is_what_the_pod_was_told(
    change: Change, back: Document
) -> None:
    world = change(held()).settle()
    uid = world.pod(0)["metadata"]["uid"]
    assert told(world)[0]
    world.change(**back).settle()
    assert told(world) == (None, None, "true")
    assert world.pod(0)["metadata"]["uid"] == uid
    assert "held" not in world.parent["status"]


def test_where_the_wish_changes_the_time_begins_anew() -> None:
    world = in_place(held()).settle()
    by_new_pods(after(world, 60)).settle()
    assert told(world) == ("Recreate", "2026-01-05T11:01:00Z", "true")
    killed(after(world, 120)).settle()
    assert told(world) == ("Delete", "2026-01-05T11:02:00Z", "true")


def test_another_update_of_the_same_kind_keeps_the_time() -> None:
    world = in_place(held()).settle()
    after(world, 60).change(template=template("nginx:3")).settle()
    assert told(world) == ("Update", BEGAN, "true")


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
)
def test_a_time_that_somebody_removes_or_garbles_begins_anew(marks: Any) -> None:
    """A time that has not come does, too: a limit counts from what this service's clock says."""
    spec = {"updateStrategy": {"holdTimeoutSeconds": 600}}
    world = after(in_place(held(**spec)).settle(), 300).modify(0, noted(**marks))
    world.settle()
    assert told(world) == ("Update", "2026-01-05T11:05:00Z", "true")
    assert after(world, 899).decisions()[0] == "Keep/Held"
    assert after(world, 900).decisions()[0] == "UpdateInPlace/TemplateChanged"


def test_released_while_it_waits_for_the_budget_it_is_told_on() -> None:
    """A program that has ended its match would begin another one."""
    world = held(id=1, replicas=3)
    by_new_pods(world).sync()  # 0 goes
    assert told(world, 1)[0] == "Recreate"
    world.modify(1, noted(hold=None))
    world.sync()
    world.kubelet()
    assert world.decisions()[1] == "Keep/WaitingForBudget"
    assert told(world, 1) == ("Recreate", BEGAN, None)
    world.settle()
    assert not any(told(world, 1))


# --- limits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "spec"),
    [
        (in_place, {"updateStrategy": {"holdTimeoutSeconds": 90}}),
        (by_new_pods, {"updateStrategy": {"holdTimeoutSeconds": 90}}),
        (killed, {"deletionHoldTimeoutSeconds": 90}),
        (scaled_down, {"deletionHoldTimeoutSeconds": 90}),
    ],
)
def test_a_hold_counts_until_its_limit_and_the_sync_comes_in_time(
    change: Change, spec: Document
) -> None:
    world = change(held(**spec))
    world.settle()
    assert world.sync()["resyncAfterSeconds"] == 90
    message = explained(after(world, 89))["message"]
    assert "until 2026-01-05T11:01:30Z at the latest; wanted since 2026-01-05T11:00:00Z" in message
    assert world.sync()["resyncAfterSeconds"] == 1
    decision = after(world, 90).decisions()[0]
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
def test_each_limit_is_of_its_own_kind_and_none_is_without_end(
    change: Change, other: Document
) -> None:
    world = change(held(**other)).settle()
    answer = after(world, 10**8).sync()
    assert world.decisions()[0] == "Keep/Held"
    assert "resyncAfterSeconds" not in answer


def test_with_a_limit_of_0_no_hold_counts() -> None:
    world = held(deletionHoldTimeoutSeconds=0, updateStrategy={"holdTimeoutSeconds": 0})
    assert by_new_pods(world).decisions()[0] == "Recreate/TemplateChanged"
    assert killed(world).decisions()[0] == "Delete/Killed"


def test_past_its_limit_it_waits_for_the_budget_and_the_time_stands() -> None:
    """The time would begin anew if it were taken back, and the limit would never come."""
    world = held(id=2, updateStrategy={"holdTimeoutSeconds": 30})
    by_new_pods(world).sync()
    for seconds in (40, 50, 60):
        after(world, seconds).sync()
        assert world.decisions()[2] == "Keep/WaitingForBudget"
        assert told(world, 2) == ("Recreate", BEGAN, "true")


def test_an_update_past_the_limit_leaves_the_hold_and_its_label() -> None:
    world = in_place(held(updateStrategy={"holdTimeoutSeconds": 30})).settle()
    after(world, 31).settle()
    assert world.container(0)["image"] == "nginx:2"
    assert told(world) == (None, None, "true")
    assert world.pod(0)["metadata"]["annotations"][HOLD] == "match 42"


# --- the others -----------------------------------------------------------------------------------


def test_others_do_not_wait_for_it_and_it_counts_as_what_it_is() -> None:
    world = held(id=0, replicas=4)
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


def test_held_and_not_ready_it_takes_its_place_in_the_budget() -> None:
    world = held(id=0).modify(0, lambda pod: running(pod, ready=False))
    assert by_new_pods(world).decisions()[1] == "Keep/WaitingForBudget"


def test_all_are_told_at_once() -> None:
    """Else the last of a thousand matches would hear of the update last."""
    world = settled(replicas=5)
    for id in range(5):
        world.modify(id, noted(hold=f"match {id}"))
    by_new_pods(world).sync()
    assert {told(world, id)[0] for id in range(5)} == {"Recreate"}
    assert world.parent["status"]["held"] == "0-4"


def test_the_deadline_of_a_roll_stands_still_for_it() -> None:
    world = by_new_pods(held(replicas=2)).settle()
    status = after(world, 10**6).sync()["status"]
    progressing = condition(status, "Progressing")
    assert progressing is not None
    assert (progressing["status"], progressing["reason"]) == ("True", "Held")
    assert progressing["message"] == "on hold: 0"
    assert condition(status, "Ready")["reason"] == "Held"  # type: ignore[index]
    assert condition(status, "Degraded")["status"] == "False"  # type: ignore[index]
    assert "progressed" not in status


def test_no_image_is_pulled_for_it() -> None:
    strategy = {"inPlaceUpdateStrategy": {"prePull": True}}
    world = in_place(held(replicas=1, updateStrategy=strategy))
    assert is_held(world)
    assert "pulling" not in world.sync()["status"]


def test_scaled_down_it_keeps_its_claim_and_its_service() -> None:
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
    world.modify(1, noted(hold="x")).change(replicas=1).settle()
    assert (set(world.pods), set(world.claims)) == (
        {"web-0", "web-1"},
        {"data-web-0", "data-web-1"},
    )
    assert set(world.services) == {"web-0", "web-1"}
    assert world.parent["status"]["held"] == "1"
    world.modify(1, noted(hold=None)).settle()
    assert (set(world.pods), set(world.claims)) == ({"web-0"}, {"data-web-0"})
    assert set(world.services) == {"web-0"}


def test_a_lost_node_is_not_held() -> None:
    """Nobody is there to end the match."""
    world = held(replicas=2, forceDeletePod=True)
    by_new_pods(world.modify(0, lambda pod: silent(pod, "2026-01-05T10:30:00Z"))).sync()
    assert world.pod(0)["metadata"]["annotations"][f"{GROUP}/lost-node"]


# --- drains ---------------------------------------------------------------------------------------


def draining(**strategy: Any) -> World:
    """A pod that leaves its Services for an update in place."""
    gate = {"conditionType": f"{GROUP}/InPlaceUpdateReady"}
    in_place_strategy = {"inPlaceUpdateStrategy": {"gracePeriodSeconds": 30}, **strategy}
    body = template(readinessGates=[gate])
    world = settled(replicas=2, template=body, updateStrategy=in_place_strategy)
    return world.change(template=template("nginx:2", readinessGates=[gate]))


def test_a_drain_that_is_under_way_is_taken_back_and_nothing_restarts() -> None:
    world = draining()
    world.sync()
    world.pod_status()
    assert world.decisions()[0] == "Keep/Draining"
    world.modify(0, noted(hold="match 42"))
    world.sync()
    assert f"{GROUP}/drain" not in world.pod(0)["metadata"]["annotations"]
    assert told(world) == ("Update", BEGAN, "true")
    world.pod_status()
    gate = next(c for c in world.pod(0)["status"]["conditions"] if "InPlace" in c["type"])
    assert gate["status"] == "True"
    assert world.container(0)["image"] == "nginx:1.25"
    world.sync()
    assert world.decisions() == {0: "Keep/Held", 1: "Keep/Draining"}


def test_past_the_limit_it_is_drained_first_and_told_on() -> None:
    world = draining(holdTimeoutSeconds=60)
    for id in range(2):
        world.modify(id, noted(hold="match 42"))
    world.sync()
    after(world, 60).sync()
    assert f"{GROUP}/drain" in world.pod(0)["metadata"]["annotations"]
    assert told(world) == ("Update", BEGAN, "true")


# --- what people write ----------------------------------------------------------------------------


def explained(world: World, id: int = 0) -> Document:
    plan = world.hook.answer("/plan", world.request())["instances"]
    return next(item for item in plan if item["id"] == id)


def test_the_reason_is_quoted_and_cut() -> None:
    world = settled().modify(0, noted(hold="a\nb\x00" + "x" * 200_000))
    item = explained(by_new_pods(world))
    assert item["message"].startswith("its pod is on hold ('a\\nb\\x00xxx")
    assert len(item["message"]) < 400
    assert len(str(world.sync()["status"])) < 4_000


def test_a_hold_for_something_else_is_for_everything_and_that_is_said() -> None:
    world = settled(replicas=3)
    for id, text in ((0, "Update"), (1, "updates"), (2, "delete")):
        world.modify(id, noted(hold="x", only=text))
    found = condition(world.settle().parent["status"], "InvalidHoldFor")
    assert found is not None
    assert "instances 0: 'Update'; instances 1: 'updates'" in found["message"]
    assert condition(world.parent["status"], "Ready")["status"] == "True"  # type: ignore[index]
    assert is_held(world.change(statuses={"1": "Killed"}), 1)


def test_in_a_template_it_is_pasted_and_reaches_no_pod() -> None:
    """Metacontroller would set a hold again that the program has removed."""
    pasted = template(
        annotations={HOLD: "x", FOR: "update", WANTED: "Delete", SINCE: BEGAN, "mine": "y"}
    )
    pasted["metadata"]["labels"] = {"app": "web", HELD: "true"}
    meta = settled(template=pasted).pod(0)["metadata"]
    assert not {HOLD, FOR, WANTED, SINCE} & meta["annotations"].keys()
    assert HELD not in meta["labels"]
    assert meta["annotations"]["mine"] == "y"


def test_a_label_or_a_wish_that_somebody_sets_is_taken_back() -> None:
    """By leaving them out nothing would go: Metacontroller has not written them."""
    world = settled()

    def change(pod: Document) -> Document:
        pod = noted(wanted="Delete", since=BEGAN)(pod)
        meta = pod["metadata"]
        return {**pod, "metadata": {**meta, "labels": {**meta["labels"], HELD: "true"}}}

    world.modify(0, change).settle()
    assert not any(told(world))


# --- events and metrics ---------------------------------------------------------------------------


def test_a_hold_is_told_of_once_for_each_generation_and_what_is_wanted() -> None:
    world = settled(replicas=30)
    for id in range(20):
        world.modify(id, noted(hold=f"match {id}"))
    by_new_pods(world)
    names = set()
    for id in range(29, 24, -1):
        found = [event for event in events_of(world) if event.reason == "Held"]
        names |= {event.name for event in found}
        assert len(found) == 1
        world.sync()
        assert not [event for event in events_of(world) if event.reason == "Held"]
        world.modify(id, noted(hold="late"))
    assert len(names) == 1
    note = next(e.note for e in events_of(world) if e.reason == "Held")
    assert note.startswith("instance 25, Recreate is wanted: its pod is on hold ('late'); wanted")


def counted(outcome: str) -> float:
    found = REGISTRY.get_sample_value("tapp_hook_holds_total", {"outcome": outcome})
    return found or 0.0


def test_the_metric_counts_who_is_told_and_whose_limit_has_passed() -> None:
    before = counted("asked"), counted("expired")
    world = by_new_pods(held(id=0, replicas=1, updateStrategy={"holdTimeoutSeconds": 60}))
    world.sync()
    world.sync()
    assert (counted("asked") - before[0], counted("expired") - before[1]) == (1, 0)
    after(world, 60).sync()
    assert (counted("asked") - before[0], counted("expired") - before[1]) == (1, 1)


# --- the end of a TApp ----------------------------------------------------------------------------


def finalize(world: World) -> Document:
    answer = world.hook.finalize(world.request(finalizing=True))
    world.apply(answer)
    world.parent = {**world.parent, "status": answer["status"]}
    return answer


def test_the_end_waits_for_pods_on_hold_and_says_how_to_go_on() -> None:
    world = held(replicas=3)
    answer = finalize(world)
    assert set(desired(answer, "Pod")) == {"web-0"}
    assert not answer["finalized"]
    assert answer["resyncAfterSeconds"] == 5
    assert told(world) == ("Delete", BEGAN, "true")
    progressing = condition(answer, "Progressing")
    assert progressing is not None
    assert (progressing["status"], progressing["reason"]) == ("True", "Held")
    assert "pods web-0" in progressing["message"]
    assert "'match 42'" in progressing["message"]
    assert "a spec.deletionHoldTimeoutSeconds of 0" in progressing["message"]
    assert condition(answer, "Degraded")["status"] == "False"  # type: ignore[index]
    world.kubelet()
    assert finalize(world)["resyncAfterSeconds"] == 60
    world.modify(0, noted(hold=None))
    assert not desired(finalize(world), "Pod")
    world.kubelet()
    answer = finalize(world)
    assert answer["finalized"]
    assert condition(answer, "Progressing")["reason"] == "Deleting"  # type: ignore[index]


@pytest.mark.parametrize("limit", [0, 90])
def test_the_end_comes_with_the_limit_whatever_else_the_spec_says(limit: int) -> None:
    world = held(replicas=1)
    world.change(replicas="many", deletionHoldTimeoutSeconds=limit)
    assert bool(desired(finalize(world), "Pod")) == bool(limit)
    assert not desired(finalize(after(world, limit)), "Pod")


@pytest.mark.parametrize("limit", [-1, "90", 1e3, 10**12, True])
def test_a_limit_that_makes_no_sense_is_none(limit: Any) -> None:
    world = held(replicas=1).change(deletionHoldTimeoutSeconds=limit)
    finalize(world)
    assert desired(finalize(after(world, 10**7)), "Pod")


@pytest.mark.parametrize("finalizer", ["orphan", "foregroundDeletion"])
def test_the_garbage_collectors_own_deletions_are_not_held(finalizer: str) -> None:
    world = held(replicas=1)
    meta = {**world.parent["metadata"], "finalizers": [finalizer]}
    world.parent = {**world.parent, "metadata": meta}
    assert finalize(world)["finalized"]


def test_the_end_waits_for_those_on_silent_nodes_and_on_hold_and_says_both() -> None:
    world = held(replicas=2, forceDeletePod=True)
    world.modify(1, lambda pod: silent(pod, "2026-01-05T10:59:00Z"))
    answer = finalize(world)
    assert set(desired(answer, "Pod")) == {"web-0", "web-1"}
    message = condition(answer, "Progressing")["message"]  # type: ignore[index]
    assert "nothing is heard of their nodes" in message
    assert "'match 42'" in message


def test_the_end_waits_for_a_pod_that_cannot_be_read_and_says_the_same_each_time() -> None:
    """A status that changes would bring the next sync at once."""
    world = held(replicas=1, deletionHoldTimeoutSeconds=90).modify(0, unreadable)
    first = finalize(world)
    assert set(desired(first, "Pod")) == {"web-0"}
    assert told(world) == (None, None, "true")
    assert "cannot be told" in condition(first, "Progressing")["message"]  # type: ignore[index]
    again = finalize(after(world, 10**6))
    assert again["status"] == first["status"]
    assert set(desired(again, "Pod")) == {"web-0"}
    assert not desired(finalize(world.change(deletionHoldTimeoutSeconds=0)), "Pod")


def test_what_it_is_told_stays_when_its_node_is_lost_meanwhile() -> None:
    """The node may come back, with the match still on."""
    world = held(replicas=1, forceDeletePod=True)
    finalize(world)
    assert told(world) == ("Delete", BEGAN, "true")
    finalize(world.modify(0, lambda pod: silent(pod, "2026-01-05T10:30:00Z")))
    assert world.pod(0)["metadata"]["annotations"][f"{GROUP}/lost-node"]
    assert told(world) == ("Delete", BEGAN, "true")


@pytest.mark.parametrize("status", [None, {}, {"conditions": []}, {"conditions": None}])
def test_the_end_says_whom_it_waits_for_where_nothing_was_said_yet(status: Any) -> None:
    """A TApp that is deleted before its first status, or whose status was lost in a restore."""
    world = held(replicas=1)
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


# --- status from elsewhere ------------------------------------------------------------------------


@pytest.mark.parametrize("noted_before", [5, None, [], "0-99999999999999999999", "x", {"0": "1"}])
def test_a_status_that_makes_no_sense_changes_nothing(noted_before: Any) -> None:
    world = by_new_pods(held()).settle()
    status = {**world.parent["status"], "held": noted_before}
    world.parent = {**world.parent, "status": status}
    assert world.sync()["status"]["held"] == "0"


def test_an_upgrade_writes_nothing() -> None:
    """Pods that nobody holds are answered as before."""
    world = settled(replicas=3)
    world.hook = Hook()
    world.sync()
    assert not world.writes
    assert "held" not in world.parent["status"]


def test_a_phase_that_nobody_knows_is_held() -> None:
    assert is_held(killed(held().modify(0, lambda pod: in_phase(pod, "Unknown"))))
