"""Owners of an object, by its `metadata.ownerReferences` (apimachinery, GetControllerOf)."""

from typing import Any

from tapp.kube.parts import maps_of

Document = dict[str, Any]


def controller_of(references: Any) -> Document | None:
    """The reference, whatever its shape, to the owner that controls an object; None for none."""
    return next((one for one in maps_of(references) if one.get("controller")), None)


def controller_ref(owner: Document) -> Document:
    """The reference by which `owner` controls a child (NewControllerRef)."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
