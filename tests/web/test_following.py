"""The follower of one TApp: kept up to date by watches alone, without a browser."""

import time
from collections.abc import Callable

from demo.web import session_of
from kubectl_tapp.live.following import FollowedTApp, Live
from tapp.words.kinds import SERVICE
from tests.plugin.standin import StandIn
from tests.scenarios.life import Life
from tests.web.served import tapp

SECONDS = 30.0
"""The longest that a watch's news may take on a busy machine."""


def sees(followed: FollowedTApp, fact: Callable[[], bool]) -> bool:
    """Waits until something is so."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        if followed.view is not None and fact():
            return True
        time.sleep(0.05)
    return False


def test_services_are_watched_and_not_read_once() -> None:
    """One that somebody deletes is missed at once, and a template of them is noticed."""
    exposed = tapp(replicas=2, serviceTemplate={"spec": {"ports": [{"port": 80}]}})
    standin = StandIn(Life(exposing=True).apply(exposed).world)
    live = Live(session_of(standin))
    followed = live.one("default", "shop")

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
