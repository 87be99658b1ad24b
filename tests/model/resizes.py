"""Judges the PATCHes with which the component `resize` gives pods other resources.

- One is sent only where `resources: InPlace` is set, the TApp is not paused and the component is
  installed; to what the template of that sync asks for; and never to what the pod has already.
- It takes a place in the budget, whether or not a container restarts for it (`judge.py`), until
  the kubelet has done it, and the pod serves.
- With all that, a pod is replaced for its resources only for a reason that the API server, its
  kubelet or its history gives.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from simulator.api.store import ApiError, InvalidError, NotFoundError
from simulator.api.validation import with_resources
from tapp.kube.resources import quality_of
from tests.invariants import ViolationError
from tests.model.sight import Snapshot, asked_for, containers, is_infeasible, resources_mode
from tests.reading import number

if TYPE_CHECKING:
    from collections import Counter

    from simulator.world import World
    from tapp.answer.resizes import Patch

Document = dict[str, Any]


class ResizeJudge:
    """The resizes of one TApp's pods."""

    def __init__(self, world: World, name: str, counts: Counter[str]) -> None:
        self.installed = False
        """True if the component resize is there."""
        self.troubled = False
        """True if a kubelet or the API server has not done one, at any time."""
        self.touched: set[str] = set()
        """Uids of pods that have been resized, by whomever."""
        self.snapshot: Snapshot | None = None
        """The sync that is being answered."""
        self.found: list[str] = []
        """Violations: a sender would swallow them."""
        self._world = world
        self._name = name
        self._counts = counts
        self._decided: dict[str, Snapshot] = {}
        self._sent: dict[int, Snapshot] = {}

    def ask(self, patch: Patch) -> None:
        """A sync has decided on it."""
        if self.snapshot is not None:
            self._decided.setdefault(_key(patch.document), self.snapshot)

    def refused(self, name: str, error: ApiError) -> None:
        self._counts[f"resize: {type(error).__name__}"] += 1
        if not isinstance(error, NotFoundError):
            self.found.append(f"P5: the resize of {name} is refused: {error}")

    def sent(self, patch: Document, pod: Document) -> None:
        """The API server has taken it."""
        self._sent[int(pod["metadata"]["resourceVersion"])] = self._decided[_key(patch)]
        self.touched.add(pod["metadata"]["uid"])

    def decided_on(self, revision: int) -> Snapshot | None:
        """The sync that has decided on this change of a pod; None: it is no resize.

        Raises:
            ViolationError: an earlier one is to be told.
        """
        if self.found:
            raise ViolationError(self.found[0])
        return self._sent.pop(revision, None)

    def check(self, old: Document, new: Document, snapshot: Snapshot) -> bool:
        """One resize; returns whether a container restarts for it."""
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
        """True if its kubelet has yet to give a pod's containers what its spec says."""
        worker = self._world.kubelet.worker(pod)
        return worker is not None and bool(worker.local.containers_to_resize)

    @property
    def kubelets_do(self) -> bool:
        """True if kubelets know of resizes."""
        return self._world.kubelet.levers.resizes

    def counts_on(self, snapshot: Snapshot) -> bool:
        """True if the sync that was told so could see that a resize is under way."""
        return self.installed and self.kubelets_do and resources_mode(snapshot.spec) == "InPlace"

    def check_replaced(self, made_of: str, pod: Document, body: Document, sight: Snapshot) -> None:
        """A pod that goes although it could have been resized."""
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
    """True if the API server would give a pod the resources of a template."""
    wanted = containers(body["spec"])
    spec = dict(pod["spec"])
    for section in ("initContainers", "containers"):
        if section in spec:
            spec[section] = [
                {**one, "resources": asked_for(wanted.get(one["name"], one))}
                for one in spec[section]
            ]
    if quality_of(spec) != quality_of(pod["spec"]):
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
    """True if a container's resizePolicy starts it again for this."""
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
