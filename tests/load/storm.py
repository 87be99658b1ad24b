"""Sends requests on many connections while workers are killed and the service is replaced.

No response may be wrong: each request has a single correct response.
"""

import http.client
import json
import random
import signal
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

from tests.fuzz.oracle import Service as InProcess
from tests.load.service import Service, percentile
from tests.typical_requests import CREATE, FINALIZE, NOTHING, ROLL, request_in

TRIES = 200
"""The number of attempts after which a request counts as lost."""


@dataclass
class Figures:
    """The observations of the clients.

    Attributes:
        answers: the number of correct responses.
        wrong: texts about wrong responses.
        lost: the number of requests that never got a response.
        broken: kind of failure -> number of attempts that failed and were repeated.
        seconds: the duration of each request, with all attempts.
    """

    answers: int = 0
    wrong: list[str] = field(default_factory=list)
    lost: int = 0
    broken: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)


class Clients:
    """Runs clients with keep-alive connections, each with one request in progress at any time."""

    def __init__(self, service: Service, number: int) -> None:
        """Starts `number` clients of the service."""
        self.figures = Figures()
        self._service = service
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._requests = _requests()
        self._threads = [
            threading.Thread(target=self._client, args=(seed,), daemon=True)
            for seed in range(number)
        ]
        for thread in self._threads:
            thread.start()

    def aim(self, service: Service) -> None:
        """Makes the clients use another service from their next request on."""
        self._service = service

    def stop(self) -> Figures:
        """Waits for the last responses and returns the figures."""
        self._over.set()
        for thread in self._threads:
            thread.join(90)
        assert not any(thread.is_alive() for thread in self._threads), "a client hangs"
        return self.figures

    def _client(self, seed: int) -> None:
        rng = random.Random(seed)
        connection, service = self._service.connect(), self._service
        while not self._over.is_set():
            path, body, expected = rng.choice(self._requests)
            began = time.monotonic()
            for _ in range(TRIES):
                if service is not self._service:
                    connection.close()
                    connection, service = self._service.connect(), self._service
                code, answer, trouble = _ask(connection, path, body)
                if not trouble:
                    break
                connection.close()
                with self._lock:
                    self.figures.broken[trouble] += 1
                time.sleep(0.05)
            took = time.monotonic() - began
            with self._lock:
                self.figures.seconds.append(took)
                if trouble:
                    self.figures.lost += 1
                elif code != 200 or answer != expected:  # byte by byte: a child lost is wrong too
                    self.figures.wrong.append(f"{path}: {code} {answer[:300]!r}")
                else:
                    self.figures.answers += 1
            time.sleep(rng.random() * 0.02)
        connection.close()


def _ask(connection: http.client.HTTPConnection, path: str, body: bytes) -> tuple[int, bytes, str]:
    """Sends a request; returns status code, body, and the kind of failure, or "" without a
    failure.
    """
    stage = "while sending"
    try:
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        stage = "before an answer"
        answer = connection.getresponse()
        stage = "inside an answer"
        return answer.status, answer.read(), ""
    except (OSError, http.client.HTTPException) as error:
        return 0, b"", f"{type(error).__name__} {stage}"


def _requests() -> list[tuple[str, bytes, bytes]]:
    """Returns endpoint, request, and the only correct response, for TApps of several sizes."""
    judge, result = InProcess(), []
    for size in (1, 5, 40):
        for situation in (NOTHING, ROLL, CREATE, FINALIZE):
            path, body = request_in(situation, size)
            document = json.loads(body)
            # Otherwise the status of a rollout would contain the current time, so there would be no
            # single correct response.
            document["parent"]["spec"]["progressDeadlineSeconds"] = 0
            body = json.dumps(document).encode()
            result.append((path, body, judge.post(path, body)))
    return result


ANSWERS: Final = 51
"""The number of correct responses before which a storm does not end."""


def storm(connections: int, seconds: float, seed: int = 1, *, every: float = 1.0) -> dict[str, Any]:
    """Kills a worker every `every` seconds, replaces the service at every tenth time, and returns
    the figures.

    The storm lasts `seconds` seconds, and longer if the service has not been replaced yet.
    """
    rng, done = random.Random(seed), Counter[str]()
    service = Service().__enter__()
    clients = Clients(service, connections)
    ends = time.monotonic() + seconds
    exits = []
    try:
        while time.monotonic() < ends or not done["rolls"] or clients.figures.answers < ANSWERS:
            time.sleep(every)
            if sum(done.values()) % 10 == 4:
                following = Service().__enter__()
                clients.aim(following)
                exits.append(service.stop())
                service, done["rolls"] = following, done["rolls"] + 1
            elif workers := service.workers:
                number = rng.choice((signal.SIGKILL, signal.SIGTERM))
                service.kill(rng.choice(workers), number)
                done[number.name] += 1
    finally:
        figures = clients.stop()
        exits.append(service.stop())
    return {
        "connections": connections,
        **done,
        "answers": figures.answers,
        "wrong": len(figures.wrong),
        "examples": figures.wrong[:3],
        "lost": figures.lost,
        "broken and sent again": dict(figures.broken),
        "exit codes": dict(Counter(exits)),
        "p50 ms": round(percentile(figures.seconds, 0.5) * 1000),
        "p99 ms": round(percentile(figures.seconds, 0.99) * 1000),
    }


def rolls(connections: int, times: int, pause: float = 1.0) -> dict[str, Any]:
    """Replaces the service several times and returns the figures: SIGTERM must break no request in
    progress.

    Each service runs alone for `pause` seconds.
    """
    service = Service().__enter__()
    clients = Clients(service, connections)
    try:
        for _ in range(times):
            time.sleep(pause)
            following = Service().__enter__()
            clients.aim(following)
            service.stop()
            service = following
        time.sleep(pause)
    finally:
        figures = clients.stop()
        service.stop()
    return {
        "rolls": times,
        "answers": figures.answers,
        "wrong": len(figures.wrong),
        "lost": figures.lost,
        "broken and sent again": dict(figures.broken),
    }
