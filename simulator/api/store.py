"""The API as Metacontroller sees it: one Protocol, its errors and its watch events.

`cluster.Cluster` implements it in memory; anything that speaks to a real API server can implement
it too. Sources: the Kubernetes API conventions (PUT with resourceVersion, uid preconditions,
deletion propagation) and the status reasons of apimachinery.
"""

from dataclasses import dataclass
from typing import Literal, Protocol

from simulator.objects.kinds import Kind
from simulator.objects.objects import Object

Propagation = Literal["Background", "Foreground", "Orphan"]


class ApiError(Exception):
    """A request that the API server refused."""

    code = 500
    reason = "InternalError"


class NotFoundError(ApiError):
    """404: there is no such object."""

    code = 404
    reason = "NotFound"


class AlreadyExistsError(ApiError):
    """409: the name is taken."""

    code = 409
    reason = "AlreadyExists"


class ConflictError(ApiError):
    """409: the resourceVersion or a precondition does not hold."""

    code = 409
    reason = "Conflict"


class InvalidError(ApiError):
    """422: the object is not valid; `path` names the first field at fault."""

    code = 422
    reason = "Invalid"

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message)
        self.path = path


class ForbiddenError(ApiError):
    """403: admission or the state of the namespace forbids it."""

    code = 403
    reason = "Forbidden"


@dataclass(frozen=True, slots=True)
class Event:
    """One committed change: `old` is None for a create, `new` is None for a removal."""

    kind: Kind
    old: Object | None
    new: Object | None
    revision: int

    @property
    def object(self) -> Object:
        """Return the newest form of the object that the event carries."""
        current = self.new if self.new is not None else self.old
        if current is None:
            raise ValueError("an event is about an object")
        return current


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """The way to delete: only this uid, what to do with dependents, how long to wait."""

    uid: str | None = None
    propagation: Propagation | None = None
    grace_seconds: int | None = None


DEFAULT = DeleteOptions()


class Store(Protocol):
    """The calls that Metacontroller makes to an API server."""

    def get(self, kind: Kind, namespace: str, name: str) -> Object:
        """Return the object or raise NotFoundError."""

    def create(self, kind: Kind, obj: Object) -> Object:
        """Create the object; return it as stored."""

    def update(self, kind: Kind, obj: Object) -> Object:
        """Replace the object (PUT), guarded by its resourceVersion."""

    def update_status(self, kind: Kind, obj: Object) -> Object:
        """Replace only the status, guarded by the resourceVersion."""

    def delete(
        self, kind: Kind, namespace: str, name: str, options: DeleteOptions = DEFAULT
    ) -> None:
        """Delete the object, if it still has that uid."""
