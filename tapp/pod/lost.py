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


ACKNOWLEDGED = 30.0
"""Seconds within which a kubelet that works has looked at a pod; it needs one or two."""


@dataclass(frozen=True)
class Nodes:
    """The nodes that a TApp's pods are on."""

    all: int = 0  # how many there are
    silent: int = 0  # how many of them are not heard of

    @property
    def guarded(self) -> bool:
        """True if more than half of at least three are silent: nothing is moved then."""
        return self.all >= LEAST_NODES and 2 * self.silent > self.all


def nodes_of(pods: Iterable[Pod], now: float) -> Nodes:
    """Counts the nodes; one with a pod that is Ready is heard of."""
    all_nodes, silent, heard = set[str](), set[str](), set[str]()
    for pod in pods:
        is_silent = told_silence(pod, now) is not None
        if pod.node and (pod.phase == "Running" or is_silent):
            all_nodes.add(pod.node)
            if pod.ready is True:
                heard.add(pod.node)
            elif is_silent:
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


def told_silence(pod: Pod, now: float) -> float | None:
    """Returns since when the node of a pod has not reported, in seconds since the epoch.

    None if the node reports. `UNKNOWN` if the condition Ready has no usable time: its time alone
    says when the node went silent. The other conditions can only move that time forward, because
    a readiness gate that has just opened looks like a silent node until the kubelet has looked.

    A node whose kubelet does not acknowledge a pod is silent, too, after `ACKNOWLEDGED`: since the
    pod was bound to the node. Such a pod never has a condition Ready.
    """
    if pod.unacknowledged:
        bound = bound_at(pod, now)
        return None if now < bound + ACKNOWLEDGED else bound
    if not pod.silent:
        return None
    since = pod.told(pod.ready_since, now)
    if since == UNKNOWN:
        return UNKNOWN
    known = pod.conditions
    others = [known[name].last_transition_time for name in ("ContainersReady", *pod.spec.gates)]
    return max(since, *(pod.told(time, now) for time in others))


def bound_at(pod: Pod, now: float) -> float:
    """Returns when a pod was bound to its node, or when the pod was created if it does not tell.

    `UNKNOWN` if the pod tells neither.
    """
    scheduled = pod.conditions.get("PodScheduled")
    time = None if scheduled is None else scheduled.last_transition_time
    return pod.told(time, now, pod.made_at(now))


def silent_since(pod: Pod, now: float, seen: float) -> float | None:
    """Returns since when the node of a pod has not reported, or None if it reports.

    If the pod does not tell, it is `seen`: the time of the first sync that saw the silence.
    """
    since = told_silence(pod, now)
    return seen if since == UNKNOWN else since


def lost_in(since: float | None, limit: int, now: float) -> float | None:
    """Returns the seconds until a node that is silent `since` then is lost, 0 if it is lost.

    None if the node reports.
    """
    return None if since is None else max(0.0, since + limit - now)
