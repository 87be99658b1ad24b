"""Whose an object is that bears the name of a TApp's pod or claim."""

from dataclasses import dataclass
from enum import StrEnum

from kubectl_tapp.base.observed import Document

LABEL = "controller-uid"
"""The label by which Metacontroller finds the children of a TApp: its uid."""
_GROUP = "apps.tkestack.io/"


class Whose(StrEnum):
    """What an object's controller and label say."""

    OURS = "ours"
    """It belongs to this TApp, or will with its next sync."""
    UNLABELLED = "unlabelled"
    """This TApp controls it, and its label is missing or another's: the service cannot see it."""
    NOBODYS = "nobodys"
    """It has no controller, and no TApp's label."""
    EARLIER = "earlier"
    """An earlier TApp, which is gone, had it."""
    OTHERS = "others"
    """Something else controls it."""


@dataclass(frozen=True)
class Belonging:
    """Whose an object is.

    Attributes:
        whose: in a word.
        owner: kind and name of its controller, or the uid of the TApp that is gone; "" for none.
    """

    whose: Whose
    owner: str = ""

    @property
    def can_be_adopted(self) -> bool:
        """Whether nobody else who lives may miss it."""
        return self.whose in (Whose.UNLABELLED, Whose.NOBODYS, Whose.EARLIER)


def belonging(item: Document, tapp: Document) -> Belonging:
    """Whose an object is, as seen from a TApp.

    A TApp's name is unique in its namespace, so another uid under this name is that of one that is
    gone. Metacontroller gives what carries a living TApp's label, and has no controller, to that
    TApp; so an object with such a label and without a controller is left from one that is gone.

    Args:
        item: the object, in the TApp's namespace.
        tapp: the TApp.
    """
    metadata, uid = item["metadata"], tapp["metadata"]["uid"]
    label = (metadata.get("labels") or {}).get(LABEL)
    owners = metadata.get("ownerReferences") or []
    controller = next((owner for owner in owners if owner.get("controller")), None)
    if controller is None:
        if label is None:
            return Belonging(Whose.NOBODYS)
        return Belonging(Whose.OURS) if label == uid else Belonging(Whose.EARLIER, label)
    if controller.get("uid") == uid:
        return Belonging(Whose.OURS if label == uid else Whose.UNLABELLED)
    is_tapp = str(controller.get("apiVersion", "")).startswith(_GROUP)
    if is_tapp and controller.get("name") == tapp["metadata"]["name"]:
        return Belonging(Whose.EARLIER, str(controller.get("uid")))
    return Belonging(Whose.OTHERS, f"{controller.get('kind')} {controller.get('name')}")


def described(item: Document, tapp: Document) -> str:
    """In half a sentence whose an object is; "" if it is the TApp's."""
    found, name = belonging(item, tapp), tapp["metadata"]["name"]
    return {
        Whose.OURS: "",
        Whose.UNLABELLED: f"is the TApp's own and lacks its label {LABEL}",
        Whose.NOBODYS: "belongs to nobody",
        Whose.EARLIER: f"belonged to a TApp {name} that is gone (uid {found.owner})",
        Whose.OTHERS: f"belongs to {found.owner}: its name is taken",
    }[found.whose]


def advised(item: Document, tapp: Document) -> str:
    """In half a sentence whose an object is, and what to do about it; "" if it is the TApp's."""
    whose = described(item, tapp)
    if item["metadata"].get("deletionTimestamp"):
        return whose and f"{whose}, and is being deleted"
    if not belonging(item, tapp).can_be_adopted:
        return whose
    return f"{whose}; `kubectl tapp adopt {tapp['metadata']['name']}` takes it over"
