"""Tests `kubectl_tapp.cluster.watching.Watched`: objects that a watch keeps up to date."""

from collections.abc import Iterator
from queue import Queue
from threading import Event
from typing import Any

import pytest

from kubectl_tapp.cluster import watching
from kubectl_tapp.cluster.watching import Watched

Change = tuple[str, str]


class ScriptedWatch:
    """Simulates a watch whose events a test puts into `changes`: pairs of an event type and a
    uid.
    """

    def __init__(self) -> None:
        self.changes: Queue[Change | None] = Queue()

    def events(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yields the events of the test, and ends at None."""
        while (change := self.changes.get()) is not None:
            kind, uid = change
            yield kind, {"metadata": {"uid": uid}}

    def stop(self) -> None:
        """Ends the watch after the events that are already in the queue."""
        self.changes.put(None)


class Clock:
    """Replaces the module `time`; a test sets its time."""

    def __init__(self) -> None:
        self.now = 1.0

    def monotonic(self) -> float:
        """Returns the time that the test has set, in seconds."""
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Replaces the module `time` in `watching` and returns the replacement."""
    made = Clock()
    monkeypatch.setattr(watching, "time", made)
    return made


def test_deleted_objects_are_removed_after_the_initial_events(clock: Clock) -> None:
    """Objects from an earlier read are kept until the initial events of the watch are complete.

    After that, only objects of the watch count, and deleted pods must not use memory.
    """
    told, changed = ScriptedWatch(), Event()
    watched = Watched(told, changed.set)  # type: ignore[arg-type]

    def tell(kind: str, uid: str) -> None:
        changed.clear()
        told.changes.put((kind, uid))
        assert changed.wait(5)

    def uids() -> list[str]:
        found = watched.current([{"metadata": {"uid": name}} for name in ("read", "gone")])
        return sorted(each["metadata"]["uid"] for each in found)

    tell("ADDED", "a")
    tell("DELETED", "gone")
    assert uids() == ["a", "read"]
    clock.now += 11
    assert uids() == ["a"]
    for number in range(100):
        tell("ADDED", f"pod-{number}")
        tell("DELETED", f"pod-{number}")
    assert uids() == ["a"]
    assert len(watched.seen) == 2
    told.stop()
