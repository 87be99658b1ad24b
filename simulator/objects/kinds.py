"""The resource types of a cluster: names, scope, and whether they have a status and a generation.

`Kinds` starts with `BUILT_IN`, the kinds that a workload hook may use. Custom kinds come from
CustomResourceDefinition manifests. When the first object of an unknown kind appears, the kind is
registered if it has an API group. It then counts as namespaced, with status and generation.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from simulator.objects.objects import Object


@dataclass(frozen=True, slots=True)
class Kind:
    """One resource type of the API, such as Pod in v1.

    Attributes:
        api_version: the apiVersion of its objects, such as `apps/v1`.
        name: the kind of its objects, such as `Pod`.
        plural: the name in URLs, such as `pods`.
        namespaced: False if its objects are cluster-scoped.
        has_status: True if it has the subresource `status`.
        has_generation: True if a change of the spec increments metadata.generation.
        custom: True for a custom resource.
        schema: the OpenAPI schema with the defaults; empty if unknown.
    """

    api_version: str
    name: str
    plural: str
    namespaced: bool = True
    has_status: bool = True
    has_generation: bool = True
    custom: bool = False
    schema: Object = field(default_factory=dict, compare=False, repr=False)

    @property
    def group(self) -> str:
        """The API group; empty for the core group, which has the kinds with apiVersion v1."""
        return self.api_version.rpartition("/")[0]

    @property
    def hook_key(self) -> str:
        """The key of the kind in requests to hooks: `Kind.group/version`, or `Kind.version`."""
        group, _, version = self.api_version.rpartition("/")
        return f"{self.name}.{group}/{version}" if group else f"{self.name}.{version}"

    @property
    def sort_key(self) -> tuple[str, str, str]:
        """The key by which Metacontroller sorts kinds: group, version, kind."""
        group, _, version = self.api_version.rpartition("/")
        return group, version, self.name


POD = Kind("v1", "Pod", "pods")
CLAIM = Kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims", has_generation=False)
NAMESPACE = Kind("v1", "Namespace", "namespaces", namespaced=False, has_generation=False)
REVISION = Kind(
    "apps/v1", "ControllerRevision", "controllerrevisions", has_status=False, has_generation=False
)
SERVICE = Kind("v1", "Service", "services", has_generation=False)
NODE = Kind("v1", "Node", "nodes", namespaced=False, has_generation=False)
STORAGE_CLASS = Kind(
    "storage.k8s.io/v1",
    "StorageClass",
    "storageclasses",
    namespaced=False,
    has_status=False,
    has_generation=False,
)

BUILT_IN = (
    POD,
    CLAIM,
    NAMESPACE,
    NODE,
    REVISION,
    SERVICE,
    STORAGE_CLASS,
    Kind("v1", "ConfigMap", "configmaps", has_status=False, has_generation=False),
    Kind("v1", "Secret", "secrets", has_status=False, has_generation=False),
    Kind("apps/v1", "Deployment", "deployments"),
    Kind("apps/v1", "StatefulSet", "statefulsets"),
    Kind("batch/v1", "Job", "jobs"),
    Kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets"),
)


class UnknownKindError(LookupError):
    """The API server does not have the requested resource type."""


class Kinds:
    """The resource types that one cluster has: the built-in kinds and those in `custom`."""

    def __init__(self, custom: Iterable[Kind] = ()) -> None:
        self._by_name: dict[tuple[str, str], Kind] = {}
        self._by_plural: dict[tuple[str, str], Kind] = {}
        for kind in (*BUILT_IN, *custom):
            self.add(kind)

    def add(self, kind: Kind) -> Kind:
        """Registers a kind and returns it; an earlier kind of the same name is replaced."""
        self._by_name[kind.api_version, kind.name] = kind
        self._by_plural[kind.api_version, kind.plural] = kind
        return kind

    def add_definition(self, crd: Object) -> None:
        """Registers every version of a CustomResourceDefinition that the API server serves."""
        spec = crd["spec"]
        for version in spec["versions"]:
            if version.get("served", True):
                self.add(
                    Kind(
                        f"{spec['group']}/{version['name']}",
                        spec["names"]["kind"],
                        spec["names"]["plural"],
                        namespaced=spec.get("scope", "Namespaced") == "Namespaced",
                        has_status="status" in (version.get("subresources") or {}),
                        custom=True,
                        schema=(version.get("schema") or {}).get("openAPIV3Schema") or {},
                    )
                )

    def of(self, obj: Object) -> Kind:
        """Returns the kind of an object.

        An unknown kind outside the core group is registered as a custom kind. An unknown kind in
        the core group raises UnknownKindError.
        """
        return self.named(obj["apiVersion"], obj["kind"])

    def named(self, api_version: str, name: str) -> Kind:
        """Returns the kind with this apiVersion and this kind name.

        An unknown kind outside the core group is registered as a custom kind. An unknown kind in
        the core group raises UnknownKindError.
        """
        known = self._by_name.get((api_version, name))
        if known is not None:
            return known
        if "/" not in api_version:
            raise UnknownKindError(f'no matches for kind "{name}" in version "{api_version}"')
        return self.add(Kind(api_version, name, f"{name.lower()}s", custom=True))

    def by_plural(self, api_version: str, plural: str) -> Kind:
        """Returns the kind with this apiVersion and this plural name.

        Raises UnknownKindError if the cluster has no such kind.
        """
        known = self._by_plural.get((api_version, plural))
        if known is None:
            message = f'the server could not find the resource "{plural}" in "{api_version}"'
            raise UnknownKindError(message)
        return known

    def find(self, word: str) -> Kind:
        """Returns the kind with this name or plural, in any API group.

        Raises UnknownKindError if the cluster has no such kind.
        """
        for kind in self._by_name.values():
            if word.lower() in (kind.name.lower(), kind.plural):
                return kind
        raise UnknownKindError(f'the server does not have a resource type "{word}"')
