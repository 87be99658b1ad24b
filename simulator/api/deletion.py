"""The rules of a deletion: the grace period, and the finalizers for a propagation policy.

Source: apiserver's registry/rest/delete.go and registry/generic/registry/store.go.
"""

from simulator.api.store import Propagation
from simulator.objects.kinds import POD, Kind
from simulator.objects.objects import Object, is_terminating, meta
from tapp.kube.restarts import COMPLETED
from tapp.kube.stored import GRACE

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"


def grace_seconds(kind: Kind, obj: Object, requested: int | None) -> int:
    """Returns the grace period of an object that is being deleted, in seconds.

    The result is 0 for objects other than pods, and for pods that have no node or have ended.
    `requested` is the grace period in the delete request; None means the grace period in the pod's
    spec.
    """
    if kind is not POD or not obj["spec"].get("nodeName"):
        return 0
    if (obj.get("status") or {}).get("phase") in COMPLETED:
        return 0
    if requested is not None:
        return requested
    if is_terminating(obj):
        return int(meta(obj).get("deletionGracePeriodSeconds", 0))
    return max(int(obj["spec"].get("terminationGracePeriodSeconds", GRACE)), 0)


def with_propagation(finalizers: list[str], propagation: Propagation | None) -> list[str]:
    """Returns the finalizers that an object has after a delete request.

    The propagation policies Foreground and Orphan each add their finalizer, and Background adds
    none. If `propagation` is None, the finalizers stay as they are.
    """
    if propagation is None:
        return finalizers
    rest = [name for name in finalizers if name not in (FOREGROUND, ORPHAN)]
    if propagation == "Foreground":
        return [*rest, FOREGROUND]
    return [*rest, ORPHAN] if propagation == "Orphan" else rest
