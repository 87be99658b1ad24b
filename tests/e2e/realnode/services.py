"""Serves the addresses and names of Services for a cluster without kube-proxy and DNS server.

Each connection to a Service is forwarded to one of its ready endpoints. Names are resolved as in
cluster DNS. So pods run unchanged, as they are shipped. One route makes the addresses local to this
host. The addresses are from the range for benchmarks of networks, and no packet leaves the host.
"""

from __future__ import annotations

import contextlib
import random
import socket
import socketserver
import subprocess
import threading
from collections.abc import Callable
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dnslib import QTYPE, RCODE, RR, A
from dnslib.server import DNSServer
from urllib3.exceptions import HTTPError

from tests.e2e.kube import Json, Kube, KubeError
from tests.e2e.process import ProcessError

from .kubelet import DOMAIN

DNS_PLACE = 10
"""The number of the DNS server's address in the range; 10 is the usual one."""
POLL_SECONDS = 0.2
Address = tuple[str, int]


class Services:
    """While this context is active, pods and this host can reach the Services of the cluster."""

    def __init__(self, kubeconfig: Path, block: IPv4Network, busybox: Path) -> None:
        self._kube = Kube(kubeconfig)
        self._block = block
        self._busybox = busybox
        self.dns = str(block[DNS_PLACE])
        """The address of the DNS server."""
        self._names: dict[str, str] = {}
        self._ports: dict[Address, Port] = {}
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="services", daemon=True)
        self._stack = contextlib.ExitStack()
        self._broken: Exception | None = None

    def __enter__(self) -> Services:
        with contextlib.ExitStack() as stack:
            stack.callback(self._kube.close)
            self._route("replace")
            stack.callback(self._route, "del")
            names = DNSServer(self, address=self.dns, port=53)
            stack.callback(names.server.server_close)
            names.start_thread()
            stack.callback(names.stop)
            self._thread.start()
            stack.callback(self._end)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        if self._broken is not None:
            raise ProcessError(f"Services were not served to the end: {self._broken!r}")

    def _end(self) -> None:
        self._ending.set()
        self._thread.join(10)
        for port in self._ports.values():
            port.stop()

    def _route(self, verb: str) -> None:
        command = [str(self._busybox), "ip", "route", verb, "local", str(self._block), "dev", "lo"]
        subprocess.run(command, check=True, capture_output=True)

    def resolve(self, request: Any, _: object) -> Any:
        """Answers a question for a name. dnslib calls this method."""
        reply = request.reply()
        address = self._names.get(str(request.q.qname).rstrip(".").lower())
        if address is None:
            reply.header.rcode = RCODE.NXDOMAIN
        elif request.q.qtype == QTYPE.A:
            reply.add_answer(RR(request.q.qname, QTYPE.A, rdata=A(address), ttl=1))
        return reply

    def _watch(self) -> None:
        try:
            while not self._ending.wait(POLL_SECONDS):
                for service in self._ask("v1", "services"):
                    self._serve(service)
        except Exception as error:  # noqa: BLE001 - raised when the context ends
            self._broken = error

    def _serve(self, service: Json) -> None:
        """Listens on the ports of a Service, unless it does already, and adds the Service's
        name.
        """
        address = service["spec"].get("clusterIP") or "None"
        if address == "None":
            return
        meta = service["metadata"]
        for each in service["spec"]["ports"]:
            place = (address, int(each["port"]))
            if each.get("protocol") != "UDP" and place not in self._ports:
                name = each.get("name") or ""
                self._ports[place] = Port(place, lambda name=name: self._backends(meta, name))
        self._names[f"{meta['name']}.{meta['namespace']}.svc.{DOMAIN}"] = address

    def _backends(self, meta: Json, port: str) -> list[Address]:
        """Returns the ready endpoints of a Service.

        The API server has no endpoints here, but an address.
        """
        if (meta["namespace"], meta["name"]) == ("default", "kubernetes"):
            server = urlsplit(self._kube.server)
            return [(str(server.hostname), int(server.port or 443))]
        slices = self._ask("discovery.k8s.io/v1", "endpointslices", meta["namespace"])
        return [
            (address, int(one["port"]))
            for each in slices
            if each["metadata"].get("labels", {}).get("kubernetes.io/service-name") == meta["name"]
            for one in each.get("ports") or []
            if (one.get("name") or "") == port
            for endpoint in each.get("endpoints") or []
            if endpoint["conditions"].get("ready")
            for address in endpoint["addresses"]
        ]

    def _ask(self, version: str, plural: str, namespace: str | None = None) -> list[Json]:
        try:
            return self._kube.list_all(version, plural, namespace)
        except (KubeError, OSError, HTTPError):
            return []


class Port(socketserver.ThreadingTCPServer):
    """The server for one port of a Service."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, place: Address, backends: Callable[[], list[Address]]) -> None:
        self.backends = backends
        self.open: set[socket.socket] = set()
        super().__init__(place, Connection)
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        """Stops the server and all its connections."""
        self.shutdown()
        self.server_close()
        for each in list(self.open):
            cut(each)

    def handle_error(self, *_: object) -> None:
        """Ignores errors of a connection, which its two ends notice."""


class Connection(socketserver.BaseRequestHandler):
    """Forwards bytes in both directions, or closes at once if the Service has no endpoint."""

    server: Port

    def handle(self) -> None:
        """Serves until both ends have closed."""
        backends = self.server.backends()
        if not backends:
            return
        with socket.create_connection(random.choice(backends), 10) as there:
            there.settimeout(None)
            both = {self.request, there}
            self.server.open |= both
            back = threading.Thread(target=hand_on, args=(there, self.request), daemon=True)
            back.start()
            hand_on(self.request, there)
            back.join()
            self.server.open -= both


def hand_on(source: socket.socket, target: socket.socket) -> None:
    """Forwards all bytes from one end, then its end of stream. An error closes both ends."""
    try:
        while chunk := source.recv(1 << 16):
            target.sendall(chunk)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        cut(source)
        cut(target)


def cut(connection: socket.socket) -> None:
    """Closes a connection at once, so that waiting reads end."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
