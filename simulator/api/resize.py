"""A pod's subresource `resize`: other resources for containers that run, and nothing else.

Sources: Kubernetes' registry/core/pod/strategy.go (podResizeStrategy), ValidatePodResize.
"""

from simulator.api.defaults import CONTAINER_LISTS, containers_of
from simulator.api.validation import check_amounts, refuse
from simulator.objects.objects import Object
from tapp.kube.resources import quality_of as quality
from tapp.kube.stored import stored_spec

_RESIZABLE = ("cpu", "memory")


def resized(old: Object, asked: Object) -> Object:
    """Return the pod with the resources that are asked for; whatever else is asked is dropped.

    Raises:
        InvalidError: they are not of the kind that may change.
    """
    wanted = {one["name"]: one.get("resources", {}) for _, _, one in containers_of(asked["spec"])}
    spec = dict(old["spec"])
    for field in CONTAINER_LISTS:
        if field in spec:
            spec[field] = [
                {**one, "resources": wanted.get(one["name"], one["resources"])}
                if field == "containers" or one.get("restartPolicy") == "Always"
                else one
                for one in spec[field]
            ]
    new = {**old, "spec": stored_spec(spec)}
    _check(new, old)
    return new


def _check(new: Object, old: Object) -> None:
    for field, index, container in containers_of(new["spec"]):
        check_amounts(new, f"spec.{field}[{index}]", container)
    if quality(new["spec"]) != quality(old["spec"]):
        reason = "Pod QOS Class may not change as a result of resizing"
        raise refuse(new, "spec", f"Forbidden: {reason}")
    pairs = zip(containers_of(new["spec"]), containers_of(old["spec"]), strict=True)
    for (field, index, after), (_, _, before) in pairs:
        path = f"spec.{field}[{index}].resources"
        for kind in ("limits", "requests"):
            was, asked = (one["resources"].get(kind) or {} for one in (before, after))
            if was.keys() - asked.keys():
                reason = f"Forbidden: resource {kind} cannot be removed"
                raise refuse(new, f"{path}.{kind}", reason)
        if _rest(after["resources"]) != _rest(before["resources"]):
            raise refuse(new, path, "Forbidden: only cpu and memory resources are mutable")


def _rest(resources: Object) -> Object:
    """Return what is neither cpu nor memory."""
    kinds = {kind: resources.get(kind) or {} for kind in ("limits", "requests")}
    sizes = {
        (kind, name): size
        for kind, found in kinds.items()
        for name, size in found.items()
        if name not in _RESIZABLE
    }
    return {"sizes": sizes, "claims": resources.get("claims")}
