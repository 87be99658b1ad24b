"""Finds out who owns an object that has the name of a TApp's pod or claim."""

from dataclasses import dataclass

from kubectl_tapp.base.hints import shell_command, tapp_command
from kubectl_tapp.base.observed import Document
from tapp.kube.owners import controller_of
from tapp.words.vocabulary import CONTROLLER_UID, GROUP


@dataclass(frozen=True)
class Ownership:
    """The answer to the question whether an object belongs to a TApp, to another owner, or to no
    owner.

    Commands show it to users whose TApp cannot create a pod or claim, because an object with its
    name exists already.
    """

    # a phrase that names the owner of the object; "" if the TApp owns the object, or will own it
    # after the next sync
    text: str = ""
    # True if no existing object owns the object, so that `kubectl tapp adopt` can make it a child
    can_be_adopted: bool = False


def ownership_of(item: Document, tapp: Document) -> Ownership:
    """Finds out who owns an object that has the name of a TApp's pod or claim.

    The rules follow from two facts. TApp names are unique in a namespace, so an owner with the same
    name and another uid has been deleted. Metacontroller adopts each object without a controller
    that has the label of an existing TApp. So if an object has such a label and no controller, its
    TApp has been deleted.
    """
    metadata, uid, name = item["metadata"], tapp["metadata"]["uid"], tapp["metadata"]["name"]
    label = (metadata.get("labels") or {}).get(CONTROLLER_UID)
    controller = controller_of(metadata.get("ownerReferences"))
    if label == uid and (controller is None or controller.get("uid") == uid):
        return Ownership()
    # Metacontroller does not see an object without the label, even if the TApp is its controller.
    if controller is None and label is None:
        return Ownership("has no owner", can_be_adopted=True)
    if controller is not None and controller.get("uid") == uid:
        text = f"belongs to this TApp and lacks its label {CONTROLLER_UID}"
        return Ownership(text, can_be_adopted=True)
    earlier = label
    if controller is not None:
        is_tapp = str(controller.get("apiVersion", "")).startswith(f"{GROUP}/")
        if not (is_tapp and controller.get("name") == name):
            kind = f"{controller.get('kind')} {controller.get('name')}"
            return Ownership(f"belongs to {kind}, so the name is taken")
        earlier = controller.get("uid")
    text = f"was left behind by a deleted TApp {name} (uid {earlier})"
    return Ownership(text, can_be_adopted=True)


def ownership_advice(item: Document, tapp: Document) -> str:
    """Returns a phrase that names the owner of an object and, if the object can be adopted, the
    command for that.

    Returns "" if the TApp owns the object.
    """
    found = ownership_of(item, tapp)
    if item["metadata"].get("deletionTimestamp"):
        return found.text and f"{found.text}, and is being deleted"
    if not found.can_be_adopted:
        return found.text
    return f"{found.text}; {tapp_command(tapp, 'adopt')} adopts it"


def orphaning_command(item: Document, namespace: str) -> str:
    """Returns the command, in backquotes, that deletes the StatefulSet which owns an object,
    without deleting the object.

    A TApp can adopt the object afterwards.

    Returns "" if no StatefulSet owns the object.
    """
    controller = controller_of(item["metadata"].get("ownerReferences")) or {}
    if controller.get("kind") != "StatefulSet":
        return ""
    # OpenKruise has another resource that is called StatefulSet, in a group of its own.
    group = str(controller.get("apiVersion")).rpartition("/")[0]
    resource = "statefulset" if group == "apps" else f"statefulset.{group}"
    words = ("delete", resource, str(controller.get("name")), "--cascade=orphan")
    return shell_command(*words, namespace=namespace, plugin=False)
