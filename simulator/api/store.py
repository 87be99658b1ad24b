"""The API that Metacontroller uses: the protocol `Store`, its errors and its watch events.

`cluster.Cluster` implements `Store` in memory; a client of a real API server can implement it, too.
Sources: the Kubernetes API conventions (PUT with a resourceVersion, uid preconditions, deletion
propagation) and the status reasons of apimachinery.
"""

from dataclasses import dataclass
from typing import Literal, Protocol

from simulator.objects.kinds import Kind
from simulator.objects.objects import Object

Propagation = Literal["Background", "Foreground", "Orphan"]


class ApiError(Exception):
    """A request that the API server refused; `code` and `reason` are from its Status response."""

    code = 500
    reason = "InternalError"


class NotFoundError(ApiError):
    """404: the object does not exist."""

    code = 404
    reason = "NotFound"


class AlreadyExistsError(ApiError):
    """409: an object of this name exists."""

    code = 409
    reason = "AlreadyExists"


class ConflictError(ApiError):
    """409: the object has another resourceVersion, or a precondition failed."""

    code = 409
    reason = "Conflict"


class InvalidError(ApiError):
    """422: the object is invalid.

    `path` is the path of the first invalid field; empty if no field is known.
    """

    code = 422
    reason = "Invalid"

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message)
        self.path = path


class ForbiddenError(ApiError):
    """403: an admission plugin refused the request, or the namespace is being deleted."""

    code = 403
    reason = "Forbidden"


@dataclass(frozen=True, slots=True)
class Event:
    """One committed change of an object, as the listeners of a cluster get it.

    Attributes:
        kind: the kind of the object.
        old: the object before the change; None if the change created the object.
        new: the object after the change; None if the change removed the object.
        revision: the cluster's resourceVersion after the change.
    """

    kind: Kind
    old: Object | None
    new: Object | None
    revision: int

    @property
    def object(self) -> Object:
        """The object after the change, or its last state if the change removed the object."""
        current = self.new if self.new is not None else self.old
        if current is None:
            raise ValueError("an event is about an object")
        return current


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """The options of a delete request; None stands for the API server's default.

    Attributes:
        uid: the uid that the object must have; another uid causes a ConflictError.
        propagation: Background, Foreground or Orphan.
        grace_seconds: the grace period of a pod in seconds.
    """

    uid: str | None = None
    propagation: Propagation | None = None
    grace_seconds: int | None = None


DEFAULT = DeleteOptions()


class Store(Protocol):
    """The calls that Metacontroller makes to an API server."""

    def get(self, kind: Kind, namespace: str, name: str) -> Object:
        """Returns the object, or raises NotFoundError if the object does not exist."""

    def create(self, kind: Kind, obj: Object) -> Object:
        """Creates an object and returns it as stored.

        Raises AlreadyExistsError if an object of this name exists.
        """

    def update(self, kind: Kind, obj: Object) -> Object:
        """Replaces the object (PUT) and returns it as stored.

        Raises ConflictError if the stored object has another resourceVersion than `obj`.
        """

    def update_status(self, kind: Kind, obj: Object) -> Object:
        """Replaces the status (PUT of the subresource) and returns the object as stored.

        Raises ConflictError if the stored object has another resourceVersion than `obj`.
        """

    def delete(
        self, kind: Kind, namespace: str, name: str, options: DeleteOptions = DEFAULT
    ) -> None:
        """Deletes an object.

        Raises ConflictError if `options.uid` is set and is not the uid of the object.
        """
