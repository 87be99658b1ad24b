"""Tests that instances leave their Services before an update in place, and return to them
afterwards.

The service closes a readiness gate for that. Only after `gracePeriodSeconds` outside the Services,
the image changes.
"""

from datetime import datetime
from typing import Any

import pytest

from tapp.words.times import written
from tests.builders import READY_SINCE, Document, crashing, tapp, template, terminating
from tests.hook_calls import images
from tests.unit.world import Hook, World, condition

GATE = "apps.tkestack.io/InPlaceUpdateReady"
DRAIN = "apps.tkestack.io/drain"
LABEL = "apps.tkestack.io/pod-status"
GRACE = 5


def gated(image: str = "nginx:1", **more: Any) -> Document:
    return template(image, readinessGates=[{"conditionType": GATE}], **more)


def strategy(grace: int = GRACE, **more: Any) -> Document:
    return {"inPlaceUpdateStrategy": {"gracePeriodSeconds": grace}, **more}


class DrainedWorld(World):
    """Simulates a TApp with the readiness gate and a grace period, whose clock a test sets."""

    def __init__(self, replicas: int = 3, grace: int = GRACE, **options: Any) -> None:
        parent = tapp(replicas=replicas, template=gated(), updateStrategy=strategy(grace))
        super().__init__(parent, hook=Hook(), **options)
        self.settle()

    def later(self, seconds: float) -> None:
        self.hook.now += seconds

    def gate(self, id: int) -> str:
        found = [item for item in self.pod(id)["status"]["conditions"] if item["type"] == GATE]
        return found[0]["status"] if found else "missing"

    def drain_annotation(self, id: int) -> str:
        return self.pod(id)["metadata"]["annotations"].get(DRAIN) or ""

    def leaving(self, image: str = "nginx:2", **spec: Any) -> "DrainedWorld":
        """Changes the image and runs a sync, so that instance 0 begins to leave its Services;
        returns the world.
        """
        self.change(template=gated(image), **spec)
        self.sync()
        return self

    def out_of_services(self) -> "DrainedWorld":
        """Changes the image and brings instance 0 to the point where it has left its Services;
        returns the world.
        """
        self.leaving().pod_status()
        self.kubelet()
        return self


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


# --- an edit in the middle ------------------------------------------------------------------------

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


# --- a missing component, and changes by others ---------------------------------------------------


def test_condition_names_the_missing_component_if_no_gate_is_written() -> None:
    began = datetime.fromisoformat(READY_SINCE).timestamp()
    world = World(tapp(replicas=2, template=gated()), hook=Hook(now=began + 20))
    for _ in range(3):
        world.sync()
        world.kubelet()
    assert condition(world.sync(), "PodStatusNotWritten") is None
    world.hook.now += 20
    # This sync is the first that keeps the time in the status.
    assert condition(world.sync(), "PodStatusNotWritten") is None
    world.hook.now += 31
    answer = world.sync()
    found, degraded = condition(answer, "PodStatusNotWritten"), condition(answer, "Degraded")
    assert found is not None
    assert degraded is not None
    assert "metacontroller/components/pod-status" in found["message"]
    assert degraded["status"] == "True"


def test_instance_whose_gate_was_never_open_is_updated_without_a_grace_period() -> None:
    """Without the component pod-status, a pod is never Ready and in no Service: its update waits
    for nothing.
    """
    world = World(tapp(replicas=1, template=gated(), updateStrategy=strategy()), hook=Hook())
    for _ in range(3):
        world.sync()
        world.kubelet()
    world.change(template=gated("nginx:2"))
    assert world.decisions()[0] == "UpdateInPlace/TemplateChanged"


def test_crashed_instance_is_repaired_while_its_gate_is_not_written() -> None:
    world = DrainedWorld().leaving()
    world.modify(0, crashing)
    world.change(template=gated("nginx:3"))
    assert world.decisions()[0] == "UpdateInPlace/TemplateChanged"


def test_drain_annotation_without_a_gate_does_not_raise_the_budget() -> None:
    """Somebody writes the drain annotation to all pods by hand: one instance is updated, as the
    budget allows.

    The pods have no readiness gate, so they still serve requests and are available.
    """
    world = World(tapp(replicas=4)).settle()
    for id in range(4):
        world.modify(id, lambda pod: annotated(pod, DRAIN, "v1-x"))
    world.change(template=template("nginx:2"))
    assert list(world.decisions().values()).count("UpdateInPlace/TemplateChanged") == 1


def test_condition_is_set_if_the_gate_of_a_leaving_instance_is_not_closed() -> None:
    world = DrainedWorld().leaving()
    answer = world.sync()
    assert list(answer["status"]["unserved"]) == ["0"]
    assert condition(answer, "PodStatusNotWritten") is None
    world.later(31)
    assert condition(world.sync(), "PodStatusNotWritten") is not None
    assert world.container(0)["image"] == "nginx:1"
    world.pod_status()
    world.kubelet()
    assert condition(world.sync(), "PodStatusNotWritten") is None


def test_gate_of_the_old_controller_is_opened_if_it_is_closed() -> None:
    """A pod has the readiness gate of the old controller: only if the gate is closed, the service
    opens it.

    A pod that is Ready is not written.
    """
    old = "tkestack.io/InPlaceUpdate"
    world = World(tapp(replicas=1)).settle()

    def with_gate(pod: Document, status: str) -> Document:
        spec = {**pod["spec"], "readinessGates": [{"conditionType": old}]}
        gate = {"type": old, "status": status, "lastTransitionTime": "2026-01-01T00:00:00Z"}
        others = [c for c in pod["status"]["conditions"] if c["type"] != old]
        return {**pod, "spec": spec, "status": {**pod["status"], "conditions": [*others, gate]}}

    world.modify(0, lambda pod: with_gate(pod, "True"))
    world.kubelet()
    assert world.decisions()[0] == "Keep/UpToDate"
    world.modify(0, lambda pod: with_gate(pod, "False"))
    world.kubelet()
    world.sync()
    assert world.pod(0)["metadata"]["labels"][LABEL] == "true"
    assert world.pod_status() == ["web-0"]
    world.kubelet()
    assert world.decisions()[0] == "Keep/UpToDate"
    world.sync()
    assert world.writes == []


def test_terminating_pod_is_neither_updated_nor_are_its_gates_written() -> None:
    world = DrainedWorld().out_of_services()
    world.modify(0, terminating)
    assert world.pod_status() == []
    assert world.decisions()[0] == "Keep/Terminating"


def test_drain_annotation_that_somebody_wrote_is_removed() -> None:
    world = DrainedWorld()
    world.modify(0, lambda pod: annotated(pod, DRAIN, "please"))
    assert world.pod_status() == []
    world.sync()
    assert world.drain_annotation(0) == ""
    world.sync()
    assert world.writes == []


def annotated(pod: Document, key: str, value: str) -> Document:
    meta = pod["metadata"]
    return {**pod, "metadata": {**meta, "annotations": {**meta["annotations"], key: value}}}
