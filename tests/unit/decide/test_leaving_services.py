"""Tests that instances leave their Services before an update in place, and return to them
afterwards.

The service closes a readiness gate for that. Only after `gracePeriodSeconds` outside the Services,
the image changes.
"""

from typing import Any

import pytest

from tapp.words.times import written
from tests.builders import Document, crashing, tapp, template
from tests.hook_calls import images
from tests.unit.decide.leaving_services import GRACE, LABEL, DrainedWorld, gated, strategy
from tests.unit.world import World, condition


def test_new_pod_with_the_readiness_gate_has_the_label_and_becomes_ready() -> None:
    world = DrainedWorld()
    assert world.pod(0)["metadata"]["labels"][LABEL] == "true"
    assert world.gate(0) == "True"
    assert set(world.decisions().values()) == {"Keep/UpToDate"}


def test_update_in_place_waits_for_the_grace_period_with_a_closed_gate() -> None:
    """Plays all steps of an update: leave the Services, wait, change the image, return.

    The pod is written twice, and its status is written twice.
    """
    world = DrainedWorld()
    world.change(template=gated("nginx:2"))
    assert world.decisions() == {0: "Mark/Draining", 1: "Keep/WaitingForBudget",
                                 2: "Keep/WaitingForBudget"}  # fmt: skip
    world.sync()
    assert world.writes == ["update Pod/web-0"]
    assert world.drain_annotation(0)
    assert world.container(0)["image"] == "nginx:1"
    assert world.decisions()[0] == "Keep/Draining"  # the readiness gate is not closed yet
    assert world.pod_status() == ["web-0"]
    assert world.gate(0) == "False"
    assert world.decisions()[0] == "Keep/Draining"  # the kubelet has not observed the gate
    world.kubelet()
    world.later(GRACE - 1)
    assert world.decisions()[0] == "Keep/Draining"
    assert world.pod_status() == []
    world.later(2)
    assert world.decisions()[0] == "UpdateInPlace/TemplateChanged"
    world.sync()
    assert world.writes == ["update Pod/web-0"]
    assert not world.drain_annotation(0)
    assert world.container(0)["image"] == "nginx:2"
    assert world.pod_status() == []  # the gate stays closed until the update is complete
    world.kubelet()
    assert world.pod_status() == ["web-0"]
    assert world.gate(0) == "True"
    assert world.decisions()[1] == "Keep/WaitingForBudget"  # the kubelet has not observed it
    world.kubelet()
    assert world.decisions()[1] == "Mark/Draining"


def test_resync_is_due_when_the_grace_period_ends() -> None:
    world = DrainedWorld().out_of_services()
    answer = world.sync()
    assert answer["resyncAfterSeconds"] == pytest.approx(GRACE + 1, abs=1)


def test_slow_kubelet_does_not_shorten_the_grace_period() -> None:
    """The kubelet sees the closed gate late: the grace period begins only then.

    Until then the pod stays in its Services.
    """
    world = DrainedWorld().leaving()
    world.pod_status()
    world.later(GRACE + 3)
    assert world.decisions()[0] == "Keep/Draining"
    world.kubelet()
    ready = next(c for c in world.pod(0)["status"]["conditions"] if c["type"] == "Ready")
    ready["lastTransitionTime"] = written(world.hook.now)
    world.later(GRACE - 1)
    assert world.decisions()[0] == "Keep/Draining"
    world.later(2)
    assert world.decisions()[0] == "UpdateInPlace/TemplateChanged"


def test_status_shows_updating_as_soon_as_an_instance_leaves_its_services() -> None:
    world = DrainedWorld().leaving()
    answer = world.sync()
    assert answer["status"]["statuses"]["0"] == "Updating"
    assert answer["status"]["availableReplicas"] == 2
    progressing = condition(answer, "Progressing")
    assert progressing is not None
    assert progressing["message"].startswith("updating instance 0; ")


def test_unavailable_instance_is_updated_without_a_grace_period() -> None:
    world = DrainedWorld()
    world.modify(1, crashing)
    world.change(template=gated("nginx:2"))
    assert world.decisions()[1] == "UpdateInPlace/TemplateChanged"


@pytest.mark.parametrize("grace", [0, None])
def test_gate_closes_after_the_update_without_a_grace_period(grace: int | None) -> None:
    """Without a grace period the image changes at once, and the gate is closed until the new
    container is ready.

    The pod is written once, and its status is written twice.
    """
    world = DrainedWorld(grace=grace or 0)
    world.leaving("nginx:2", updateStrategy=strategy(0) if grace == 0 else None)
    assert world.container(0)["image"] == "nginx:2"
    assert world.pod_status() == ["web-0"]
    assert world.gate(0) == "False"
    world.kubelet()
    assert world.pod_status() == ["web-0"]
    assert world.gate(0) == "True"


def test_pods_without_the_readiness_gate_are_updated_without_a_grace_period() -> None:
    world = World(tapp(replicas=2, updateStrategy=strategy())).settle()
    world.change(template=template("nginx:2"))
    assert world.decisions()[0] == "UpdateInPlace/TemplateChanged"
    assert LABEL not in world.pod(0)["metadata"]["labels"]


STAGES = {
    "leaving": lambda world: world.leaving(),
    "out of the Services": lambda world: world.out_of_services(),
}


@pytest.mark.parametrize("begin", STAGES.values(), ids=STAGES)
@pytest.mark.parametrize("strip", [False, True], ids=["last-applied kept", "last-applied stripped"])
@pytest.mark.parametrize(
    "edit",
    [
        {"template": gated("nginx:1")},
        {"updateStrategy": strategy(paused=True)},
        {"defaultTemplateName": "typo"},
        {"updateStrategy": strategy(maxUnavailable="nonsense")},
    ],
    ids=["rollback", "pause", "template not found", "invalid budget"],
)
def test_instance_returns_to_its_services_if_the_update_is_canceled(
    begin: Any, strip: bool, edit: Any
) -> None:
    """Cancels an update while its instance leaves its Services: the gate opens again, and no
    container restarts.
    """
    world = DrainedWorld(strip=strip)
    begin(world)
    before = world.pod(0)["status"]["containerStatuses"]
    world.change(**edit)
    assert world.decisions()[0] == "Mark/MarksChanged"
    for _ in range(3):
        world.sync()
        world.pod_status()
        world.kubelet()
    assert not world.drain_annotation(0)
    assert world.gate(0) == "True"
    assert world.pod(0)["status"]["containerStatuses"] == before
    world.sync()
    assert world.writes == []


@pytest.mark.parametrize("begin", STAGES.values(), ids=STAGES)
def test_second_edit_does_not_restart_the_grace_period(begin: Any) -> None:
    world = DrainedWorld()
    begin(world)
    world.change(template=gated("nginx:3"))
    world.sync()
    world.pod_status()
    world.kubelet()
    world.later(GRACE + 2)
    world.sync()
    assert world.container(0)["image"] == "nginx:3"


@pytest.mark.parametrize("begin", STAGES.values(), ids=STAGES)
@pytest.mark.parametrize(
    ("edit", "decision"),
    [
        ({"statuses": {"0": "Killed"}}, "Delete/Killed"),
        ({"replicas": 0}, "Delete/ScaledDown"),
        ({"template": gated("nginx:2", priority=7)}, "Recreate/TemplateChanged"),
    ],
    ids=["kill", "scale-down", "more than images"],
)
def test_deletion_and_replacement_do_not_wait_for_the_grace_period(
    begin: Any, edit: Any, decision: str
) -> None:
    world = DrainedWorld()
    begin(world)
    world.change(**edit)
    assert world.decisions()[0] == decision


def test_update_starts_at_once_if_the_grace_period_is_removed() -> None:
    world = DrainedWorld().out_of_services()
    world.change(updateStrategy=strategy(0))
    world.sync()
    assert world.container(0)["image"] == "nginx:2"
    assert not world.drain_annotation(0)


@pytest.mark.parametrize("strip", [False, True], ids=["last-applied kept", "last-applied stripped"])
def test_rollout_never_updates_a_ready_pod_and_opens_all_gates_at_the_end(strip: bool) -> None:
    world = DrainedWorld(strip=strip)
    world.change(template=gated("nginx:2"))
    for _ in range(32):
        before = {name: (images(pod), is_ready(pod)) for name, pod in world.pods.items()}
        world.sync()
        for name, pod in world.pods.items():
            changed = images(pod) != before[name][0]
            assert not (changed and before[name][1]), f"{name} was Ready when its image changed"
        world.pod_status()
        world.kubelet()
        world.later(1)
    assert {world.container(id)["image"] for id in range(3)} == {"nginx:2"}
    assert [world.gate(id) for id in range(3)] == ["True"] * 3
    assert [world.drain_annotation(id) for id in range(3)] == [""] * 3


def is_ready(pod: Document) -> bool:
    return any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"]["conditions"])


def test_instance_uses_the_budget_as_soon_as_it_leaves_its_services() -> None:
    world = DrainedWorld(replicas=4)
    world.change(template=gated("nginx:2"), updateStrategy=strategy(maxUnavailable=2))
    decided = ["Mark/Draining", "Mark/Draining", "Keep/WaitingForBudget", "Keep/WaitingForBudget"]
    assert list(world.decisions().values()) == decided
    world.sync()
    assert list(world.decisions().values()) == ["Keep/Draining"] * 2 + decided[2:]


def test_resize_after_an_update_does_not_close_the_gate() -> None:
    """After an update in place, somebody resizes the pod: its gate stays open.

    A generation that the kubelet has not observed yet can also come from a resize.
    """
    world = DrainedWorld(replicas=1)
    world.change(template=gated("nginx:2"))
    for _ in range(15):
        world.sync()
        world.pod_status()
        world.kubelet()
        world.later(1)

    def resized(pod: Document) -> Document:
        meta = {**pod["metadata"], "generation": pod["metadata"]["generation"] + 1}
        return {**pod, "metadata": meta}

    world.modify(0, resized)
    assert world.container(0)["image"] == "nginx:2"
    assert world.pod_status() == []
    assert world.gate(0) == "True"


def test_grace_period_restarts_if_the_update_was_canceled_in_between() -> None:
    """Cancels an update and starts another one: the second one waits for a whole grace period.

    The pod left its Services only a moment ago, so the first grace period does not count.
    """
    world = DrainedWorld().out_of_services()
    closed = next(c for c in world.pod(0)["status"]["conditions"] if c["type"] == "Ready")
    closed["lastTransitionTime"] = written(world.hook.now)
    world.change(template=gated("nginx:1"))
    world.sync()
    assert not world.drain_annotation(0)
    world.later(1)
    world.change(template=gated("nginx:3"))
    world.sync()
    assert world.decisions()[0].endswith("/Draining")
    world.later(GRACE + 1)
    assert world.decisions()[0] == "UpdateInPlace/TemplateChanged"


def test_instance_uses_the_budget_until_its_gate_is_open_after_a_canceled_update() -> None:
    """Cancels the update of instance 0 and updates instance 1, which waits until the gate of
    instance 0 is open.

    The gate is closed and the kubelet has not seen that yet, so the pod of instance 0 is still
    Ready.
    """
    world = DrainedWorld().leaving()
    world.pod_status()
    assert world.gate(0) == "False"
    assert is_ready(world.pod(0))
    world.change(template=gated("nginx:1"))
    world.sync()
    world.sync()
    assert not world.drain_annotation(0)
    world.change(templates={"1": "new"}, templatePool={"new": gated("nginx:2")},
                 updateStrategy=strategy(forceUpdate={"maxUnavailable": 1}))  # fmt: skip
    world.sync()
    assert world.decisions()[1] == "Keep/WaitingForBudget"
    for _ in range(2):
        world.pod_status()
        world.kubelet()
    assert world.decisions()[1] == "Mark/Draining"
