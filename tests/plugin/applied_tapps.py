"""Creates TApps as client-side and server-side `kubectl apply` leave them in a cluster.

`SERVER` and `CLIENT` are the sentences with which `plan -f` says which kind of apply it has
recognized.
"""

from tests.plugin.fake_kubectl import Document, StandIn
from tests.scenarios.life import Life

SERVER = "planned as `kubectl apply --server-side` would write it, field manager kubectl"
CLIENT = "planned as `kubectl apply` (client-side) would write it"


def by_client(document: Document) -> StandIn:
    """Returns a fake kubectl for a cluster with a TApp that a client-side apply has created."""
    return StandIn(Life().apply(document).world)


def by_server(document: Document, manager: str = "kubectl") -> StandIn:
    """Returns a fake kubectl for a cluster with a TApp that a server-side apply has created.

    `manager` is the field manager of the apply. The TApp has no last-applied annotation of kubectl.
    """
    standin = by_client(document)
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": None}
    standin.world.patch("tapps", "web", {"metadata": {"annotations": annotations}})
    standin.managers[manager] = document
    return standin
