"""Tests the follower of a TApp, which reads the cluster only by watches; these tests need no
browser.

A follower is the part of the server that keeps the data of one page up to date.
"""

import time
from collections.abc import Callable

import pytest

from demo.web import session_of
from kubectl_tapp.live.following import FollowedTApp, Followers
from simulator.api.store import ForbiddenError
from simulator.objects.objects import name_of
from tapp.words.kinds import SERVICE
from tests.plugin.fake_kubectl import StandIn
from tests.plugin.sync_errors import record_failures
from tests.scenarios.life import Life
from tests.web.page_server import Document, tapp

SECONDS = 120.0
"""The longest that a watch's news may take: no measure of speed."""


def sees(followed: FollowedTApp, fact: Callable[[], bool]) -> bool:
    """Waits until the follower has data and the function `fact` returns True; returns False after
    two minutes.
    """
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        if followed.view is not None and fact():
            return True
        time.sleep(0.05)
    return False


def test_services_are_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deletes a Service, and then removes the Service template: the follower sees both
    immediately.
    """
    monkeypatch.setattr("kubectl_tapp.live.following._MAX_PAUSE", 1.0)
    exposed = tapp(replicas=2, serviceTemplate={"spec": {"ports": [{"port": 80}]}})
    standin = StandIn(Life(exposing=True).apply(exposed).world)
    live = Followers(session_of(standin))
    followed = live.one_tapp("default", "shop")

    def services() -> list[str]:
        assert followed.view is not None
        return sorted(
            each["metadata"]["name"] for each in followed.view.observed.plain.get(SERVICE, [])
        )

    try:
        assert sees(followed, lambda: services() == ["shop-0", "shop-1"])
        with standin.lock:
            standin.world.delete("Service", "shop-1")
        assert sees(followed, lambda: services() == ["shop-0"])
        standin.calls.clear()
        with standin.lock:
            standin.world.patch("TApp", "shop", {"spec": {"serviceTemplate": None}})
        assert sees(followed, lambda: "serviceTemplate" not in followed.view.observed.tapp["spec"])
        assert sees(followed, lambda: any("--watch" in call for call in standin.calls))
    finally:
        live.stop()


def test_refused_update_is_reported_from_events() -> None:
    """Admission refuses an update: the head of the page says so.

    Only an Event shows the refusal, because the pod exists and the spec has been observed.
    """
    life = Life().apply(tapp(replicas=2))
    record_failures(life.world)

    def frozen(operation: str, obj: Document) -> Document:
        if operation == "UPDATE" and obj["kind"] == "Pod":
            raise ForbiddenError(f'pods "{name_of(obj)}" is forbidden: images are frozen')
        return obj

    life.world.cluster.admission.policies.append(frozen)
    template = life.tapp["spec"]["template"]
    containers = [{**each, "image": "nginx:9"} for each in template["spec"]["containers"]]
    life.begin_patch(template={**template, "spec": {"containers": containers}}).world.run(30)
    live = Followers(session_of(StandIn(life.world)))
    followed = live.one_tapp("default", "shop")
    try:
        assert sees(followed, lambda: "frozen" in str(followed.model.get("head")))
    finally:
        live.stop()
