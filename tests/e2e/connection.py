"""A connection to the API server that tests can cut, like the network of a client's node."""

from __future__ import annotations

import contextlib
import socket
import threading
from pathlib import Path
from urllib.parse import urlsplit

import yaml

CHUNK = 1 << 16


class Line:
    """Forwards bytes in both directions until it is cut.

    Then connections hang and are not refused.
    """

    def __init__(self, kubeconfig: Path, target: Path) -> None:
        """Writes `target`: the kubeconfig with the address of this line."""
        self.kubeconfig = target
        config = yaml.safe_load(kubeconfig.read_text())
        (cluster,) = config["clusters"]
        server = urlsplit(cluster["cluster"]["server"])
        self._server = (server.hostname or "", server.port or 443)
        self._cut = threading.Event()
        self._ends: list[socket.socket] = []
        self._door = socket.create_server(("127.0.0.1", 0))
        cluster["cluster"]["server"] = f"https://127.0.0.1:{self._door.getsockname()[1]}"
        target.touch(mode=0o600)
        target.write_text(yaml.safe_dump(config))
        threading.Thread(target=self._accept, name="line", daemon=True).start()

    def cut(self) -> None:
        """Stops forwarding in both directions; connections stay open."""
        self._cut.set()

    def close(self) -> None:
        """Closes all sockets."""
        self._cut.set()
        for each in (self._door, *self._ends):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._door.accept()
                self._ends.append(near)
                if self._cut.is_set():
                    continue
                far = socket.create_connection(self._server)
                self._ends.append(far)
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=self._pass_on, args=pair, daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while (data := source.recv(CHUNK)) and not self._cut.is_set():
                sink.sendall(data)
            if not self._cut.is_set():
                sink.shutdown(socket.SHUT_WR)
