"""TApps in a cluster as each kind of kubectl apply creates them."""

from tests.plugin.standin import Document, StandIn
from tests.scenarios.life import Life

SERVER = "planned as `kubectl apply --server-side` would write it, field manager kubectl"
CLIENT = "planned as `kubectl apply` (client-side) would write it"


def by_client(document: Document) -> StandIn:
    """Creates a TApp with a client-side apply."""
    return StandIn(Life().apply(document).world)


def by_server(document: Document, manager: str = "kubectl") -> StandIn:
    """Creates a TApp with a server-side apply, which leaves no annotation with its content."""
    standin = by_client(document)
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": None}
    standin.world.patch("tapps", "web", {"metadata": {"annotations": annotations}})
    standin.managers[manager] = document
    return standin
