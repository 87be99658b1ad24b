"""Tests the order of decisions: no namespace takes every place, and no request waits forever.

A place is the right to decide one request at a time; a worker has few of them.
"""

import json
from collections.abc import Iterator
from typing import Any

import gevent
import pytest
from gevent.lock import Semaphore

from hooks.service.turns import AT_ONCE, MOST, MOST_OF_A_NAMESPACE, OF_A_NAMESPACE, Turns
from hooks.sync import sync
from tests.builders import request, tapp
from tests.contract.calls import CLIENT, check_error

LONG = 120


class Slow:
    """Runs the service in greenlets, as a worker does; a decision ends only when the test calls
    `end`.

    Attributes:
        began: namespace/name of the TApps whose decisions have begun, in order.
    """

    def __init__(self) -> None:
        self.began: list[str] = []
        self._ends: dict[str, Semaphore] = {}
        self._asked: list[gevent.Greenlet[..., Any]] = []

    def sync(self, asked: Any, options: Any, now: float) -> Any:
        meta = asked.parent.metadata
        name = f"{meta.namespace}/{meta.name}"
        self.began.append(name)
        assert self._end(name).acquire(timeout=LONG)
        if name.endswith("/broken"):
            raise ZeroDivisionError
        return sync(asked, options, now)

    def _end(self, name: str) -> Semaphore:
        return self._ends.setdefault(name, Semaphore(0))

    def ask(self, *names: str) -> list["gevent.Greenlet[..., Any]"]:
        """Sends a sync for each namespace/name, in this order, and returns the greenlets that wait
        for responses.
        """
        made = [gevent.spawn(self._post, name) for name in names]
        self._asked += made
        self.settle()
        return made

    def _post(self, name: str) -> Any:
        client = CLIENT.application.test_client()
        return client.post("/sync", json=sync_of(name))

    def end(self, *names: str) -> None:
        """Ends one decision about each namespace/name now, or as soon as that decision begins."""
        for name in names:
            self._end(name).release()
        self.settle()

    @staticmethod
    def settle() -> None:
        """Lets all greenlets run until each of them waits."""
        for _ in range(20):
            gevent.sleep(0)

    def close(self) -> None:
        gevent.killall(self._asked)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[Slow]:
    made = Slow()
    monkeypatch.setattr("hooks.app.sync", made.sync)
    yield made
    made.close()


def sync_of(name: str) -> Any:
    """Returns a sync request for a TApp, given as namespace/name."""
    namespace, _, own = name.partition("/")
    parent = tapp()
    meta = {**parent["metadata"], "namespace": namespace, "name": own, "uid": f"u-{name}"}
    return request({**parent, "metadata": meta})


def codes(asked: list["gevent.Greenlet[..., Any]"]) -> list[int]:
    gevent.joinall(asked, timeout=LONG)
    return [each.value.status_code for each in asked]


def test_namespace_leaves_a_place_for_other_namespaces(slow: Slow) -> None:
    """Many requests of one namespace run up to its limit, and a request of another namespace runs
    at once.
    """
    mine = [f"a/web-{number}" for number in range(AT_ONCE + 2)]
    slow.ask(*mine, *mine)
    assert slow.began == mine[:OF_A_NAMESPACE]
    slow.ask("b/web")
    assert slow.began == [*mine[:OF_A_NAMESPACE], "b/web"]


def test_number_of_concurrent_decisions_is_limited(slow: Slow) -> None:
    everyone = [f"{name}/web" for name in "abcdefgh"]
    asked = slow.ask(*everyone)
    assert slow.began == everyone[:AT_ONCE]
    slow.end(*everyone)
    assert codes(asked) == [200] * len(everyone)
    assert slow.began == everyone


def test_requests_of_a_namespace_are_decided_in_order_of_arrival(slow: Slow) -> None:
    mine = [f"a/web-{number}" for number in range(8)]
    slow.ask(*mine)
    for number, name in enumerate(mine):
        slow.end(name)
        assert slow.began == mine[: OF_A_NAMESPACE + number + 1]


def test_failed_decision_frees_its_place(slow: Slow) -> None:
    asked = slow.ask(*["a/broken"] * OF_A_NAMESPACE)
    slow.end(*["a/broken"] * OF_A_NAMESPACE)
    assert codes(asked) == [500] * OF_A_NAMESPACE
    asked = slow.ask("a/web")
    slow.end("a/web")
    assert codes(asked) == [200]


def test_closed_connection_frees_its_place(slow: Slow) -> None:
    """Closes the connections of running and waiting requests; another request is then decided."""
    asked = slow.ask(*["a/web"] * (OF_A_NAMESPACE + 1))
    gevent.killall(asked)
    asked = slow.ask("a/db")
    slow.end("a/db")
    assert codes(asked) == [200]


def test_queue_refuses_more_requests_of_one_namespace(slow: Slow) -> None:
    """A request beyond the limit of a namespace gets 503, and requests of other namespaces are
    accepted.
    """
    asked = slow.ask(*["a/web"] * MOST_OF_A_NAMESPACE)
    (refused,) = slow.ask("a/db")
    assert "try again" in check_error(refused.value, 503)["error"]
    assert refused.value.headers["Retry-After"] == "1"
    other = slow.ask("b/web")
    slow.end("b/web")
    assert codes(other) == [200]
    slow.end(*["a/web"] * MOST_OF_A_NAMESPACE)
    assert codes(asked) == [200] * MOST_OF_A_NAMESPACE


def test_full_queue_refuses_every_namespace(slow: Slow) -> None:
    for namespace in "ab":
        slow.ask(*[f"{namespace}/web"] * MOST_OF_A_NAMESPACE)
    assert 2 * MOST_OF_A_NAMESPACE == MOST
    (refused,) = slow.ask("c/web")
    check_error(refused.value, 503)


@pytest.mark.parametrize("path", ["/finalize", "/plan", "/customize", "/pod-status"])
def test_every_hook_counts_for_its_namespace(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    """Each endpoint takes a place for the namespace of the request's TApp or, for pod-status, of
    its pod.
    """
    seen: list[str] = []
    turn = Turns.turn

    def noted(self: Turns, namespace: str) -> Any:
        seen.append(namespace)
        return turn(self, namespace)

    monkeypatch.setattr(Turns, "turn", noted)
    document = {**sync_of("shop/web"), "object": {"metadata": {"name": "a-0", "namespace": "shop"}}}
    body = json.dumps({"object": document["object"]} if path == "/pod-status" else document)
    CLIENT.post(path, data=body, content_type="application/json")
    assert seen == ["shop"]
