"""Judges the PATCHes with which the component resize changes the resources of pods.

- A PATCH is sent only with `resources: InPlace`, if the TApp is not paused and the component is
  installed. The PATCH sets the resources of the template that its sync saw, and the pod must not
  have these resources already.
- A PATCH uses budget, whether or not a container restarts (`judge.py`), until the kubelet has done
  the resize and the pod serves.
- A pod is replaced because of its resources only if the API server, its kubelet or its history
  gives a reason.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from simulator.api.store import ApiError, InvalidError, NotFoundError
from simulator.api.validation import with_resources
from tapp.kube.resources import pod_qos_class
from tests.hook_calls import number
from tests.invariants import ViolationError
from tests.model.snapshots import Snapshot, asked_for, containers, is_infeasible, resources_mode

if TYPE_CHECKING:
    from collections import Counter

    from simulator.world import World
    from tapp.answer.resize_patches import Patch

Document = dict[str, Any]


class ResizeJudge:
    """Judges the resizes of the pods of one TApp, and knows which sync has decided on each of
    them.
    """

    def __init__(self, world: World, name: str, counts: Counter[str]) -> None:
        self.installed = False
        """True if the component resize is installed."""
        self.troubled = False
        """True if a kubelet or the API server has ever failed a resize."""
        self.touched: set[str] = set()
        """Uids of the pods that the service or somebody else has resized."""
        self.snapshot: Snapshot | None = None
        """The sync that is being handled; None before the first sync."""
        self.found: list[str] = []
        """Messages of violations that were found while a PATCH was sent.

        They are stored because the sender would catch an exception.
        """
        self._world = world
        self._name = name
        self._counts = counts
        self._decided: dict[str, Snapshot] = {}
        self._sent: dict[int, Snapshot] = {}

    def ask(self, patch: Patch) -> None:
        """Records that the current sync has decided on a PATCH."""
        if self.snapshot is not None:
            self._decided.setdefault(_key(patch.document), self.snapshot)

    def refused(self, name: str, error: ApiError) -> None:
        self._counts[f"resize: {type(error).__name__}"] += 1
        if not isinstance(error, NotFoundError):
            self.found.append(f"P5: the resize of {name} is refused: {error}")

    def sent(self, patch: Document, pod: Document) -> None:
        """Records that the API server has accepted a PATCH; `pod` is the pod after the PATCH."""
        self._sent[int(pod["metadata"]["resourceVersion"])] = self._decided[_key(patch)]
        self.touched.add(pod["metadata"]["uid"])

    def decided_on(self, revision: int) -> Snapshot | None:
        """Returns the sync that has decided on the PATCH with this resourceVersion.

        Returns None if no PATCH of the service has made this change. Raises ViolationError if a
        violation was found while a PATCH was sent.
        """
        if self.found:
            raise ViolationError(self.found[0])
        return self._sent.pop(revision, None)

    def check(self, old: Document, new: Document, snapshot: Snapshot) -> bool:
        """Judges the change of a pod by a PATCH; returns True if its resizePolicy restarts a
        container.

        `snapshot` is the sync that has decided on the PATCH.
        """
        name, spec = old["metadata"]["name"], snapshot.spec
        if resources_mode(spec) != "InPlace" or spec["updateStrategy"].get("paused"):
            raise ViolationError(f"P4: {name} is resized, and its strategy says something else")
        id = number(snapshot.request, name)
        body = None if id is None else snapshot.template(id)
        if id not in snapshot.running or body is None:
            raise ViolationError(f"P4: {name} is resized, and should not run")
        before, after, asked = (containers(one["spec"]) for one in (old, new, body))
        if all(asked_for(before[one]) == asked_for(after[one]) for one in after):
            raise ViolationError(f"P8: {name} is resized to what it has")
        for one, wanted in asked.items():
            if asked_for(after[one]) != asked_for(wanted):
                raise ViolationError(f"P4: {name} is resized to {after[one]}, not to {wanted}")
        again = [one for one in after if _restarts(before[one], after[one])]
        self._counts["resizes"] += 1
        self._counts["resizes that restart"] += bool(again)
        return bool(again)

    def is_under_way(self, pod: Document) -> bool:
        """Returns True if the pod's containers do not run with the resources of the pod's spec
        yet.
        """
        worker = self._world.kubelet.worker(pod)
        return worker is not None and bool(worker.local.containers_to_resize)

    @property
    def kubelets_do(self) -> bool:
        """True if the kubelets of the cluster support resizes."""
        return self._world.kubelet.levers.resizes

    def counts_on(self, snapshot: Snapshot) -> bool:
        """Returns True if the sync with this snapshot could assume that resizes are possible."""
        return self.installed and self.kubelets_do and resources_mode(snapshot.spec) == "InPlace"

    def check_replaced(self, made_of: str, pod: Document, body: Document, sight: Snapshot) -> None:
        """Raises ViolationError if a pod is replaced although it could have been resized.

        Args:
            made_of: the template that the pod was created from, as text.
            pod: the pod as the sync saw it.
            body: the current template.
            sight: the sync that has decided on the replacement.
        """
        if self.troubled or not self.counts_on(sight):
            return
        before = containers(json.loads(made_of)["spec"])
        wanted = containers(body["spec"])
        if before.keys() != wanted.keys() or not is_resizable(pod, body):
            return
        old, new = containers(pod["spec"]), {**containers(pod["spec"]), **wanted}
        falls = any(_memory(new[one]) < _memory(old[one]) for one in wanted)
        if falls and not self._world.kubelet.levers.reports_generation:
            return
        statuses = pod["status"].get("containerStatuses") or []
        if not all("resources" in one for one in statuses) or not statuses:
            return
        if is_infeasible(pod):
            return
        raise ViolationError(f"P4: {pod['metadata']['name']} is replaced, and could be resized")


def is_resizable(pod: Document, body: Document) -> bool:
    """Returns True if the API server would accept the resources of the template `body` for a
    pod.
    """
    wanted = containers(body["spec"])
    spec = dict(pod["spec"])
    for section in ("initContainers", "containers"):
        if section in spec:
            spec[section] = [
                {**one, "resources": asked_for(wanted.get(one["name"], one))}
                for one in spec[section]
            ]
    if pod_qos_class(spec) != pod_qos_class(pod["spec"]):
        return False
    try:
        with_resources(pod, {**pod, "spec": spec})
    except InvalidError:
        return False
    return True


def _key(patch: Document) -> str:
    return json.dumps(patch, sort_keys=True)


def _memory(container: Document) -> int:
    limits = (container.get("resources") or {}).get("limits") or {}
    return int(str(limits.get("memory", "0Mi")).removesuffix("Mi"))


def _restarts(before: Document, after: Document) -> bool:
    """Returns True if a container's resizePolicy restarts the container for this change of
    resources.
    """
    policies = {
        each["resourceName"]
        for each in after.get("resizePolicy") or []
        if each["restartPolicy"] == "RestartContainer"
    }
    old, new = asked_for(before), asked_for(after)
    return any(
        (old.get(kind) or {}).get(each) != (new.get(kind) or {}).get(each)
        for kind in ("limits", "requests")
        for each in policies
    )
