"""Lost nodes: since when a node is silent, and whether so many are silent that no pod is moved.

A hook of Metacontroller does not receive Nodes, so the TApp's own pods show the state of their
nodes (docs/lost-nodes.md). `observed_silence` says since when a node is silent according
to one pod. `lost_in` says when the node counts as lost:

    lost_at = silent since + limit

`nodes_of` counts the silent nodes. If most nodes are silent, they are probably not lost, but the
control plane is cut off from them (`Nodes.guarded`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tapp.pod.pod import Pod
from tapp.words.digits import whole
from tapp.words.quoted import quoted
from tapp.words.times import UNKNOWN
from tapp.words.vocabulary import LOST_NODE_SECONDS

# With fewer nodes, a lost node cannot be told from a control plane that is cut off.
LEAST_NODES = 3
# The smallest limit, in seconds. A gate that has just been opened looks like a silent node until
# the kubelet has reacted, which takes up to a second, and longer on a busy node.
LEAST_SECONDS = 5


# Seconds within which a healthy kubelet acknowledges a pod; usually it takes one or two.
ACKNOWLEDGED = 30.0


@dataclass(frozen=True)
class Nodes:
    """Counts of the nodes on which a TApp's pods run."""

    all: int = 0  # Number of nodes.
    silent: int = 0  # Number of nodes that have stopped reporting.

    @property
    def guarded(self) -> bool:
        """True if so many nodes are silent that no node may count as lost.

        That is so if the pods run on at least `LEAST_NODES` nodes and more than half of the nodes
        are silent. Then no pod is moved to another node.
        """
        return self.all >= LEAST_NODES and 2 * self.silent > self.all


def nodes_of(pods: Iterable[Pod], now: float) -> Nodes:
    """Counts the nodes on which the given pods run, and how many of these have stopped reporting.

    A node with a Ready pod reports. `now` is the time of this sync, in seconds since the epoch.
    """
    all_nodes, silent, heard = set[str](), set[str](), set[str]()
    for pod in pods:
        is_silent = observed_silence(pod, now) is not None
        if pod.node and (pod.phase == "Running" or is_silent):
            all_nodes.add(pod.node)
            if pod.ready is True:
                heard.add(pod.node)
            elif is_silent:
                silent.add(pod.node)
    return Nodes(len(all_nodes), len(silent - heard))


def limit_of(annotations: Mapping[str, object], default: int) -> tuple[int, str]:
    """Returns the seconds of silence after which a node of a TApp's pods counts as lost.

    The limit is in an annotation of the TApp. It is never less than `LEAST_SECONDS`. The second
    value says why the annotation is invalid; it is empty if the annotation is valid or missing.

    Args:
        annotations: the annotations of the TApp.
        default: the operator's limit in seconds, for a TApp without a valid annotation.
    """
    default, text = max(default, LEAST_SECONDS), annotations.get(LOST_NODE_SECONDS)
    if text is None:
        return default, ""
    if isinstance(text, str) and (found := whole(text)) is not None:
        return max(found, LEAST_SECONDS), ""
    return default, (
        f"metadata.annotations[{LOST_NODE_SECONDS!r}] is {quoted(text)}, which is not a number of "
        f"seconds; the default of {default} seconds applies"
    )


def observed_silence(pod: Pod, now: float) -> float | None:
    """Returns since when the pod's node has not reported, according to the pod alone.

    The result is in seconds since the epoch; None if the node reports. Returns `UNKNOWN` if the
    condition Ready has no usable time, because only that time shows when the node went silent.

    If a kubelet has not acknowledged a pod for `ACKNOWLEDGED` seconds, the node is silent since the
    pod was bound to it. Such a pod never has a condition Ready.
    """
    if pod.unacknowledged:
        bound = bound_at(pod, now)
        return None if now < bound + ACKNOWLEDGED else bound
    if not pod.silent:
        return None
    since = pod.ready_at(now)
    if since == UNKNOWN:
        return UNKNOWN
    known = pod.conditions
    # A readiness gate that has just been opened looks like a silent node until the kubelet reacts.
    # So the silence cannot have begun before the newest of these conditions.
    others = [known[name].last_transition_time for name in ("ContainersReady", *pod.spec.gates)]
    return max(since, *(pod.plausible_time(time, now) for time in others))


def bound_at(pod: Pod, now: float) -> float:
    """Returns when the pod was bound to its node, in seconds since the epoch.

    If the pod has no such time, returns its creation time, and `UNKNOWN` if that is missing, too.
    """
    scheduled = pod.conditions.get("PodScheduled")
    time = None if scheduled is None else scheduled.last_transition_time
    return pod.plausible_time(time, now, pod.created_at(now))


def silent_since(pod: Pod, now: float, seen: float) -> float | None:
    """Returns since when the pod's node has not reported, in seconds since the epoch.

    Returns None if the node reports. `seen` is when a sync first saw the node silent. It is the
    result if the pod shows that its node is silent, but not since when.
    """
    since = observed_silence(pod, now)
    return seen if since == UNKNOWN else since


def lost_in(since: float | None, limit: int, now: float) -> float | None:
    """Returns the seconds until a node that does not report counts as lost; 0 if it is lost.

    Returns None if the node reports.

    Args:
        since: since when the node has not reported, in seconds since the epoch; None if it reports.
        limit: the seconds of silence after which a node is lost.
        now: the time of this sync, in seconds since the epoch.
    """
    return None if since is None else max(0.0, since + limit - now)
