"""An instance leaves its Services before it is updated in place, and comes back afterwards."""

from datetime import datetime
from typing import Any

import pytest

from tapp.words.times import written
from tests.builders import READY_SINCE, Document, crashing, tapp, template, terminating
from tests.reading import images
from tests.unit.world import Hook, World, condition

GATE = "apps.tkestack.io/InPlaceUpdateReady"
DRAIN = "apps.tkestack.io/drain"
LABEL = "apps.tkestack.io/pod-status"
GRACE = 5


def gated(image: str = "nginx:1", **more: Any) -> Document:
    return template(image, readinessGates=[{"conditionType": GATE}], **more)


def strategy(grace: int = GRACE, **more: Any) -> Document:
    return {"inPlaceUpdateStrategy": {"gracePeriodSeconds": grace}, **more}


class Drained(World):
    """A settled TApp with the gate, and time that passes."""

    def __init__(self, replicas: int = 3, grace: int = GRACE, **options: Any) -> None:
        parent = tapp(replicas=replicas, template=gated(), updateStrategy=strategy(grace))
        super().__init__(parent, hook=Hook(), **options)
        self.settle()

    def later(self, seconds: float) -> None:
        self.hook.now += seconds

    def gate(self, id: int) -> str:
        found = [item for item in self.pod(id)["status"]["conditions"] if item["type"] == GATE]
        return found[0]["status"] if found else "missing"

    def drain(self, id: int) -> str:
        return self.pod(id)["metadata"]["annotations"].get(DRAIN) or ""

    def begun(self, image: str = "nginx:2", **spec: Any) -> "Drained":
        """Up to where instance 0 has just been asked to leave."""
        self.change(template=gated(image), **spec)
        self.sync()
        return self

    def left(self) -> "Drained":
        """Up to where it is out of its Services."""
        self.begun().pod_status()
        self.kubelet()
        return self


def test_a_new_pod_with_the_gate_has_the_label_and_becomes_ready() -> None:
    world = Drained()
    assert world.pod(0)["metadata"]["labels"][LABEL] == "true"
    assert world.gate(0) == "True"
    assert set(world.decisions().values()) == {"Keep/UpToDate"}


def test_the_whole_of_a_drained_update() -> None:
    """Asked, out of its Services, image, back: two writes of the pod, two of its status."""
    world = Drained()
    world.change(template=gated("nginx:2"))
    assert world.decisions() == {0: "Mark/Draining", 1: "Keep/WaitingForBudget",
                                 2: "Keep/WaitingForBudget"}  # fmt: skip
    world.sync()
    assert world.writes == ["update Pod/web-0"]
    assert world.drain(0)
    assert world.container(0)["image"] == "nginx:1"
    assert world.decisions()[0] == "Keep/Draining"  # the gate is not closed yet
    assert world.pod_status() == ["web-0"]
    assert world.gate(0) == "False"
    assert world.decisions()[0] == "Keep/Draining"  # its kubelet has not looked yet: it serves
    world.kubelet()
    world.later(GRACE - 1)
    assert world.decisions()[0] == "Keep/Draining"
    assert world.pod_status() == []
    world.later(2)
    assert world.decisions()[0] == "UpdateInPlace/TemplateChanged"
    world.sync()
    assert world.writes == ["update Pod/web-0"]
    assert not world.drain(0)
    assert world.container(0)["image"] == "nginx:2"
    assert world.pod_status() == []  # the gate stays closed until the update is over
    world.kubelet()
    assert world.pod_status() == ["web-0"]
    assert world.gate(0) == "True"
    assert world.decisions()[1] == "Keep/WaitingForBudget"  # until its kubelet has looked
    world.kubelet()
    assert world.decisions()[1] == "Mark/Draining"


def test_it_asks_to_be_called_again_when_the_grace_period_is_over() -> None:
    world = Drained().left()
    answer = world.sync()
    assert answer["resyncAfterSeconds"] == pytest.approx(GRACE + 1, abs=1)


def test_a_kubelet_that_is_late_does_not_shorten_the_drain() -> None:
    """The pod is in its Services until its kubelet has looked at the gate."""
    world = Drained().begun()
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


def test_the_status_says_updating_from_the_first_write_on() -> None:
    world = Drained().begun()
    answer = world.sync()
    assert answer["status"]["statuses"]["0"] == "Updating"
    assert answer["status"]["availableReplicas"] == 2
    progressing = condition(answer, "Progressing")
    assert progressing is not None
    assert progressing["message"].startswith("updating: 0; ")


def test_an_instance_that_does_not_serve_is_not_drained() -> None:
    world = Drained()
    world.modify(1, crashing)
    world.change(template=gated("nginx:2"))
    assert world.decisions()[1] == "UpdateInPlace/TemplateChanged"


@pytest.mark.parametrize("grace", [0, None])
def test_without_a_grace_period_the_gate_follows_the_update(grace: int | None) -> None:
    """As before, but for the gate: two writes of the status and one of the pod."""
    world = Drained(grace=grace or 0)
    world.begun("nginx:2", updateStrategy=strategy(0) if grace == 0 else None)
    assert world.container(0)["image"] == "nginx:2"
    assert world.pod_status() == ["web-0"]
    assert world.gate(0) == "False"
    world.kubelet()
    assert world.pod_status() == ["web-0"]
    assert world.gate(0) == "True"


def test_without_the_gate_nothing_is_drained() -> None:
    world = World(tapp(replicas=2, updateStrategy=strategy())).settle()
    world.change(template=template("nginx:2"))
    assert world.decisions()[0] == "UpdateInPlace/TemplateChanged"
    assert LABEL not in world.pod(0)["metadata"]["labels"]


# --- an edit in the middle ------------------------------------------------------------------------

MIDDLES = {"asked": lambda world: world.begun(), "out": lambda world: world.left()}


@pytest.mark.parametrize("begin", MIDDLES.values(), ids=MIDDLES)
@pytest.mark.parametrize("strip", [False, True])
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
def test_what_is_not_wanted_any_more_is_taken_back(begin: Any, strip: bool, edit: Any) -> None:
    """The gate opens again, and the container is never touched."""
    world = Drained(strip=strip)
    begin(world)
    before = world.pod(0)["status"]["containerStatuses"]
    world.change(**edit)
    assert world.decisions()[0] == "Mark/MarksChanged"
    for _ in range(3):
        world.sync()
        world.pod_status()
        world.kubelet()
    assert not world.drain(0)
    assert world.gate(0) == "True"
    assert world.pod(0)["status"]["containerStatuses"] == before
    world.sync()
    assert world.writes == []


@pytest.mark.parametrize("begin", MIDDLES.values(), ids=MIDDLES)
def test_another_edit_goes_on_with_the_drain(begin: Any) -> None:
    world = Drained()
    begin(world)
    world.change(template=gated("nginx:3"))
    world.sync()
    world.pod_status()
    world.kubelet()
    world.later(GRACE + 2)
    world.sync()
    assert world.container(0)["image"] == "nginx:3"


@pytest.mark.parametrize("begin", MIDDLES.values(), ids=MIDDLES)
@pytest.mark.parametrize(
    ("edit", "decision"),
    [
        ({"statuses": {"0": "Killed"}}, "Delete/Killed"),
        ({"replicas": 0}, "Delete/ScaledDown"),
        ({"template": gated("nginx:2", priority=7)}, "Recreate/TemplateChanged"),
    ],
    ids=["kill", "scale-down", "more than images"],
)
def test_a_pod_that_goes_need_not_wait(begin: Any, edit: Any, decision: str) -> None:
    world = Drained()
    begin(world)
    world.change(**edit)
    assert world.decisions()[0] == decision


def test_a_grace_period_that_is_taken_away_ends_the_drain_with_the_update() -> None:
    world = Drained().left()
    world.change(updateStrategy=strategy(0))
    world.sync()
    assert world.container(0)["image"] == "nginx:2"
    assert not world.drain(0)


def test_a_roll_of_all_instances_never_updates_one_that_serves() -> None:
    """With the policy that strips the last-applied annotation, too: nothing is left drained."""
    for strip in (False, True):
        world = Drained(strip=strip)
        world.change(template=gated("nginx:2"))
        for _ in range(32):
            before = {name: (images(pod), ready(pod)) for name, pod in world.pods.items()}
            world.sync()
            for name, pod in world.pods.items():
                changed = images(pod) != before[name][0]
                assert not (changed and before[name][1]), f"{name} served"
            world.pod_status()
            world.kubelet()
            world.later(1)
        assert {world.container(id)["image"] for id in range(3)} == {"nginx:2"}
        assert [world.gate(id) for id in range(3)] == ["True"] * 3
        assert [world.drain(id) for id in range(3)] == [""] * 3


def ready(pod: Document) -> bool:
    return any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"]["conditions"])


def test_the_budget_counts_a_drain_from_its_first_write_on() -> None:
    world = Drained(replicas=4)
    world.change(template=gated("nginx:2"), updateStrategy=strategy(maxUnavailable=2))
    decided = ["Mark/Draining", "Mark/Draining", "Keep/WaitingForBudget", "Keep/WaitingForBudget"]
    assert list(world.decisions().values()) == decided
    world.sync()
    assert list(world.decisions().values()) == ["Keep/Draining"] * 2 + decided[2:]


def test_a_resize_after_an_update_closes_no_gate() -> None:
    """Another generation that no kubelet has seen yet is no update."""
    world = Drained(replicas=1)
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


def test_a_drain_that_begins_anew_before_the_gate_is_open_is_no_shorter() -> None:
    """Taken back and asked for again: it left its Services a moment ago."""
    world = Drained().left()
    closed = next(c for c in world.pod(0)["status"]["conditions"] if c["type"] == "Ready")
    closed["lastTransitionTime"] = written(world.hook.now)
    world.change(template=gated("nginx:1"))
    world.sync()
    assert not world.drain(0)
    world.later(1)
    world.change(template=gated("nginx:3"))
    world.sync()
    assert world.decisions()[0].endswith("/Draining")
    world.later(GRACE + 1)
    assert world.decisions()[0] == "UpdateInPlace/TemplateChanged"


def test_a_drain_that_was_taken_back_counts_until_the_gate_is_open_again() -> None:
    """The gate is closed, and the kubelet has not looked yet: the pod is still Ready."""
    world = Drained().begun()
    world.pod_status()
    assert (world.gate(0), ready(world.pod(0))) == ("False", True)
    world.change(template=gated("nginx:1"))
    world.sync()
    world.sync()
    assert not world.drain(0)
    world.change(templates={"1": "new"}, templatePool={"new": gated("nginx:2")},
                 updateStrategy=strategy(forceUpdate={"maxUnavailable": 1}))  # fmt: skip
    world.sync()
    assert world.decisions()[1] == "Keep/WaitingForBudget"
    for _ in range(2):
        world.pod_status()
        world.kubelet()
    assert world.decisions()[1] == "Mark/Draining"


# --- somebody else --------------------------------------------------------------------------------


def test_a_gate_that_nobody_serves_is_named() -> None:
    began = datetime.fromisoformat(READY_SINCE).timestamp()
    world = World(tapp(replicas=2, template=gated()), hook=Hook(now=began + 20))
    for _ in range(3):
        world.sync()
        world.kubelet()
    assert condition(world.sync(), "PodStatusNotWritten") is None
    world.hook.now += 20
    assert condition(world.sync(), "PodStatusNotWritten") is None  # from now on it is noted
    world.hook.now += 31
    answer = world.sync()
    found, degraded = condition(answer, "PodStatusNotWritten"), condition(answer, "Degraded")
    assert found is not None
    assert degraded is not None
    assert "metacontroller/components/pod-status" in found["message"]
    assert degraded["status"] == "True"


def test_an_instance_whose_gate_nobody_serves_is_updated_at_once() -> None:
    """It was never in a Service: as without the component."""
    world = World(tapp(replicas=1, template=gated(), updateStrategy=strategy()), hook=Hook())
    for _ in range(3):
        world.sync()
        world.kubelet()
    world.change(template=gated("nginx:2"))
    assert world.decisions()[0] == "UpdateInPlace/TemplateChanged"


def test_a_drained_instance_that_crashes_is_repaired_without_a_decorator() -> None:
    world = Drained().begun()
    world.modify(0, crashing)
    world.change(template=gated("nginx:3"))
    assert world.decisions()[0] == "UpdateInPlace/TemplateChanged"


def test_a_drain_without_a_gate_widens_no_budget() -> None:
    """Written by hand: the pods serve, and count."""
    world = World(tapp(replicas=4)).settle()
    for id in range(4):
        world.modify(id, lambda pod: annotated(pod, DRAIN, "v1-x"))
    world.change(template=template("nginx:2"))
    assert list(world.decisions().values()).count("UpdateInPlace/TemplateChanged") == 1


def test_a_drain_that_nobody_acts_on_is_named() -> None:
    world = Drained().begun()
    answer = world.sync()
    assert list(answer["status"]["unserved"]) == ["0"]
    assert condition(answer, "PodStatusNotWritten") is None
    world.later(31)
    assert condition(world.sync(), "PodStatusNotWritten") is not None
    assert world.container(0)["image"] == "nginx:1"
    world.pod_status()
    world.kubelet()
    assert condition(world.sync(), "PodStatusNotWritten") is None


def test_the_old_controllers_gate_is_served_where_it_is_closed() -> None:
    """A pod that is Ready is not touched for it; one whose gate is closed gets the label."""
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


def test_a_terminating_pod_is_left_alone() -> None:
    world = Drained().left()
    world.modify(0, terminating)
    assert world.pod_status() == []
    assert world.decisions()[0] == "Keep/Terminating"


def test_a_hand_written_drain_is_taken_back() -> None:
    world = Drained()
    world.modify(0, lambda pod: annotated(pod, DRAIN, "please"))
    assert world.pod_status() == []
    world.sync()
    assert world.drain(0) == ""
    world.sync()
    assert world.writes == []


def annotated(pod: Document, key: str, value: str) -> Document:
    meta = pod["metadata"]
    return {**pod, "metadata": {**meta, "annotations": {**meta["annotations"], key: value}}}
