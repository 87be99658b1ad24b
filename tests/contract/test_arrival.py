"""How requests arrive at a real gunicorn: slowly, in pieces, too many, or as no HTTP at all."""

import json
import re
import select
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from threading import Thread

import pytest
import trustme

from tests.contract.calls import good
from tests.load.neighbours import SMALL, worst
from tests.load.service import HOST, Service
from tests.sizes import cases

pytestmark = pytest.mark.timeout(120)
BODY = json.dumps(good()).encode()
POST = b"POST /sync HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
WHOLE = POST + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY
PROBE = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with Service(workers=1, TAPP_BODY_SECONDS="2", TAPP_MAX_BODY_BYTES="4000000") as found:
        yield found


def connect(service: Service) -> socket.socket:
    return socket.create_connection((HOST, service.port), 30)


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
    assert headers["connection"] == "close"
    assert (got, headers["content-type"]) == (code, "application/json"), body
    return str(json.loads(body)["error"])


BAD = {
    "a negative length": (POST + b"Content-Length: -1\r\n\r\n", 400),
    "a length that is none": (POST + b"Content-Length: ten\r\n\r\n", 400),
    "a length of thousands of digits": (
        POST + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n",
        400,
    ),
    "two lengths": (POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400),
    "a length that is too large": (POST + b"Content-Length: 4000001\r\n\r\n", 413),
    "chunks": (POST + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 411),
    "chunks that are none": (POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", 411),
    "another coding": (POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n", None),
    "a header that is none": (b"GET /healthz HTTP/1.1\r\nno header\r\n\r\n", 400),
    "a control character": (b"GET /healthz HTTP/1.1\r\nA: \x01\r\n\r\n", 400),
    "a method that is none": (b"g#t /healthz HTTP/1.1\r\n\r\n", 400),
    "no HTTP": (b"hello\r\n\r\n", 400),
    "another version": (b"GET / HTTP/9.9\r\n\r\n", 400),
    "a long line": (b"GET /" + b"x" * 9000 + b" HTTP/1.1\r\n\r\n", 414),
    "a long header": (b"GET / HTTP/1.1\r\nA: " + b"x" * 9000 + b"\r\n\r\n", 431),
    "many headers": (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 200 + b"\r\n", 431),
    "a head without an end": (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 20_000, 431),
    "an expectation": (POST + b"Expect: wonders\r\nContent-Length: 2\r\n\r\n{}", 417),
}


@pytest.mark.parametrize(("request_", "code"), BAD.values(), ids=BAD)
def test_what_is_no_request_is_refused_in_json(
    service: Service, request_: bytes, code: int | None
) -> None:
    """Gunicorn answered it in HTML."""
    with connect(service) as connection:
        connection.sendall(request_)
        ((got, headers, body),) = answers(connection)
        assert headers["content-type"] == "application/json"
        assert json.loads(body)["error"]
        assert got == code or (code is None and got >= 400)


def test_a_bad_request_is_one_line_of_the_log(service: Service) -> None:
    """Gunicorn's lines could not be formatted: what a worker logged was lost."""
    before = service.output()
    with connect(service) as connection:
        connection.sendall(POST + b"Content-Length: -1\r\n\r\n")
        assert "CONTENT-LENGTH" in refused(connection, 400)
    time.sleep(0.2)
    (line,) = service.output()[len(before) :].splitlines()
    assert json.loads(line)["message"] == "bad request"
    assert "Logging error" not in service.output()
    assert "Booting worker" in service.output()


def test_a_request_that_does_not_arrive_gets_408(service: Service) -> None:
    """A byte now and then does not put that off. All three wait at the same time."""

    def dribble() -> None:
        for _ in range(14):
            time.sleep(0.2)
            fed.sendall(b" ")

    with connect(service) as head, connect(service) as body, connect(service) as fed:
        head.sendall(POST + b"X-Slow: ")
        body.sendall(POST + b"Content-Length: 100\r\n\r\n{")
        fed.sendall(POST + b"Content-Length: 100\r\n\r\n")
        feeding, began = Thread(target=dribble), time.monotonic()
        feeding.start()
        for connection in (head, body):
            assert "has not arrived in 2 s" in refused(connection, 408)
            assert 1.5 < time.monotonic() - began < 6
        feeding.join()
        assert refused(fed, 408)


def test_a_request_that_ends_before_its_end_is_refused(service: Service) -> None:
    with connect(service) as connection:
        connection.sendall(POST + b"Content-Length: 100\r\n\r\n{")
        connection.shutdown(socket.SHUT_WR)
        assert "ended before" in refused(connection, 400)


@pytest.mark.parametrize("size", [1, 100, 10_000])
def test_a_request_in_pieces_is_one_request(service: Service, size: int) -> None:
    request = WHOLE if size > 1 else PROBE
    with connect(service) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(0, len(request), size):
            connection.sendall(request[at : at + size])
            time.sleep(0.005 if size < 1000 else 0.01)
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
            time.sleep(0.05)


def test_what_is_half_sent_holds_no_more_than_one_largest_request(service: Service) -> None:
    """Ten times 3 MB of 4 MB: the oldest make room."""
    many = []
    for _ in range(10):
        connection = connect(service)
        connection.sendall(POST + b"Content-Length: 4000000\r\n\r\n" + b" " * 3_000_000)
        many.append(connection)
    end, waiting = time.monotonic() + 10, many
    while len(waiting) > 1:
        assert time.monotonic() < end
        answered = select.select(waiting, [], [], 1)[0]
        codes = [found[0][0] for found in map(answers, answered) if found]
        assert 408 not in codes, "it was held until its time was over"
        waiting = [connection for connection in waiting if connection not in answered]
    for connection in many:
        connection.close()
    with connect(service) as connection:
        connection.sendall(WHOLE)
        assert [code for code, _, _ in answers(connection)] == [200]


def test_who_has_only_just_begun_is_not_closed_for_having_been_quiet(service: Service) -> None:
    """A connection that was there first, and begins a request last, is not the oldest."""
    with connect(service) as quiet:
        quiet.sendall(PROBE)
        assert answers(quiet)[0][0] == 200
        many = [connect(service) for _ in range(3)]
        for connection in many[:2]:
            connection.sendall(POST + b"Content-Length: 3000000\r\n\r\n" + b" " * 1_500_000)
        time.sleep(0.3)
        quiet.sendall(POST + b"Content-Length: 600000\r\n\r\n" + b" " * 100_000)
        time.sleep(0.3)
        many[2].sendall(POST + b"Content-Length: 3000000\r\n\r\n" + b" " * 1_500_000)
        assert "half-sent" in refused(many[0], 503)
        quiet.sendall(b" " * 500_000)
        assert answers(quiet)[0][0] == 400  # whole, and no JSON
        for connection in many:
            connection.close()


def test_more_connections_than_there_may_be_close_the_oldest(service: Service) -> None:
    many = []
    for _ in range(1200):
        connection = connect(service)
        connection.sendall(POST)
        many.append(connection)
    began = time.monotonic()
    assert service.get("/healthz")[0] == 200
    assert service.call("POST", "/sync", BODY)[0] == 200
    assert time.monotonic() - began < 2
    assert "closed what waited longest" in service.output()
    for connection in many:
        connection.close()


def test_a_client_that_never_reads_its_answer_keeps_no_thread(service: Service) -> None:
    """A pod's status comes back as it was: 80 long answers that nobody reads, and others go on."""
    pod = good()["object"]
    pod["status"]["message"] = "x" * 900_000
    body = json.dumps({"object": pod}).encode()
    head = b"POST /pod-status HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(body)
    slow = []
    for _ in range(80):
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        connection.connect((HOST, service.port))
        connection.sendall(head + body)
        slow.append(connection)
    assert service.get("/healthz", timeout=30)[0] == 200
    assert service.call("POST", "/sync", BODY)[0] == 200
    for connection in slow:
        connection.close()


def certificate(folder: Path) -> tuple[dict[str, str], ssl.SSLContext]:
    """Settings of a service with a certificate of its own, and how its clients connect."""
    made = trustme.CA().issue_cert(HOST)
    made.private_key_pem.write_to_path(folder / "key")
    made.cert_chain_pems[0].write_to_path(folder / "crt")
    trust = ssl.create_default_context()
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
    files = {"TAPP_TLS_CERT_FILE": str(folder / "crt"), "TAPP_TLS_KEY_FILE": str(folder / "key")}
    return files, trust


def test_tls_is_collected_in_the_same_way(tmp_path: Path) -> None:
    files, trust = certificate(tmp_path)
    with Service(workers=1, tls=trust, TAPP_BODY_SECONDS="2", **files) as service:
        silent = [connect(service) for _ in range(200)]  # not even a handshake
        half = []
        for _ in range(20):
            connection = trust.wrap_socket(connect(service))
            connection.sendall(POST)
            half.append(connection)
        assert service.get("/healthz")[0] == 200
        large = b'{"parent": "' + b"x" * 20_000_000
        assert service.call("POST", "/sync", large)[0] == 400
        with trust.wrap_socket(connect(service)) as connection:
            connection.sendall(WHOLE + PROBE)
            assert [code for code, _, _ in answers(connection, 2)] == [200, 200]
        assert refused(half[0], 408)
        with connect(service) as connection:
            connection.sendall(PROBE)
            assert refused(connection, 400) == "this port speaks TLS"
        for connection in (*silent, *half):
            connection.close()


def test_more_handshakes_than_there_may_be_close_the_oldest(tmp_path: Path) -> None:
    """Those that begin none, and have a minute for it."""
    files, trust = certificate(tmp_path)
    with (
        Service(workers=1, tls=trust, TAPP_BODY_SECONDS="60", **files) as service,
        ExitStack() as silent,  # closed even where this fails, or later tests fail of it
    ):
        for _ in range(1000):
            silent.enter_context(connect(service))
        assert service.get("/healthz", timeout=20)[0] == 200
        assert service.call("POST", "/sync", BODY, timeout=20)[0] == 200


def test_who_asks_before_sending_a_body_is_answered_at_once(service: Service) -> None:
    """As curl does where the body is large: without an answer it waits a second."""
    with connect(service) as connection:
        connection.settimeout(1)
        head, _, _ = WHOLE.partition(b"\r\n\r\n")
        connection.sendall(head + b"\r\nExpect: 100-continue\r\n\r\n")
        assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(BODY)
        assert b"HTTP/1.1 200 OK" in connection.recv(1000)


@pytest.fixture(scope="module", params=cases(["plain", "tls"], only_whole=["plain"]))
def door(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Service, ssl.SSLContext | None]]:
    """A service that paces, and how its clients connect."""
    env = {"TAPP_PACE_SECONDS": "5", "TAPP_PACE_POD_SECONDS": "0.05"}
    trust = None
    if request.param == "tls":
        files, trust = certificate(tmp_path_factory.mktemp("pki"))
        env |= files
    with Service(workers=1, tls=trust, **env) as found:
        yield found, trust


def left(service: Service, trust: ssl.SSLContext | None, *bodies: bytes) -> None:
    """Clients that have asked, one more than they have sent whole, and gone."""
    for body in bodies:
        connection = connect(service)
        if trust is not None:
            connection = trust.wrap_socket(connection)
        sent = POST + b"Content-Length: %d\r\n\r\n" % len(body) + body
        connection.sendall(sent + b"POST /sync HTTP")
        time.sleep(0.2)
        connection.close()


def counted(service: Service, code: int) -> int:
    """Syncs that were answered so."""
    text = service.get("/metrics")[1].decode()
    found = re.search(f'requests_total{{code="{code}",hook="sync"}} (.*)', text)
    return int(float(found[1])) if found else 0


def test_a_client_that_leaves_while_others_are_decided_takes_no_turn(
    door: tuple[Service, ssl.SSLContext | None],
) -> None:
    """Such requests were decided, one after the other, for nobody."""
    service, trust = door
    body, before = worst(instances=240), counted(service, 499)
    waits = Thread(target=lambda: service.call("POST", "/sync", body))
    waits.start()
    time.sleep(0.1)
    left(service, trust, body, body, body)
    assert service.call("POST", "/sync", SMALL)[0] == 200
    waits.join()
    until(lambda: counted(service, 499) == before + 3)


def test_a_client_that_leaves_while_it_is_paced_takes_no_turn(
    door: tuple[Service, ssl.SSLContext | None],
) -> None:
    """It has waited in vain, and nothing is decided."""
    service, trust = door
    document, before = good(), counted(service, 499)
    (pod,) = document["children"]["Pod.v1"].values()
    pods = {
        f"shop/o-{at}": {**pod, "metadata": {**pod["metadata"], "name": f"o-{at}"}}
        for at in range(50)
    }
    document["children"]["Pod.v1"] |= pods
    body = json.dumps(document).encode()
    assert service.call("POST", "/sync", body)[0] == 200
    left(service, trust, body)
    until(lambda: counted(service, 499) == before + 1)


def until(what: Callable[[], bool]) -> None:
    """Waits for something to come about."""
    end = time.monotonic() + 60
    while not what():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_a_body_behind_a_head_that_came_early_has_its_time_too(service: Service) -> None:
    """The head of the second request comes with the first one."""
    with connect(service) as connection:
        connection.sendall(WHOLE + POST + b"Content-Length: 100\r\n\r\n")
        (whole, late) = answers(connection, 2)
    assert (whole[0], late[0]) == (200, 408)


def test_a_connection_goes_on_after_a_request_that_was_refused_unread(service: Service) -> None:
    """Its body is read to its end, and dropped."""
    with connect(service) as connection:
        other = b"POST /nothing HTTP/1.1\r\nHost: a\r\nContent-Length: 30000\r\n\r\n"
        connection.sendall(other + b" " * 30_000 + PROBE)
        assert [code for code, _, _ in answers(connection, 2)] == [404, 200]
