"""The owner of an object that bears the name of a TApp's pod or claim."""

from dataclasses import dataclass

from kubectl_tapp.base.hints import hinted
from kubectl_tapp.base.observed import Document
from tapp.kube.owners import controller_of
from tapp.words.vocabulary import CONTROLLER_UID, GROUP


@dataclass(frozen=True)
class Belonging:
    """The owner of an object."""

    text: str = ""  # in half a sentence; "" if it is the TApp's, or will be with its next sync
    can_be_adopted: bool = False  # whether nobody else who lives may miss it


def belonging(item: Document, tapp: Document) -> Belonging:
    """Finds the owner of an object, as seen from a TApp.

    A TApp's name is unique in its namespace, so another uid under this name is that of one that is
    gone. Metacontroller gives what carries a living TApp's label, and has no controller, to that
    TApp; so an object with such a label and without a controller is left from one that is gone.
    """
    metadata, uid, name = item["metadata"], tapp["metadata"]["uid"], tapp["metadata"]["name"]
    label = (metadata.get("labels") or {}).get(CONTROLLER_UID)
    controller = controller_of(metadata.get("ownerReferences"))
    if label == uid and (controller is None or controller.get("uid") == uid):
        return Belonging()
    if controller is None and label is None:
        return Belonging("belongs to nobody", can_be_adopted=True)
    if controller is not None and controller.get("uid") == uid:
        text = f"is the TApp's own and lacks its label {CONTROLLER_UID}"
        return Belonging(text, can_be_adopted=True)
    earlier = label
    if controller is not None:
        is_tapp = str(controller.get("apiVersion", "")).startswith(f"{GROUP}/")
        if not (is_tapp and controller.get("name") == name):
            kind = f"{controller.get('kind')} {controller.get('name')}"
            return Belonging(f"belongs to {kind}: its name is taken")
        earlier = controller.get("uid")
    text = f"belonged to a TApp {name} that is gone (uid {earlier})"
    return Belonging(text, can_be_adopted=True)


def advised(item: Document, tapp: Document) -> str:
    """In half a sentence whose an object is, and what to do about it; "" if it is the TApp's."""
    found = belonging(item, tapp)
    if item["metadata"].get("deletionTimestamp"):
        return found.text and f"{found.text}, and is being deleted"
    if not found.can_be_adopted:
        return found.text
    return f"{found.text}; {hinted(tapp, 'adopt')} takes it over"
