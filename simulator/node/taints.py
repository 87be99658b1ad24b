"""The taint manager: evicts pods from a node that they do not tolerate (any more).

Source: pkg/controller/tainteviction. It looks at a pod when the node's taints, the pod's node or
its tolerations change. The first toleration that fits a taint counts for it. An eviction that is
pending is called off when the taints go or the pod tolerates them without end; another finite
`tolerationSeconds` neither delays nor hastens it. Not modelled: the condition DisruptionTarget.
"""

from functools import partial

from simulator.api.cluster import Cluster
from simulator.api.store import DeleteOptions, Event
from simulator.objects.clock import Clock, Timer
from simulator.objects.kinds import NODE, POD
from simulator.objects.objects import Object, is_terminating, key_of, name_of, same, uid_of

NO_EXECUTE = "NoExecute"


class TaintManager:
    """Evicts pods, a moment or a toleration after their node was tainted."""

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._pending: dict[str, Timer] = {}
        cluster.subscribe(self._on_event)

    def _on_event(self, event: Event) -> None:
        old, new = event.old, event.new
        if event.kind is NODE and new is not None:
            if not same(_taints(old), _taints(new)):
                for pod in self._cluster.list(POD):
                    if pod["spec"].get("nodeName") == name_of(new):
                        self._look(pod, _taints(new))
        elif event.kind is POD and new is None:
            self._call_off(uid_of(event.object))
        elif event.kind is POD and new is not None and new["spec"].get("nodeName"):
            fields = ("nodeName", "tolerations")
            if old is None or any(old["spec"].get(f) != new["spec"].get(f) for f in fields):
                node = self._cluster.find(NODE, "", new["spec"]["nodeName"])
                self._look(new, _taints(node))

    def _look(self, pod: Object, taints: list[Object]) -> None:
        uid = uid_of(pod)
        seconds = _tolerated(pod, taints)
        if seconds is None:
            self._call_off(uid)
        elif not seconds or uid not in self._pending:
            self._call_off(uid)
            self._pending[uid] = self._clock.after(seconds, partial(self._evict, uid))

    def _call_off(self, uid: str) -> None:
        self._clock.cancel(self._pending.pop(uid, None))

    def _evict(self, uid: str) -> None:
        del self._pending[uid]
        found = self._cluster.by_uid(uid)
        if found is not None and not is_terminating(found[1]):
            self._cluster.delete(POD, *key_of(found[1]), DeleteOptions(uid))


def _taints(node: Object | None) -> list[Object]:
    taints = (node or {}).get("spec", {}).get("taints") or []
    return [taint for taint in taints if taint["effect"] == NO_EXECUTE]


def _tolerated(pod: Object, taints: list[Object]) -> float | None:
    """Return how long the pod tolerates all of the taints; None is without end."""
    times: list[float] = []
    for taint in taints:
        fitting = (one for one in pod["spec"].get("tolerations") or [] if _fits(one, taint))
        first = next(fitting, {"tolerationSeconds": 0})
        if first.get("tolerationSeconds") is not None:
            times.append(max(float(first["tolerationSeconds"]), 0.0))
    return min(times, default=None)


def _fits(toleration: Object, taint: Object) -> bool:
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    if toleration.get("key") not in (None, "", taint["key"]):
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(toleration.get("value", "") == taint.get("value", ""))
