"""Tests requests that arrive at a real gunicorn slowly, in pieces, in large numbers, or not as
HTTP.
"""

import json
import re
import select
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from threading import Thread

import pytest

from tests.contract.calls import good
from tests.contract.connections import (
    BODY,
    HALVES,
    LONG,
    POST,
    PROBE,
    WHOLE,
    connect,
    error_message,
    read_responses,
)
from tests.load.neighbors import worst
from tests.load.service import HOST, Service
from tests.sizes import size
from tests.typical_requests import NOTHING, request_in

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with Service(workers=1, TAPP_BODY_SECONDS="2", TAPP_MAX_BODY_BYTES="4000000") as found:
        yield found


def until(what: Callable[[], bool]) -> None:
    """Waits until `what` returns True; fails after `LONG` seconds."""
    end = time.monotonic() + LONG
    while not what():
        assert time.monotonic() < end
        time.sleep(0.05)


REFUSED_BY_SERVICE = {
    "length too large": (POST + b"Content-Length: 4000001\r\n\r\n", 413),
    "length far too large": (POST + b"Content-Length: 1" + b"0" * 99 + b"\r\n\r\n", 413),
    "chunks": (POST + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 411),
    "invalid chunks": (POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", 411),
    "chunks that never end": (POST + b"Transfer-Encoding: chunked\r\n\r\nffff\r\n{", 411),
    "another transfer encoding": (POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n", 411),
    "compressed": (POST + b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n\x1f\x8b", 415),
    "another content type": (
        b"POST /sync HTTP/1.1\r\nContent-Type: a/b\r\nContent-Length: 1\r\n\r\na",
        415,
    ),
    "another path": (b"POST /nothing HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", 404),
    "another method": (b"PUT /sync HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", 405),
}


@pytest.mark.parametrize(("request_", "code"), REFUSED_BY_SERVICE.values(), ids=REFUSED_BY_SERVICE)
def test_refused_request_gets_a_json_error_and_its_connection_is_closed(
    service: Service, request_: bytes, code: int
) -> None:
    with connect(service) as connection:
        connection.sendall(request_)
        assert error_message(connection, code)


REFUSED_BY_GUNICORN = {
    "negative length": (POST + b"Content-Length: -1\r\n\r\n", 400),
    "length is a word": (POST + b"Content-Length: ten\r\n\r\n", 400),
    "length with thousands of digits": (
        POST + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n",
        400,
    ),
    "two lengths": (POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400),
    "header without a colon": (b"GET /healthz HTTP/1.1\r\nno header\r\n\r\n", 400),
    "control character": (b"GET /healthz HTTP/1.1\r\nA: \x01\r\n\r\n", 400),
    "invalid method": (b"g#t /healthz HTTP/1.1\r\n\r\n", 400),
    "no HTTP": (b"hello\r\n\r\n", 400),
    "another version": (b"GET / HTTP/9.9\r\n\r\n", 400),
    "long line": (b"GET /" + b"x" * 9000 + b" HTTP/1.1\r\n\r\n", 414),
    "long header": (b"GET / HTTP/1.1\r\nA: " + b"x" * 9000 + b"\r\n\r\n", 431),
    "many headers": (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 200 + b"\r\n", 431),
    "unknown expectation": (POST + b"Expect: wonders\r\nContent-Length: 2\r\n\r\n{}", 417),
}


@pytest.mark.parametrize(
    ("request_", "code"), REFUSED_BY_GUNICORN.values(), ids=REFUSED_BY_GUNICORN
)
def test_invalid_http_gets_the_error_page_of_gunicorn_and_its_connection_is_closed(
    service: Service, request_: bytes, code: int
) -> None:
    """Sends invalid HTTP, which gunicorn refuses itself; such a request does not reach the
    application.

    The kernel resets the connection if gunicorn has not read everything when it closes the
    connection.
    """
    with connect(service) as connection, suppress(ConnectionResetError):
        connection.sendall(request_)
        ((got, headers, _),) = read_responses(connection, 2)
        assert got == code
        assert headers["connection"] == "close"
    assert service.get("/healthz")[0] == 200


def test_connection_with_endless_headers_is_closed(service: Service) -> None:
    with connect(service) as connection, pytest.raises(OSError, match=r"reset|Broken pipe"):
        connection.sendall(b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 10_000_000)
    assert service.get("/healthz")[0] == 200


def test_no_request_causes_a_traceback_in_the_log(service: Service) -> None:
    """Looks for tracebacks in the log after all requests of this file.

    One more client disconnects in the middle of a body, and one sends invalid HTTP.
    """
    with connect(service) as connection:
        connection.sendall(POST + b"Content-Length: 100000\r\n\r\n{")
        linger = (1).to_bytes(4, "little") + (0).to_bytes(4, "little")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    with connect(service) as connection:
        connection.sendall(POST + b"Content-Length: -1\r\n\r\n")
        assert read_responses(connection)
    until(lambda: "Invalid request" in service.output())
    assert "Traceback" not in service.output()
    assert "Logging error" not in service.output()


def test_body_that_does_not_arrive_in_time_gets_408(service: Service) -> None:
    """Sends a part of a body, once without further bytes and once with single bytes in between.

    Single bytes do not extend the time.
    """

    def dribble() -> None:
        for _ in range(14):
            time.sleep(0.2)
            try:
                fed.sendall(b" ")
            except OSError:
                return  # already refused, as expected

    with connect(service) as body, connect(service) as fed:
        body.sendall(POST + b"Content-Length: 100\r\n\r\n{")
        fed.sendall(POST + b"Content-Length: 100\r\n\r\n")
        feeding = Thread(target=dribble)
        feeding.start()
        for connection in (body, fed):
            assert "has not arrived in 2 s" in error_message(connection, 408)
        feeding.join()


def test_request_that_ends_too_early_is_refused(service: Service) -> None:
    with connect(service) as connection:
        connection.sendall(POST + b"Content-Length: 100\r\n\r\n{")
        connection.shutdown(socket.SHUT_WR)
        assert "ended before" in error_message(connection, 400)


@pytest.mark.parametrize("step", [1, 100, 10_000], ids="{} bytes".format)
def test_request_can_arrive_in_pieces(service: Service, step: int) -> None:
    request = WHOLE if step > 1 else PROBE
    with connect(service) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(0, len(request), step):
            connection.sendall(request[at : at + step])
            time.sleep(0.005)
        ((code, _, body),) = read_responses(connection)
    assert code == 200
    assert body[:1] == b"{"


def test_pipelined_requests_get_their_responses_in_order(service: Service) -> None:
    with connect(service) as connection:
        connection.sendall(WHOLE + PROBE + WHOLE + PROBE)
        found = read_responses(connection, 4)
    assert [code for code, _, _ in found] == [200] * 4
    assert found[0][2] == found[2][2] != found[1][2] == found[3][2] == b'{"status":"ok"}'


def test_connection_can_be_used_for_several_requests(service: Service) -> None:
    with connect(service) as connection:
        for _ in range(5):
            connection.sendall(WHOLE)
            assert [code for code, _, _ in read_responses(connection)] == [200]


def test_incomplete_requests_together_hold_at_most_one_maximum_body() -> None:
    """Two incomplete requests exceed the size of one maximum body: one gets 503, and the other
    continues.

    The client of the refused request may try again later. This test has its own service, because
    incomplete bodies of other tests would count.
    """
    large = b" " * 3_000_000 + BODY
    head = POST + b"Content-Length: %d\r\n\r\n" % len(large)
    with ExitStack() as stack:
        alone = stack.enter_context(Service(workers=1, TAPP_MAX_BODY_BYTES="4000000"))
        both = [stack.enter_context(connect(alone)) for _ in range(2)]
        for each in both:
            each.sendall(head + large[:2_500_000])
        (refused_one,), _, _ = select.select(both, [], [], LONG)
        ((code, headers, body),) = read_responses(refused_one)
        assert code == 503
        assert headers["retry-after"] == "1"
        assert headers["connection"] == "close"
        assert "try again" in json.loads(body)["error"]
        (left,) = {*both} - {refused_one}
        left.sendall(large[2_500_000:])
        assert [code for code, _, _ in read_responses(left)] == [200]
        assert alone.call("POST", "/sync", large)[0] == 200


def test_error_reaches_a_client_that_is_still_sending_its_body(service: Service) -> None:
    """A client that sends 3 MB to a wrong path receives the JSON error.

    If the service closed the connection immediately, the kernel would reset the connection, and the
    client would not see the error.
    """
    body = b" " * 3_000_000
    for path, code in ((b"/nothing", 404), (b"/healthz", 405)):
        head = b"POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % (path, len(body))
        with connect(service) as connection:
            connection.sendall(head + body)
            assert error_message(connection, code)


@pytest.mark.parametrize("sent", ["heads", "bodies"])
def test_many_incomplete_requests_block_neither_probes_nor_syncs(
    service: Service, sent: str
) -> None:
    end = b"X-Slow: " if sent == "heads" else b"Content-Length: 100000\r\n\r\n{"
    with ExitStack() as stack:
        for _ in range(HALVES):
            stack.enter_context(connect(service)).sendall(POST + end)
        assert service.get("/healthz", timeout=LONG)[0] == 200
        assert service.call("POST", "/sync", BODY, timeout=LONG)[0] == 200


@pytest.mark.timeout(1_800)  # FULL: 10,000 pods, also on a busy machine
def test_health_check_succeeds_while_the_only_worker_decides_on_many_pods() -> None:
    """Requests metrics and health while the only worker decides on a large request; both respond.

    The metrics show the running request, so the response came during the decision.
    """
    path, body = request_in(NOTHING, size(2_000, 10_000))
    with Service(workers=1) as alone:
        seen: list[int] = []
        sync = partial(alone.call, "POST", path, body, timeout=10 * LONG)
        asking = Thread(target=lambda: [seen.append(sync()[0]) for _ in range(5)])
        asking.start()
        flying = re.compile(rb"^tapp_hook_requests_in_flight [1-9]", re.MULTILINE)
        until(lambda: flying.search(alone.get("/metrics", timeout=LONG)[1]) is not None)
        assert alone.get("/healthz", timeout=LONG)[0] == 200
        asking.join()
    assert seen == [200] * 5


def open_files(service: Service) -> int:
    """Returns the number of open files of the service's only worker; each connection is one of
    them.
    """
    (worker,) = service.workers
    return len(list(Path(f"/proc/{worker}/fd").iterdir()))


def test_connection_of_a_client_that_does_not_read_its_response_is_closed(service: Service) -> None:
    """Eight clients do not read their responses of 3.5 MB; the service closes their connections in
    the end.

    Meanwhile it responds to others. The responses are long because the pod-status hook returns the
    pod's status.
    """
    pod = good()["object"]
    pod["status"]["message"] = "x" * 3_500_000
    body = json.dumps({"object": pod}).encode()
    head = b"POST /pod-status HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(body)
    service.get("/healthz")
    before = open_files(service)
    with ExitStack() as slow:
        for _ in range(8):
            connection = slow.enter_context(socket.socket())
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            connection.connect((HOST, service.port))
            connection.sendall(head + body)
        assert service.get("/healthz", timeout=LONG)[0] == 200
        assert service.call("POST", "/sync", BODY, timeout=LONG)[0] == 200
        until(lambda: open_files(service) <= before)


def test_expect_100_continue_is_supported(service: Service) -> None:
    """The service asks for the body of a request that has the header `Expect: 100-continue`.

    Requests of curl with a large body have this header.
    """
    with connect(service) as connection:
        head, _, _ = WHOLE.partition(b"\r\n\r\n")
        connection.sendall(head + b"\r\nExpect: 100-continue\r\n\r\n")
        assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(BODY)
        assert b"HTTP/1.1 200 OK" in connection.recv(1000)


def test_body_of_a_pipelined_request_has_a_time_limit(service: Service) -> None:
    """The headers of a second request arrive together with the first one; its missing body gets
    408.
    """
    with connect(service) as connection:
        connection.sendall(WHOLE + POST + b"Content-Length: 100\r\n\r\n")
        (first, second) = read_responses(connection, 2)
    assert first[0] == 200
    assert second[0] == 408


def test_clients_that_disconnect_do_not_block_others(service: Service) -> None:
    """Twenty clients disconnect after their requests; the service still responds to others.

    The service decides on the requests of such clients all the same.
    """
    body = worst(instances=100)
    for _ in range(20):
        with connect(service) as connection:
            connection.sendall(POST + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    assert service.get("/healthz", timeout=LONG)[0] == 200
    assert service.call("POST", "/sync", BODY, timeout=LONG)[0] == 200
