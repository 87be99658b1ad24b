"""A registry of images that a test makes slow, failing or complete."""

from __future__ import annotations

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

from .images import HOST, MANIFEST_TYPE, Images, app, sha256


class Registry:
    """Serves the part of the distribution API that pulls need, on a loopback port.

    `images` has the blobs, and `published` the names that can be pulled. A response with a manifest
    is delayed by `delay` seconds, and `failing` makes every response a 503.
    """

    def __init__(self, images: Images) -> None:
        self.images = images
        self.published: set[str] = set()
        self.delay = 0.0
        self.failing = False
        self.open = threading.Event()
        self.open.set()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        """The address of the registry."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def start(self) -> None:
        """Starts serving."""
        self._thread.start()

    def stop(self) -> None:
        """Stops serving."""
        if self._thread.is_alive():
            self._server.shutdown()
        self._server.server_close()

    def publish(self, tag: str, megabytes: int = 0, **environment: str) -> None:
        """Offers an image of the application that the node does not have."""
        self.images.add(app(tag), {"VERSION": tag, **environment}, megabytes)
        self.published.add(app(tag))

    def reset(self) -> None:
        """Resets the registry: no delay, no failure, no image."""
        self.published.clear()
        self.delay, self.failing = 0.0, False
        self.open.set()

    def find(self, path: str) -> tuple[str, bytes] | None:
        """Returns media type and blob of a path below /v2/, or None."""
        name, _, wanted = path.removeprefix("/v2/").rpartition("/")
        name, _, kind = name.rpartition("/")
        if kind == "blobs":
            blob = self.images.blobs.get(wanted)
            return None if blob is None else ("application/octet-stream", blob)
        digest: str | None = wanted
        if not wanted.startswith("sha256:"):
            full = f"{HOST}/{name}:{wanted}"
            time.sleep(self.delay)
            self.open.wait()
            digest = self.images.names.get(full) if full in self.published else None
        manifest = self.images.blobs.get(digest or "")
        return None if manifest is None else (MANIFEST_TYPE, manifest)


def handler(registry: Registry) -> type[BaseHTTPRequestHandler]:
    """Returns the class of request handlers of a registry."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            path = unquote(self.path).partition("?")[0]
            found = registry.find(path) if path != "/v2/" else ("application/json", b"{}")
            if registry.failing:
                self._answer(503, "application/json", b'{"errors":[{"code":"UNAVAILABLE"}]}')
            elif found is None:
                self._answer(404, "application/json", b'{"errors":[{"code":"MANIFEST_UNKNOWN"}]}')
            else:
                self._answer(200, *found)

        do_HEAD = do_GET  # noqa: N815 - the base class looks for this name

        def _answer(self, code: int, kind: str, body: bytes) -> None:
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            if code == 200:
                self.send_header("Docker-Content-Digest", sha256(body))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Logs nothing."""

    return Handler
