"""A pod's subresource `resize`: other resources for containers that run, and nothing else.

Sources: Kubernetes' registry/core/pod/strategy.go (podResizeStrategy), ValidatePodResize.
"""

from simulator.api.defaults import CONTAINER_LISTS, containers_of
from simulator.api.validation import check_amounts, refuse
from simulator.objects.objects import Object
from tapp.kube.resources import fixed, sizes_of, taken_away
from tapp.kube.resources import quality_of as quality
from tapp.kube.stored import stored_spec


def resized(old: Object, asked: Object) -> Object:
    """Return the pod with the resources that are asked for; whatever else is asked is dropped.

    Raises InvalidError: they are not of the kind that may change.
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
        was, asked = sizes_of(before["resources"]), sizes_of(after["resources"])
        for kind, _ in taken_away(was, asked):
            reason = f"Forbidden: resource {kind} cannot be removed"
            raise refuse(new, f"{path}.{kind}", reason)
        claims = [one["resources"].get("claims") for one in (before, after)]
        if fixed(was, asked) or claims[0] != claims[1]:
            raise refuse(new, path, "Forbidden: only cpu and memory resources are mutable")
