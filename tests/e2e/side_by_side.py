"""Steps for a StatefulSet and a TApp on one control plane, and the expected events of pods."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.builders import with_meta

from .app import GROUP, tapp, template
from .kube import Json, Kube
from .pod_history import Diary

BROKEN = "app:unready"
COUNTS = ("replicas", "readyReplicas", "availableReplicas", "updatedReplicas")


def body(version: str = "1", image: str = "app:1") -> Json:
    """Returns a template whose versions differ in more than the image."""
    made = template(image)
    made["spec"]["containers"][0]["env"] = [{"name": "VERSION", "value": version}]
    return made


class Workload(ABC):
    """The StatefulSet or the TApp; both have the same methods."""

    resource = group = name = ""

    def __init__(self, kube: Kube, namespace: str) -> None:
        self.kube, self.namespace = kube, namespace
        self.diary = Diary(kube, namespace, self.name)

    @abstractmethod
    def create(self, image: str = "app:1", **spec: Any) -> None:
        """Creates three instances of version 1, one after another, unless the spec says
        otherwise.
        """

    def patch(self, **spec: Any) -> None:
        """Merges fields that have the same name in both specs."""
        path = self.kube.path(self.group, self.resource, self.namespace, self.name)
        self.kube.patch(path, {"spec": spec})

    def scale(self, replicas: int) -> None:
        """Sets the number of replicas."""
        self.patch(replicas=replicas)

    def roll(self, version: str, image: str = "app:1", **spec: Any) -> None:
        """Sets another template and further fields of the spec."""
        self.patch(template=self.labelled(body(version, image)), **spec)

    def delete_pod(self, number: int) -> None:
        """Deletes a pod, as a user does."""
        self.kube.delete("v1", "pods", self.namespace, f"{self.name}-{number}")

    def break_pod(self, number: int) -> None:
        """Makes a pod unready by another image."""
        path = self.kube.path("v1", "pods", self.namespace, f"{self.name}-{number}")
        image = [{"op": "replace", "path": "/spec/containers/0/image", "value": BROKEN}]
        self.kube.patch(path, image)

    @abstractmethod
    def wait_for_deletions(self) -> None:
        """Restricts updates to pods that a user deletes."""

    @abstractmethod
    def keeping(self, count: int) -> Json:
        """Returns fields of the spec that keep the `count` lowest numbers at their version."""

    def labelled(self, made: Json) -> Json:
        """Returns the template with the label of this workload."""
        return with_meta(made, labels={"app": self.name})

    @property
    def status(self) -> Json:
        """The counts of the status, and whether it has two revisions."""
        found = self.kube.get(self.group, self.resource, self.namespace, self.name)
        status = found.get("status") or {}
        two = status.get("currentRevision") != status.get("updateRevision")
        return {"two": two, **{key: status.get(key) or 0 for key in COUNTS}}

    @property
    def versions(self) -> dict[str, str]:
        """Version and image of each pod, by number."""
        pods = self.kube.list_all("v1", "pods", self.namespace)
        mine = [pod for pod in pods if pod["metadata"]["name"].startswith(f"{self.name}-")]
        containers = {
            pod["metadata"]["name"].rpartition("-")[2]: pod["spec"]["containers"][0] for pod in mine
        }
        return {
            number: f"{one['env'][0]['value']} {one['image']}" for number, one in containers.items()
        }


class Theirs(Workload):
    """The StatefulSet."""

    resource, group, name = "statefulsets", "apps/v1", "theirs"

    def create(self, image: str = "app:1", **spec: Any) -> None:
        self.kube.create(
            {
                "apiVersion": self.group,
                "kind": "StatefulSet",
                "metadata": {"name": self.name, "namespace": self.namespace},
                "spec": {
                    "replicas": 3,
                    "serviceName": "",
                    "selector": {"matchLabels": {"app": self.name}},
                    "template": self.labelled(body(image=image)),
                    **spec,
                },
            }
        )

    def keeping(self, count: int) -> Json:
        return {"updateStrategy": {"rollingUpdate": {"partition": count}}}

    def wait_for_deletions(self) -> None:
        self.patch(updateStrategy={"type": "OnDelete", "rollingUpdate": None})


class Ours(Workload):
    """The TApp, with the same fields and the highest number first."""

    resource, group, name = "tapps", GROUP, "ours"

    def create(self, image: str = "app:1", **spec: Any) -> None:
        made = tapp(
            self.name,
            template=self.labelled(body(image=image)),
            updateStrategy={"order": "Descending"},
            **{"podManagementPolicy": "OrderedReady", **spec},
        )
        self.kube.apply(with_meta(made, namespace=self.namespace))

    def keeping(self, count: int) -> Json:
        return {"updateStrategy": {"partition": count}}

    def wait_for_deletions(self) -> None:
        self.patch(updateStrategy={"paused": True})


@dataclass
class Step:
    """An action on both workloads, and the expected events of their pods.

    Attributes:
        what: a short description.
        do: the action.
        pods: the expected events.
        ours: the expected events of the TApp's pods, if they differ.
        differs: the row of the page about the difference.
        catches_up: the action is for the StatefulSet only, which then has the TApp's state.
        ordered: the events have this order.
    """

    what: str
    do: Callable[[Workload], None]
    pods: list[str] = field(default_factory=list)
    ours: list[str] | None = None
    differs: str = ""
    catches_up: bool = False
    ordered: bool = True


def created(*numbers: int) -> list[str]:
    """Returns the events of pods that are created one after another."""
    return [f"{word} {number}" for number in numbers for word in ("made", "ready")]


def deleted(*numbers: int) -> list[str]:
    """Returns the events of pods that are deleted one after another."""
    return [f"{word} {number}" for number in numbers for word in ("ends", "gone")]


def replaced(*numbers: int) -> list[str]:
    """Returns the events of pods that are replaced one after another."""
    return [line for number in numbers for line in (*deleted(number), *created(number))]


IMAGES = "only images change"
MENDS = "the template that mends a broken pod, with `OrderedReady`"
GOING = "two broken pods among those that are to go, with `OrderedReady`"
COUNTED = "the counts while pods are to go"
BOTH = "fewer replicas and another template in one edit"
LIVES: dict[str, list[Step]] = {
    "one after another": [
        Step("created", lambda it: it.create(), created(0, 1, 2)),
        Step("scaled up", lambda it: it.scale(5), created(3, 4)),
        Step("a user deletes a pod", lambda it: it.delete_pod(1), replaced(1)),
        Step("scaled down", lambda it: it.scale(2), deleted(4, 3, 2)),
        Step("scaled to zero", lambda it: it.scale(0), deleted(1, 0)),
        Step("scaled up again", lambda it: it.scale(2), created(0, 1)),
    ],
    "all at once": [
        Step(
            "created",
            lambda it: it.create(podManagementPolicy="Parallel"),
            created(0, 1, 2),
            ordered=False,
        ),
        Step("scaled up", lambda it: it.scale(5), created(3, 4), ordered=False),
        Step("another template", lambda it: it.roll("2"), replaced(4, 3, 2, 1, 0)),
        Step("scaled down", lambda it: it.scale(1), deleted(4, 3, 2, 1), ordered=False),
    ],
    "a partition": [
        Step("created", lambda it: it.create(replicas=4), created(0, 1, 2, 3)),
        Step(
            "a rollout down to the partition",
            lambda it: it.roll("2", **it.keeping(2)),
            replaced(3, 2),
        ),
        Step("a kept pod is lost", lambda it: it.delete_pod(0), replaced(0)),
        Step("a pod that is not kept is lost", lambda it: it.delete_pod(3), replaced(3)),
        Step("scaled up", lambda it: it.scale(5), created(4)),
        Step("scaled down below the partition", lambda it: it.scale(1), deleted(4, 3, 2, 1)),
        Step("scaled up again", lambda it: it.scale(3), created(1, 2)),
        Step("the partition is lowered", lambda it: it.patch(**it.keeping(1)), replaced(1)),
        Step("the first template again", lambda it: it.roll("1"), replaced(2, 1)),
        Step("a third template", lambda it: it.roll("3"), replaced(2, 1)),
        Step("the partition is removed", lambda it: it.patch(**it.keeping(0)), replaced(0)),
    ],
    "updates that wait for deletions": [
        Step("created", lambda it: it.create(), created(0, 1, 2)),
        Step("updates wait for deletions", lambda it: it.wait_for_deletions()),
        Step("another template", lambda it: it.roll("2")),
        Step("a user deletes a pod", lambda it: it.delete_pod(1), replaced(1)),
    ],
    "rollouts": [
        Step("created", lambda it: it.create(), created(0, 1, 2)),
        Step("another template", lambda it: it.roll("2"), replaced(2, 1, 0)),
        Step("the first template again", lambda it: it.roll("1"), replaced(2, 1, 0)),
        Step(
            "another template and more replicas",
            lambda it: it.roll("2", replicas=4),
            [*created(3), *replaced(2, 1, 0)],
        ),
        Step(
            "another template and fewer replicas",
            lambda it: it.roll("3", replicas=3),
            [*deleted(3), *replaced(2, 1, 0)],
            [*replaced(2, 1, 0), *deleted(3)],
            BOTH,
        ),
        Step("another image", lambda it: it.roll("3", "app:2"), replaced(2, 1, 0), [], IMAGES),
    ],
    "a broken template": [
        Step("created", lambda it: it.create(), created(0, 1, 2)),
        Step("the broken template", lambda it: it.roll("2", BROKEN), [*deleted(2), "made 2"]),
        Step("a repaired template", lambda it: it.roll("3"), [], replaced(2, 1, 0), MENDS),
        Step(
            "a user deletes the broken pod",
            lambda it: it.delete_pod(2),
            replaced(2, 1, 0),
            catches_up=True,
        ),
    ],
    "broken from the beginning": [
        Step("created", lambda it: it.create(BROKEN), ["made 0"]),
        Step(
            "a repaired template",
            lambda it: it.roll("2"),
            [],
            [*replaced(0), *created(1, 2)],
            MENDS,
        ),
        Step(
            "a user deletes the broken pod",
            lambda it: it.delete_pod(0),
            [*replaced(0), *created(1, 2)],
            catches_up=True,
        ),
    ],
    "scaled down with a broken pod that stays": [
        Step("created", lambda it: it.create(replicas=4), created(0, 1, 2, 3)),
        Step("a pod breaks", lambda it: it.break_pod(1)),
        Step("scaled down", lambda it: it.scale(2), differs=COUNTED),
        Step(
            "a user deletes the broken pod",
            lambda it: it.delete_pod(1),
            [*replaced(1), *deleted(3, 2)],
        ),
    ],
    "scaled down with broken pods that go": [
        Step("created", lambda it: it.create(replicas=4), created(0, 1, 2, 3)),
        Step("a pod breaks", lambda it: it.break_pod(2)),
        Step("another pod breaks", lambda it: it.break_pod(3)),
        Step("scaled down", lambda it: it.scale(1), [], deleted(3, 2, 1), GOING),
        Step(
            "a user deletes the broken pod",
            lambda it: it.delete_pod(3),
            deleted(3, 2, 1),
            catches_up=True,
        ),
    ],
}
ALIKE_IN_THE_END = (IMAGES, BOTH)
"""Differences in the events only; the pods are equal at the end of the step."""
