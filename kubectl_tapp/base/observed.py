"""One TApp as the cluster shows it, and the request that Metacontroller would send of it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from kubectl_tapp.base.errors import CommandError
from tapp.words.kinds import CLAIM, PLAIN, POD, REVISION, Kind

Document = dict[str, Any]


@dataclass(frozen=True)
class Observed:
    """One TApp with everything that its decisions look at, as the API server has it."""

    tapp: Document
    pods: list[Document] = field(default_factory=list)  # its pods, those that go included
    claims: list[Document] = field(default_factory=list)  # its volume claims
    revisions: list[Document] = field(default_factory=list)  # its ControllerRevisions
    # its children of each kind of `PLAIN`; read only where its spec asks for them
    plain: Mapping[Kind, list[Document]] = field(default_factory=dict)
    namespace: Document | None = None  # its Namespace; None where it may not be read
    storage_classes: list[Document] = field(default_factory=list)  # as far as they may be read
    # the CompositeController that is registered; None where there is none, or it may not be read:
    # then the one of this release is taken for it
    controller: Document | None = None
    # warnings of its namespace, for people; no decision looks at them
    events: list[Document] = field(default_factory=list)
    # resource -> why its objects could not be read: what is empty above is unknown then
    unread: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The TApp's name."""
        return str(self.tapp["metadata"]["name"])

    def require(self, *resources: str) -> None:
        """Raises a CommandError where one of these could not be read: all would seem missing."""
        for resource in resources:
            if resource in self.unread:
                raise CommandError(self.unread[resource])

    def request(self, controller: Document) -> bytes:
        """The body of a sync call, for the CompositeController that is registered, or shipped."""
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
    """Objects by `metadata.name`."""
    return {each["metadata"]["name"]: each for each in objects}
