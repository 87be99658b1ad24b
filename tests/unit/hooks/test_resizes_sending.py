"""Tests that resizes are sent in the background: once, with pauses, counted, and without effect on
syncs.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hooks.app import create_app
from hooks.service import cluster, metrics, resizes
from hooks.service.account import AccountError
from hooks.service.cluster import Cluster
from hooks.service.resizes import Resizer
from hooks.service.settings import Settings
from hooks.wire.memo import Memo
from hooks.wire.request import Request, world_of
from tapp.declared.model import TApp
from tapp.plan import Plan, make_plan
from tapp.world import Options
from tests.api_server import ApiServer
from tests.builders import Document, as_sent
from tests.unit.decide.resizing import MORE, tapp_with_resizing, template_with_resources
from tests.unit.world import World

OUTCOMES = [each.value for each in resizes.Outcome]


class Clock:
    """Returns as the time, in seconds, what a test has set in `now`."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def resizer(
    server: ApiServer, account: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Resizer]:
    monkeypatch.setattr(cluster, "TIMEOUT", (60, 60))
    client = Cluster(account, server.environ, "resize")
    made = Resizer(client.resize, clock=clock)
    yield made
    made.close()
    client.close()


def tapp_to_resize() -> World:
    """Returns a TApp with one pod that needs a resize to its template's resources."""
    return tapp_with_resizing().change(template=template_with_resources(MORE))


def decided(of: World) -> Plan:
    asked = Request(as_sent(of.request()), TApp, Memo(0))
    return make_plan(world_of(asked), Options(resize=True), of.hook.now)


def counted() -> dict[str, float]:
    return {each: metrics.RESIZES.labels(each)._value.get() for each in OUTCOMES}


def until(before: dict[str, float], **expected: int) -> None:
    """Waits until exactly these numbers of resizes have been counted since `before`; fails after a
    minute.
    """
    end = time.monotonic() + 60
    while True:
        now = counted()
        since = {each: now[each] - before[each] for each in OUTCOMES if now[each] != before[each]}
        if since == expected:
            return
        assert time.monotonic() < end, since
        time.sleep(0.01)


def test_resize_request_has_the_path_the_token_and_the_patch(
    server: ApiServer, resizer: Resizer
) -> None:
    before, of = counted(), tapp_to_resize()
    resizer.queue(decided(of))
    until(before, resized=1)
    ((path, authorization, patch),) = server.posts
    assert path == "/api/v1/namespaces/shop/pods/web-0/resize"
    assert authorization == "Bearer first"
    assert patch["metadata"].keys() == {"uid", "resourceVersion"}
    assert patch["spec"] == {"containers": [{"name": "app", "resources": MORE}]}


def test_same_resize_is_sent_again_only_after_a_pause(
    server: ApiServer, resizer: Resizer, clock: Clock
) -> None:
    before, of = counted(), tapp_to_resize()
    for _ in range(3):
        resizer.queue(decided(of))
    until(before, resized=1)
    clock.now += resizes.PAUSE + 1
    resizer.queue(decided(of))
    until(before, resized=2)
    assert len(server.posts) == 2


def test_resize_to_other_resources_is_sent_without_a_pause(
    server: ApiServer, resizer: Resizer
) -> None:
    before, of = counted(), tapp_to_resize()
    resizer.queue(decided(of))
    of.change(template=template_with_resources({"requests": {"cpu": "3", "memory": "1Gi"}})).sync()
    resizer.queue(decided(of))
    until(before, resized=2)
    assert len(server.posts) == 2


@pytest.mark.parametrize(
    ("code", "outcome"),
    [(409, "overtaken"), (403, "refused"), (404, "refused"), (422, "refused"), (503, "failed")],
)
def test_outcome_of_a_resize_depends_on_the_status_code(
    server: ApiServer, resizer: Resizer, code: int, outcome: str
) -> None:
    server.answers = [code]
    before, of = counted(), tapp_to_resize()
    resizer.queue(decided(of))
    until(before, **{outcome: 1})
    resizer.queue(decided(of))
    if outcome == "overtaken":  # the pod has changed, so there is no pause
        until(before, overtaken=1, resized=1)
    else:
        assert len(server.posts) == 1


def test_missing_role_counts_as_failed_and_not_as_refused(
    server: ApiServer, resizer: Resizer
) -> None:
    server.answers = [403]
    server.words = 'User "x" cannot patch resource "pods/resize" in API group ""'
    before = counted()
    resizer.queue(decided(tapp_to_resize()))
    until(before, failed=1)


def test_unreachable_api_server_counts_as_failed(server: ApiServer, resizer: Resizer) -> None:
    server.stop()
    before = counted()
    resizer.queue(decided(tapp_to_resize()))
    until(before, failed=1)


def test_full_queue_drops_resizes(
    account: Path, server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = counted()
    monkeypatch.setattr(cluster, "TIMEOUT", (60, 1))  # the server never answers
    server.hang = 3600
    client = Cluster(account, server.environ, "resize")
    made = Resizer(client.resize, queued=1)
    of = tapp_with_resizing(replicas=4, updateStrategy={"maxUnavailable": 4})
    made.queue(decided(of.change(template=template_with_resources(MORE))))
    end = time.monotonic() + 60
    while counted()["dropped"] == before["dropped"] and time.monotonic() < end:
        time.sleep(0.01)
    assert counted()["dropped"] > before["dropped"]
    server.stop()
    made.close(60)
    client.close()


def test_resize_that_has_waited_too_long_is_dropped(clock: Clock) -> None:
    """The first of two resizes takes longer than a resize may wait, so the second one is dropped
    from the queue.

    A later sync may decide differently, and otherwise requests the resize again.
    """
    sent = []

    def slow(_namespace: str, name: str, _patch: Document) -> bool:
        sent.append(name)
        clock.now += resizes.STALE + 0.1
        return True

    before, made = counted(), Resizer(slow, clock=clock)
    of = tapp_with_resizing(replicas=2, updateStrategy={"maxUnavailable": 2}).change(
        template=template_with_resources(MORE)
    )
    made.queue(decided(of))
    until(before, resized=1, dropped=1)
    made.queue(decided(of))
    until(before, resized=2, dropped=1)
    made.close()
    assert sent == ["web-0", "web-1"]


def test_error_while_reading_a_plan_is_counted_and_not_raised(resizer: Resizer) -> None:
    before, broken = counted(), Any
    resizer.queue(broken)  # type: ignore[arg-type]
    until(before, failed=1)


def test_only_syncs_request_resizes() -> None:
    asked: list[Plan] = []
    of = tapp_to_resize()
    settings = Settings(log_level="ERROR", resize=True)
    client = create_app(settings, lambda: of.hook.now, resize=asked.append).test_client()
    body = as_sent(of.request())
    for path, count in (("/plan", 0), ("/finalize", 0), ("/sync", 1)):
        client.post(path, data=body, content_type="application/json")
        assert len(asked) == count, path


def test_service_does_not_start_with_resizes_and_without_an_account(tmp_path: Path) -> None:
    settings = Settings(log_level="ERROR", resize=True, events_account=tmp_path)
    with pytest.raises(AccountError, match=r"TAPP_RESIZE needs .*components/resize"):
        create_app(settings)
