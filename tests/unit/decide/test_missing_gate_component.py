"""Tests updates of instances whose readiness gate nobody writes or another writer has changed."""

from datetime import datetime

from tests.builders import READY_SINCE, Document, crashing, tapp, template, terminating
from tests.unit.decide.leaving_services import DRAIN, LABEL, DrainedWorld, gated, strategy
from tests.unit.world import Hook, World, condition


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
