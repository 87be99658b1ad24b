"""Other resources for containers that run (pods/resize): what is to change, and how far it is.

What the API server refuses is known beforehand (ValidatePodResize): another QoS class, something
taken away, anything but cpu and memory. What a kubelet makes of it, it says in the pod's status.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from tapp.declared.templates import Template, running
from tapp.kube.objects import Condition, readable_conditions
from tapp.kube.resources import (
    RESIZABLE,
    Sizes,
    asked_for,
    beyond_limits,
    fixed,
    quality,
    sizes_of,
    taken_away,
    with_requests,
)
from tapp.pod.pod import Pod, PodSpec
from tapp.words.quoted import quoted

DEFERRED, INFEASIBLE = "Deferred", "Infeasible"  # Reasons of a pod's condition `PodResizePending`


class Wanted(NamedTuple):
    """Resources that a pod's containers are to have and have not."""

    resources: Mapping[str, Any] = {}  # container -> its resources, whole, as they are taken
    restarts: tuple[str, ...] = ()  # containers that are started again for it (`resizePolicy`)
    obstacle: str = ""  # why that needs a new pod, or ""
    wrong: str = ""  # why no pod can have it at all, or ""
    shrinks: bool = False  # whether the memory limit of a container falls that is not started again


def wanted_of(spec: PodSpec, template: Template) -> Wanted:
    """Resources that a pod lacks of its template."""
    changes: dict[str, Any] = {}
    restarts, obstacles, wrong, shrinks = [], list[str](), list[str](), False
    for container in running(template.spec):
        name, resources = container["name"], container.get("resources") or {}
        before = spec.resources_of(name)
        if asked_for(before) == asked_for(resources):
            continue
        changes[name] = with_requests(resources)
        old, new = sizes_of(before), sizes_of(changes[name])
        changed = {key[1] for key in old.keys() | new.keys() if old.get(key) != new.get(key)}
        again = not changed.isdisjoint(spec.resize_restarts.get(name, ()))
        restarts += [name] if again else []
        obstacles += _obstacles(name, spec, (old, new), (before, resources))
        wrong += _wrong(name, new)
        limit = "limits", "memory"
        shrinks = shrinks or (not again and new.get(limit, 0) < old.get(limit, 0))
    if changes and template.spec.get("resources"):
        obstacles.append("resources of the pod as a whole stand beside them")
    elif changes and not obstacles:
        now = {name: spec.resources_of(name) for name in spec.images}
        classes = quality(now.values()), quality({**now, **changes}.values())
        if classes[0] != classes[1]:
            obstacles.append(f"its QoS class would be {classes[1]}, and is {classes[0]}")
    first, refused = (next(iter(found), "") for found in (obstacles, wrong))
    return Wanted(changes, tuple(restarts), first, refused, shrinks)


def _obstacles(
    name: str, spec: PodSpec, sizes: tuple[Sizes, Sizes], resources: tuple[Any, Any]
) -> list[str]:
    if name not in spec.images:
        return [f"its pod has no container {quoted(name)}"]
    old, new = sizes
    found = [
        f"{kind}.{resource} of container {quoted(name)} cannot be taken away"
        for kind, resource in taken_away(old, new)
    ]
    found += [
        f"{resource} of container {quoted(name)} cannot be resized"
        for _, resource in fixed(old, new)
    ]
    claims = [item.get("claims") if isinstance(item, dict) else None for item in resources]
    return (
        found
        if claims[0] == claims[1]
        else [*found, f"the claims of container {quoted(name)} differ"]
    )


def _wrong(name: str, sizes: Sizes) -> list[str]:
    """Resources that the API server takes from nobody."""
    found = [
        f"{kind}.{resource} of container {quoted(name)} is no quantity that Kubernetes takes"
        for (kind, resource), value in sorted(sizes.items())
        if value < 0
    ]
    return found + [
        f"container {quoted(name)} requests more {resource} than its limit"
        for resource in beyond_limits(sizes)
    ]


def obstacle_to_resize(pod: Pod, wanted: Wanted) -> str:
    """The reason why a pod needs a successor to have what is wanted; "" if it does not."""
    if wanted.obstacle:
        return wanted.obstacle
    if not pod.given:
        return "its kubelet tells no resources: nothing runs, or it is older than Kubernetes 1.33"
    if wanted.shrinks and not pod.tells_generation:
        return "a memory limit cannot fall before Kubernetes 1.34"
    return ""


class Resizing(msgspec.Struct, frozen=True, gc=False):
    """A pod whose kubelet has yet to give its containers the resources of its spec."""

    pending: str = ""  # why it has not begun: `Deferred`, `Infeasible`; "" if that is not the case
    message: str = ""  # what the kubelet says of it
    restarts: bool = False  # whether a container is started again for it


def resizing_of(pod: Pod) -> Resizing | None:
    """Progress of a kubelet with the resources of a pod's spec; None if it is done."""
    spec, restarts, behind = pod.spec, False, False
    for name, text in pod.given.items():
        if text == spec.resources.get(name):
            continue
        wanted, given = spec.resources_of(name), msgspec.json.decode(text)
        if given == (wanted or {}):
            continue
        new, old = sizes_of(wanted), sizes_of(given)
        keys = [key for key in new if key[1] in RESIZABLE and new[key] != old.get(key)]
        if keys:
            behind = True
            policy = spec.resize_restarts.get(name, ())
            restarts = restarts or any(key[1] in policy for key in keys)
    conditions = {item.type: item for item in readable_conditions(pod.conditions_text)}
    pending, running = (_standing(conditions.get(f"PodResize{kind}")) for kind in _KINDS)
    if pending is None and running is None and not behind:
        return None
    message = (pending or running or ("", ""))[1]
    return Resizing(pending[0] if pending else "", message, restarts)


_KINDS = ("Pending", "InProgress")


def _standing(condition: Condition | None) -> tuple[str, str] | None:
    if condition is None or condition.status != "True":
        return None
    return condition.reason or "", condition.message or ""
