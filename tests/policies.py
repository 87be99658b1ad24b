"""Admission policies that a test can add to a simulated cluster (`simulator.world.World`).

A policy receives an object at its creation or update, and returns the object that is stored.
"""

from __future__ import annotations

from collections.abc import Callable

from simulator.api.admission import Operation, Policy
from simulator.api.apply import LAST_APPLIED
from simulator.objects.objects import Object, annotations_of, with_meta


def strip_last_applied(operation: Operation, obj: Object) -> Object:
    """Removes Metacontroller's annotation last-applied from each new object, as a mutating
    admission policy.
    """
    if operation == "UPDATE" or LAST_APPLIED not in annotations_of(obj):
        return obj
    rest = {key: value for key, value in annotations_of(obj).items() if key != LAST_APPLIED}
    return with_meta(obj, annotations=rest or None)


def inject_sidecar(container: Object, *, first: bool = True) -> Policy:
    """Returns a policy that adds `container` to every new pod, as the first container or as the
    last.
    """

    def policy(operation: Operation, obj: Object) -> Object:
        if operation == "UPDATE" or obj["kind"] != "Pod":
            return obj
        others = obj["spec"].get("containers") or []
        containers = [container, *others] if first else [*others, container]
        return {**obj, "spec": {**obj["spec"], "containers": containers}}

    return policy


def rewrite_images(rewrite: Callable[[str], str]) -> Policy:
    """Returns a policy that replaces every image of a pod by `rewrite(image)` at each creation and
    update.
    """

    def policy(_operation: Operation, obj: Object) -> Object:
        if obj["kind"] != "Pod":
            return obj
        spec = dict(obj["spec"])
        for field in ("initContainers", "containers"):
            if field in spec:
                spec[field] = [{**c, "image": rewrite(c["image"])} for c in spec[field]]
        return {**obj, "spec": spec}

    return policy
