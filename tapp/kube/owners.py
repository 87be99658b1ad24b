"""Owner references of an object (apimachinery, GetControllerOf and NewControllerRef)."""

from typing import Any

from tapp.kube.parts import maps_of

Document = dict[str, Any]


def controller_of(references: Any) -> Document | None:
    """Returns the owner reference with `controller: true`, or None if there is none.

    `references` is the value of `metadata.ownerReferences`, of any type.
    """
    return next((one for one in maps_of(references) if one.get("controller")), None)


def controller_ref(owner: Document) -> Document:
    """Returns an owner reference to `owner`, as the controller of another object."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
