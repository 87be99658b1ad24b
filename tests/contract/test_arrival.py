"""How requests arrive at a real gunicorn: slowly, in pieces, too many, or as no HTTP at all."""

import json
import re
import select
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Thread

import pytest
import trustme

from hooks.service import tls
from tests.contract.calls import good
from tests.load.neighbours import worst
from tests.load.service import HOST, Service
from tests.situations import NOTHING, request_in
from tests.sizes import size

pytestmark = pytest.mark.timeout(300)
LONG = 120.0
BODY = json.dumps(good()).encode()
POST = b"POST /sync HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
WHOLE = POST + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY
PROBE = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"
HALVES = 300


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with Service(workers=1, TAPP_BODY_SECONDS="2", TAPP_MAX_BODY_BYTES="4000000") as found:
        yield found


def connect(service: Service) -> socket.socket:
    return socket.create_connection((HOST, service.port), LONG)


def answers(connection: socket.socket, number: int = 1) -> list[tuple[int, dict[str, str], bytes]]:
    """Status, headers and body of so many answers, or of fewer if the connection ends."""
    stream, found = connection.makefile("rb"), []
    for _ in range(number):
        line = stream.readline()
        if not line:
            break
        headers = {}
        while (text := stream.readline().decode().strip()) != "":
            name, _, value = text.partition(":")
            headers[name.lower()] = value.strip()
        body = stream.read(int(headers["content-length"]))
        found.append((int(line.split()[1]), headers, body))
    return found


def refused(connection: socket.socket, code: int) -> str:
    """What an error says: JSON, and the end of the connection, which is announced."""
    ((got, headers, body),) = answers(connection, 2)
    assert (got, headers["connection"]) == (code, "close"), body
    assert headers["content-type"] == "application/json"
    return str(json.loads(body)["error"])


def until(what: Callable[[], bool]) -> None:
    """Waits for something to come about."""
    end = time.monotonic() + LONG
    while not what():
        assert time.monotonic() < end
        time.sleep(0.05)


REFUSED_BY_US = {
    "a length that is too large": (POST + b"Content-Length: 4000001\r\n\r\n", 413),
    "a length that is far too large": (POST + b"Content-Length: 1" + b"0" * 99 + b"\r\n\r\n", 413),
    "chunks": (POST + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 411),
    "chunks that are none": (POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", 411),
    "chunks that never end": (POST + b"Transfer-Encoding: chunked\r\n\r\nffff\r\n{", 411),
    "another coding": (POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n", 411),
    "compressed": (POST + b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n\x1f\x8b", 415),
    "a form": (b"POST /sync HTTP/1.1\r\nContent-Type: a/b\r\nContent-Length: 1\r\n\r\na", 415),
    "another path": (b"POST /nothing HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", 404),
    "another method": (b"PUT /sync HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", 405),
}


@pytest.mark.parametrize(("request_", "code"), REFUSED_BY_US.values(), ids=REFUSED_BY_US)
def test_an_unread_body_is_refused_in_json_and_ends_its_connection(
    service: Service, request_: bytes, code: int
) -> None:
    with connect(service) as connection:
        connection.sendall(request_)
        assert refused(connection, code)


REFUSED_BY_GUNICORN = {
    "a negative length": (POST + b"Content-Length: -1\r\n\r\n", 400),
    "a length that is none": (POST + b"Content-Length: ten\r\n\r\n", 400),
    "a length of thousands of digits": (
        POST + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n",
        400,
    ),
    "two lengths": (POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400),
    "a header that is none": (b"GET /healthz HTTP/1.1\r\nno header\r\n\r\n", 400),
    "a control character": (b"GET /healthz HTTP/1.1\r\nA: \x01\r\n\r\n", 400),
    "a method that is none": (b"g#t /healthz HTTP/1.1\r\n\r\n", 400),
    "no HTTP": (b"hello\r\n\r\n", 400),
    "another version": (b"GET / HTTP/9.9\r\n\r\n", 400),
    "a long line": (b"GET /" + b"x" * 9000 + b" HTTP/1.1\r\n\r\n", 414),
    "a long header": (b"GET / HTTP/1.1\r\nA: " + b"x" * 9000 + b"\r\n\r\n", 431),
    "many headers": (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 200 + b"\r\n", 431),
    "an expectation": (POST + b"Expect: wonders\r\nContent-Length: 2\r\n\r\n{}", 417),
}


@pytest.mark.parametrize(
    ("request_", "code"), REFUSED_BY_GUNICORN.values(), ids=REFUSED_BY_GUNICORN
)
def test_what_is_no_http_gets_gunicorns_own_page_and_the_connection_ends(
    service: Service, request_: bytes, code: int
) -> None:
    """No such request reaches the application, and no HTTP client sends one.

    What gunicorn has not read when it closes makes the kernel reset the connection.
    """
    with connect(service) as connection, suppress(ConnectionResetError):
        connection.sendall(request_)
        ((got, headers, _),) = answers(connection, 2)
        assert (got, headers["connection"]) == (code, "close")
    assert service.get("/healthz")[0] == 200


def test_a_head_without_an_end_is_cut_off(service: Service) -> None:
    with connect(service) as connection, pytest.raises(OSError, match=r"reset|Broken pipe"):
        connection.sendall(b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 10_000_000)
    assert service.get("/healthz")[0] == 200


def test_no_request_leaves_a_traceback_in_the_log(service: Service) -> None:
    """Whatever was sent by the tests of this file, and by a client that is gone in mid-body."""
    with connect(service) as connection:
        connection.sendall(POST + b"Content-Length: 100000\r\n\r\n{")
        linger = (1).to_bytes(4, "little") + (0).to_bytes(4, "little")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    with connect(service) as connection:
        connection.sendall(POST + b"Content-Length: -1\r\n\r\n")
        assert answers(connection)
    until(lambda: "Invalid request" in service.output())
    assert "Traceback" not in service.output()
    assert "Logging error" not in service.output()


def test_a_body_that_does_not_arrive_gets_408(service: Service) -> None:
    """A byte now and then does not put that off. Both wait at the same time."""

    def dribble() -> None:
        for _ in range(14):
            time.sleep(0.2)
            try:
                fed.sendall(b" ")
            except OSError:
                return  # refused already, as it should be

    with connect(service) as body, connect(service) as fed:
        body.sendall(POST + b"Content-Length: 100\r\n\r\n{")
        fed.sendall(POST + b"Content-Length: 100\r\n\r\n")
        feeding = Thread(target=dribble)
        feeding.start()
        for connection in (body, fed):
            assert "has not arrived in 2 s" in refused(connection, 408)
        feeding.join()


def test_a_request_that_ends_before_its_end_is_refused(service: Service) -> None:
    with connect(service) as connection:
        connection.sendall(POST + b"Content-Length: 100\r\n\r\n{")
        connection.shutdown(socket.SHUT_WR)
        assert "ended before" in refused(connection, 400)


@pytest.mark.parametrize("step", [1, 100, 10_000])
def test_a_request_in_pieces_is_one_request(service: Service, step: int) -> None:
    request = WHOLE if step > 1 else PROBE
    with connect(service) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(0, len(request), step):
            connection.sendall(request[at : at + step])
            time.sleep(0.005)
        ((code, _, body),) = answers(connection)
    assert (code, body[:1]) == (200, b"{")


def test_requests_that_come_at_once_are_answered_in_turn(service: Service) -> None:
    with connect(service) as connection:
        connection.sendall(WHOLE + PROBE + WHOLE + PROBE)
        found = answers(connection, 4)
    assert [code for code, _, _ in found] == [200] * 4
    assert found[0][2] == found[2][2] != found[1][2] == found[3][2] == b'{"status":"ok"}'


def test_a_connection_is_used_again_and_again(service: Service) -> None:
    with connect(service) as connection:
        for _ in range(5):
            connection.sendall(WHOLE)
            assert [code for code, _, _ in answers(connection)] == [200]


def test_bodies_in_flight_are_no_larger_together_than_one_may_be() -> None:
    """The one that is too much is to come again, and the others go on.

    The service is this test's own: bodies that other tests left half sent would count, too.
    """
    large = b" " * 3_000_000 + BODY
    head = POST + b"Content-Length: %d\r\n\r\n" % len(large)
    with ExitStack() as stack:
        alone = stack.enter_context(Service(workers=1, TAPP_MAX_BODY_BYTES="4000000"))
        both = [stack.enter_context(connect(alone)) for _ in range(2)]
        for each in both:
            each.sendall(head + large[:2_500_000])
        (told,), _, _ = select.select(both, [], [], LONG)
        ((code, headers, body),) = answers(told)
        assert (code, headers["retry-after"], headers["connection"]) == (503, "1", "close")
        assert "try again" in json.loads(body)["error"]
        (left,) = {*both} - {told}
        left.sendall(large[2_500_000:])
        assert [code for code, _, _ in answers(left)] == [200]
        assert alone.call("POST", "/sync", large)[0] == 200


def test_an_answer_to_an_unread_body_reaches_a_client_that_is_still_sending(
    service: Service,
) -> None:
    """A connection that is closed at once is reset, and the client never reads what was wrong."""
    body = b" " * 3_000_000
    for path, code in ((b"/nothing", 404), (b"/healthz", 405)):
        head = b"POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % (path, len(body))
        with connect(service) as connection:
            connection.sendall(head + body)
            assert refused(connection, code)


@pytest.mark.parametrize("sent", ["heads", "bodies"])
def test_many_half_sent_requests_silence_neither_probes_nor_syncs(
    service: Service, sent: str
) -> None:
    end = b"X-Slow: " if sent == "heads" else b"Content-Length: 100000\r\n\r\n{"
    with ExitStack() as stack:
        for _ in range(HALVES):
            stack.enter_context(connect(service)).sendall(POST + end)
        assert service.get("/healthz", timeout=LONG)[0] == 200
        assert service.call("POST", "/sync", BODY, timeout=LONG)[0] == 200


def test_healthz_answers_while_a_worker_decides_on_many_pods() -> None:
    """The only worker: its metrics show the decision, and so were answered in its middle."""
    path, body = request_in(NOTHING, size(2_000, 10_000))
    with Service(workers=1) as alone:
        seen: list[int] = []
        asking = Thread(
            target=lambda: [seen.append(alone.call("POST", path, body)[0]) for _ in range(5)]
        )
        asking.start()
        flying = re.compile(rb"^tapp_hook_requests_in_flight [1-9]", re.MULTILINE)
        until(lambda: flying.search(alone.get("/metrics", timeout=LONG)[1]) is not None)
        assert alone.get("/healthz", timeout=LONG)[0] == 200
        asking.join()
    assert seen == [200] * 5


def descriptors(service: Service) -> int:
    """Files that the only worker has open: each connection is one."""
    (worker,) = service.workers
    return len(list(Path(f"/proc/{worker}/fd").iterdir()))


def test_a_client_that_never_reads_its_answer_is_let_go(service: Service) -> None:
    """A pod's status comes back as it was: long answers that nobody reads, and others go on."""
    pod = good()["object"]
    pod["status"]["message"] = "x" * 3_500_000
    body = json.dumps({"object": pod}).encode()
    head = b"POST /pod-status HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(body)
    service.get("/healthz")
    before = descriptors(service)
    with ExitStack() as slow:
        for _ in range(8):
            connection = slow.enter_context(socket.socket())
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            connection.connect((HOST, service.port))
            connection.sendall(head + body)
        assert service.get("/healthz", timeout=LONG)[0] == 200
        assert service.call("POST", "/sync", BODY, timeout=LONG)[0] == 200
        until(lambda: descriptors(service) <= before)


def test_who_asks_before_sending_a_body_is_answered_at_once(service: Service) -> None:
    """As curl does where the body is large."""
    with connect(service) as connection:
        head, _, _ = WHOLE.partition(b"\r\n\r\n")
        connection.sendall(head + b"\r\nExpect: 100-continue\r\n\r\n")
        assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(BODY)
        assert b"HTTP/1.1 200 OK" in connection.recv(1000)


def test_a_body_behind_a_head_that_came_early_has_its_time_too(service: Service) -> None:
    """The head of the second request comes with the first one."""
    with connect(service) as connection:
        connection.sendall(WHOLE + POST + b"Content-Length: 100\r\n\r\n")
        (whole, late) = answers(connection, 2)
    assert (whole[0], late[0]) == (200, 408)


def test_clients_that_leave_hold_up_nobody(service: Service) -> None:
    """Their requests are decided for nobody, and others are answered meanwhile."""
    body = worst(instances=100)
    for _ in range(20):
        with connect(service) as connection:
            connection.sendall(POST + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    assert service.get("/healthz", timeout=LONG)[0] == 200
    assert service.call("POST", "/sync", BODY, timeout=LONG)[0] == 200


# --- TLS ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def behind_tls(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Service, ssl.SSLContext]]:
    """A service with a certificate of its own, and how its clients connect."""
    folder, made = tmp_path_factory.mktemp("pki"), trustme.CA().issue_cert(HOST)
    made.private_key_pem.write_to_path(folder / "key")
    made.cert_chain_pems[0].write_to_path(folder / "crt")
    trust = ssl.create_default_context()
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
    files = {"TAPP_TLS_CERT_FILE": str(folder / "crt"), "TAPP_TLS_KEY_FILE": str(folder / "key")}
    with Service(workers=1, tls=trust, TAPP_BODY_SECONDS="2", **files) as found:
        yield found, trust


def test_half_sent_requests_behind_tls_silence_neither_probes_nor_syncs(
    behind_tls: tuple[Service, ssl.SSLContext],
) -> None:
    """Most of them have not even begun a handshake."""
    service, trust = behind_tls
    with ExitStack() as stack:
        for _ in range(HALVES - 20):
            stack.enter_context(connect(service))
        for _ in range(20):
            stack.enter_context(trust.wrap_socket(connect(service))).sendall(POST)
        assert service.get("/healthz", timeout=LONG)[0] == 200
        large = b'{"parent": "' + b"x" * 20_000_000
        assert service.call("POST", "/sync", large, timeout=LONG)[0] == 400
        with trust.wrap_socket(connect(service)) as connection:
            connection.sendall(WHOLE + PROBE)
            assert [code for code, _, _ in answers(connection, 2)] == [200, 200]
        with trust.wrap_socket(connect(service)) as connection:
            connection.sendall(POST + b"Content-Length: 100\r\n\r\n{")
            assert refused(connection, 408)


def test_a_connection_without_a_handshake_ends_in_its_time_without_a_traceback(
    behind_tls: tuple[Service, ssl.SSLContext],
) -> None:
    service, _ = behind_tls
    with connect(service) as plain, suppress(ConnectionResetError):
        plain.sendall(PROBE)
        assert b"200 OK" not in plain.recv(1000)
    with connect(service) as silent, connect(service), suppress(ConnectionResetError):
        assert silent.recv(1) == b""
    with connect(service):
        pass  # as `python -m hooks.service.healthcheck` does
    assert service.get("/healthz", timeout=LONG)[0] == 200
    assert "Traceback" not in service.output()


def test_tls_clients_that_hang_up_cut_no_other_answer_short(
    behind_tls: tuple[Service, ssl.SSLContext],
) -> None:
    service, trust = behind_tls
    reset = (1).to_bytes(4, "little") + (0).to_bytes(4, "little")
    with trust.wrap_socket(connect(service)) as kept:
        for _ in range(10):
            kept.sendall(WHOLE[:-50])
            for how in (WHOLE, WHOLE[:-1], b""):
                leaver = trust.wrap_socket(connect(service))
                leaver.sendall(how)
                leaver.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
                leaver.close()
            kept.sendall(WHOLE[-50:])
            assert [code for code, _, _ in answers(kept)] == [200]


def test_an_error_that_openssl_remembers_is_not_taken_for_another_connections() -> None:
    """The first read shows what CPython does, the second one what a worker's connections do."""
    folder = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made = trustme.CA().issue_cert(HOST)
    made.configure_cert(folder)
    server, client = _handshaken(folder)
    assert client

    def fail() -> None:
        with pytest.raises(ValueError, match="unknown object"):
            ssl._ASN1Object.fromname("no object")  # type: ignore[attr-defined]
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        fail()
    with pytest.raises(ssl.SSLError, match="unknown object"):
        server.read(1)
    with pytest.raises(ConnectionResetError), tls.alone():
        fail()
    with pytest.raises(ssl.SSLWantReadError):
        server.read(1)


def _handshaken(context: ssl.SSLContext) -> tuple[ssl.SSLObject, ssl.SSLObject]:
    """Both sides of a TLS connection in memory."""
    trust = ssl.create_default_context()
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = trust.wrap_bio(back, there), context.wrap_bio(there, back, server_side=True)
    for _ in range(3):
        for side in sides:
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return sides[1], sides[0]
