"""An update that only time can prove: the closed gate remembers since when."""

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
)
def test_a_note_is_of_the_generation_that_it_names(condition: Condition, found: str) -> None:
    assert unproved_since(pod(seen=3), condition) == (seconds(found) if found else UNKNOWN)


@pytest.mark.parametrize(("time", "found"), [(AFTER, AFTER), (AT, AT), (BEFORE, ""), ("", "")])
def test_an_old_server_drops_the_generation_and_the_record_has_the_time(
    time: str, found: str
) -> None:
    """It was noted anew at every call, and the gate never opened."""
    condition = gate(last_probe_time=time or None)
    assert unproved_since(pod(AT), condition) == (seconds(found) if found else UNKNOWN)
