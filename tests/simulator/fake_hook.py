"""Provides a hook for the simulator's own tests, and objects to use with it.

The parent is a Group, a custom resource with `spec.replicas` and `spec.image`. `FakeHook` responds
with that number of pods. `make_world` builds a world with the hook.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from simulator.metacontroller.faulty_hook import FaultyHook
from simulator.metacontroller.hook_client import WsgiHook
from simulator.objects.objects import Object, finalizers_of, is_terminating
from simulator.world import World

Handler = Callable[[Object], Object]


def controller(method: str = "InPlace", *, finalize: bool = True, **spec: Any) -> Object:
    """Returns a CompositeController for Groups.

    Its children are pods, which Metacontroller updates by `method`, and claims, which it never
    updates. `spec` has further fields of its spec. If `finalize` is False, it has no finalize hook.
    """
    names = ["sync", "customize", *(["finalize"] if finalize else [])]
    return {
        "apiVersion": "metacontroller.k8s.io/v1alpha1",
        "kind": "CompositeController",
        "metadata": {"name": "groups"},
        "spec": {
            "generateSelector": True,
            "resyncPeriodSeconds": 300,
            "parentResource": {
                "apiVersion": "test.example/v1",
                "resource": "groups",
                "ignoreStatusChanges": True,
            },
            "childResources": [
                {"apiVersion": "v1", "resource": "pods", "updateStrategy": {"method": method}},
                {"apiVersion": "v1", "resource": "persistentvolumeclaims"},
            ],
            "hooks": {
                name: {"version": "v2", "webhook": {"url": f"http://hook/{name}"}} for name in names
            },
            **spec,
        },
    }


def decorator(**spec: Any) -> Object:
    """Returns a DecoratorController for pods with the label `decorated`; `spec` has further fields
    of its spec.
    """
    webhook = {"url": "http://hook/decorate", "timeout": "10s"}
    selector = {"matchLabels": {"decorated": "true"}}
    return {
        "apiVersion": "metacontroller.k8s.io/v1alpha1",
        "kind": "DecoratorController",
        "metadata": {"name": "marks"},
        "spec": {
            "resources": [{"apiVersion": "v1", "resource": "pods", "labelSelector": selector}],
            "resyncPeriodSeconds": 300,
            "hooks": {"sync": {"version": "v2", "webhook": webhook}},
            **spec,
        },
    }


def group(replicas: int = 2, image: str = "web:1", name: str = "g", **spec: Any) -> Object:
    """Returns a Group, which asks for `replicas` pods that run `image`."""
    return {
        "apiVersion": "test.example/v1",
        "kind": "Group",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "image": image, **spec},
    }


def pod(name: str, image: str = "web:1", **spec: Any) -> Object:
    """Returns a pod as a user writes it; `spec` has further fields of its spec."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "main", "image": image}], **spec},
    }


def claim(name: str) -> Object:
    """Returns a claim of 1Gi as a user writes it."""
    resources = {"requests": {"storage": "1Gi"}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": resources},
    }


class FakeHook:
    """Responds as the hooks of both controllers, as a WSGI application; a test may replace each of
    its functions.

    Attributes:
        sync: returns the response to a sync request.
        finalize: returns the response to a finalize request.
        decorate: returns the response to a request of a DecoratorController.
        rules: the related resources in the response of the customize hook.
    """

    def __init__(self) -> None:
        self.sync: Handler = desired
        self.finalize: Handler = torn_down
        self.decorate: Handler = lambda _request: {}
        self.rules: list[Object] = []

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        request = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
        start("200 OK", [("Content-Type", "application/json")])
        match environ["PATH_INFO"]:
            case "/sync":
                answer = self.sync(request)
            case "/finalize":
                answer = self.finalize(request)
            case "/decorate":
                answer = self.decorate(request)
            case _:
                answer = {"relatedResources": self.rules}
        return [json.dumps(answer).encode()]


def desired(request: Object) -> Object:
    """Returns the response to a sync: the pods that the Group asks for, and the number of observed
    pods as status.
    """
    parent = request["parent"]
    spec, name = parent["spec"], parent["metadata"]["name"]
    children = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"{name}-{number}"},
            "spec": {"containers": [{"name": "main", "image": spec["image"]}]},
        }
        for number in range(spec["replicas"])
    ]
    return {"status": {"pods": len(request["children"]["Pod.v1"])}, "children": children}


def torn_down(request: Object) -> Object:
    """Returns the response to a finalize call, which keeps no children.

    The parent is finalized if no child is left, or if the garbage collector deletes or orphans the
    children.
    """
    collected = {"orphan", "foregroundDeletion"} & set(finalizers_of(request["parent"]))
    left = any(request["children"].values())
    return {"status": {}, "children": [], "finalized": bool(collected) or not left}


def make_world(
    hook: FakeHook | None = None, manifest: Object | None = None, **options: Any
) -> World:
    """Returns a world with this hook and CompositeController; None for new ones.

    `options` are further arguments of `World`.
    """
    faulty = FaultyHook(WsgiHook(hook or FakeHook()))
    return World(manifest or controller(), faulty, **options)


def writes(world: World) -> list[str]:
    """Returns Metacontroller's writes to children as `VERB NAME`."""
    return [f"{write.verb} {write.name}" for write in world.writes if write.kind != "Group"]


def is_ready(pod: Object) -> bool:
    """Returns True if the pod is Ready and not in deletion."""
    known = {c["type"]: c["status"] for c in pod["status"].get("conditions", [])}
    return known.get("Ready") == "True" and not is_terminating(pod)
