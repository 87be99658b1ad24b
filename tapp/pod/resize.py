"""Resizes of running containers (`pods/resize`): the changes, their obstacles and their progress.

`wanted_of` compares a pod with its template. It reports a change that the API server would refuse
(ValidatePodResize) as an obstacle: another QoS class, a removed request or limit, resources other
than cpu and memory. `resizing_of` reads from the pod's status whether the kubelet has finished.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from tapp.declared.templates import Template, running
from tapp.kube.objects import Condition, readable_conditions
from tapp.kube.resources import (
    RESIZABLE,
    Sizes,
    canonical_resources,
    not_resizable,
    qos_class,
    removed_sizes,
    sizes_of,
    with_requests,
)
from tapp.pod.pod import Pod, PodSpec
from tapp.words.quoted import quoted

# Reasons of the pod condition PodResizePending.
RESIZE_DEFERRED, RESIZE_INFEASIBLE = "Deferred", "Infeasible"


class Wanted(NamedTuple):
    """The resources that a template sets and its pod does not have yet, and what prevents them."""

    # Container name -> the container's complete `resources`, as sent to the API server.
    resources: Mapping[str, Any] = {}
    # Names of the containers that the kubelet restarts for the resize (`resizePolicy`).
    restarts: tuple[str, ...] = ()
    obstacle: str = ""  # Reason why the change needs a new pod; empty if it does not.
    # True if the memory limit of a container decreases without a restart of the container.
    shrinks: bool = False


def wanted_of(spec: PodSpec, template: Template) -> Wanted:
    """Returns the resources of the template that the pod's containers do not have yet.

    Also says whether the API server would refuse to resize the pod to them. `spec` is the pod's
    spec.
    """
    changes: dict[str, Any] = {}
    restarts, obstacles, shrinks = [], list[str](), False
    for container in running(template.spec):
        name, resources = container["name"], container.get("resources") or {}
        before = spec.resources_of(name)
        # Two texts may stand for the same quantities, such as 500m and 0.5.
        if canonical_resources(before) == canonical_resources(resources):
            continue
        changes[name] = with_requests(resources)
        old, new = sizes_of(before), sizes_of(changes[name])
        changed = {key[1] for key in old.keys() | new.keys() if old.get(key) != new.get(key)}
        restarts_container = not changed.isdisjoint(spec.resize_restarts.get(name, ()))
        restarts += [name] if restarts_container else []
        obstacles += _obstacles(name, spec, (old, new), (before, resources))
        # Kubernetes before 1.34 refuses to decrease a memory limit without a restart.
        limit = "limits", "memory"
        shrinks = shrinks or (not restarts_container and new.get(limit, 0) < old.get(limit, 0))
    if changes and template.spec.get("resources"):
        obstacles.append("the pod has resources of its own in spec.resources")
    elif changes and not obstacles:
        # ValidatePodResize refuses a change of the pod's QoS class.
        now = {name: spec.resources_of(name) for name in spec.images}
        classes = qos_class(now.values()), qos_class({**now, **changes}.values())
        if classes[0] != classes[1]:
            obstacles.append(f"its QoS class would change from {classes[0]} to {classes[1]}")
    return Wanted(changes, tuple(restarts), next(iter(obstacles), ""), shrinks)


def _obstacles(
    name: str, spec: PodSpec, sizes: tuple[Sizes, Sizes], resources: tuple[Any, Any]
) -> list[str]:
    """Returns the reasons why the API server would refuse to resize a container of this pod.

    Args:
        name: the name of the container.
        spec: the pod's spec.
        sizes: the requests and limits before and after the resize, as numbers.
        resources: the `resources` of the container before and after the resize.
    """
    if name not in spec.images:
        return [f"its pod has no container {quoted(name)}"]
    old, new = sizes
    found = [
        f"{kind}.{resource} of container {quoted(name)} cannot be removed by a resize"
        for kind, resource in removed_sizes(old, new)
    ]
    found += [
        f"{resource} of container {quoted(name)} cannot be resized"
        for _, resource in not_resizable(old, new)
    ]
    claims = [item.get("claims") if isinstance(item, dict) else None for item in resources]
    return (
        found
        if claims[0] == claims[1]
        else [
            *found,
            f"resources.claims of container {quoted(name)} changes, which a resize cannot do",
        ]
    )


def obstacle_to_resize(pod: Pod, wanted: Wanted) -> str:
    """Returns why the pod has to be replaced to get the wanted resources, or an empty string.

    `wanted` is the result of `wanted_of` for the pod.
    """
    if wanted.obstacle:
        return wanted.obstacle
    if not pod.given:
        return (
            "the kubelet reports no resources: no container runs, or the kubelet is older than "
            "Kubernetes 1.33"
        )
    if wanted.shrinks and not pod.reports_generation:
        return "a memory limit cannot be decreased in place before Kubernetes 1.34"
    return ""


class Resizing(msgspec.Struct, frozen=True, gc=False):
    """A resize of a pod that the kubelet has not finished, as the pod's status shows it."""

    # The reason why the kubelet has not started: `Deferred` or `Infeasible`; empty if it has.
    pending: str = ""
    message: str = ""  # The kubelet's message about the resize.
    restarts: bool = False  # True if a container restarts for the resize.


def resizing_of(pod: Pod) -> Resizing | None:
    """Returns the unfinished resize of a pod; None if the containers have the spec's resources."""
    spec, restarts, behind = pod.spec, False, False
    for name, text in pod.given.items():
        if text == spec.resources.get(name):
            continue
        wanted, given = spec.resources_of(name), msgspec.json.decode(text)
        if given == (wanted or {}):
            continue
        new, old = sizes_of(wanted), sizes_of(given)
        # The kubelet may report resources that the spec does not set; those are ignored.
        keys = [key for key in new if key[1] in RESIZABLE and new[key] != old.get(key)]
        if keys:
            behind = True
            policy = spec.resize_restarts.get(name, ())
            restarts = restarts or any(key[1] in policy for key in keys)
    conditions = {item.type: item for item in readable_conditions(pod.conditions_text)}
    pending, running = (_reason_and_message(conditions.get(f"PodResize{kind}")) for kind in _KINDS)
    if pending is None and running is None and not behind:
        return None
    message = (pending or running or ("", ""))[1]
    return Resizing(pending[0] if pending else "", message, restarts)


# Endings of the condition types PodResizePending and PodResizeInProgress.
_KINDS = ("Pending", "InProgress")


def _reason_and_message(condition: Condition | None) -> tuple[str, str] | None:
    """Returns reason and message of a condition; None if the condition is missing or not True."""
    if condition is None or condition.status != "True":
        return None
    return condition.reason or "", condition.message or ""
