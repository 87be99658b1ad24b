"""Builds TApps with claims of a size, and reads the sizes of their claims."""

from typing import Any

from tests import builders
from tests.builders import Document, bound, claim_template, storage_class, tapp
from tests.unit.world import World

STANDARD = [storage_class()]


def template_of_size(storage: Any = "1Gi", name: str = "data", **resources: Any) -> Document:
    """Returns a claim template with this size and the class `standard`; `resources` are further
    resources.
    """
    document = claim_template(name, storage)
    document["spec"]["storageClassName"] = "standard"
    document["spec"]["resources"] |= resources
    return document


def settled_tapp(
    replicas: int = 2, classes: list[Document] | None = None, parent: Document | None = None
) -> World:
    """Returns a TApp with bound claims of 1Gi that may grow.

    `classes` are the cluster's StorageClasses; None for one that allows growing. `parent` is the
    TApp; None for one with `replicas` instances.
    """
    spec = {"replicas": replicas, "volumeClaimTemplates": [template_of_size()]}
    world = World(parent or tapp(**spec), classes=STANDARD if classes is None else classes)
    world.settle()
    world.claims = {name: bound(claim) for name, claim in world.claims.items()}
    return world.settle()


def with_larger_template(world: World, storage: Any = "2Gi", **resources: Any) -> World:
    """Changes the size in the claim template, and returns the world."""
    return world.change(volumeClaimTemplates=[template_of_size(storage, **resources)])


def adopted(claim: Document) -> Document:
    """Returns a claim as if somebody else had created it, without owners and annotations."""
    return builders.with_meta(claim, annotations=None, ownerReferences=None)
