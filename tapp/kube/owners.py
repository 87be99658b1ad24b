"""Owner references of an object (apimachinery, GetControllerOf and NewControllerRef)."""

from typing import Any

from tapp.kube.parts import maps_of

Document = dict[str, Any]


def controller_of(references: Any) -> Document | None:
    """Returns the reference to the owner that controls an object, or None."""
    return next((one for one in maps_of(references) if one.get("controller")), None)


def controller_ref(owner: Document) -> Document:
    """Returns the reference with which `owner` controls a child."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
