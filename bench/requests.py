"""Realistic hook requests of any size: seeded, generated on the spot, nothing stored.

A `Sample` is one TApp of N instances; another seed gives the same TApp with other pods. The pods
are made of the hook's own answers, so that the situations are what they are called.
"""

import random
from functools import cache, cached_property
from typing import Any

import msgspec
from flask import Flask
from msgspec import Raw

from bench.fields import managed_fields
from bench.parent import NAME, NAMESPACE, NEW, OLD, UID, Document, tapp
from bench.pods import go, restarting, rolled, running
from hooks.app import create_app
from hooks.service.settings import Settings

NOTHING, AFTER_ROLL, ROLL, CREATE, FINALIZE = SITUATIONS = (
    "nothing to do",
    "nothing to do after a roll",
    "middle of a roll",
    "create all",
    "finalize",
)


class Sample:
    """One TApp of `n` instances and its pods, in every situation."""

    def __init__(self, n: int, seed: int) -> None:
        """The seed decides on nodes, addresses, times and ids of the pods."""
        self.n = n
        self._rng = random.Random(seed)  # noqa: S311 - sample data
        self._old, self._new = tapp(n, OLD), tapp(n, NEW)

    def request(self, situation: str) -> tuple[str, bytes]:
        """(Endpoint, request) of a situation."""
        old, new = self._settled(self._old, self._old_pods), self._new
        match situation:
            case "nothing to do":
                return "/sync", body_of(old, self._old_pods, self._claims)
            case "nothing to do after a roll":
                return "/sync", body_of(
                    self._settled(new, self._rolled_pods), self._rolled_pods, self._claims
                )
            case "middle of a roll":
                parent = {**new, "status": old["status"]}
                return "/sync", body_of(parent, self._middle, self._claims)
            case "create all":
                return "/sync", body_of(new, [], [])
            case "finalize":
                return "/finalize", body_of(old, self._old_pods, self._claims, end=True)
        raise ValueError(situation)

    @cached_property
    def _claims(self) -> list[Raw]:
        return [Raw(go(claim_of(index))) for index in range(max(1, self.n // 10))]

    @cached_property
    def _old_pods(self) -> list[Raw]:
        return [Raw(go(running(child, self._rng, OLD))) for child in desired(self._old)]

    @cached_property
    def _rolled_pods(self) -> list[Raw]:
        pods = [running(child, self._rng, NEW) for child in desired(self._new)]
        return [Raw(go(rolled(pod, self._rng))) for pod in pods]

    @property
    def _middle(self) -> list[Raw]:
        """Half of the pods have been rolled, a twentieth restarts, the rest waits."""
        half, some = self.n // 2, self.n // 2 + self.n // 20
        again = [
            Raw(go(restarting(msgspec.json.decode(pod)))) for pod in self._rolled_pods[half:some]
        ]
        return self._rolled_pods[:half] + again + self._old_pods[some:]

    def _settled(self, parent: Document, pods: list[Raw]) -> Document:
        """The parent with the status that the hook itself writes for these pods.

        Twice, because the first one says when its conditions changed.
        """
        for _ in range(2):
            status = _answer(parent, pods, self._claims)["status"]
            # Metacontroller's addition:
            status["observedGeneration"] = parent["metadata"]["generation"]
            parent = {**parent, "status": status}
        return parent


def body_of(parent: Document, pods: list[Raw], claims: list[Raw], *, end: bool = False) -> bytes:
    """The request's bytes, as Metacontroller sends them (protocol v2)."""
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": NAMESPACE, "uid": "0d9a1c33-7f5e-4c2f-9a53-52b1a30b4c11"},
    }
    fields = {
        "controller": {"apiVersion": "metacontroller.k8s.io/v1alpha1", "spec": {}},
        "parent": parent,
        "children": {
            "Pod.v1": _keyed(f"{NAMESPACE}/{NAME}-", pods),
            "PersistentVolumeClaim.v1": _keyed(f"{NAMESPACE}/data-{NAME}-", claims),
        },
        "related": {"Namespace.v1": {NAMESPACE: namespace}},
        "finalizing": end,
    }
    # Metacontroller's own fields come in this order, everything below sorted by key.
    return b"{" + b",".join(b'"%s":' % key.encode() + go(fields[key]) for key in fields) + b"}"


def _keyed(prefix: str, objects: list[Raw]) -> dict[str, Raw]:
    return {f"{prefix}{index}": item for index, item in enumerate(objects)}


def desired(parent: Document) -> list[Document]:
    """The pods in the hook's own answer to an empty world."""
    return [child for child in _answer(parent, [], [])["children"] if child["kind"] == "Pod"]


def _answer(parent: Document, pods: list[Raw], claims: list[Raw]) -> Any:
    client = _app().test_client()
    body = body_of(parent, pods, claims)
    answer = client.post("/sync", data=body, content_type="application/json")
    if answer.status_code != 200:  # noqa: PLR2004 - an HTTP status code
        raise SystemExit(f"/sync answered {answer.status}: {answer.data[:200]!r}")
    return msgspec.json.decode(answer.data)


@cache
def _app() -> Flask:
    return create_app(Settings(log_level="ERROR"))


def claim_of(index: int) -> Document:
    """The claim of an instance, bound."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": f"data-{NAME}-{index}",
            "namespace": NAMESPACE,
            "labels": {"controller-uid": UID, "tapp_instance_key": str(index)},
            "uid": f"{index:08x}-0000-4000-9000-000000000000",
            "managedFields": managed_fields({"spec": {"accessModes": [], "resources": {}}}),
        },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "standard",
            "resources": {"requests": {"storage": "10Gi"}},
            "volumeName": f"pv-{index}",
        },
        "status": {"phase": "Bound", "capacity": {"storage": "10Gi"}},
    }
