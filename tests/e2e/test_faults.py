"""Faults in the middle of a roll: of the hook, of Metacontroller, of the API server.

Whatever fails, for however long: in the end every instance has been updated once, in place, and
never were more down than the budget allows.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import pytest

from .app import App, each, tapp
from .cluster import Cluster
from .hook import HookService
from .kubelet_levers import Levers
from .metacontroller import Controller
from .proxy import HookProxy
from .rolling import Roll

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(300),
    # The clients' connections to a server that was killed.
    pytest.mark.filterwarnings("ignore:unclosed <:ResourceWarning"),
]


@pytest.fixture(autouse=True)
def healed(hook_proxy: HookProxy, hook: HookService, cluster: Cluster) -> Iterator[None]:
    """No fault outlives its test."""
    if cluster.hook_in_cluster:
        pytest.skip("the hook in the cluster is not ours to break")
    yield
    hook_proxy.heal()
    if len(hook.replicas) != 1:
        hook.scale(1)
    gc.collect()  # what a killed server left open is forgiven here, not in a later test


@pytest.fixture
def roll(app: App, levers: Levers) -> Callable[[Callable[[], object]], None]:
    """Rolls six instances, two at a time, with a fault in the middle, and checks the outcome."""

    def play(fault: Callable[[], object]) -> None:
        rolling = Roll(app, levers).begin()
        fault()
        rolling.end().wrote_once()

    return play


class TestHook:
    @pytest.mark.parametrize("status", [500, 404])
    def test_answers_an_error(
        self, roll: Callable[..., None], hook_proxy: HookProxy, status: int
    ) -> None:
        roll(lambda: hook_proxy.fail(5, status))

    def test_decides_and_the_answer_is_lost(
        self, roll: Callable[..., None], hook_proxy: HookProxy
    ) -> None:
        roll(lambda: hook_proxy.fail(5, 502, after_deciding=True))

    def test_times_out(self, roll: Callable[..., None], hook_proxy: HookProxy) -> None:
        """One call takes longer than the shipped timeout, and two more end without an answer."""

        def fault() -> None:
            hook_proxy.hang(1, 33)
            hook_proxy.hang(2, 0.5)

        roll(fault)

    def test_refuses_connections(
        self, app: App, roll: Callable[..., None], hook: HookService, hook_proxy: HookProxy
    ) -> None:
        def fault() -> None:
            hook.stop(kill=True)
            asked = hook_proxy.count
            app.until(lambda: hook_proxy.count >= asked + 4, "Metacontroller has tried in vain")
            assert app.status["appStatus"] == "Running"
            hook.start()

        roll(fault)

    @pytest.mark.parametrize("kill", [False, True], ids=["orderly", "killed"])
    def test_is_restarted(self, roll: Callable[..., None], hook: HookService, kill: bool) -> None:
        roll(lambda: hook.restart(kill=kill))

    def test_is_scaled_to_three_replicas(
        self, roll: Callable[..., None], hook: HookService
    ) -> None:
        roll(lambda: hook.scale(3))

    def test_is_scaled_down_again(self, roll: Callable[..., None], hook: HookService) -> None:
        hook.scale(3)
        roll(lambda: hook.scale(1))

    def test_is_broken_while_a_tapp_is_deleted(self, app: App, hook_proxy: HookProxy) -> None:
        """Finalizing is tried until it works; nothing stays behind."""
        app.apply(tapp()).settle()
        app.news()
        hook_proxy.fail(6, 500)
        app.delete()
        assert app.pods == {}
        assert app.wrote(*each("delete Pod", "web", 0, 1, 2))


class TestControlPlane:
    def test_the_api_server_is_restarted(self, roll: Callable[..., None], cluster: Cluster) -> None:
        """In order; killed it is in `test_everything_at_once`."""
        plane = cluster.control_plane
        if plane is None:
            pytest.skip("the API server is not ours to restart")
        roll(lambda: plane.restart_api(kill=False, down=1))

    def test_the_controller_manager_is_restarted(
        self, roll: Callable[..., None], cluster: Cluster
    ) -> None:
        plane = cluster.control_plane
        if plane is None:
            pytest.skip("the controller manager is not ours to restart")
        roll(lambda: plane.restart_controller_manager(kill=True))

    def test_metacontroller_is_restarted(
        self, roll: Callable[..., None], tapps: Controller
    ) -> None:
        roll(lambda: tapps.restart(kill=True))

    def test_everything_at_once(
        self,
        roll: Callable[..., None],
        cluster: Cluster,
        tapps: Controller,
        hook: HookService,
        hook_proxy: HookProxy,
    ) -> None:
        plane = cluster.control_plane
        if plane is None:
            pytest.skip("the API server is not ours to restart")

        def fault() -> None:
            hook.stop(kill=True)
            plane.restart_api(kill=True)
            hook_proxy.fail(3, 500)
            tapps.restart(kill=True)
            hook.start()

        roll(fault)
