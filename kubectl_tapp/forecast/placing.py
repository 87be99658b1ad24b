"""Pods of a forecast that find no node: those that have none, and new ones that ask the same."""

from collections.abc import Iterable

from kubectl_tapp.base.observed import Document
from kubectl_tapp.base.reading import conditions, containers
from tapp.kube.resources import asked_for

_ASKED = (
    *("nodeSelector", "affinity", "topologySpreadConstraints"),
    *("priorityClassName", "runtimeClassName"),
)
_OF_NODES = "node.kubernetes.io/"  # Tolerations of these are added by admission
Demands = tuple[object, ...]


def unplaced(pods: Iterable[Document]) -> dict[str, tuple[Demands, str]]:
    """Name of each pod that found no node -> what it asked for, and what the scheduler said."""
    told = ((pod, _unschedulable(pod)) for pod in pods)
    return {
        pod["metadata"]["name"]: (demands(pod), message)
        for pod, message in told
        if message is not None
    }


def _unschedulable(pod: Document) -> str | None:
    """The scheduler's words for a pod that has no node; None where it has one, or was not tried."""
    if (pod.get("spec") or {}).get("nodeName"):
        return None
    scheduled = conditions(pod).get("PodScheduled") or {}
    return str(scheduled.get("message") or "") if scheduled.get("status") == "False" else None


def demands(pod: Document) -> Demands:
    """A scheduler's view of a pod's spec, equal for pods that find the same nodes."""
    spec = pod.get("spec") or {}
    tolerated = [
        item
        for item in spec.get("tolerations") or []
        if not str(item.get("key") or "").startswith(_OF_NODES)
    ]
    claims = [
        (volume.get("persistentVolumeClaim") or {}).get("claimName")
        for volume in spec.get("volumes") or []
    ]
    asked = [
        (each.get("name"), asked_for(each.get("resources")).get("requests"), _host_ports(each))
        for each in containers(spec)
    ]
    rest = tuple(spec.get(field) or None for field in _ASKED)
    scheduler = spec.get("schedulerName") or "default-scheduler"
    return (*rest, scheduler, tolerated, [claim for claim in claims if claim], asked)


def _host_ports(container: Document) -> list[object]:
    return [port["hostPort"] for port in container.get("ports") or [] if port.get("hostPort")]
