"""The one place that speaks to the API server, and only with TAPP_EVENTS or TAPP_RESIZE.

It creates events, and resizes pods, as the pod's service account. The account's token is read for
each request, because kubelets replace it; a connection that has failed is made anew with the CA as
it is then.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from urllib3 import BaseHTTPResponse, HTTPSConnectionPool, Timeout
from urllib3.exceptions import HTTPError

from hooks.service.account import api_server_of
from hooks.service.answers import UnansweredError, WriteRefusedError
from tapp.words.digits import whole

Document = dict[str, Any]
TIMEOUT = (3, 10)  # Seconds to connect, and to answer: a hanging one holds only our thread


class Cluster:
    """The API server, as the service account of a pod."""

    def __init__(
        self, account: Path, environ: Mapping[str, str] = os.environ, component: str = "events"
    ) -> None:
        """The account is a directory with `token` and `ca.crt`; `environ` has the server's address.

        Raises AccountError: something of that is missing; it says which `component` needs it.
        """
        self._account = account
        self._pool: HTTPSConnectionPool | None = None
        self._host, self._port = api_server_of(account, component, environ)

    def create(self, event: Document) -> bool:
        """Creates an event; False where there is one of that name.

        Raises UnansweredError: the API server is away, busy or broken; WriteRefusedError: it says
        no.
        """
        space = event["metadata"]["namespace"]
        path = f"/apis/events.k8s.io/v1/namespaces/{space}/events"
        return self._ask("POST", path, "application/json", event)

    def resize(self, namespace: str, name: str, patch: Document) -> bool:
        """Patches a pod's subresource `resize` (strategic merge); False where it is another by now.

        Raises as `create` does.
        """
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/resize"
        return self._ask("PATCH", path, "application/strategic-merge-patch+json", patch)

    def _ask(self, method: str, path: str, kind: str, body: Document) -> bool:
        try:
            if self._pool is None:
                self._pool = self._connections()
            answer = self._pool.urlopen(
                method,
                path,
                body=msgspec.json.encode(body),
                headers={
                    "Authorization": f"Bearer {(self._account / 'token').read_text().strip()}",
                    "Content-Type": kind,
                },
                retries=False,  # whoever calls knows what may wait
                redirect=False,
            )
        except (HTTPError, OSError) as error:
            self.close()  # the next attempt connects anew, with the CA of that time
            raise UnansweredError(f"{type(error).__name__}: {error}") from None
        if answer.status == _CONFLICT:
            return False
        if answer.status in _LATER or answer.status >= _BROKEN or _knows_no_roles(answer):
            raise UnansweredError(_said(answer), _retry_after(answer))
        if answer.status >= _MOVED:
            raise WriteRefusedError(_said(answer))
        return True

    def close(self) -> None:
        """Closes the connection; the next request opens another."""
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
_LATER = (401, 408, 429)  # 401: the token has just expired; its successor comes in a minute


def _knows_no_roles(answer: BaseHTTPResponse) -> bool:
    """True if the authorizer denies it, by its fixed words: so does one that has only just started.

    An API server that comes up answers before it has read the roles. Any other 403 is final: the
    namespace is being deleted, or admission says no.
    """
    return answer.status == _FORBIDDEN and (
        b"cannot create resource" in answer.data or b"cannot patch resource" in answer.data
    )


def _said(answer: BaseHTTPResponse) -> str:
    text = " ".join(answer.data.decode(errors="replace").split())
    return f"{answer.status} {answer.reason}: {text[:300]}"


def _retry_after(answer: BaseHTTPResponse) -> float:
    text = answer.headers.get("Retry-After", "")
    return float(whole(text) or 0)
