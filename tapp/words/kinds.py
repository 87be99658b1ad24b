"""Kinds of a TApp's children, as requests, registrations and answers call them."""

from typing import Final, NamedTuple


class Kind(NamedTuple):
    """A kind of child."""

    name: str  # as in `kind`
    api_version: str  # as in `apiVersion`
    resource: str  # its plural, as in `childResources`
    asked_by: str = ""  # the field of the spec without which a TApp has none; "": it may always

    @property
    def key(self) -> str:
        """Its key in a request: `Service.v1`."""
        return f"{self.name}.{self.api_version}"

    @property
    def qualified(self) -> str:
        """Its plural for kubectl: `controllerrevisions.apps`."""
        group, _, _ = self.api_version.rpartition("/")
        return f"{self.resource}.{group}" if group else self.resource

    @property
    def type_meta(self) -> dict[str, str]:
        """The begin of each of its objects."""
        return {"apiVersion": self.api_version, "kind": self.name}


POD: Final = Kind("Pod", "v1", "pods")
CLAIM: Final = Kind("PersistentVolumeClaim", "v1", "persistentvolumeclaims")
REVISION: Final = Kind("ControllerRevision", "apps/v1", "controllerrevisions")
SERVICE: Final = Kind("Service", "v1", "services", "serviceTemplate")

PLAIN: Final = (SERVICE,)
"""Kinds of a component, whose objects are updated (`InPlace`), of which nothing but metadata and
spec is read, and which stay as long as the TApp has pods. One more is a row here, and its rules."""
EVERY: Final = (POD, CLAIM, REVISION, *PLAIN)
