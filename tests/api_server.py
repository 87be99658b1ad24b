"""Runs a fake API server with TLS, to which the service under test writes Events and pod resizes.

`api_server` starts the server. A test sets the failures that the server returns: status codes,
delays, and a stop.
"""

import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import trustme

Document = dict[str, Any]


class ApiServer:
    """Accepts each POST and PATCH request, stores it, and responds as the test has set.

    Attributes:
        answers: status codes of the next responses, in order. When the list is empty, the code is
            201, or 409 for an Event whose name already exists.
        retry_after: the Retry-After header of responses other than 201 and 409; "" sends no header.
        words: the message of responses other than 201; "" gives a message with the code.
        hang: seconds before each response.
        events: the created Events, by name.
        posts: path, Authorization header and body of every request.
        port: the port on which the server listens.
        environ: environment variables that lead the service to this server.
    """

    def __init__(self, account: Path, port: int = 0) -> None:
        """Starts the server on `port`, and writes the files `token` and `ca.crt` to the directory
        `account`.

        A pod finds files with these names in its service account's directory. Port 0 stands for any
        free port. A token that exists already is not overwritten.
        """
        self.answers: list[int] = []
        self.retry_after = ""
        self.words = ""
        self.hang = 0.0
        self.events: dict[str, Document] = {}
        self.posts: list[tuple[str, str, Document]] = []
        self._stopped = False
        self._over = threading.Event()
        authority = trustme.CA()
        account.mkdir(exist_ok=True)
        authority.cert_pem.write_to_path(account / "ca.crt")
        if not (account / "token").exists():
            (account / "token").write_text("first")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1").configure_cert(context)
        self._server = ThreadingHTTPServer(("127.0.0.1", port), self._handler())
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port: int = self._server.server_address[1]
        self.environ = {
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(self.port),
        }
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        """Closes all connections and refuses new ones."""
        self._stopped = True
        self._over.set()
        self._server.shutdown()
        self._server.server_close()

    def until(self, posts: int, seconds: float = 60) -> None:
        """Waits until `posts` requests have arrived, and fails after `seconds` seconds."""
        end = time.monotonic() + seconds
        while len(self.posts) < posts:
            assert time.monotonic() < end, f"{len(self.posts)} of {posts} requests"
            time.sleep(0.01)

    def _answer(self, path: str, authorization: str, body: Document) -> int:
        self.posts.append((path, authorization, body))
        self._over.wait(self.hang)
        if self.answers:
            return self.answers.pop(0)
        if path.endswith("/resize"):
            return 201
        name = body["metadata"]["name"]
        return 409 if self.events.setdefault(name, body) is not body else 201

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Head and body in one packet: a separate body would wait for an ACK.
            wbufsize = -1

            def do_PATCH(self) -> None:
                self.do_POST()

            def do_POST(self) -> None:
                if server._stopped:
                    raise ConnectionError
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                code = server._answer(self.path, self.headers.get("Authorization", ""), body)
                status = {"kind": "Status", "message": server.words or f"code {code}"}
                text = json.dumps(body if code == 201 else status).encode()
                self.send_response(code)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                if server.retry_after and code not in (201, 409):
                    self.send_header("Retry-After", server.retry_after)
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: Any) -> None:
                """Writes no log."""

        return Handler


@contextmanager
def api_server(account: Path, port: int = 0) -> Iterator[ApiServer]:
    """Yields a running fake API server and stops it at the end of the block.

    The server writes its token and certificate to `account`. Port 0 stands for any free port.
    """
    server = ApiServer(account, port)
    try:
        yield server
    finally:
        server.stop()
