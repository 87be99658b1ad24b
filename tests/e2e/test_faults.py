"""Faults of the service, of Metacontroller and of the API server during a rollout.

After any fault of any duration, every instance has been updated once, in place, and the unavailable
instances never exceeded the budget.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import pytest

from .app import App, each, tapp
from .cluster import Cluster
from .controlplane import LocalControlPlane
from .disturbed_rollout import Roll
from .hook import HookService
from .kubelet_controls import Levers
from .metacontroller import Controller
from .proxy import HookProxy

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(300),
    # Connections of clients to a server that was killed.
    pytest.mark.filterwarnings("ignore:unclosed <:ResourceWarning"),
]


@pytest.fixture(autouse=True)
def healed(hook_proxy: HookProxy, hook: HookService, cluster: Cluster) -> Iterator[None]:
    """Removes all faults after each test."""
    if cluster.hook_in_cluster:
        pytest.skip("the hook in the cluster is not ours to break")
    yield
    hook_proxy.heal()
    if len(hook.replicas) != 1:
        hook.scale(1)
    gc.collect()  # collects sockets of a killed server here, so that no later test fails for them


@pytest.fixture
def roll(app: App, levers: Levers) -> Callable[[Callable[[], object]], None]:
    """Returns a function that updates six instances, two at a time, with a fault in between, and
    checks the result.
    """

    def play(fault: Callable[[], object]) -> None:
        rolling = Roll(app, levers).begin()
        fault()
        rolling.end().wrote_once()

    return play


def test_rollout_survives_errors_and_lost_responses_of_the_hook(
    roll: Callable[..., None], hook_proxy: HookProxy
) -> None:
    def fault() -> None:
        hook_proxy.fail(3, 500)
        hook_proxy.fail(2, 404)
        hook_proxy.fail(5, 502, after_deciding=True)

    roll(fault)


def test_rollout_survives_timeouts_of_the_hook(
    roll: Callable[..., None], hook_proxy: HookProxy
) -> None:
    """One call takes longer than the shipped timeout, and two more end without a response."""

    def fault() -> None:
        hook_proxy.hang(1, 33)
        hook_proxy.hang(2, 0.5)

    roll(fault)


def test_rollout_survives_restarts_and_scaling_of_the_hook(
    app: App, roll: Callable[..., None], hook: HookService, hook_proxy: HookProxy
) -> None:
    """Connections are refused for a while.

    Then three replicas run, then one, which is killed once.
    """

    def fault() -> None:
        hook.stop(kill=True)
        asked = hook_proxy.count
        app.until(lambda: hook_proxy.count >= asked + 4, "four calls have failed")
        assert app.status["appStatus"] == "Running"
        hook.start(3)
        hook.scale(1)
        hook.restart(kill=True)

    roll(fault)


def test_deletion_completes_after_errors_of_the_hook(app: App, hook_proxy: HookProxy) -> None:
    """Metacontroller must retry finalizing until it succeeds, so that no pod remains."""
    app.apply(tapp()).settle()
    app.news()
    hook_proxy.fail(6, 500)
    app.delete()
    assert app.pods == {}
    assert app.wrote(*each("delete Pod", "web", 0, 1, 2))


@pytest.fixture
def plane(cluster: Cluster) -> LocalControlPlane:
    """The control plane; skips the test if it must not be restarted."""
    if cluster.control_plane is None:
        pytest.skip("the control plane is not ours to restart")
    return cluster.control_plane


def test_rollout_survives_restarts_of_the_control_plane(
    roll: Callable[..., None], plane: LocalControlPlane, tapps: Controller
) -> None:
    """The API server stops gracefully here; the test of all faults together kills it."""

    def fault() -> None:
        plane.restart_api(kill=False, down=1)
        plane.restart_controller_manager(kill=True)
        tapps.restart(kill=True)

    roll(fault)


def test_rollout_survives_all_faults_together(
    roll: Callable[..., None],
    plane: LocalControlPlane,
    tapps: Controller,
    hook: HookService,
    hook_proxy: HookProxy,
) -> None:
    def fault() -> None:
        hook.stop(kill=True)
        plane.restart_api(kill=True)
        hook_proxy.fail(3, 500)
        tapps.restart(kill=True)
        hook.start()

    roll(fault)
