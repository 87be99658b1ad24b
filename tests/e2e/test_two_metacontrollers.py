"""Two replicas of the real Metacontroller: the second one takes over during a rollout.

Their rights for the election are exactly those of the overlay high-availability.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .app import App
from .cluster import REPOSITORY, Cluster
from .connection import Line
from .disturbed_rollout import PATIENCE, Roll
from .kube import Kube, documents
from .kubelet_controls import Levers
from .metacontroller import ACCOUNT, USER, Controller, RealMetacontroller, another
from .proxy import HookProxy
from .waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
LEASES = REPOSITORY / "metacontroller" / "overlays" / "high-availability" / "leases.yaml"
LEASE = ("coordination.k8s.io/v1", "leases", ACCOUNT, "metacontroller")
ELECTING = ("--leader-election", f"--leader-election-namespace={ACCOUNT}")
"""Outside of a cluster the flag must name the namespace. In a pod it is the pod's namespace."""
Pair = tuple[RealMetacontroller, RealMetacontroller]
Start = Callable[..., Pair]


@pytest.fixture
def line(tapps: Controller, workspace: Path) -> Iterator[Line]:  # noqa: ARG001 - has an account
    """The connection of the first replica to the API server."""
    found = Line(workspace / "metacontroller.kubeconfig", workspace / "line.kubeconfig")
    yield found
    found.close()


@pytest.fixture
def start(
    tapps: Controller, kube: Kube, workspace: Path, hook_proxy: HookProxy, line: Line
) -> Iterator[Start]:
    """Returns a function that starts two Metacontrollers, the second one when the first works."""
    running: list[RealMetacontroller] = []

    def both(*flags: str, asked: Callable[[], bool] = lambda: True) -> Pair:
        first, second = (
            another(tapps, kube, workspace, *flags, name=f"metacontroller-{number}", kubeconfig=way)
            for number, way in ((1, line.kubeconfig), (2, None))
        )
        tapps.stop()
        for document in documents(LEASES):
            kube.apply(document)
        running.extend((first, second))
        first.start()
        until(asked, "the first one works", PATIENCE)
        second.start()
        return first, second

    yield both
    hook_proxy.heal()
    for each in running:
        each.process.stop(kill=True)
    if running:
        kube.delete(*LEASE)
        tapps.start()


def leader(kube: Kube) -> str:
    """Returns the holder of the lease, or an empty string."""
    found = kube.find(*LEASE) or {}
    return str((found.get("spec") or {}).get("holderIdentity") or "")


@pytest.fixture
def pair(start: Start, kube: Kube) -> Pair:
    """Two Metacontrollers with leader election, of which the first leads."""
    return start(*ELECTING, asked=lambda: leader(kube) != "")


def until_synced(app: App, proxy: HookProxy) -> float:
    """Waits for the next call and returns the seconds until it came."""
    begun = time.monotonic()
    before = proxy.begun
    app.until(lambda: proxy.begun > before, "another call comes", PATIENCE)
    return time.monotonic() - begun


def test_rollout_continues_after_the_leader_is_killed(  # noqa: PLR0913, PLR0917 - all participants
    pair: Pair, app: App, levers: Levers, kube: Kube, hook_proxy: HookProxy, note: list[str]
) -> None:
    """The other replica takes over when the lease has expired, and no write is repeated."""
    rolling = Roll(app, levers).begin(pull_seconds=2)
    before = leader(kube)
    pair[0].process.stop(kill=True)
    note.append(f"leader killed: the next sync after {until_synced(app, hook_proxy):.1f} s")
    assert leader(kube) != before
    rolling.end().wrote_once()


def test_rollout_continues_after_the_leader_loses_its_network(  # noqa: PLR0913, PLR0917 - all participants
    pair: Pair,
    line: Line,
    app: App,
    levers: Levers,
    kube: Kube,
    hook_proxy: HookProxy,
    note: list[str],
) -> None:
    """The leader has no network, and must end before the other replica leads."""
    rolling = Roll(app, levers).begin(pull_seconds=2)
    before, begun = leader(kube), time.monotonic()
    line.cut()
    app.until(
        lambda: not pair[0].process.alive, "the leader ends, because it cannot renew its lease"
    )
    ended = time.monotonic() - begun
    app.until(lambda: leader(kube) != before, "the other replica leads", PATIENCE)
    until_synced(app, hook_proxy)
    seconds = time.monotonic() - begun
    note.append(
        f"leader cut off: it ended after {ended:.1f} s, the next sync after {seconds:.1f} s"
    )
    assert ended < seconds
    rolling.end().wrote_once()


def test_rollout_continues_after_the_leader_stops_gracefully(
    pair: Pair, app: App, levers: Levers, hook_proxy: HookProxy, note: list[str]
) -> None:
    """The lease must expire even then, because Metacontroller does not release it."""
    rolling = Roll(app, levers).begin(pull_seconds=2)
    pair[0].process.stop()
    note.append(f"leader ended: the next sync after {until_synced(app, hook_proxy):.1f} s")
    rolling.end().wrote_once()


def test_rollout_survives_a_frozen_leader_that_continues_beside_its_successor(  # noqa: PLR0913, PLR0917
    pair: Pair, app: App, levers: Levers, kube: Kube, hook_proxy: HookProxy, note: list[str]
) -> None:
    """The frozen leader continues with an old response while the other replica leads."""
    rolling = Roll(app, levers).begin(pull_seconds=2)
    before, held = leader(kube), hook_proxy.hold()
    until_synced(app, hook_proxy)
    time.sleep(0.5)  # the service has decided the call, and the proxy holds the response
    pair[0].process.signal(signal.SIGSTOP)
    held.set()
    seconds = until_synced(app, hook_proxy)
    assert leader(kube) != before
    pair[0].process.signal(signal.SIGCONT)
    note.append(f"leader stopped: the next sync after {seconds:.1f} s")
    app.until(lambda: not pair[0].process.alive, "the old leader ends")
    rolling.end()


def test_leader_election_uses_exactly_the_granted_rights(
    pair: Pair, cluster: Cluster, app: App, kube: Kube
) -> None:
    """The audit log has the requests of the election."""
    if cluster.audit is None:
        pytest.skip("the audit log of this cluster cannot be read")
    assert all(each.process.alive for each in pair)
    app.until(lambda: leader(kube) != "", "a replica leads")
    asked = [each for each in cluster.audit.asked(0, USER) if each.group == LEASE[0].split("/")[0]]
    assert {each.code for each in asked} <= {200, 201, 404, 409}
    (role,) = [each for each in documents(LEASES) if each["kind"] == "Role"]
    (rule,) = role["rules"]
    assert {each.verb for each in asked} == {*rule["verbs"]}
    assert {(each.resource, each.namespace) for each in asked} == {("leases", ACCOUNT)}


def test_two_metacontrollers_without_election_keep_the_budget(
    start: Start, app: App, levers: Levers, hook_proxy: HookProxy, note: list[str]
) -> None:
    """The chart refuses this setup, because both replicas send all requests.

    Each write is guarded even so.
    """
    start()
    hook_proxy.reset()
    rolling = Roll(app, levers).begin()
    rolling.end()
    writes = [write for write in app._written() if write.user == USER and write.resource == "pods"]
    refused = sum(not write.accepted for write in writes)
    note.append(
        f"two without a leader: {hook_proxy.count} calls, {len(writes)} writes of pods, "
        f"{refused} of them refused"
    )
