"""Lost nodes, unless it is rather this cluster's control plane that is cut off.

docs/design.md, "Lost nodes". A node is judged by what the TApp's own pods on it tell: a hook cannot
see the Node.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tapp.pod.pod import Pod
from tapp.words.digits import whole
from tapp.words.quoted import quoted
from tapp.words.times import UNKNOWN
from tapp.words.vocabulary import LOST_NODE_SECONDS

LEAST_NODES = 3  # With fewer nodes nothing tells a lost node from a lost network
LEAST_SECONDS = 5
"""A gate that has just been opened looks like a silent node until the kubelet has looked, which
takes most of a second and on a busy node more."""
SKEW = 60.0  # Seconds by which the clock that wrote a time may be ahead of ours


@dataclass(frozen=True)
class Nodes:
    """The nodes that a TApp's pods are on."""

    all: int = 0  # how many there are
    silent: int = 0  # how many of them are not heard of

    @property
    def guarded(self) -> bool:
        """True if more than half of at least three are silent: nothing is moved then."""
        return self.all >= LEAST_NODES and 2 * self.silent > self.all


def nodes_of(pods: Iterable[Pod]) -> Nodes:
    """Counts the nodes; one with a pod that is Ready is heard of."""
    all_nodes, silent, heard = set[str](), set[str](), set[str]()
    for pod in pods:
        if pod.node and pod.phase == "Running":
            all_nodes.add(pod.node)
            if pod.ready is True:
                heard.add(pod.node)
            elif pod.silent:
                silent.add(pod.node)
    return Nodes(len(all_nodes), len(silent - heard))


def limit_of(annotations: Mapping[str, object], default: int) -> tuple[int, str]:
    """Seconds of silence after which a node is lost to a TApp, and what is wrong with its own.

    Never fewer than `LEAST_SECONDS`.
    """
    default, text = max(default, LEAST_SECONDS), annotations.get(LOST_NODE_SECONDS)
    if text is None:
        return default, ""
    if isinstance(text, str) and (found := whole(text)) is not None:
        return max(found, LEAST_SECONDS), ""
    return default, (
        f"metadata.annotations[{LOST_NODE_SECONDS!r}] is {quoted(text)}, which is no number of "
        f"seconds; {default} holds"
    )


def lost_in(pod: Pod, limit: int, now: float) -> float | None:
    """Seconds until the pod's node is lost, 0 if it is; None where it is heard of, or may be."""
    since = pod.silent_since
    if since is None or since == UNKNOWN or since > now + SKEW:
        return None
    return max(0.0, since + limit - now)
