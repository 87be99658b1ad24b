"""Measures the service for one tenant while another tenant's clients send the worst TApp and
leave.
"""

import json
import socket
import threading
import time
from contextlib import suppress
from typing import Any

from tests.load.faults import Probes
from tests.load.service import HOST, Service, percentile

OK = 200
TIMEOUT = 240.0
"""Seconds after which Metacontroller gives up on a hook."""
ENOUGH = 8
"""Number of requests that the leaving clients must have sent before the figures are taken."""
HEAD = b"POST /sync HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"


def asked(name: str, namespace: str, spec: dict[str, Any]) -> bytes:
    """Returns the request for the first sync of a TApp with this name, namespace and spec."""
    meta = {"name": name, "namespace": namespace, "uid": f"uid-{namespace}-{name}", "generation": 1}
    kind = {"apiVersion": "apps.tkestack.io/v1", "kind": "TApp"}
    parent = {**kind, "metadata": meta, "spec": spec}
    children: dict[str, Any] = {"Pod.v1": {}, "PersistentVolumeClaim.v1": {}}
    children["ControllerRevision.apps/v1"] = {}
    return json.dumps({"parent": parent, "children": children, "finalizing": False}).encode()


def worst(instances: int = 1000, placeholders: int = 1500) -> bytes:
    """Returns a sync of a small TApp that takes long, because its texts differ in each instance.

    Each of the instances fills in `placeholders` placeholders.
    """
    env = [{"name": f"A{at}", "value": "$(tapp.index)"} for at in range(placeholders)]
    containers = [{"name": "a", "image": "a", "env": env}]
    return asked("worst", "theirs", {"replicas": instances, "template": _template(containers)})


SMALL = asked(
    "small",
    "ours",
    {"replicas": 2, "template": {"spec": {"containers": [{"name": "a", "image": "a"}]}}},
)


def _template(containers: list[dict[str, Any]]) -> dict[str, Any]:
    return {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": containers}}


class Leavers:
    """Runs clients that send a request and close the connection without reading the response.

    Attributes:
        asked: the number of requests that they have sent.
    """

    def __init__(
        self, service: Service, body: bytes, clients: int = 8, patience: float = 2
    ) -> None:
        """Starts the clients; each waits `patience` seconds before it closes its connection."""
        self._port, self._patience = service.port, patience
        self._request = HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body
        self._stopping = threading.Event()
        self.asked = 0
        self._threads = [threading.Thread(target=self._client, daemon=True) for _ in range(clients)]
        for thread in self._threads:
            thread.start()

    def _client(self) -> None:
        while not self._stopping.is_set():
            with suppress(OSError), socket.create_connection((HOST, self._port), TIMEOUT) as there:
                there.sendall(self._request)
                self.asked += 1
                self._stopping.wait(self._patience)

    def stop(self) -> int:
        """Ends the clients and returns the number of their requests."""
        self._stopping.set()
        for thread in self._threads:
            thread.join(TIMEOUT)
        return self.asked


def beside(
    body: bytes, seconds: float, *, pause: float = 0.05, small: bytes = SMALL
) -> dict[str, Any]:
    """Measures a tenant's small syncs, and probes, for `seconds` seconds while `Leavers` send
    `body`.

    The service has two workers as shipped. `small` is the request of the tenant, sent with `pause`
    seconds in between. Returns the figures.
    """
    with Service() as service:
        for _ in range(4):
            assert service.call("POST", "/sync", small)[0] == OK
        leavers = Leavers(service, body)
        time.sleep(1)
        probes = Probes(service)
        took, failed, ends = list[float](), 0, time.monotonic() + seconds
        while time.monotonic() < ends or leavers.asked <= ENOUGH:
            began = time.monotonic()
            try:
                failed += service.call("POST", "/sync", small, TIMEOUT)[0] != OK
            except OSError:
                failed += 1
            took.append(time.monotonic() - began)
            time.sleep(pause)
        figures = probes.stop()
        return {
            "asked": leavers.stop(),
            "syncs": len(took),
            "syncs failed": failed,
            "sync p50 ms": round(percentile(took, 0.5) * 1000),
            "sync p99 ms": round(percentile(took, 0.99) * 1000),
            "sync max ms": round(max(took) * 1000),
            **figures,
        }
