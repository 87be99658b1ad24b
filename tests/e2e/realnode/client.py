"""A client of a Service that reads the EndpointSlices and sends requests to ready endpoints in
turn.
"""

from __future__ import annotations

import http.client
import itertools
import math
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from tests.e2e.informer import Informer
from tests.e2e.kube import Json, Kube

from .images import HTTP_PATH

PORT = 8080
TIMEOUT = 5.0
AT_ONCE = 32
NOBODY = "nobody is ready"
View = dict[str, str]
"""Pods by address, for the endpoints that are ready."""


@dataclass(frozen=True)
class Request:
    """A request and its result. Times are of the monotonic clock."""

    began: float
    ended: float
    pod: str
    version: str
    """The response of the application, which is the version of its image; empty if the request
    failed.
    """
    failure: str

    def __str__(self) -> str:
        return f"{self.began:.2f}-{self.ended:.2f} {self.pod}: {self.version or self.failure}"


def service(name: str, labels: dict[str, str]) -> Json:
    """Returns a Service for the application's pods. No proxy serves its cluster address."""
    ports: list[dict[str, Any]] = [{"port": 80, "targetPort": PORT}]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"selector": labels, "ports": ports},
    }


class Client:
    """Sends `rate` requests a second, each on a new connection; a context manager.

    The client acts on a change of the EndpointSlices after `lag` seconds, because a proxy or a load
    balancer is no faster.
    """

    def __init__(
        self, kube: Kube, namespace: str, name: str, *, rate: float = 40, lag: float = 0.5
    ) -> None:
        self.requests: list[Request] = []
        """All requests that have succeeded or failed."""
        self.views: list[tuple[float, View]] = []
        """The ready endpoints since each time of a change, without the lag."""
        self.lag = lag
        self._rate = rate
        self._slices = Informer(
            kube,
            kube.path("discovery.k8s.io/v1", "endpointslices", namespace),
            self._heard,
            labelSelector=f"kubernetes.io/service-name={name}",
        )
        self._turn = itertools.count()
        self._ending = threading.Event()
        self._senders = ThreadPoolExecutor(AT_ONCE, "client")
        self._thread = threading.Thread(target=self._send, name="client", daemon=True)

    def __enter__(self) -> Client:
        self._slices.start()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ending.set()
        self._thread.join(10)
        self._senders.shutdown()
        self._slices.stop()

    @property
    def ready(self) -> set[str]:
        """The pods that are ready now."""
        return set(self.view(time.monotonic()).values())

    @property
    def failures(self) -> list[Request]:
        """The failed requests."""
        return [each for each in list(self.requests) if each.failure]

    def view(self, moment: float) -> View:
        """Returns the pods that were ready at a moment."""
        seen = [view for since, view in list(self.views) if since <= moment]
        return seen[-1] if seen else {}

    def absent(self, pod: str, before: float) -> float:
        """Returns since when the pod had been missing at the time `before`, which is the result if
        the pod was there.
        """
        since = before
        for began, view in reversed([each for each in list(self.views) if each[0] <= before]):
            if pod in view.values():
                break
            since = began
        return since

    def left(self, pod: str, after: float) -> float:
        """Returns when the client heard that a pod had left, at the earliest `after`.

        Infinity if the client has not heard of it.
        """
        views = list(self.views)
        gone = [at for at, view in views if at >= after and pod not in view.values()]
        return min(gone, default=math.inf)

    def _heard(self, change: str, found: Json) -> None:  # noqa: ARG002 - all slices are read again
        view = {
            address: endpoint["targetRef"]["name"]
            for each in self._slices.objects().values()
            for endpoint in each.get("endpoints") or []
            for address in endpoint["addresses"]
            if endpoint["conditions"].get("ready")
        }
        self.views.append((time.monotonic(), view))

    def _send(self) -> None:
        due = time.monotonic()
        while not self._ending.wait(max(0.0, due - time.monotonic())):
            due += 1 / self._rate
            self._senders.submit(self._ask)

    def _ask(self) -> None:
        began, version, failure = time.monotonic(), "", ""
        view = sorted(self.view(began - self.lag).items())
        if not view:
            if self.requests:  # before the first response, the client has not begun
                self.requests.append(Request(began, began, "", "", NOBODY))
            return
        address, pod = view[next(self._turn) % len(view)]
        connection = http.client.HTTPConnection(address, PORT, timeout=TIMEOUT)
        try:
            connection.request("GET", HTTP_PATH)
            answer = connection.getresponse()
            body = answer.read()
            version = body.decode().strip() if body.endswith(b"\n") else ""
            if answer.status != 200 or not version:
                failure = f"status {answer.status}, {len(body)} bytes"
        except (OSError, http.client.HTTPException) as error:
            failure = f"{type(error).__name__}: {error}"
        finally:
            connection.close()
        self.requests.append(Request(began, time.monotonic(), pod, version, failure))
