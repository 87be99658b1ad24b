"""Tests pacing: syncs of large TApps wait after the previous response; other requests never
wait.
"""

import json
import queue
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from hooks.app import create_app
from hooks.service import pacing
from hooks.service.pacing import MOST, Pacer
from hooks.service.settings import Settings
from hooks.service.turns import AT_ONCE
from tapp.words.times import written
from tests.builders import NOW, Document, copied, request, running, stored, tapp

Change = Callable[[Document], None]
LONGEST, EACH = 1.0, 0.01


class ClockEvent(threading.Event):
    """Replaces the event for which a sync waits: `wait` returns at once and only moves a clock.

    Attributes:
        now: the time of the clock, in seconds.
        waits: the seconds of each wait.
        meanwhile: functions that are called during the next wait.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = 100.0
        self.waits: list[float] = []
        self.meanwhile: list[Callable[[], Any]] = []

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.waits.append(round(timeout, 6))
        self.now += timeout
        while self.meanwhile:
            self.meanwhile.pop()()
        return False


class Service:
    """Runs the application with a clock that stands still, except that each wait of a sync moves
    it.
    """

    def __init__(self, longest: float = LONGEST, each: float = EACH) -> None:
        self.hurry = ClockEvent()
        pacer = Pacer(longest, each, clock=lambda: self.hurry.now, hurry=self.hurry)
        settings = Settings(log_level="ERROR")
        self.app = create_app(settings, lambda: NOW + self.hurry.now - 100.0, pacer=pacer)

    def post(self, document: Any, path: str = "/sync") -> Any:
        client = self.app.test_client()
        response = client.post(path, data=json.dumps(document), content_type="application/json")
        assert response.status_code == 200, response.data
        return json.loads(response.data)

    def waited(self, document: Document, path: str = "/sync") -> float:
        """Posts a request and returns for how many seconds it has waited."""
        before = len(self.hurry.waits)
        self.post(document, path)
        return sum(self.hurry.waits[before:])


def sync_of(pods: int, **spec: Any) -> Document:
    """Returns the sync request of a TApp with this number of running pods; `spec` has fields of its
    spec.
    """
    parent = tapp(replicas=pods, **spec)
    children = Service().post(request(parent))["children"]
    return request(parent, [running(stored(child, parent)) for child in children])


LARGE = sync_of(60)


def changed(*changes: Change) -> Document:
    asked: Document = copied(LARGE)
    for change in changes:
        change(asked)
    return asked


@pytest.mark.parametrize(
    ("pods", "seconds"), [(10, 0.0), (49, 0.0), (50, 0.5), (60, 0.6), (100, 1.0), (130, 1.0)]
)
def test_wait_grows_with_the_number_of_pods_and_small_tapps_never_wait(
    pods: int, seconds: float
) -> None:
    service, asked = Service(), sync_of(pods)
    assert service.waited(asked) == 0, "the first sync does not wait"
    assert service.waited(asked) == seconds
    assert service.waited(asked) == seconds


@pytest.mark.parametrize(("rest", "seconds"), [(0.0, 0.6), (0.4, 0.2), (0.6, 0.0), (60.0, 0.0)])
def test_sync_waits_only_for_the_rest_of_the_time_since_the_last_response(
    rest: float, seconds: float
) -> None:
    service = Service()
    service.post(LARGE)
    service.hurry.now += rest
    assert service.waited(LARGE) == pytest.approx(seconds)


def killed(asked: Document) -> None:
    asked["parent"]["metadata"]["generation"] += 1
    asked["parent"]["spec"]["statuses"] = {"3": "Killed"}


NOT_DELAYED: dict[str, Change] = {
    "edit": lambda asked: asked["parent"]["metadata"].update(generation=2),
    "kill": killed,
    "edit without a new generation": lambda asked: asked["parent"]["spec"].update(replicas=61),
    "deletion": lambda asked: asked["parent"]["metadata"].update(
        deletionTimestamp="2026-01-01T00:00:00Z"
    ),
    "another TApp": lambda asked: asked["parent"]["metadata"].update(uid="another"),
}
DELAYED: dict[str, Change] = {
    "no change": lambda _asked: None,
    "pod gone": lambda asked: asked["children"]["Pod.v1"].popitem(),
    "status": lambda asked: asked["parent"].update(status={"replicas": 7}),
    "label": lambda asked: asked["parent"]["metadata"].update(labels={"a": "b"}),
}


@pytest.mark.parametrize("change", NOT_DELAYED)
def test_sync_after_an_edit_by_a_user_does_not_wait(change: str) -> None:
    service = Service()
    service.post(LARGE)
    assert service.waited(changed(NOT_DELAYED[change])) == 0


@pytest.mark.parametrize("change", DELAYED)
def test_sync_after_any_other_change_waits(change: str) -> None:
    service = Service()
    service.post(LARGE)
    assert service.waited(changed(DELAYED[change])) > 0


@pytest.mark.parametrize("path", ["/finalize", "/plan", "/customize"])
def test_other_hooks_never_wait(path: str) -> None:
    service = Service()
    service.post(LARGE)
    assert service.waited(LARGE, path) == 0
    assert service.waited(LARGE) > 0, "other hooks do not restart the wait of a sync"


def test_sync_does_not_wait_if_waiting_is_disabled() -> None:
    service = Service(longest=0.0)
    assert [service.waited(LARGE) for _ in range(3)] == [0, 0, 0]


def test_sync_does_not_wait_in_a_worker_that_is_shutting_down() -> None:
    service = Service()
    service.post(LARGE)
    service.hurry.set()
    assert service.waited(LARGE) == 0


def test_sync_does_not_wait_after_an_error() -> None:
    service = Service()
    bad = changed(lambda asked: asked["parent"].update(kind=7))
    assert service.app.test_client().post("/sync", json=bad).status_code == 400
    assert service.waited(LARGE) == 0


def test_parent_without_a_valid_uid_does_not_wait() -> None:
    service = Service()
    service.post(LARGE)
    for uid in (None, 7, ""):
        odd = changed(lambda asked, uid=uid: asked["parent"]["metadata"].update(uid=uid))
        response = service.app.test_client().post("/sync", json=odd)
        assert response.status_code in (200, 400)
    assert service.hurry.waits == []


def test_waiting_sync_decides_with_its_time_of_arrival_and_shortens_the_resync() -> None:
    """A sync that waits 0.1 s gets the response of one that arrives at the same time and does not
    wait.

    The request shows the pods as they were at its arrival: Ready for 9 of 10 seconds. So the time
    of the wait must not count as Ready, but it shortens the time until the next sync.
    """
    asked = sync_of(60, minReadySeconds=10)
    for pod in asked["children"]["Pod.v1"].values():
        for condition in pod["status"]["conditions"]:
            condition["lastTransitionTime"] = written(NOW - 9)
    at_once, paced = Service(), Service()
    at_once.hurry.now = paced.hurry.now = 99.0
    paced.post(asked)
    at_once.hurry.now = paced.hurry.now = 99.5
    expected, answer = at_once.post(asked), paced.post(asked)
    assert paced.hurry.waits == [pytest.approx(0.1)]
    left = expected.pop("resyncAfterSeconds")
    assert answer.pop("resyncAfterSeconds") == pytest.approx(left - 0.1)
    assert answer == expected


def test_last_responses_of_only_a_limited_number_of_tapps_are_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pacing, "_REMEMBERED", 2)
    service = Service()
    others = [changed(NOT_DELAYED["another TApp"]), LARGE, copied(LARGE)]
    others[2]["parent"]["metadata"]["uid"] = "a third"
    for asked in others:
        service.post(asked)
    assert service.waited(others[0]) == 0, "forgotten"
    assert service.waited(others[2]) > 0


class BlockingEvent(threading.Event):
    """Replaces the event for which a sync waits: `wait` lasts until the test sets the event.

    The queue `entered` has the time limits of all waits.
    """

    def __init__(self) -> None:
        super().__init__()
        self.entered: queue.SimpleQueue[float | None] = queue.SimpleQueue()

    def wait(self, timeout: float | None = None) -> bool:
        self.entered.put(timeout)
        return super().wait(60)


def test_waiting_syncs_block_no_other_requests_and_are_limited_in_number() -> None:
    """Lets as many syncs wait as are allowed: other requests are still decided, and one more sync
    does not wait.
    """
    assert MOST > AT_ONCE
    held = BlockingEvent()
    pacer = Pacer(LONGEST, EACH, clock=lambda: 100.0, hurry=held)
    client = create_app(Settings(log_level="ERROR"), lambda: NOW, pacer=pacer).test_client
    body = json.dumps(LARGE).encode()

    def post() -> int:
        return client().post("/sync", data=body, content_type="application/json").status_code

    assert post() == 200
    with ThreadPoolExecutor(MOST) as pool:
        waiting = [pool.submit(post) for _ in range(MOST)]
        for _ in waiting:
            assert held.entered.get(timeout=60) == pytest.approx(EACH * 60)
        assert [post(), post()] == [200, 200]
        assert client().get("/healthz").status_code == 200
        assert not [one for one in waiting if one.done()]
        held.set()
        assert [one.result(60) for one in waiting] == [200] * MOST
    assert held.entered.empty()


def test_bodies_of_waiting_syncs_are_limited_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service()
    size = len(json.dumps(LARGE))
    service.post(LARGE)
    monkeypatch.setattr(pacing, "MOST_BYTES", size - 1)
    assert service.waited(LARGE) == 0
    monkeypatch.setattr(pacing, "MOST_BYTES", size)
    assert service.waited(LARGE) > 0


def test_sync_that_has_waited_no_longer_counts_as_waiting() -> None:
    service = Service()
    service.post(LARGE)
    assert [service.waited(LARGE) for _ in range(MOST + 1)] == [0.6] * (MOST + 1)


def test_syncs_wait_only_in_gunicorn_workers() -> None:
    """The event that ends all waits is set outside of gunicorn workers, because simulations use
    other clocks.
    """
    assert pacing.HURRY.is_set()
