"""Implements the simulator's `Store` on the real API server, for the simulator's Metacontroller."""

from __future__ import annotations

from collections.abc import Callable

from urllib3.exceptions import HTTPError

from simulator.api.store import (
    DEFAULT,
    AlreadyExistsError,
    ApiError,
    ConflictError,
    DeleteOptions,
    ForbiddenError,
    InvalidError,
    NotFoundError,
)
from simulator.objects.kinds import BUILT_IN, Kind, Kinds
from simulator.objects.objects import Object, key_of

from .kube import Json, Kube, KubeError

ERRORS: dict[str, type[ApiError]] = {
    each.reason: each
    for each in (AlreadyExistsError, ConflictError, ForbiddenError, InvalidError, NotFoundError)
}


def api_error(error: KubeError) -> ApiError:
    """Returns the simulator's error for an error of the API server."""
    reason = str(error.body.get("reason", "InternalError"))
    known = ERRORS.get(reason)
    if known is not None:
        return known(error.message)
    other = ApiError(error.message)
    other.code, other.reason = error.status, reason
    return other


class ApiStore:
    """Implements `simulator.api.store.Store` by requests to an API server."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube

    def get(self, kind: Kind, namespace: str, name: str) -> Object:
        """Returns the object. Raises NotFoundError if it does not exist."""
        return self._ask(lambda: self._kube.request("GET", self._path(kind, namespace, name)))

    def list(self, kind: Kind, namespace: str | None = None) -> list[Object]:
        """Returns all objects of a kind, of one namespace if given."""
        try:
            return self._kube.list_all(kind.api_version, kind.plural, namespace)
        except KubeError as error:
            raise api_error(error) from error

    def create(self, kind: Kind, obj: Object) -> Object:
        """Creates the object and returns its stored version."""
        path = self._path(kind, key_of(obj)[0])
        return self._ask(lambda: self._kube.request("POST", path, obj))

    def update(self, kind: Kind, obj: Object) -> Object:
        """Replaces the object (PUT), guarded by its resourceVersion."""
        path = self._path(kind, *key_of(obj))
        return self._ask(lambda: self._kube.request("PUT", path, obj))

    def update_status(self, kind: Kind, obj: Object) -> Object:
        """Replaces only the status, guarded by the resourceVersion."""
        path = f"{self._path(kind, *key_of(obj))}/status"
        return self._ask(lambda: self._kube.request("PUT", path, obj))

    def delete(
        self, kind: Kind, namespace: str, name: str, options: DeleteOptions = DEFAULT
    ) -> None:
        """Deletes the object, guarded by the uid in the options."""
        body: Json = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if options.uid is not None:
            body["preconditions"] = {"uid": options.uid}
        if options.propagation is not None:
            body["propagationPolicy"] = options.propagation
        if options.grace_seconds is not None:
            body["gracePeriodSeconds"] = options.grace_seconds
        path = self._path(kind, namespace, name)
        self._ask(lambda: self._kube.request("DELETE", path, body))

    def _path(self, kind: Kind, namespace: str, name: str | None = None) -> str:
        home = namespace if kind.namespaced else None
        return self._kube.path(kind.api_version, kind.plural, home, name)

    def _ask(self, call: Callable[[], Json]) -> Object:
        try:
            return call()
        except KubeError as error:
            raise api_error(error) from error
        except (OSError, HTTPError) as error:
            raise ApiError(f"the API server is away: {error}") from error


class ApiKinds(Kinds):
    """The kinds of the API server, read from its discovery at their first use."""

    def __init__(self, kube: Kube) -> None:
        super().__init__()
        self._kube = kube

    def by_plural(self, api_version: str, plural: str) -> Kind:
        """Returns the kind of this resource.

        Raises LookupError if the API server does not serve it.
        """
        for known in BUILT_IN:
            if (known.api_version, known.plural) == (api_version, plural):
                return known
        try:
            return super().by_plural(api_version, plural)
        except LookupError:
            found = self._discover(api_version, plural)
            if found is None:
                raise
            return self.add(found)

    def _discover(self, api_version: str, plural: str) -> Kind | None:
        root = "/api" if "/" not in api_version else "/apis"
        try:
            served = self._kube.request("GET", f"{root}/{api_version}")["resources"]
        except KubeError:
            return None
        names = {each["name"]: each for each in served}
        each = names.get(plural)
        if each is None:
            return None
        return Kind(
            api_version,
            each["kind"],
            plural,
            namespaced=each["namespaced"],
            has_status=f"{plural}/status" in names,
            custom="/" in api_version,
        )
