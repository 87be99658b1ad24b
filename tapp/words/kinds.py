"""The kinds of a TApp's children, with their names in requests, registrations and responses."""

from typing import Final, NamedTuple


class Kind(NamedTuple):
    """A kind of Kubernetes object that a TApp may have as a child, such as Pod or Service."""

    name: str  # `kind` of its objects.
    api_version: str  # `apiVersion` of its objects.
    resource: str  # Plural, as in `childResources` of a CompositeController.
    # The field of the spec that requests children of this kind. Empty if a TApp may have such
    # children without the field.
    requested_by: str = ""

    @property
    def key(self) -> str:
        """The name of the kind in requests of Metacontroller, such as `Service.v1`."""
        return f"{self.name}.{self.api_version}"

    @property
    def qualified(self) -> str:
        """The plural name with the API group, for kubectl, such as `controllerrevisions.apps`.

        A kind of the core API has no group, so its plural stands alone.
        """
        group, _, _ = self.api_version.rpartition("/")
        return f"{self.resource}.{group}" if group else self.resource

    @property
    def type_meta(self) -> dict[str, str]:
        """`kind` and `apiVersion` of an object of this kind."""
        return {"apiVersion": self.api_version, "kind": self.name}


POD: Final = Kind("Pod", "v1", "pods")
CLAIM: Final = Kind("PersistentVolumeClaim", "v1", "persistentvolumeclaims")
REVISION: Final = Kind("ControllerRevision", "apps/v1", "controllerrevisions")
SERVICE: Final = Kind("Service", "v1", "services", "serviceTemplate")
DISRUPTION_BUDGET: Final = Kind(
    "PodDisruptionBudget", "policy/v1", "poddisruptionbudgets", "disruptionBudget"
)

# Kinds that need an optional component (`metacontroller/components`). Metacontroller updates their
# objects (`InPlace`). The service reads only metadata and spec of these objects. They stay as long
# as the TApp has pods. A new kind needs a row here, and functions that decide about its objects.
PLAIN: Final = (SERVICE, DISRUPTION_BUDGET)
EVERY: Final = (POD, CLAIM, REVISION, *PLAIN)
