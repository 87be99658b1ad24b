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
    """A connection to the API server, with the service account of this service's pod."""

    def __init__(
        self, account: Path, environ: Mapping[str, str] = os.environ, component: str = "events"
    ) -> None:
        """Reads the address of the API server; does not connect yet.

        Raises AccountError if the address or a file of the account is missing.

        Args:
            account: the directory of the service account, with the files `token` and `ca.crt`.
            environ: the environment variables, which have the address.
            component: the component that needs the account: `events` or `resize`. The error names
                it.
        """
        self._account = account
        self._pool: HTTPSConnectionPool | None = None
        self._host, self._port = api_server_of(account, component, environ)

    def create(self, event: Document) -> bool:
        """Creates an Event and returns True, or returns False if an Event of that name exists.

        Raises TemporaryError if a later attempt may succeed, and RejectedError if the API server
        rejects the Event for good.
        """
        space = event["metadata"]["namespace"]
        path = f"/apis/events.k8s.io/v1/namespaces/{space}/events"
        return self._send("POST", path, "application/json", event)

    def resize(self, namespace: str, name: str, patch: Document) -> bool:
        """Patches the subresource `resize` of a pod with a strategic merge patch.

        Returns True, or False if the pod has changed since the uid or resourceVersion in the patch.
        Raises TemporaryError if a later attempt may succeed, and RejectedError if the API server
        rejects the patch for good.

        Args:
            namespace: the namespace of the pod.
            name: the name of the pod.
            patch: the patch.
        """
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/resize"
        return self._send("PATCH", path, "application/strategic-merge-patch+json", patch)

    def _send(self, method: str, path: str, kind: str, body: Document) -> bool:
        """Sends a request and returns True, or returns False if the response is 409 (conflict).

        Raises TemporaryError if a later attempt may succeed, and RejectedError if the API server
        rejects the request for good.

        Args:
            method: the HTTP method.
            path: the path of the resource.
            kind: the Content-Type of the body.
            body: the body, which is sent as JSON.
        """
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
        """Returns a new pool of connections, which verify the certificate of the API server."""
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
    """Returns True if a request was rejected perhaps only because the API server has just started.

    An API server that has just started authorizes requests before it has read the roles. The
    authorizer's message has fixed words. Any other 403 is final: the namespace is being deleted, or
    admission rejects the object.
    """
    return response.status == _FORBIDDEN and (
        b"cannot create resource" in response.data or b"cannot patch resource" in response.data
    )


def _text_of(response: BaseHTTPResponse) -> str:
    """Returns code, reason and beginning of an error response on one line."""
    text = " ".join(response.data.decode(errors="replace").split())
    return f"{response.status} {response.reason}: {text[:300]}"


def _retry_after(response: BaseHTTPResponse) -> float:
    """Returns the seconds in the header Retry-After; 0 if it has no number."""
    text = response.headers.get("Retry-After", "")
    return float(whole(text) or 0)
