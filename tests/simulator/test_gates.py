"""Readiness gates, as a kubelet reckons with them."""

from __future__ import annotations

import pytest

from tests.simulator.node import OnePod


def set_gate(pod: OnePod, status: str | None) -> None:
    """Somebody else writes the condition of the gate x/y, or takes it away."""
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
)
def test_a_gate_counts_a_moment_after_it_changed(
    before: str | None, after: str | None, ready: bool, message: str | None
) -> None:
    """Seen 0.4 to 0.8 s later; a gate without a condition is a closed one."""
    pod = OnePod(readinessGates=[{"conditionType": "x/y"}]).up()
    assert (pod.ready, pod.condition("ContainersReady")["status"]) == (False, "True")
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


def test_a_gate_stays_as_it_is_through_an_update_in_place() -> None:
    """The kubelet keeps conditions that are not its own, whatever it writes."""
    pod = OnePod(readinessGates=[{"conditionType": "x/y"}]).up()
    set_gate(pod, "False")
    pod.edit("app:2").run(10)
    assert pod.status["image"] == "docker.io/library/app:2"
    assert (pod.ready, pod.condition("x/y")["status"]) == (False, "False")
