"""Objects that a watch keeps up to date: `kubectl_tapp.cluster.watching.Watched`."""

from collections.abc import Iterator
from queue import Queue
from threading import Event
from typing import Any

import pytest

from kubectl_tapp.cluster import watching
from kubectl_tapp.cluster.watching import Watched

Change = tuple[str, str]


class Told:
    """A watch that tells what a test puts into it."""

    def __init__(self) -> None:
        self.changes: Queue[Change | None] = Queue()

    def events(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Until None."""
        while (change := self.changes.get()) is not None:
            kind, uid = change
            yield kind, {"metadata": {"uid": uid}}

    def stop(self) -> None:
        """Its end."""
        self.changes.put(None)


class Clock:
    """A stand-in for the module `time`."""

    def __init__(self) -> None:
        self.now = 1.0

    def monotonic(self) -> float:
        """Seconds."""
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """In the place of `time`."""
    made = Clock()
    monkeypatch.setattr(watching, "time", made)
    return made


def test_what_is_gone_is_forgotten_once_all_that_was_there_has_been_told(clock: Clock) -> None:
    """Objects read first are believed until then; afterwards a day of pods takes no room."""
    told, changed = Told(), Event()
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
