"""Resources of containers and pods: comparison, defaults, QoS classes, and limits of resizes."""

from collections.abc import Callable, Iterable
from typing import Any

from tapp.kube.canonical import comparable, nano, quantity
from tapp.kube.parts import map_in

# The resources that `pods/resize` may change.
RESIZABLE = ("cpu", "memory")
# The requests and limits of a container: (`limits` or `requests`, name of the resource) -> amount
# in billionths of a core or byte. The amount is -1 if the text is no quantity.
Sizes = dict[tuple[str, str], int]


def canonical_resources(resources: Any) -> Any:
    """Returns a container's `resources` in a canonical form, which is equal for equal resources.

    A missing request is set to the limit, because the API server does that in the pod, and not in
    the template (core/v1, SetDefaults_Pod). Returns {} if the container has no resources.
    """
    found = comparable({"resources": resources}).get("resources") or {}
    return with_requests(found)


def with_requests(resources: Any) -> Any:
    """Returns a container's `resources` with each missing request set to its limit."""
    limits = resources.get("limits") if isinstance(resources, dict) else None
    if not isinstance(limits, dict):
        return resources
    requests = resources.get("requests")
    return {**resources, "requests": {**limits, **(requests if isinstance(requests, dict) else {})}}


def rounded(amount: Any) -> Any:
    """Returns a quantity rounded up to thousandths (core/v1, SetDefaults_ResourceList)."""
    billionths = nano(str(amount)) if isinstance(amount, str | int | float) else None
    if not billionths or billionths % 10**6 == 0:
        return amount
    return quantity(f"{-(-billionths // 10**6)}m")


def with_pod_resources(spec: dict[str, Any]) -> dict[str, Any]:
    """Returns a pod spec whose pod-level `resources` have Kubernetes' defaults.

    Returns `spec` itself if the pod has no pod-level resources. The defaults are (core/v1,
    defaultHugePagePodLimits and defaultPodRequests):

    - Limits of huge pages are the sums of the containers' limits.
    - Requests are the sums of the containers' requests. If no container requests a resource, the
      request is the pod's limit.
    """
    resources = spec.get("resources")
    if not isinstance(resources, dict):
        return spec
    limits, requests = (dict(_part(spec, kind)) for kind in ("limits", "requests"))
    if limits or requests:
        found = _of_containers(spec, "limits", lambda name: name.startswith(_HUGE))
        limits = {**{name: size for name, size in found.items() if name not in requests}, **limits}
    if limits:
        found = _of_containers(spec, "requests", lambda name: name in _QOS_RESOURCES)
        whole = {name: size for name, size in limits.items() if _is_of_pods(name)}
        requests = {**whole, **found, **requests}
    parts = {"limits": limits, "requests": requests}
    return {
        **spec,
        "resources": {**resources, **{kind: part for kind, part in parts.items() if part}},
    }


def with_pod_limits(spec: dict[str, Any]) -> dict[str, Any]:
    """Returns a stored pod spec with the pod-level defaults of Kubernetes 1.37 and newer.

    The defaults are (DefaultPodLevelResources):

    - Requests are the sums of the containers' requests, even if the pod has no limits.
    - If all containers have a limit of a resource, the pod's limit is the sum of these limits. It
      is at least the pod's request.

    Two specs that are equal after `with_pod_resources` are also equal after this function.
    """
    limits, requests = _part(spec, "limits"), _part(spec, "requests")
    if not limits and not requests:
        return spec
    requests = {**_of_containers(spec, "requests", lambda name: name in _QOS_RESOURCES), **requests}
    both = [*(spec.get("containers") or []), *(spec.get("initContainers") or [])]
    whole = _of_containers(
        spec, "limits", lambda name: all(name in _part(one, "limits") for one in both)
    )
    least = {
        name: max(size, requests[name], key=_size)
        for name, size in whole.items()
        if name in requests and _is_of_pods(name)
    }
    parts = {"limits": {**least, **limits}, "requests": requests}
    kept = {kind: part for kind, part in parts.items() if part}
    return {**spec, "resources": {**spec["resources"], **kept}}


def compare(left: Any, right: Any) -> int:
    """Compares two quantities: returns -1 if `left` is smaller, 0 if they are equal, 1 if it is
    larger.

    An invalid quantity counts as 0.
    """
    first, second = _size(left), _size(right)
    return (first > second) - (first < second)


def is_amount(value: Any) -> bool:
    """Returns True if the API server accepts a value as a quantity."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return False
    return nano(str(value).strip()) is not None


def _size(amount: Any) -> int:
    """Returns a quantity in billionths of its unit; 0 if it is invalid."""
    return nano(str(amount)) or 0


def _part(holder: Any, kind: str) -> dict[str, Any]:
    """Returns the requests or the limits of a container or pod spec.

    Returns an empty map if there are none.

    Args:
        holder: the container or pod spec.
        kind: `requests` or `limits`.
    """
    return map_in(holder.get("resources"), kind)


def _is_of_pods(name: str) -> bool:
    """Returns True if a pod may have this resource at pod level, for all containers together."""
    return name in _QOS_RESOURCES or name.startswith(_HUGE)


def _of_containers(
    spec: dict[str, Any], kind: str, is_meant: Callable[[str], bool]
) -> dict[str, str | float]:
    """Returns the sums of the containers' requests or limits, as the scheduler computes them.

    Init containers run one after another, before the main containers. A sidecar runs in parallel to
    all containers that follow it (component-helpers/resource, AggregateContainerRequests and
    AggregateContainerLimits).

    Args:
        spec: the pod spec.
        kind: `limits` or `requests`.
        is_meant: returns True if the resource of this name is to be summed up.
    """
    total: dict[str, int] = {}
    most: dict[str, int] = {}
    sidecars: dict[str, int] = {}
    binary = set[str]()

    def sizes(container: Any) -> dict[str, int]:
        meant = {name: size for name, size in _part(container, kind).items() if is_meant(name)}
        binary.update(name for name, size in meant.items() if str(size).endswith("i"))
        return {name: nano(str(size)) or 0 for name, size in meant.items()}

    for container in spec.get("containers") or []:
        total = _added(total, sizes(container))
    for container in spec.get("initContainers") or []:
        own = sizes(container)
        if container.get("restartPolicy") == "Always":
            total, sidecars = _added(total, own), _added(sidecars, own)
            own = sidecars
        else:
            own = _added(own, sidecars)
        most = {name: max(most.get(name, 0), own.get(name, 0)) for name in most | own}
    found = {name: max(total.get(name, 0), most.get(name, 0)) for name in total | most}
    return {
        name: quantity(f"{size // 10**9 // 1024}Ki")
        if name in binary and size % (1024 * 10**9) == 0
        else quantity(f"{size}n")
        for name, size in found.items()
    }


def _added(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    """Returns key -> sum of the amounts that two maps have at this key."""
    return {name: one.get(name, 0) + other.get(name, 0) for name in one | other}


def removed_sizes(old: Sizes, new: Sizes) -> list[tuple[str, str]]:
    """Returns the requests and limits that the new resources of a container lack, sorted.

    A resize cannot remove a request or limit (ValidatePodResize).

    Args:
        old: the requests and limits of the container before the change.
        new: its requests and limits after the change.
    """
    return sorted(old.keys() - new.keys())


def not_resizable(old: Sizes, new: Sizes) -> list[tuple[str, str]]:
    """Returns the changed requests and limits that a resize cannot change.

    Args:
        old: the requests and limits of a container before the change.
        new: its requests and limits after the change.
    """
    return [key for key in sorted(new) if key[1] not in RESIZABLE and old.get(key) != new[key]]


def requests_beyond_limits(sizes: Sizes) -> list[str]:
    """Returns the resources whose request is larger than their limit.

    The API server refuses a container with such a request. `sizes` are the requests and limits of
    the container.
    """
    return [
        name
        for (kind, name), size in sorted(sizes.items())
        if kind == "requests" and size > sizes.get(("limits", name), size)
    ]


def sizes_of(resources: Any) -> Sizes:
    """Returns the amounts of all requests and limits in a container's `resources`."""
    found: Sizes = {}
    for kind in ("limits", "requests"):
        for name, value in _part({"resources": resources}, kind).items():
            size = nano(str(value))
            found[kind, name] = -1 if size is None else size
    return found


def qos_class(containers: Iterable[Any]) -> str:
    """Returns the QoS class of a pod (GetPodQOS).

    `containers` has the field `resources` of each container.
    """
    whole: Sizes = {}
    guaranteed = True
    for resources in containers:
        sizes = {k: v for k, v in sizes_of(resources).items() if k[1] in _QOS_RESOURCES and v > 0}
        guaranteed = guaranteed and all(("limits", name) in sizes for name in _QOS_RESOURCES)
        for key, size in sizes.items():
            whole[key] = whole.get(key, 0) + size
    if not whole:
        return "BestEffort"
    same = all(whole.get(("limits", n)) == whole.get(("requests", n)) for n in _QOS_RESOURCES)
    return "Guaranteed" if guaranteed and same else "Burstable"


def pod_qos_class(spec: dict[str, Any]) -> str:
    """Returns the QoS class of a pod spec.

    If the spec has pod-level requests or limits, they determine the class. If it has none, those of
    the containers do. Before Kubernetes 1.37, an empty pod-level `resources` also took precedence.
    """
    if any(_is_of_pods(name) for kind in ("limits", "requests") for name in _part(spec, kind)):
        return qos_class([spec["resources"]])
    both = [*(spec.get("containers") or []), *(spec.get("initContainers") or [])]
    return qos_class([container.get("resources") for container in both])


_QOS_RESOURCES = ("cpu", "memory")
_HUGE = "hugepages-"
