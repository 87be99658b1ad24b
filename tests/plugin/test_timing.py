"""Tests the durations that forecasts learn from pods: only pods of an update count."""

import json
from typing import Any

import pytest

from kubectl_tapp.base.observed import Document, Observed
from kubectl_tapp.forecast.timing import STOP, SWAP, Durations, timing

PROBED = {"name": "app", "readinessProbe": {"periodSeconds": 1}}


def at(seconds: int) -> str:
    """Returns the timestamp of a time that is `seconds` seconds after noon."""
    return f"2026-01-01T12:{seconds // 60:02}:{seconds % 60:02}Z"


def pod(**change: Any) -> Document:
    """Returns a pod that was created at second 0, ran at 4, and was Ready at 7.

    `change` sets other times, or has the marks of an update, a restart or an outage afterwards.
    """
    metadata: Document = {"name": "web-0", "uid": "new", "creationTimestamp": at(0)}
    if "replaced" in change:
        record = {"revision": "v1-x", "containers": {"app": {"id": change["replaced"]}}}
        metadata["annotations"] = {"apps.tkestack.io/in-place-update": json.dumps(record)}
    if "written" in change:
        metadata["managedFields"] = [
            {"manager": "metacontroller", "time": at(change["written"])},
            {"manager": "kubelet", "subresource": "status", "time": at(3000)},
        ]
    container: Document = {"name": "app", "restartCount": change.get("restarts", 0)}
    container["state"] = {"running": {"startedAt": at(change.get("started", 4))}}
    if "ended" in change:
        ended = {"finishedAt": at(change["ended"]), "exitCode": change.get("code", 143)}
        container["lastState"] = {"terminated": ended | {"containerID": "c-1"}}
    ready = {"type": "ContainersReady", "status": "True"}
    ready["lastTransitionTime"] = at(change.get("ready", 7))
    status = {"containerStatuses": [container], "conditions": [ready]}
    grace = {"terminationGracePeriodSeconds": change.get("grace", 30)}
    return {"metadata": metadata, "spec": grace, "status": status}


def pace(shown: Document, grace: int = 30) -> Durations:
    """Returns the durations that are learned from this pod alone for its template.

    `grace` is the template's grace period in seconds.
    """
    observed = Observed({"metadata": {"name": "web"}}, pods=[shown])
    body = {"spec": {"containers": [PROBED], "terminationGracePeriodSeconds": grace}}
    return timing(observed, {"web-0": "default"}).pace("default", body)


def test_duration_of_a_start_is_learned_from_a_pod_without_restarts() -> None:
    found = pace(pod())
    assert found.begin == 4
    assert found.ready == 3
    assert found.starts == 1
    assert found.swap == SWAP
    assert found.swaps == 0
    assert found.stop == STOP
    assert found.stops == 0


UPDATE: Document = {"replaced": "c-1", "ended": 102, "started": 103, "ready": 105, "restarts": 1}
CASES: dict[str, tuple[Document, tuple[float, int], tuple[float, int]]] = {
    # history of the pod, duration and count of swaps, duration and count of stops
    "an update": (UPDATE | {"written": 100}, (1, 1), (2, 1)),
    "an update that ended cleanly, the fifth": (
        UPDATE | {"written": 100, "code": 0, "restarts": 5}, (1, 1), (2, 1),
    ),
    "an update, and a label that was written later": (UPDATE | {"written": 900}, (1, 1), (STOP, 0)),
    "an outage of five minutes": (
        {"ended": 100, "started": 400, "ready": 402, "restarts": 1}, (SWAP, 0), (STOP, 0),
    ),
    "a crash after an update": (
        UPDATE | {"replaced": "c-0", "ended": 200, "started": 500, "ready": 510, "restarts": 2},
        (SWAP, 0), (STOP, 0),
    ),
    "a new pod": ({}, (SWAP, 0), (STOP, 0)),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_only_updates_count(case: str) -> None:
    shown, (swap, swaps), (stop, stops) = CASES[case]
    found = pace(pod(**shown))
    assert found.swap == swap
    assert found.swaps == swaps
    assert found.stop == stop
    assert found.stops == stops


def test_outage_does_not_count_as_the_duration_of_a_start() -> None:
    found = pace(pod(ended=100, started=400, ready=900, restarts=1))
    assert found.starts == 0


@pytest.mark.parametrize(
    ("took", "stop", "stops"),
    [(3, 3, 1), (7, 6, 1), (57, STOP, 0)],
    ids=["within the grace period", "a second after it", "much later"],
)
def test_duration_of_a_stop_is_limited_by_the_grace_period(
    took: int, stop: float, stops: int
) -> None:
    """A container that stopped within a second after its grace period counts with at most the grace
    period.

    A much longer time has another cause, so it is ignored.
    """
    shown = pod(**UPDATE | {"written": 102 - took, "grace": 6})
    found = pace(shown, grace=6)
    assert found.stop == stop
    assert found.stops == stops
    assert pace(shown, grace=2).stop <= 2
