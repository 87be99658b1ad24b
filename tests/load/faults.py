"""Simulates faulty clients of the service: slow ones, ones that leave, and too large requests.

Meanwhile `Probes` measures whether health checks succeed. Each test is a function that returns
figures.
"""

import http.client
import json
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from tests.load.service import HOST, ROOT, Service, percentile
from tests.typical_requests import NOTHING, request_in

OK, BUSY = 200, 503


class Probes:
    """Calls /healthz repeatedly, on a new connection each time, as the kubelet does.

    The calls run in another process, because the threads of the load would delay them.
    """

    def __init__(self, service: Service, pause: float = 0.02) -> None:
        """Starts the calls, with `pause` seconds between two of them."""
        code = f"from tests.load.faults import probe; probe({service.port}, {pause})"
        self._process = subprocess.Popen(
            [sys.executable, "-c", code], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._process.stdout is not None
        self._process.stdout.readline()  # it has begun

    def stop(self) -> dict[str, Any]:
        """Ends the calls and returns their number, the number of failures, and percentiles of their
        milliseconds.
        """
        output, _ = self._process.communicate(timeout=240)
        figures: dict[str, Any] = json.loads(output)
        return figures


def probe(port: int, pause: float) -> None:
    """Calls /healthz on `port` until standard input is closed, and prints the figures as JSON.

    `pause` is the number of seconds between two calls.
    """
    seconds: list[float] = []
    failed = 0
    sys.stdout.write("begun\n")
    sys.stdout.flush()
    for _ in range(100_000):
        began = time.monotonic()
        connection = http.client.HTTPConnection(HOST, port, timeout=60)
        try:
            connection.request("GET", "/healthz")
            failed += connection.getresponse().status != OK
        except (OSError, http.client.HTTPException):
            failed += 1
        finally:
            connection.close()
        seconds.append(time.monotonic() - began)
        if select.select([sys.stdin], [], [], pause)[0]:
            break
    shares = {"p50 ms": 0.5, "p95 ms": 0.95, "p99 ms": 0.99, "max ms": 1}
    figures = {key: round(percentile(seconds, share) * 1000, 1) for key, share in shares.items()}
    sys.stdout.write(json.dumps({"probes": len(seconds), "failed": failed, **figures}))


def drain(pods: int = 2000, connections: int = 4) -> dict[str, Any]:
    """Sends SIGTERM during big requests, and returns how many got a complete response, and the exit
    code.

    `pods` is the number of pods in a request, and `connections` the number of requests.
    """
    path, body = request_in(NOTHING, pods)
    answers: list[tuple[int, int]] = []
    lock = threading.Lock()

    def ask(connection: http.client.HTTPConnection) -> None:
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        got = (answer.status, len(answer.read()))
        connection.close()
        with lock:
            answers.append(got)

    with Service() as service:
        expected = len(service.call("POST", path, body)[1])
        asking = [
            threading.Thread(target=ask, args=(service.connect(),), daemon=True)
            for _ in range(connections)
        ]
        for thread in asking:
            thread.start()
        time.sleep(0.1)
        began = time.monotonic()
        code = service.stop()
        took = time.monotonic() - began
        for thread in asking:
            thread.join(60)
    return {
        "sent": connections,
        "whole answers": answers.count((200, expected)),
        "exit code": code,
        "seconds": round(took, 2),
    }


def dawdlers(slow: int, half_open: int, seconds: float) -> dict[str, Any]:
    """Opens connections that send a byte per second, and connections that send nothing, for
    `seconds` seconds.

    Returns the figures of probes and syncs meanwhile, which must still succeed. `slow` and
    `half_open` are the numbers of connections.
    """
    path, body = request_in(NOTHING, 100)
    head = b"POST /sync HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
    with Service() as service, _connected(service, slow + half_open) as sockets:
        quiet, slow_ones = sockets[:half_open], sockets[half_open:]
        for index, connection in enumerate(slow_ones):
            # Half of them are slow in their headers, half in their body.
            end = b"Content-Length: 100000\r\n\r\n{" if index % 2 else b"X-Slow: "
            connection.sendall(head + end)
        time.sleep(0.5)
        probes, syncs, failed = Probes(service), list[float](), 0
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            time.sleep(1)
            for connection in slow_ones:
                _byte(connection)
            began = time.monotonic()
            failed += service.call("POST", path, body)[0] != OK
            syncs.append(time.monotonic() - began)
        figures = probes.stop()
        assert len(quiet) == half_open
    return {
        "slow": slow,
        "half-open": half_open,
        **figures,
        "syncs": len(syncs),
        "syncs failed": failed,
        "sync max ms": round(max(syncs) * 1000),
    }


def _refused(connection: http.client.HTTPConnection, path: str, body: bytes) -> bool:
    """Sends a request; returns True if the response is 503, so that the client has to retry."""
    try:
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
    except OSError:  # refused and closed before the request was complete
        connection.close()
        return True
    assert answer.status in (OK, BUSY)
    return answer.status == BUSY


def _byte(connection: socket.socket) -> None:
    try:
        connection.sendall(b" ")
    except OSError:
        return  # the service may close the connection


@contextmanager
def _connected(service: Service, number: int) -> Iterator[list[socket.socket]]:
    sockets = [socket.create_connection((HOST, service.port), 60) for _ in range(number)]
    try:
        yield sockets
    finally:
        for connection in sockets:
            connection.close()


def too_large(limit: int = 64 * 1024 * 1024, times: int = 6) -> dict[str, Any]:
    """Sends `times` requests just above the limit, and just below it, and returns status codes and
    memory.

    The requests get 413 or 400, and their memory must be freed.
    """
    codes: dict[str, int] = {}
    memory: list[int] = []
    with Service(TAPP_MAX_BODY_BYTES=str(limit)) as service:
        for _ in range(4):
            service.call("POST", "/sync", b" " * 1000)
        memory.append(round(service.megabytes()))
        for extra in (1, -1):  # not read at all, and read though it is no JSON
            for _ in range(times):
                code = _sent(service, b" " * (limit + extra))
                codes[str(code)] = codes.get(str(code), 0) + 1
            time.sleep(0.5)
            memory.append(round(service.megabytes()))
        healthy = service.get("/healthz")[0]
    before, refused, read = memory
    return {
        "limit MB": limit // 2**20,
        "codes": codes,
        "MB before": before,
        "MB after 413": refused,
        "MB after 400": read,
        "healthz": healthy,
    }


def _sent(service: Service, body: bytes) -> int:
    """Returns the status code for a request whose connection may be closed before it is complete; 0
    for none.
    """
    with socket.create_connection((HOST, service.port), 60) as connection:
        head = f"POST /sync HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n\r\n"
        with suppress(OSError):  # answered and closed before the rest was read
            connection.sendall(head.encode() + body)
        try:
            answer = connection.recv(64)
        except OSError:
            return 0
    return int(answer.split()[1]) if answer else 0


def probes_under_load(pods: int = 10_000, syncs: int = 4, rounds: int = 3) -> dict[str, Any]:
    """Calls /healthz while big syncs occupy two workers, and returns the figures of probes and
    syncs.

    `syncs` clients send `rounds` requests each, with `pods` pods.
    """
    path, body = request_in(NOTHING, pods)
    seconds: list[float] = []
    busy: list[int] = []
    with Service() as service:
        for _ in range(2 * len(service.workers)):
            service.call("POST", path, body)

        def ask() -> None:
            connection = service.connect()
            for _ in range(rounds):
                began = time.monotonic()
                while _refused(connection, path, body):  # more bodies than fit into a worker
                    busy.append(1)
                    time.sleep(0.5)
                seconds.append(time.monotonic() - began)
            connection.close()

        asking = [threading.Thread(target=ask, daemon=True) for _ in range(syncs)]
        for thread in asking:
            thread.start()
        probes = Probes(service)
        for thread in asking:
            thread.join(300)
        figures = probes.stop()
        memory = service.megabytes()
    return {
        "pods": pods,
        "request MB": round(len(body) / 1e6, 1),
        "syncs at once": syncs,
        "sync p50 s": round(percentile(seconds, 0.5), 2),
        "503 and asked again": len(busy),
        "workers' Pss MB": round(memory),
        **figures,
    }
