"""One TApp with its related objects, and the sync request that Metacontroller would send for it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from kubectl_tapp.base.errors import CommandError
from tapp.words.kinds import CLAIM, PLAIN, POD, REVISION, Kind

Document = dict[str, Any]


@dataclass(frozen=True)
class Observed:
    """One TApp and all objects that the service's decisions depend on, as read from the cluster.

    `sync_request` turns these objects into the request that the service decides on.
    """

    tapp: Document
    # the pods of the TApp, including terminating ones
    pods: list[Document] = field(default_factory=list)
    claims: list[Document] = field(default_factory=list)  # the PersistentVolumeClaims of the TApp
    revisions: list[Document] = field(default_factory=list)  # the ControllerRevisions of the TApp
    # kind -> the children of this kind, for the optional kinds, such as Services, that the spec of
    # the TApp uses
    plain: Mapping[Kind, list[Document]] = field(default_factory=dict)
    # the Namespace of the TApp; None if the user may not read the Namespace
    namespace: Document | None = None
    # the StorageClasses of the cluster; empty if the user may not read StorageClasses
    storage_classes: list[Document] = field(default_factory=list)
    # the registered CompositeController; None if none is registered or the user may not read it.
    # Decisions then use the manifest of this release.
    controller: Document | None = None
    # the Events of type Warning in the namespace, for display only: no decision depends on them
    events: list[Document] = field(default_factory=list)
    # resource -> the reason why its objects could not be read. The field above for such a resource
    # is empty, although objects may exist.
    unread: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return str(self.tapp["metadata"]["name"])

    def require_readable(self, *resources: str) -> None:
        """Raises CommandError with the reason if objects of one of these resources could not be
        read.

        Without this check, the caller would take unread objects for missing ones.
        """
        for resource in resources:
            if resource in self.unread:
                raise CommandError(self.unread[resource])

    def sync_request(self, controller: Document) -> bytes:
        """Returns the JSON body of the sync request that Metacontroller would send for this TApp.

        `controller` is the CompositeController. Only the kinds of children that it declares are
        part of the request.
        """
        children = {
            POD: self.pods,
            CLAIM: self.claims,
            REVISION: self.revisions,
            **{kind: self.plain.get(kind, []) for kind in PLAIN},
        }
        declared = {child["resource"] for child in controller["spec"]["childResources"]}
        related: dict[str, Document] = {}
        if self.namespace is not None:
            related["Namespace.v1"] = by_name([self.namespace])
        if self.storage_classes:
            related["StorageClass.storage.k8s.io/v1"] = by_name(self.storage_classes)
        body = {
            "controller": controller,
            "parent": self.tapp,
            "children": {
                kind.key: by_name(objects)
                for kind, objects in children.items()
                if kind.resource in declared
            },
            "related": related,
            "finalizing": False,
        }
        return msgspec.json.encode(body)


def by_name(objects: Iterable[Document]) -> dict[str, Document]:
    """Returns metadata.name -> object for these objects."""
    return {each["metadata"]["name"]: each for each in objects}
