"""Which of several CompositeControllers serves a TApp."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from kubectl_tapp.base.observed import Document
from tapp.words.vocabulary import SHARD

if TYPE_CHECKING:
    from tapp.world import Options

FINALIZER = "metacontroller.io/compositecontroller-"
"""What Metacontroller puts before a CompositeController's name, on each TApp that it serves."""


class Registration(NamedTuple):
    """The registration of the service, and how its operator runs it."""

    controller: Document
    """The CompositeController that is registered, or the shipped one."""
    options: "Options"
    """The operator's choices."""


def in_charge(controllers: Sequence[Document], tapp: Document | None) -> Document | None:
    """The CompositeController of a TApp: that of its finalizer, else of its shard; None if none is.

    Args:
        controllers: those of TApps, one for each shard.
        tapp: as it is stored; without it a TApp of no shard is meant.
    """
    metadata = (tapp or {}).get("metadata", {})
    names = {each["metadata"]["name"]: each for each in controllers}
    for finalizer in metadata.get("finalizers") or []:
        if finalizer.startswith(FINALIZER) and finalizer.removeprefix(FINALIZER) in names:
            return names[finalizer.removeprefix(FINALIZER)]
    shard = (metadata.get("labels") or {}).get(SHARD)
    own = [
        each for each in controllers if (each["metadata"].get("labels") or {}).get(SHARD) == shard
    ]
    return next(iter(own or controllers), None)


def with_services(controller: Document) -> Document:
    """The shipped one where the TApp has Services: the component is there, if nobody sees it."""
    child = {
        "apiVersion": "v1",
        "resource": "services",
        "updateStrategy": {"method": "InPlace"},
    }
    spec = controller["spec"]
    return {**controller, "spec": {**spec, "childResources": [*spec["childResources"], child]}}
