"""Tests the limits of Events: the number for each TApp, and the length of the queue."""

import threading
import time
from pathlib import Path

import pytest

from hooks.service import events
from hooks.service.cluster import Cluster
from hooks.service.events import Recorder
from tapp.plan import Plan
from tests.api_server import ApiServer
from tests.builders import Document, tapp
from tests.unit.hooks.events_writing import counted, counted_since, decided, new_event, until

pytestmark = pytest.mark.usefixtures("short_pauses_and_no_leaks")


def test_tapp_may_write_25_events_at_once_and_then_one_in_five_minutes(
    account: Path, server: ApiServer
) -> None:
    """Counts the Events of one TApp over half an hour: more than the limit are dropped.

    The limit is that of client-go's spam filter. All reasons share it, and refused events are not
    queued.
    """
    now = [0.0]
    made = Recorder(Cluster(account, server.environ).create, "one", clock=lambda: now[0])
    before = counted()
    for generation in range(1, 31):
        made.queue(*new_event(generation))
    until(before, created=25, limited=5)
    made.queue(*decided(tapp(generation=31, replicas=2, templates={"0": "typo", "1": "typo"})))
    until(before, created=25, limited=6)
    for minutes, later in ((4, 0), (6, 1), (6, 1), (11, 2), (37, 7)):
        now[0] = minutes * 60
        for generation in range(100 * minutes, 100 * minutes + 6):
            made.queue(*new_event(generation))
        assert counted_since(before)["limited"] > 6
        end = time.monotonic() + 60
        while counted_since(before)["created"] < 25 + later:
            assert time.monotonic() < end
            time.sleep(0.01)
        assert counted_since(before)["created"] == 25 + later
    made.close()


def test_limited_event_is_written_if_a_later_sync_still_has_it(
    account: Path, server: ApiServer
) -> None:
    now = [0.0]
    made = Recorder(Cluster(account, server.environ).create, "one", clock=lambda: now[0])
    before = counted()
    for generation in range(1, 27):
        made.queue(*new_event(generation))
    until(before, created=25, limited=1)
    now[0] = events.SECONDS_PER_EVENT
    made.queue(*new_event(26))
    until(before, created=26, limited=1)
    made.close()


def test_limits_of_the_tapps_with_the_latest_events_are_remembered(
    account: Path, server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With memory for the limits of two TApps, a third one replaces the TApp whose last Event is
    oldest.

    The replaced TApp starts with a full limit again.
    """
    monkeypatch.setattr(events, "BUCKETS", 2)
    monkeypatch.setattr(events, "BURST", 1)
    made = Recorder(Cluster(account, server.environ).create, "one", clock=lambda: 0.0)
    before = counted()
    for name in ("a", "b"):
        made.queue(*new_event_of("shop", name, 1))
        made.queue(*new_event_of("shop", name, 2))
    until(before, created=2, limited=2)
    made.queue(*new_event_of("shop", "c", 1))
    made.queue(*new_event_of("shop", "b", 3))
    until(before, created=3, limited=3)
    made.queue(*new_event_of("shop", "a", 3))
    until(before, created=4, limited=3)
    made.close()


def new_event_of(namespace: str, name: str, generation: int) -> tuple[Plan, Document]:
    """Returns a plan and conditions that cause one new Event of the TApp with this namespace and
    name.
    """
    parent = tapp(generation=generation)
    meta = {**parent["metadata"], "namespace": namespace, "name": name}
    return decided({**parent, "metadata": {**meta, "uid": f"u-{namespace}-{name}-{generation}"}})


def test_recreated_tapp_shares_the_limit_of_its_name(account: Path, server: ApiServer) -> None:
    made = Recorder(Cluster(account, server.environ).create, "one", clock=lambda: 0.0)
    before = counted()
    for generation in range(1, 31):
        made.queue(*new_event_of("a", "web", generation))
    until(before, created=25, limited=5)
    made.close()


def test_tapp_at_its_limit_does_not_limit_other_tapps(account: Path, server: ApiServer) -> None:
    made = Recorder(Cluster(account, server.environ).create, "one", clock=lambda: 0.0)
    before = counted()
    for generation in range(1, 31):
        made.queue(*new_event_of("a", "web", generation))
    made.queue(*new_event_of("a", "db", 1))
    made.queue(*new_event_of("b", "web", 1))
    until(before, created=27, limited=5)
    made.close()


def test_full_queue_drops_its_oldest_event() -> None:
    """Queues more Events than fit: the oldest are dropped, and a later sync can still write
    them.
    """
    go_on, first = threading.Event(), threading.Event()
    written: list[str] = []

    def create(document: Document) -> bool:
        first.set()
        assert go_on.wait(60)
        written.append(document["regarding"]["name"])
        return True

    made = Recorder(create, "one", queued=3)
    before = counted()
    made.queue(*new_event_of("shop", "web-0", 1))
    assert first.wait(60)
    for number in range(1, 6):
        made.queue(*new_event_of("shop", f"web-{number}", 1))
    assert counted_since(before) == {"dropped": 2}
    go_on.set()
    until(before, created=4, dropped=2)
    assert written == ["web-0", "web-3", "web-4", "web-5"]
    made.queue(*new_event_of("shop", "web-1", 1))
    made.queue(*new_event_of("shop", "web-5", 1))
    until(before, created=5, dropped=2)
    made.close()
