"""The one place that speaks to the API server, and only with TAPP_EVENTS: it creates events.

The official client, as the pod's service account. It reads the account's token anew every minute,
because kubelets replace it; a connection that has failed is made anew with the CA as it is then.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import urllib3
from kubernetes.client import ApiClient, Configuration, CustomObjectsApi
from kubernetes.client.exceptions import ApiException
from kubernetes.config.config_exception import ConfigException
from kubernetes.config.incluster_config import InClusterConfigLoader

from hooks.events import RefusedError, UnansweredError

Document = dict[str, Any]
TIMEOUT = (3, 10)
"""Seconds to connect, and to wait for an answer: a hanging API server holds only our thread."""


class AccountError(Exception):
    """There is no service account to write events with."""


class Cluster:
    """The API server, as the service account of a pod."""

    def __init__(self, account: Path, environ: Mapping[str, str] = os.environ) -> None:
        """Reads the account.

        Args:
            account: the directory with `token` and `ca.crt`.
            environ: where KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are.

        Raises:
            AccountError: something of it is missing.
        """
        self._loader: Any = InClusterConfigLoader(  # type: ignore[no-untyped-call]
            token_filename=str(account / "token"),
            cert_filename=str(account / "ca.crt"),
            environ=environ,
        )
        self._api: Any = None
        try:
            self._configuration()
        except (ConfigException, OSError) as error:
            message = f"TAPP_EVENTS needs a service account in {account}: {error}"
            raise AccountError(f"{message} Install metacontroller/components/events.") from None

    def create(self, event: Document) -> bool:
        """Creates an event; False where there is one of that name.

        Raises:
            UnansweredError: the API server is away, busy or broken.
            RefusedError: it says no.
        """
        try:
            if self._api is None:
                self._api = CustomObjectsApi(ApiClient(self._configuration()))
            # Not EventsV1Api: its models write a time without a fraction where that is zero, which
            # the API server does not read. The answer is read to its end, for the connection to
            # serve again, and nothing is made of it.
            answer = self._api.create_namespaced_custom_object(
                *_EVENTS,
                event["metadata"]["namespace"],
                "events",
                event,
                _preload_content=False,
                _request_timeout=TIMEOUT,
            )
            answer.drain_conn()
            answer.release_conn()
        except ApiException as error:
            if error.status == _CONFLICT:
                return False
            if not error.status:  # how the client says that a certificate is not to be trusted
                self.close()
            if error.status in _LATER or error.status >= _BROKEN or _knows_no_roles(error):
                raise UnansweredError(_said(error), _retry_after(error)) from None
            raise RefusedError(_said(error)) from None
        except (urllib3.exceptions.HTTPError, ConfigException, OSError) as error:
            self.close()  # the next attempt connects anew, with the CA of that time
            raise UnansweredError(f"{type(error).__name__}: {error}") from None
        return True

    def close(self) -> None:
        """Closes the connection; the next event opens another."""
        if self._api is not None:
            self._api.api_client.rest_client.pool_manager.clear()
            self._api = None

    def _configuration(self) -> Configuration:
        configuration = Configuration()
        self._loader.load_and_set(configuration)
        configuration.retries = False  # whoever calls knows what may wait
        configuration.connection_pool_maxsize = 1
        return configuration


_EVENTS = ("events.k8s.io", "v1")
_FORBIDDEN, _CONFLICT, _BROKEN = 403, 409, 500
_LATER = (0, 401, 408, 429)
"""401: the token has expired a moment ago, and its successor is read within a minute."""


def _knows_no_roles(error: ApiException) -> bool:
    """Whether the authorizer denies it, by its fixed words: so does one that has only just started.

    An API server that comes up answers before it has read the roles. Any other 403 is final: the
    namespace is being deleted, or admission says no.
    """
    return error.status == _FORBIDDEN and "cannot create resource" in str(error.body)


def _said(error: ApiException) -> str:
    return f"{error.status} {error.reason}: {' '.join(str(error.body or '').split())[:300]}"


def _retry_after(error: ApiException) -> float:
    text = (error.headers or {}).get("Retry-After", "")
    return float(text) if text.isascii() and text.isdigit() else 0
