"""Syncs of large TApps wait for a while after the last answer, and nothing else does."""

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


class Hurry(threading.Event):
    """A wait that only moves the clocks."""

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
    """The application, with clocks that only a wait moves."""

    def __init__(self, longest: float = LONGEST, each: float = EACH) -> None:
        self.hurry = Hurry()
        pacer = Pacer(longest, each, clock=lambda: self.hurry.now, hurry=self.hurry)
        settings = Settings(log_level="ERROR")
        self.app = create_app(settings, lambda: NOW + self.hurry.now - 100.0, pacer=pacer)

    def post(self, document: Any, path: str = "/sync") -> Any:
        client = self.app.test_client()
        response = client.post(path, data=json.dumps(document), content_type="application/json")
        assert response.status_code == 200, response.data
        return json.loads(response.data)

    def waited(self, document: Document, path: str = "/sync") -> float:
        """Seconds that this call waits."""
        before = len(self.hurry.waits)
        self.post(document, path)
        return sum(self.hurry.waits[before:])


def of(pods: int, **spec: Any) -> Document:
    """A sync of a TApp at rest."""
    parent = tapp(replicas=pods, **spec)
    children = Service().post(request(parent))["children"]
    return request(parent, [running(stored(child, parent)) for child in children])


BIG = of(60)


def changed(*changes: Change) -> Document:
    asked: Document = copied(BIG)
    for change in changes:
        change(asked)
    return asked


@pytest.mark.parametrize(
    ("pods", "seconds"), [(10, 0.0), (49, 0.0), (50, 0.5), (60, 0.6), (100, 1.0), (130, 1.0)]
)
def test_the_wait_grows_with_the_pods_and_small_tapps_never_wait(pods: int, seconds: float) -> None:
    service, asked = Service(), of(pods)
    assert service.waited(asked) == 0, "the first one"
    assert service.waited(asked) == seconds
    assert service.waited(asked) == seconds


@pytest.mark.parametrize(("rest", "seconds"), [(0.0, 0.6), (0.4, 0.2), (0.6, 0.0), (60.0, 0.0)])
def test_only_what_is_left_since_the_last_answer_is_waited_for(rest: float, seconds: float) -> None:
    service = Service()
    service.post(BIG)
    service.hurry.now += rest
    assert service.waited(BIG) == pytest.approx(seconds)


def killed(asked: Document) -> None:
    asked["parent"]["metadata"]["generation"] += 1
    asked["parent"]["spec"]["statuses"] = {"3": "Killed"}


NOT_DELAYED: dict[str, Change] = {
    "an edit": lambda asked: asked["parent"]["metadata"].update(generation=2),
    "a kill": killed,
    "a spec without a generation": lambda asked: asked["parent"]["spec"].update(replicas=61),
    "a deletion": lambda asked: asked["parent"]["metadata"].update(
        deletionTimestamp="2026-01-01T00:00:00Z"
    ),
    "another TApp": lambda asked: asked["parent"]["metadata"].update(uid="another"),
}
DELAYED: dict[str, Change] = {
    "nothing": lambda _asked: None,
    "a pod": lambda asked: asked["children"]["Pod.v1"].popitem(),
    "the status": lambda asked: asked["parent"].update(status={"replicas": 7}),
    "a label": lambda asked: asked["parent"]["metadata"].update(labels={"a": "b"}),
}


@pytest.mark.parametrize("what", NOT_DELAYED)
def test_what_somebody_asks_for_is_not_delayed(what: str) -> None:
    service = Service()
    service.post(BIG)
    assert service.waited(changed(NOT_DELAYED[what])) == 0


@pytest.mark.parametrize("what", DELAYED)
def test_what_merely_happens_is(what: str) -> None:
    service = Service()
    service.post(BIG)
    assert service.waited(changed(DELAYED[what])) > 0


@pytest.mark.parametrize("path", ["/finalize", "/plan", "/customize"])
def test_no_other_call_waits(path: str) -> None:
    service = Service()
    service.post(BIG)
    assert service.waited(BIG, path) == 0
    assert service.waited(BIG) > 0, "and none is the answer that a sync waits after"


def test_nothing_waits_where_it_is_switched_off() -> None:
    service = Service(longest=0.0)
    assert [service.waited(BIG) for _ in range(3)] == [0, 0, 0]


def test_nothing_waits_in_a_worker_that_ends() -> None:
    service = Service()
    service.post(BIG)
    service.hurry.set()
    assert service.waited(BIG) == 0


def test_an_answer_that_failed_is_none() -> None:
    service = Service()
    bad = changed(lambda asked: asked["parent"].update(kind=7))
    assert service.app.test_client().post("/sync", json=bad).status_code == 400
    assert service.waited(BIG) == 0


def test_a_parent_that_does_not_say_who_it_is_does_not_wait_for_another() -> None:
    """It is refused, as always, and at once."""
    service = Service()
    service.post(BIG)
    for uid in (None, 7, ""):
        odd = changed(lambda asked, uid=uid: asked["parent"]["metadata"].update(uid=uid))
        response = service.app.test_client().post("/sync", json=odd)
        assert response.status_code in (200, 400)
    assert service.hurry.waits == []


def test_the_decision_is_that_of_the_arrival_and_its_next_look_comes_in_time() -> None:
    """Ready for 9 of 10 `minReadySeconds` on arrival: a probe may have failed since, unseen."""
    asked = of(60, minReadySeconds=10)
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


def test_the_last_answers_that_are_remembered_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "_REMEMBERED", 2)
    service = Service()
    others = [changed(NOT_DELAYED["another TApp"]), BIG, copied(BIG)]
    others[2]["parent"]["metadata"]["uid"] = "a third"
    for asked in others:
        service.post(asked)
    assert service.waited(others[0]) == 0, "forgotten"
    assert service.waited(others[2]) > 0


class Held(threading.Event):
    """A wait that lasts until the test ends it."""

    def __init__(self) -> None:
        super().__init__()
        self.entered: queue.SimpleQueue[float | None] = queue.SimpleQueue()

    def wait(self, timeout: float | None = None) -> bool:
        self.entered.put(timeout)
        return super().wait(60)


def test_those_that_wait_hold_no_turn_and_are_never_too_many() -> None:
    """All turns are free meanwhile; and one more is decided at once."""
    assert MOST > AT_ONCE
    held = Held()
    pacer = Pacer(LONGEST, EACH, clock=lambda: 100.0, hurry=held)
    client = create_app(Settings(log_level="ERROR"), lambda: NOW, pacer=pacer).test_client
    body = json.dumps(BIG).encode()

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


def test_those_that_wait_never_hold_too_much_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service()
    size = len(json.dumps(BIG))
    service.post(BIG)
    monkeypatch.setattr(pacing, "MOST_BYTES", size - 1)
    assert service.waited(BIG) == 0
    monkeypatch.setattr(pacing, "MOST_BYTES", size)
    assert service.waited(BIG) > 0


def test_what_has_waited_makes_room() -> None:
    service = Service()
    service.post(BIG)
    assert [service.waited(BIG) for _ in range(MOST + 1)] == [0.6] * (MOST + 1)


def test_in_process_nothing_waits() -> None:
    """Simulations and tests have a time of their own: only gunicorn's worker lets requests wait."""
    assert pacing.HURRY.is_set()
