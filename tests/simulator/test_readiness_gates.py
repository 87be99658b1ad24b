"""Tests readiness gates in the simulated kubelet."""

from __future__ import annotations

import pytest

from tests.simulator.node import OnePod


def set_gate(pod: OnePod, status: str | None) -> None:
    """Sets the condition of the gate `x/y` as another controller does; None removes the
    condition.
    """
    others = [one for one in pod.pod["status"]["conditions"] if one["type"] != "x/y"]
    gate = [] if status is None else [{"type": "x/y", "status": status, "message": "kept"}]
    pod.pod = {**pod.pod, "status": {**pod.pod["status"], "conditions": [*others, *gate]}}
    pod.worker.notice(pod.pod, pod.now)


CLOSED = 'the status of pod readiness gate "x/y" is not "True", but False'
MISSING = 'corresponding condition of pod readiness gate "x/y" does not exist.'


@pytest.mark.parametrize(
    ("before", "after", "ready", "message"),
    [
        (None, "True", True, None),
        ("False", "True", True, None),
        ("True", "False", False, CLOSED),
        ("True", None, False, MISSING),
        (None, "False", False, CLOSED),
    ],
    ids=["set to True", "changed to True", "changed to False", "removed", "set to False"],
)
def test_changed_gate_takes_effect_after_a_moment(
    before: str | None, after: str | None, ready: bool, message: str | None
) -> None:
    """Changes the condition of a readiness gate: Ready follows 0.4 to 0.8 s later, when the kubelet
    sees it.

    A gate without a condition is closed.
    """
    pod = OnePod(readinessGates=[{"conditionType": "x/y"}]).up()
    assert not pod.ready
    assert pod.condition("ContainersReady")["status"] == "True"
    set_gate(pod, before)
    pod.run(5)
    was = pod.ready
    assert was is (before == "True")
    set_gate(pod, after)
    pod.run(0.45)
    assert pod.ready is was
    pod.run(0.35)
    assert pod.ready is ready
    assert pod.condition("Ready").get("message") == message
    if after is not None:
        assert pod.condition("x/y") == {"type": "x/y", "status": after, "message": "kept"}


def test_in_place_update_keeps_the_condition_of_a_gate() -> None:
    """Changes the image of a pod with a closed gate: the kubelet keeps conditions that are not its
    own.
    """
    pod = OnePod(readinessGates=[{"conditionType": "x/y"}]).up()
    set_gate(pod, "False")
    pod.edit("app:2").run(10)
    assert pod.status["image"] == "docker.io/library/app:2"
    assert not pod.ready
    assert pod.condition("x/y")["status"] == "False"
