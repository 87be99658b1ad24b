"""The client of the API server, which is used only if TAPP_EVENTS or TAPP_RESIZE is set.

The client creates Events and resizes pods as the service account of this service's pod. Each
request reads the token of the account again, because the kubelet replaces the token. After a failed
request the client connects again and reads the CA certificate again.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from urllib3 import BaseHTTPResponse, HTTPSConnectionPool, Timeout
from urllib3.exceptions import HTTPError

from hooks.service.account import api_server_of
from hooks.service.api_errors import RejectedError, TemporaryError
from tapp.words.digits import whole

Document = dict[str, Any]
TIMEOUT = (3, 10)
"""Seconds to connect, and seconds to wait for a response."""


class Cluster:
    """The API server, used as the service account of this service's pod."""

    def __init__(
        self, account: Path, environ: Mapping[str, str] = os.environ, component: str = "events"
    ) -> None:
        """Reads the address of the API server from `environ`; does not connect yet.

        `account` is a directory with `token` and `ca.crt`. Raises AccountError if the address or
        one of the files is missing. The error names the `component` that installs the account.
        """
        self._account = account
        self._pool: HTTPSConnectionPool | None = None
        self._host, self._port = api_server_of(account, component, environ)

    def create(self, event: Document) -> bool:
        """Creates an Event and returns True, or False if an Event of that name exists.

        Raises TemporaryError if a later attempt may succeed, and RejectedError if the API
        server rejects the Event for good.
        """
        space = event["metadata"]["namespace"]
        path = f"/apis/events.k8s.io/v1/namespaces/{space}/events"
        return self._send("POST", path, "application/json", event)

    def resize(self, namespace: str, name: str, patch: Document) -> bool:
        """Patches the subresource `resize` of a pod with a strategic merge patch.

        Returns True, or False if the pod has changed since the uid or resourceVersion in the patch.
        Raises TemporaryError if a later attempt may succeed, and RejectedError if the API
        server rejects the patch for good.
        """
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/resize"
        return self._send("PATCH", path, "application/strategic-merge-patch+json", patch)

    def _send(self, method: str, path: str, kind: str, body: Document) -> bool:
        try:
            if self._pool is None:
                self._pool = self._connections()
            response = self._pool.urlopen(
                method,
                path,
                body=msgspec.json.encode(body),
                headers={
                    "Authorization": f"Bearer {(self._account / 'token').read_text().strip()}",
                    "Content-Type": kind,
                },
                retries=False,  # the caller decides whether and when to try again
                redirect=False,
            )
        except (HTTPError, OSError) as error:
            self.close()  # the next request connects again and reads the CA again
            raise TemporaryError(f"{type(error).__name__}: {error}") from None
        if response.status == _CONFLICT:
            return False
        if response.status in _RETRYABLE or response.status >= _BROKEN or _may_lack_roles(response):
            raise TemporaryError(_text_of(response), _retry_after(response))
        if response.status >= _MOVED:
            raise RejectedError(_text_of(response))
        return True

    def close(self) -> None:
        """Closes the connection. The next request opens a new connection."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    def _connections(self) -> HTTPSConnectionPool:
        connect, read = TIMEOUT
        return HTTPSConnectionPool(
            f"[{self._host}]" if ":" in self._host else self._host,
            int(self._port),
            timeout=Timeout(connect=connect, read=read),
            ca_certs=str(self._account / "ca.crt"),
        )


_MOVED, _FORBIDDEN, _CONFLICT, _BROKEN = 300, 403, 409, 500
# 401: the token has just expired, and the kubelet replaces the token within a minute.
_RETRYABLE = (401, 408, 429)


def _may_lack_roles(response: BaseHTTPResponse) -> bool:
    """Returns True if the authorizer rejects a request, which may be wrong for a moment.

    An API server that has just started authorizes requests before it has read the roles. The
    authorizer's message has fixed words. Any other 403 is final: the namespace is being deleted, or
    admission rejects the object.
    """
    return response.status == _FORBIDDEN and (
        b"cannot create resource" in response.data or b"cannot patch resource" in response.data
    )


def _text_of(response: BaseHTTPResponse) -> str:
    text = " ".join(response.data.decode(errors="replace").split())
    return f"{response.status} {response.reason}: {text[:300]}"


def _retry_after(response: BaseHTTPResponse) -> float:
    text = response.headers.get("Retry-After", "")
    return float(whole(text) or 0)
