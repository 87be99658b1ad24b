"""A typed layer over the official `kubernetes` client that takes and returns JSON.

The layer does not use the client's models. Tests must see the exact responses of the API server,
with unknown fields. Conversion into models would also be too slow for 500 pods a second.
"""

from __future__ import annotations

import base64
import json
import re
import threading
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import urllib3
import yaml
from kubernetes import client
from kubernetes.config import kube_config

from simulator.api.apply import canonical_json

Json = dict[str, Any]
Kubectl = Callable[..., str]
"""The type of the fixture `kubectl`."""
FIELD_MANAGER = "tapp-e2e"
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
TIMEOUT = 30.0


class KubeError(Exception):
    """A response of the API server with a status other than 2xx."""

    def __init__(self, status: int, message: str, body: Json) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        self.message = message
        self.body = body


class Kube:
    """A client for the cluster of a kubeconfig. Several threads may use it."""

    def __init__(
        self, kubeconfig: Path, *, context: str | None = None, user_agent: str = "tapp-e2e"
    ) -> None:
        self.kubeconfig = kubeconfig
        self.context = context
        settings = client.Configuration()
        load: Any = kube_config.load_kube_config
        load(str(kubeconfig), context, client_configuration=settings, persist_config=False)
        # A client with a token reads its kubeconfig at each request, and would look for proxies in
        # the environment each time. Pytest changes the environment between the phases of a test,
        # so a request of another thread could fail with KeyError 'PYTEST_CURRENT_TEST'.
        settings.proxy = settings.proxy
        settings.connection_pool_maxsize = 24
        settings.retries = False
        self.server = str(settings.host)
        self._client = client.ApiClient(settings)
        self._client.user_agent = user_agent
        self._plurals: dict[tuple[str, str], tuple[str, bool]] = {}
        self._lock = threading.Lock()

    def close(self) -> None:
        """Closes all connections."""
        self._client.rest_client.pool_manager.clear()

    # Requests

    def request(
        self,
        method: str,
        path: str,
        body: Json | Sequence[Any] | None = None,
        query: dict[str, str] | None = None,
    ) -> Json:
        """Sends a request and returns the response; raises KubeError unless its status is 2xx.

        A PATCH is a server-side apply if the query names a field manager. Otherwise it is a JSON
        patch for a list and a merge patch for an object.
        """
        response = self._send(method, path, body, query or {}, TIMEOUT)
        raw: bytes = response.data
        try:
            answer = json.loads(raw) if raw else {}
        except ValueError:
            answer = {"message": raw.decode(errors="replace")}
        if not isinstance(answer, dict):
            answer = {"message": str(answer)}
        if not 200 <= response.status < 300:
            raise KubeError(response.status, str(answer.get("message", "")), answer)
        return answer

    def stream(self, path: str, query: dict[str, str], seconds: float) -> urllib3.BaseHTTPResponse:
        """Returns an open response to a GET, for watches. The caller closes it."""
        return self._send("GET", path, None, query, (5, seconds))

    def _send(
        self,
        method: str,
        path: str,
        body: Json | Sequence[Any] | None,
        query: dict[str, str],
        timeout: float | tuple[float, float],
    ) -> urllib3.BaseHTTPResponse:
        content = "application/json"
        if method == "PATCH":
            patch = MERGE_PATCH if isinstance(body, dict) else JSON_PATCH
            content = APPLY_PATCH if "fieldManager" in query else patch
        _, url, headers, _, _ = self._client.param_serialize(
            method,
            path,
            query_params=list(query.items()),
            header_params={"Accept": "application/json", "Content-Type": content},
            auth_settings=["BearerToken"],
        )
        # The keys are sorted and HTML is escaped, as Go's clients write JSON. The API server stores
        # `data` of a ControllerRevision byte for byte, and other bytes with the same meaning are a
        # change.
        text = None if body is None else canonical_json(body).encode()
        connect, read = timeout if isinstance(timeout, tuple) else (timeout, timeout)
        response: urllib3.BaseHTTPResponse = self._client.rest_client.pool_manager.request(
            method,
            url,
            body=text,
            headers=headers,
            timeout=urllib3.Timeout(connect=connect, read=read),
            preload_content=False,
        )
        return response

    @cached_property
    def minor(self) -> int:
        """The minor version of Kubernetes, such as 36 for 1.36."""
        found = re.match(r"\d+", self.request("GET", "/version")["minor"])
        assert found is not None
        return int(found.group())

    @property
    def pods_tell_what_was_seen(self) -> bool:
        """True if a pod's status keeps `observedGeneration`, since Kubernetes 1.34."""
        return self.minor >= 34

    # Paths

    def path(
        self,
        api_version: str,
        plural: str,
        namespace: str | None = None,
        name: str | None = None,
        subresource: str | None = None,
    ) -> str:
        """Returns the URL path of a collection, an object or a subresource."""
        root = f"/api/{api_version}" if "/" not in api_version else f"/apis/{api_version}"
        scope = f"/namespaces/{namespace}" if namespace else ""
        tail = "".join(f"/{part}" for part in (name, subresource) if part)
        return f"{root}{scope}/{plural}{tail}"

    def resource_of(self, api_version: str, kind: str) -> tuple[str, bool]:
        """Returns the plural of a kind and whether it is namespaced, from cached discovery."""
        key = (api_version, kind)
        with self._lock:
            if key in self._plurals:
                return self._plurals[key]
        root = f"/api/{api_version}" if "/" not in api_version else f"/apis/{api_version}"
        for each in self.request("GET", root)["resources"]:
            if each["kind"] == kind and "/" not in each["name"]:
                found = (str(each["name"]), bool(each["namespaced"]))
                with self._lock:
                    self._plurals[key] = found
                return found
        raise KubeError(404, f"no resource for {kind} in {api_version}", {})

    def path_of(self, obj: Json, subresource: str | None = None, *, named: bool = True) -> str:
        """Returns the path of this object, or of its collection."""
        plural, namespaced = self.resource_of(obj["apiVersion"], obj["kind"])
        namespace = obj["metadata"].get("namespace", "default") if namespaced else None
        name = obj["metadata"]["name"] if named else None
        return self.path(obj["apiVersion"], plural, namespace, name, subresource)

    # Objects

    def get(self, api_version: str, plural: str, namespace: str | None, name: str) -> Json:
        """Returns an object."""
        return self.request("GET", self.path(api_version, plural, namespace, name))

    def find(self, api_version: str, plural: str, namespace: str | None, name: str) -> Json | None:
        """Returns an object, or None if it does not exist."""
        try:
            return self.get(api_version, plural, namespace, name)
        except KubeError as error:
            if error.status == 404:
                return None
            raise

    def list_all(
        self, api_version: str, plural: str, namespace: str | None = None, **query: str
    ) -> list[Json]:
        """Returns all objects of a collection, with apiVersion and kind."""
        answer = self.request("GET", self.path(api_version, plural, namespace), None, query)
        kind = str(answer["kind"]).removesuffix("List")
        return [{"apiVersion": api_version, "kind": kind} | item for item in answer["items"]]

    def create(self, obj: Json) -> Json:
        """Creates an object."""
        return self.request("POST", self.path_of(obj, named=False), obj)

    def apply(self, obj: Json, *, subresource: str | None = None, force: bool = True) -> Json:
        """Applies an object server-side, as `kubectl apply --server-side` does."""
        query = {"fieldManager": FIELD_MANAGER, "force": str(force).lower()}
        path = self.path_of(obj, subresource)
        return self.request("PATCH", path, obj, query)

    def replace(self, obj: Json, subresource: str | None = None) -> Json:
        """Replaces an object by PUT."""
        return self.request("PUT", self.path_of(obj, subresource), obj)

    def patch(self, path: str, patch: Json | Sequence[Any]) -> Json:
        """Patches the object at `path` with a merge patch (an object) or a JSON patch (a list of
        operations).
        """
        return self.request("PATCH", path, patch)

    def delete(
        self, api_version: str, plural: str, namespace: str | None, name: str, **options: Any
    ) -> bool:
        """Deletes an object; returns False if it did not exist.

        Options: gracePeriodSeconds, preconditions...
        """
        body = {"apiVersion": "v1", "kind": "DeleteOptions", **options}
        try:
            self.request("DELETE", self.path(api_version, plural, namespace, name), body)
        except KubeError as error:
            if error.status == 404:
                return False
            raise
        return True

    def token(self, namespace: str, account: str, seconds: int = 3600) -> str:
        """Requests a token of a service account."""
        path = self.path("v1", "serviceaccounts", namespace, account, "token")
        spec = {"expirationSeconds": seconds}
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        return str(self.request("POST", path, request)["status"]["token"])


def authority_of(kubeconfig: Path) -> bytes:
    """Returns the CA certificate of the API server."""
    known = yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]
    if "certificate-authority" in known:
        return Path(known["certificate-authority"]).read_bytes()
    return base64.b64decode(known["certificate-authority-data"])


def documents(file: Path) -> list[Json]:
    """Returns the objects of a YAML file, without empty documents."""
    return [each for each in yaml.safe_load_all(file.read_text()) if each]
