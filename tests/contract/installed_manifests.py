"""Reads built manifests: environment variables, webhooks and installed components."""

from tapp.words import vocabulary
from tests.contract.manifests import INSTALL, Document, only, pod_spec

CUSTOM_GROUPS = {"metacontroller.k8s.io", "cert-manager.io", "monitoring.coreos.com"}
COMPONENTS = sorted(each.name for each in (INSTALL / "components").iterdir())
DECORATOR = INSTALL / "components" / "pod-status" / "decorator-controller.yaml"
HOOKS = ("sync", "finalize", "customize")


def built_in(document: Document) -> bool:
    """Returns True if Kubernetes itself defines the kind of the object, and not a CRD."""
    return document["apiVersion"].split("/")[0] not in CUSTOM_GROUPS | {vocabulary.GROUP}


def environment(documents: list[Document]) -> dict[str, str]:
    """Returns name -> value for the environment variables of the service."""
    (container,) = pod_spec(documents)["containers"]
    return {variable["name"]: variable["value"] for variable in container["env"]}


def webhooks(documents: list[Document]) -> dict[str, Document]:
    """Returns the name of each hook -> its webhook in the CompositeController or a
    DecoratorController.
    """
    hooks = only(documents, "CompositeController")["spec"]["hooks"]
    found = {name: hook["webhook"] for name, hook in hooks.items()}
    for document in documents:
        if document["kind"] == "DecoratorController":
            name = document["metadata"]["name"].removeprefix("tapp-")
            found[name] = document["spec"]["hooks"]["sync"]["webhook"]
    return found
