"""Tests a closed readiness gate, which keeps the time since when an update waits for its proof by
time.
"""

from typing import Any

import pytest

from tapp.kube.objects import Condition, InPlaceRecord
from tapp.pod.gate import unproved_since
from tapp.pod.pod import Pod, PodSpec
from tapp.words.times import UNKNOWN, seconds

BEFORE, AT, AFTER = (f"2026-01-05T10:0{minute}:00Z" for minute in range(3))


def gate(**more: Any) -> Condition:
    return Condition(type="g", status="False", **more)


def pod(at: str = "", seen: int = 0) -> Pod:
    update = InPlaceRecord(at)
    return Pod("web-0", PodSpec(), generation=3, observed_generation=seen, last_update=update)


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        (gate(last_probe_time=AFTER, observed_generation=3), AFTER),
        (gate(last_probe_time=AFTER, observed_generation=2), ""),
        (gate(last_probe_time=AFTER), ""),
    ],
    ids=["same generation", "older generation", "no generation"],
)
def test_time_of_a_gate_counts_only_for_its_observed_generation(
    condition: Condition, found: str
) -> None:
    assert unproved_since(pod(seen=3), condition) == (seconds(found) if found else UNKNOWN)


@pytest.mark.parametrize(
    ("time", "found"),
    [(AFTER, AFTER), (AT, AT), (BEFORE, ""), ("", "")],
    ids=["after", "at", "before", "none"],
)
def test_time_of_a_gate_without_a_generation_counts_if_it_is_not_before_the_record(
    time: str, found: str
) -> None:
    """Reads the time of a gate whose generation an older API server has dropped.

    The time counts if it is not before the record of the update. The time must not restart with
    every call, because then the gate would never open.
    """
    condition = gate(last_probe_time=time or None)
    assert unproved_since(pod(AT), condition) == (seconds(found) if found else UNKNOWN)
