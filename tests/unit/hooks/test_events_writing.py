"""Tests that Events are written in the background: in limited number, counted, and without effect
on syncs.
"""

import os
from pathlib import Path
from typing import Any

import pytest

from hooks.service import events
from hooks.service.account import AccountError
from hooks.service.cluster import Cluster
from hooks.service.events import CONTROLLER, Recorder
from hooks.wire.memo import Memo
from hooks.wire.request import Request, world_of
from tapp.answer.conditions import conditions_of
from tapp.declared.model import TApp
from tapp.plan import make_plan
from tapp.world import Options
from tests.api_server import ApiServer, api_server
from tests.builders import NOW, UID, as_sent, tapp, template
from tests.unit.hooks.events_writing import counted, counted_since, new_event, until
from tests.unit.world import Hook, World, settled

pytestmark = pytest.mark.usefixtures("short_pauses_and_no_leaks")


@pytest.fixture
def recorder(server: ApiServer, account: Path) -> Recorder:
    return Recorder(Cluster(account, server.environ).create, "tapp-hooks-abc-1")


def test_event_has_all_required_fields(server: ApiServer, recorder: Recorder) -> None:
    before = counted()
    recorder.queue(*new_event(1))
    until(before, created=1)
    ((path, authorization, event),) = server.posts
    assert path == "/apis/events.k8s.io/v1/namespaces/shop/events"
    assert authorization == "Bearer first"
    assert event.pop("metadata").keys() == {"name", "namespace"}
    assert event == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "eventTime": "2026-01-05T11:00:00.000000Z",
        "reportingController": "tapp-hooks",
        "reportingInstance": "tapp-hooks-abc-1",
        "type": "Normal",
        "reason": "Created",
        "action": "Create",
        "note": event["note"],
        "regarding": {
            "apiVersion": "apps.tkestack.io/v1",
            "kind": "TApp",
            "namespace": "shop",
            "name": "web",
            "uid": UID,
        },
    }


def test_event_about_one_instance_is_related_to_its_pod(
    server: ApiServer, recorder: Recorder
) -> None:
    world = settled(replicas=2).change(template=template("nginx:2"))
    asked = Request(as_sent(world.request()), TApp, Memo(0))
    found = make_plan(world_of(asked), Options(), NOW)
    recorder.queue(found, conditions_of(found))
    server.until(2)
    related = {event["reason"]: event.get("related") for _, _, event in server.posts}
    uid = world.pod(0)["metadata"]["uid"]
    pod = {"apiVersion": "v1", "kind": "Pod", "namespace": "shop", "name": "web-0", "uid": uid}
    assert related == {"UpdatedInPlace": pod, "Waiting": None}


@pytest.mark.parametrize(
    ("answers", "outcome", "posts"),
    [
        pytest.param([], "created", 1, id="accepted"),
        pytest.param([409], "exists", 1, id="already exists"),
        pytest.param([403], "refused", 1, id="forbidden"),
        pytest.param([404], "refused", 1, id="namespace not found"),
        pytest.param([422], "refused", 1, id="invalid"),
        pytest.param([429], "created", 2, id="too many requests, then accepted"),
        pytest.param([401], "created", 2, id="token expired"),
        pytest.param([500, 503], "created", 3, id="server errors, then accepted"),
        pytest.param([500] * 9, "failed", 5, id="only server errors"),
    ],
)
def test_event_is_written_refused_or_retried_depending_on_the_status_code(
    server: ApiServer, recorder: Recorder, answers: list[int], outcome: str, posts: int
) -> None:
    server.answers = answers
    before = counted()
    recorder.queue(*new_event(1))
    until(before, **{outcome: 1})
    assert len(server.posts) == posts


def test_event_is_retried_while_the_api_server_has_not_read_its_roles(
    server: ApiServer, recorder: Recorder
) -> None:
    """A 403 right after the start of the API server is retried four times, and then counts as
    failed.

    The API server denies every request until it has read the roles. A missing role looks the same,
    so the retries are limited.
    """
    server.words = (
        f'User "{CONTROLLER}" cannot create resource "events" in API group "events.k8s.io"'
    )
    server.answers = [403, 403]
    before = counted()
    recorder.queue(*new_event(1))
    until(before, created=1)
    server.answers = [403] * 5
    recorder.queue(*new_event(2))
    until(before, created=1, failed=1)
    assert len(server.posts) == 8


def test_event_is_not_written_twice(server: ApiServer, recorder: Recorder) -> None:
    before = counted()
    for _ in range(5):
        recorder.queue(*new_event(1))
    recorder.queue(*new_event(2))
    until(before, created=2)
    assert len(server.posts) == 2


def test_two_replicas_write_the_same_event_once(
    server: ApiServer, account: Path, recorder: Recorder
) -> None:
    before = counted()
    recorder.queue(*new_event(1))
    until(before, created=1)
    other = Recorder(Cluster(account, server.environ).create, "tapp-hooks-abc-2")
    other.queue(*new_event(1))
    until(before, created=1, exists=1)
    other.close()
    assert len(server.events) == 1


def test_refused_event_is_written_by_a_later_sync(server: ApiServer, recorder: Recorder) -> None:
    """The API server refuses an Event; a later sync writes it, because the role may have been
    installed.
    """
    server.answers = [403]
    before = counted()
    recorder.queue(*new_event(1))
    until(before, refused=1)
    recorder.queue(*new_event(1))
    until(before, refused=1, created=1)


def test_retry_after_header_does_not_lengthen_the_pause(
    server: ApiServer, recorder: Recorder
) -> None:
    server.answers, server.retry_after = [429], "3600"
    before = counted()
    recorder.queue(*new_event(1))
    until(before, created=1)


def test_hanging_api_server_delays_no_sync_and_fills_a_limited_queue(
    server: ApiServer, account: Path
) -> None:
    server.hang = 3600
    made = Recorder(Cluster(account, server.environ).create, "one", queued=10)
    before, plans = counted(), [new_event(generation) for generation in range(1, 21)]
    made.queue(*plans[0])
    server.until(1)
    for each in plans[1:]:
        made.queue(*each)
    assert counted_since(before) == {"dropped": 9}  # ten are queued, and one is being sent
    made.close(0.2)
    assert counted_since(before) == {"dropped": 19}


def test_replaced_token_is_read_again(server: ApiServer, account: Path) -> None:
    made = Cluster(account, server.environ)
    made.create({"metadata": {"name": "a", "namespace": "shop"}})
    (account / "token").write_text("second")
    made.create({"metadata": {"name": "b", "namespace": "shop"}})
    assert [authorization for _, authorization, _ in server.posts] == [
        "Bearer first",
        "Bearer second",
    ]


def test_events_are_written_after_the_api_server_restarts_with_another_ca(
    server: ApiServer, account: Path, recorder: Recorder
) -> None:
    before = counted()
    recorder.queue(*new_event(1))
    until(before, created=1)
    server.stop()
    recorder.queue(*new_event(2))
    until(before, created=1, failed=1)
    with api_server(account, server.port) as again:
        recorder.queue(*new_event(3))
        until(before, created=2, failed=1)
        assert len(again.events) == 1


@pytest.mark.usefixtures("server")
def test_server_with_a_certificate_of_another_ca_gets_no_token(
    tmp_path: Path, account: Path
) -> None:
    with api_server(tmp_path / "other") as stranger:
        made = Cluster(account, stranger.environ)
        with pytest.raises(events.TemporaryError, match="CERTIFICATE_VERIFY_FAILED"):
            made.create({"metadata": {"name": "a", "namespace": "shop"}})
        assert stranger.posts == []


def test_forked_process_starts_its_own_thread(
    server: ApiServer, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder.queue(*new_event(1))
    server.until(1)
    first = recorder._thread
    recorder.close()
    with monkeypatch.context() as forked:
        forked.setattr(os, "getpid", lambda: -1)
        recorder.queue(*new_event(2))
        server.until(2)
        assert recorder._thread is not first
        recorder.close()


def test_error_in_the_creation_of_events_is_counted_and_not_raised(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(events, "events", broken)
    before = counted()
    recorder.queue(*new_event(1))
    assert counted_since(before) == {"failed": 1}


@pytest.fixture
def hook(server: ApiServer, account: Path, monkeypatch: pytest.MonkeyPatch) -> Hook:
    """Returns a service that writes Events to the fake API server."""
    for name, value in server.environ.items():
        monkeypatch.setenv(name, value)
    return Hook(events=True, events_account=account)


def test_only_syncs_write_events(server: ApiServer, hook: Hook) -> None:
    world = World(tapp(replicas=3), hook=hook)
    hook.answer("/plan", world.request())
    hook.finalize(world.request(finalizing=True))
    world.settle()
    server.until(2)
    assert [event["reason"] for _, _, event in server.posts] == ["Created", "Completed"]


def test_responses_are_the_same_while_the_api_server_hangs(server: ApiServer, hook: Hook) -> None:
    server.hang = 3600
    plain, document = Hook(), World(tapp(replicas=20)).request()
    assert hook.post("/sync", document).data == plain.post("/sync", document).data
    server.until(1)
    for generation in range(2, 40):
        document["parent"]["metadata"]["generation"] = generation
        assert hook.post("/sync", document).status_code == 200
    assert len(server.posts) == 1  # all syncs were answered while it hangs


@pytest.mark.parametrize("missing", ["token", "ca.crt", "KUBERNETES_SERVICE_HOST"])
def test_missing_part_of_the_service_account_is_an_error_at_start(
    server: ApiServer, account: Path, missing: str
) -> None:
    environ = {name: value for name, value in server.environ.items() if name != missing}
    if (account / missing).exists():
        (account / missing).unlink()
    with pytest.raises(AccountError, match=r"Install metacontroller/components/events\.$"):
        Cluster(account, environ)
