"""A rollout of the service's own Deployment during rollouts of TApps, with one release or two.

The proxy acts as the Service: it calls the replicas in turn.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sizes import FULL

from .app import App
from .cluster import Cluster
from .disturbed_rollout import Roll
from .hook import HookService
from .installed_release import checkout_of
from .kubelet_controls import Levers
from .proxy import HookProxy

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
INSTANCES, BUDGET = (500, 50) if FULL else (100, 10)
LAG = 0.5
"""Seconds until no call goes to a replica that ends. Its preStop hook waits ten times that."""
OLDER = "d007207"
"""A commit of two hundred changes ago with the present registration."""


@pytest.fixture(autouse=True)
def one_target(hook_proxy: HookProxy, cluster: Cluster) -> Iterator[None]:
    """Sends all calls to the usual service again after the test."""
    if cluster.hook_in_cluster:
        pytest.skip("the hook in the cluster is not ours to replace")
    before = hook_proxy.target
    yield
    hook_proxy.target, hook_proxy.others = before, []


def answered(app: App, proxy: HookProxy) -> Counter[int]:
    """Returns the number of calls about this TApp by status; 0 for calls without a response."""
    mine = app.namespace.encode()
    return Counter(call.status for call in proxy.calls if mine in call.request)


def test_calls_succeed_while_replicas_of_the_service_are_replaced(
    app: App, levers: Levers, hook_proxy: HookProxy, tmp_path: Path, note: list[str]
) -> None:
    """A Deployment starts a new replica and waits until it is ready before an old one ends."""
    made: list[HookService] = []

    def another() -> HookService:
        place = tmp_path / str(len(made))
        place.mkdir()
        made.append(HookService(place, workers=1).start())
        return made[-1]

    try:
        replicas = [another(), another()]
        hook_proxy.target, hook_proxy.others = replicas[0].url, [replicas[1].url]
        rolling = Roll(app, levers, instances=INSTANCES, budget=BUDGET).create()
        hook_proxy.reset()
        rolling.begin()
        while app.images().count("app:1") or len(made) < 6:
            replicas.append(another())
            hook_proxy.others = [each.url for each in replicas[1:]]
            time.sleep(LAG)
            old = replicas.pop(0)
            hook_proxy.target = replicas[0].url
            hook_proxy.others = [each.url for each in replicas[1:]]
            time.sleep(LAG)
            old.stop()
        rolling.end()
        codes = answered(app, hook_proxy)
        assert codes.keys() == {200}
        note.append(
            f"{INSTANCES} instances rolled in {codes.total()} calls while {len(made) - 2} replicas"
            " were replaced: none failed"
        )
        rolling.wrote_once()
    finally:
        for each in made:
            each.stop()


def test_rollout_succeeds_with_two_releases_that_answer_in_turn(
    app: App, levers: Levers, hook_proxy: HookProxy, tmp_path: Path
) -> None:
    """Each release must continue the decisions of the other one, and must not revert its writes."""
    older = HookService(tmp_path, workers=1, checkout=checkout_of(OLDER, tmp_path))
    try:
        hook_proxy.others = [older.start().url]
        rolling = Roll(app, levers).create()
        hook_proxy.reset()
        rolling.begin().end()
        assert answered(app, hook_proxy).keys() == {200}
        hook_proxy.others = []  # notes of only one release would appear and disappear
        app.trigger_sync()
        app.quiet()
        rolling.wrote_once()
    finally:
        older.stop()
