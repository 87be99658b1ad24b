"""The kinds that exist: their names, scope, status subresource and whether they have a generation.

Built-in kinds are those a workload hook may meet. Custom kinds come from CustomResourceDefinition
manifests, or are taken as "namespaced, with status and generation" when first seen.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from simulator.objects.objects import Object


@dataclass(frozen=True, slots=True)
class Kind:
    """One resource type of the API."""

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
        """Return the API group, empty for the core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def hook_key(self) -> str:
        """Return the key of this kind in a hook request: `Kind.group/version`."""
        group, _, version = self.api_version.rpartition("/")
        return f"{self.name}.{group}/{version}" if group else f"{self.name}.{version}"

    @property
    def sort_key(self) -> tuple[str, str, str]:
        """Return the order in which Metacontroller visits kinds."""
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
)


class UnknownKindError(LookupError):
    """The API has no such resource."""


class Kinds:
    """The kinds of one cluster."""

    def __init__(self, custom: Iterable[Kind] = ()) -> None:
        self._by_name: dict[tuple[str, str], Kind] = {}
        self._by_plural: dict[tuple[str, str], Kind] = {}
        for kind in (*BUILT_IN, *custom):
            self.add(kind)

    def add(self, kind: Kind) -> Kind:
        """Register a kind, replacing what was guessed about it before."""
        self._by_name[kind.api_version, kind.name] = kind
        self._by_plural[kind.api_version, kind.plural] = kind
        return kind

    def add_definition(self, crd: Object) -> None:
        """Register every served version of a CustomResourceDefinition."""
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
        """Return the kind of an object, learning it as a custom kind if it is new."""
        return self.named(obj["apiVersion"], obj["kind"])

    def named(self, api_version: str, name: str) -> Kind:
        """Return the kind with this apiVersion and kind."""
        known = self._by_name.get((api_version, name))
        if known is not None:
            return known
        if "/" not in api_version:
            raise UnknownKindError(f'no matches for kind "{name}" in version "{api_version}"')
        return self.add(Kind(api_version, name, f"{name.lower()}s", custom=True))

    def by_plural(self, api_version: str, plural: str) -> Kind:
        """Return the kind served as this resource."""
        known = self._by_plural.get((api_version, plural))
        if known is None:
            message = f'the server could not find the resource "{plural}" in "{api_version}"'
            raise UnknownKindError(message)
        return known

    def find(self, word: str) -> Kind:
        """Find a kind by its bare name or plural, for the convenience of tests and people."""
        for kind in self._by_name.values():
            if word.lower() in (kind.name.lower(), kind.plural):
                return kind
        raise UnknownKindError(f'the server does not have a resource type "{word}"')
