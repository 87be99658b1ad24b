"""Whose turn it is: each TApp and each tenant in its own, and nobody's who has gone."""

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from hooks.service.turns import AT_ONCE, LARGE, WAIT, Nobody
from hooks.sync import sync
from tests.builders import request, tapp
from tests.contract.calls import CLIENT, check_error, post


class Slow:
    """The service, whose decisions end when the test says so."""

    def __init__(self) -> None:
        self.began: list[str] = []
        self._ends: dict[str, threading.Semaphore] = {}
        self._over = False
        self._pool = ThreadPoolExecutor(2 * WAIT)
        self._new = CLIENT.application.test_client

    def sync(self, asked: Any, options: Any, now: float) -> Any:
        meta = asked.parent.metadata
        name = f"{meta.namespace}/{meta.name}"
        self.began.append(name)
        assert self._over or self._end(name).acquire(timeout=60)
        return sync(asked, options, now)

    def _end(self, name: str) -> threading.Semaphore:
        return self._ends.setdefault(name, threading.Semaphore(0))

    def ask(self, name: str, size: int = 0, caller: Nobody | None = None) -> "Future[Any]":
        """Asks for a decision about namespace/name."""
        body = json.dumps(of(name, size)).encode()
        environ = {} if caller is None else {"gunicorn.socket": caller}
        return self._pool.submit(
            lambda: self._new().post(
                "/sync", data=body, content_type="application/json", environ_overrides=environ
            )
        )

    def until(self, *names: str) -> None:
        """These are what has been begun, in this order."""
        end = time.monotonic() + 60
        while len(self.began) < len(names) and time.monotonic() < end:
            time.sleep(0.005)
        time.sleep(0.05)  # nothing else begins
        assert self.began == list(names)

    def end(self, *names: str) -> None:
        """So many decisions about them end, or need not wait when they begin."""
        for name in names:
            self._end(name).release()

    def close(self) -> None:
        self._over = True
        for name in list(self._ends):
            self.end(name)
        self._pool.shutdown()


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[Slow]:
    made = Slow()
    monkeypatch.setattr("hooks.app.sync", made.sync)
    yield made
    made.close()


def of(name: str, size: int = 0) -> Any:
    """A sync of namespace/name, of so many bytes more."""
    namespace, _, own = name.partition("/")
    parent = tapp()
    more = {"annotations": {"filler": "x" * size}}
    meta = {**parent["metadata"], **more, "namespace": namespace, "name": own, "uid": f"u-{name}"}
    return request({**parent, "metadata": meta})


def arrived(slow: Slow, *names: str) -> list["Future[Any]"]:
    """Asks one after the other, so that they wait in this order."""
    made = []
    for name in names:
        made.append(slow.ask(name))
        time.sleep(0.05)
    return made


def test_a_tapp_has_one_turn_at_a_time(slow: Slow) -> None:
    """Others of its tenant have theirs meanwhile."""
    made = arrived(slow, "a/web", "a/web", "a/web", "a/db")
    slow.until("a/web", "a/db")
    slow.end("a/web", "a/web", "a/web", "a/db")
    assert [one.result(60).status_code for one in made] == [200] * 4


def test_a_tenant_leaves_a_turn_to_others(slow: Slow) -> None:
    """However many TApps it has; each of them several times."""
    mine = [f"a/web-{number}" for number in range(AT_ONCE + 2)]
    arrived(slow, *mine, *mine)
    slow.until(*mine[: AT_ONCE - 1])
    arrived(slow, "b/web")
    slow.until(*mine[: AT_ONCE - 1], "b/web")


def test_who_has_had_a_turn_stands_behind_all_others(slow: Slow) -> None:
    """A TApp that is asked for again and again puts nobody off."""
    arrived(slow, "a/x", "a/y", "a/z", "a/x", "a/x", "a/other")
    slow.until("a/x", "a/y", "a/z")
    slow.end("a/x")
    slow.until("a/x", "a/y", "a/z", "a/other")
    slow.end("a/y")
    slow.until("a/x", "a/y", "a/z", "a/other", "a/x")


def test_a_large_request_waits_for_a_large_one_and_holds_up_no_small_one(slow: Slow) -> None:
    slow.ask("a/large", LARGE)
    slow.until("a/large")
    slow.ask("b/large", LARGE)
    time.sleep(0.1)
    slow.ask("b/small")
    slow.until("a/large", "b/small")
    slow.end("a/large")
    slow.until("a/large", "b/small", "b/large")


class Leaver(Nobody):
    """A client that has gone when it is its turn."""

    def has_gone(self) -> bool:
        return True


def test_who_has_gone_gets_no_turn(slow: Slow) -> None:
    """And those behind it need not wait for it."""
    arrived(slow, "a/web")
    leavers = [slow.ask("a/web", caller=Leaver()) for _ in range(5)]
    last = arrived(slow, "a/web")[0]
    slow.until("a/web")
    slow.end("a/web", "a/web")
    assert last.result(60).status_code == 200
    for one in leavers:
        check_error(one.result(60), 499)
    assert slow.began == ["a/web"] * 2


def test_who_has_gone_holds_nothing_until_it_would_have_a_turn(
    slow: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its bytes: waves of requests of 31 MB whose clients hang up took 1.5 GB."""
    monkeypatch.setattr("hooks.service.turns._LOOK", 0.01)
    first = slow.ask("shop/a")
    slow.until("shop/a")
    gone = slow.ask("shop/a", caller=Leaver())
    check_error(gone.result(10), 499)
    assert not first.done()
    slow.end("shop/a")
    assert first.result().status_code == 200


def test_a_tenant_does_not_fill_the_queue(slow: Slow) -> None:
    """What comes on top of its share is to come again; another's request waits for nothing."""
    made = [slow.ask("a/web") for _ in range(WAIT)]
    end = time.monotonic() + 60
    while sum(one.done() for one in made) < WAIT // 2 - 1 and time.monotonic() < end:
        time.sleep(0.01)
    told = [one.result() for one in made if one.done()]
    for one in told:
        assert "try again" in check_error(one, 503)["error"]
    slow.end("b/web")
    assert post("/sync", of("b/web")).status_code == 200
    slow.end(*["a/web"] * WAIT)
    answered = [one.result(60).status_code for one in made]
    assert (answered.count(200), answered.count(503)) == (WAIT // 2 + 1, WAIT // 2 - 1)
