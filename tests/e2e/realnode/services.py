"""The addresses and names of Services, for a cluster that has no kube-proxy and no DNS server.

Every connection to a Service is answered here and handed to one of its ready endpoints; names are
answered as cluster DNS does. So pods and what is installed run as they are shipped. The addresses
are made this host's own by one route, from the range that is set aside for tests of networks; no
packet leaves the host.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import subprocess
import threading
from collections.abc import AsyncIterator
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

LOGGER = logging.getLogger(__name__)
DNS_PLACE = 10
"""Which address of the range answers names, as is the custom."""
POLL_SECONDS = 0.2
Backend = tuple[str, int]


class Services:
    """While it is up, Services of this cluster can be reached from its pods and from this host."""

    def __init__(self, kubeconfig: Path, block: IPv4Network, busybox: Path) -> None:
        self._kube = Kube(kubeconfig)
        self._block = block
        self._busybox = busybox
        self.dns = str(block[DNS_PLACE])
        """Where pods ask for names."""
        self._names: dict[str, str] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="services", daemon=True)
        self._ending = asyncio.Event()
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
        self._loop.call_soon_threadsafe(self._ending.set)
        self._thread.join(10)
        self._loop.close()

    def _route(self, verb: str) -> None:
        command = [str(self._busybox), "ip", "route", verb, "local", str(self._block), "dev", "lo"]
        subprocess.run(command, check=True, capture_output=True)

    # Names

    def resolve(self, request: Any, _: object) -> Any:
        """Answers one question; dnslib calls it."""
        reply = request.reply()
        address = self._names.get(str(request.q.qname).rstrip(".").lower())
        if address is None:
            reply.header.rcode = RCODE.NXDOMAIN
        elif request.q.qtype == QTYPE.A:
            reply.add_answer(RR(request.q.qname, QTYPE.A, rdata=A(address), ttl=1))
        return reply

    # Connections

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        except Exception as error:  # told by who ends this
            self._broken = error
            LOGGER.exception("Services are not served any more")

    async def _serve(self) -> None:
        async with contextlib.AsyncExitStack() as stack:
            listening: set[tuple[str, int]] = set()
            while not self._ending.is_set():
                for service in await self._ask("v1", "services"):
                    for port in self._ports(service, listening):
                        one = await self._listen(service, port)
                        await stack.enter_async_context(one)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._ending.wait(), POLL_SECONDS)
            left = asyncio.all_tasks() - {asyncio.current_task()}
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)

    def _ports(self, service: Json, listening: set[tuple[str, int]]) -> list[Json]:
        """The ports of a Service that nobody listens on yet; its name is known from now on."""
        address = service["spec"].get("clusterIP") or "None"
        if address == "None":
            return []
        meta = service["metadata"]
        self._names[f"{meta['name']}.{meta['namespace']}.svc.{DOMAIN}"] = address
        found = [each for each in service["spec"]["ports"] if each.get("protocol") != "UDP"]
        fresh = [each for each in found if (address, each["port"]) not in listening]
        listening.update((address, each["port"]) for each in fresh)
        return fresh

    async def _listen(self, service: Json, port: Json) -> asyncio.Server:
        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            backends = await self._backends(service["metadata"], port.get("name") or "")
            async with closing(writer):  # where there is no endpoint, the connection just ends
                if not backends:
                    return
                there = await asyncio.open_connection(*random.choice(backends))
                async with closing(there[1]):
                    await asyncio.gather(copied(reader, there[1]), copied(there[0], writer))

        return await asyncio.start_server(connected, service["spec"]["clusterIP"], port["port"])

    async def _backends(self, meta: Json, port: str) -> list[Backend]:
        """Who is ready behind a Service; the API server's own has no endpoints here."""
        if (meta["namespace"], meta["name"]) == ("default", "kubernetes"):
            server = urlsplit(self._kube.server)
            return [(str(server.hostname), int(server.port or 443))]
        slices = await self._ask("discovery.k8s.io/v1", "endpointslices", meta["namespace"])
        return [
            (address, one["port"])
            for each in slices
            if each["metadata"].get("labels", {}).get("kubernetes.io/service-name") == meta["name"]
            for one in each.get("ports") or []
            if (one.get("name") or "") == port
            for endpoint in each.get("endpoints") or []
            if endpoint["conditions"].get("ready")
            for address in endpoint["addresses"]
        ]

    async def _ask(self, version: str, plural: str, namespace: str | None = None) -> list[Json]:
        try:
            return await asyncio.to_thread(self._kube.list_all, version, plural, namespace)
        except (KubeError, OSError, HTTPError):
            return []


@contextlib.asynccontextmanager
async def closing(writer: asyncio.StreamWriter) -> AsyncIterator[None]:
    """Closes a connection when all is said; what breaks or is given up ends it at once."""
    try:
        with contextlib.suppress(OSError):
            yield
            writer.close()
            await writer.wait_closed()
    finally:
        writer.transport.abort()  # nothing, where it is closed


async def copied(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    """Hands on all that comes, then its end."""
    with contextlib.suppress(OSError):
        while chunk := await source.read(1 << 16):
            target.write(chunk)
            await target.drain()
        target.write_eof()
