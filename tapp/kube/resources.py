"""Resources of containers and pods: comparison, defaults, QoS classes and limits of a resize."""

from collections.abc import Callable, Iterable
from typing import Any

from tapp.kube.canonical import comparable, nano, quantity
from tapp.kube.parts import map_in

# The resources that `pods/resize` may change.
RESIZABLE = ("cpu", "memory")
# (`limits` or `requests`, resource) -> amount in billionths; -1 if the amount is no quantity.
Sizes = dict[tuple[str, str], int]


def canonical_resources(resources: Any) -> Any:
    """Returns a container's `resources` in a canonical form, which is the same for equal resources.

    A request that is missing is set to the limit (core/v1, SetDefaults_Pod), because the API server
    does so in the pod and not in the template. Returns {} if the container has no resources.
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

    Returns `spec` itself if the pod has no resources of its own. Limits of huge pages are those of
    the containers. Requests are those of the containers, or else the pod's limits (core/v1,
    defaultHugePagePodLimits and defaultPodRequests).
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

    Requests are those of the containers, also if the pod has no limits. If all containers have a
    limit of a resource, the pod's limit is their sum, and at least the pod's request
    (DefaultPodLevelResources). Specs that are equal after `with_pod_resources` are also equal after
    this.
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
    """Returns -1, 0 or 1 if the first quantity is smaller than, equal to or larger than the second.

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
    """Returns a quantity in billionths; 0 if it is invalid."""
    return nano(str(amount)) or 0


def _part(holder: Any, kind: str) -> dict[str, Any]:
    """Returns the requests or limits (`kind`) of a container or pod spec.

    `holder` is the container or pod spec. Returns an empty map if it has none.
    """
    return map_in(holder.get("resources"), kind)


def _is_of_pods(name: str) -> bool:
    """Returns True if a pod can have this resource for all of its containers together."""
    return name in _QOS_RESOURCES or name.startswith(_HUGE)


def _of_containers(
    spec: dict[str, Any], kind: str, is_meant: Callable[[str], bool]
) -> dict[str, str | float]:
    """Returns the sum of the containers' resources, as the scheduler computes it.

    Init containers run one after another before the main containers; a sidecar runs in parallel to
    everything that follows it (component-helpers/resource, AggregateContainerRequests and -Limits).

    Args:
        spec: the pod spec.
        kind: `limits` or `requests`.
        is_meant: returns True for the names of the resources to sum up.
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
    """Returns the sums of two maps of amounts, key by key."""
    return {name: one.get(name, 0) + other.get(name, 0) for name in one | other}


def removed_sizes(old: Sizes, new: Sizes) -> list[tuple[str, str]]:
    """Returns the requests and limits that a change would remove, sorted.

    A resize cannot remove them (ValidatePodResize). `old` and `new` are the requests and limits of
    a container before and after the change.
    """
    return sorted(old.keys() - new.keys())


def not_resizable(old: Sizes, new: Sizes) -> list[tuple[str, str]]:
    """Returns the requests and limits that would change although a resize cannot change them.

    `old` and `new` are the requests and limits of a container before and after the change.
    """
    return [key for key in sorted(new) if key[1] not in RESIZABLE and old.get(key) != new[key]]


def requests_beyond_limits(sizes: Sizes) -> list[str]:
    """Returns the resources whose request is larger than their limit.

    The API server refuses a pod with such a resource.
    """
    return [
        name
        for (kind, name), size in sorted(sizes.items())
        if kind == "requests" and size > sizes.get(("limits", name), size)
    ]


def sizes_of(resources: Any) -> Sizes:
    """Returns the amounts of all requests and limits in a container's `resources`.

    The amounts are in billionths; -1 stands for an invalid quantity.
    """
    found: Sizes = {}
    for kind in ("limits", "requests"):
        for name, value in _part({"resources": resources}, kind).items():
            size = nano(str(value))
            found[kind, name] = -1 if size is None else size
    return found


def qos_class(containers: Iterable[Any]) -> str:
    """Returns the QoS class of a pod (GetPodQOS); `containers` has the `resources` of each
    container.
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
    """Returns the QoS class of a pod spec; the pod's own resources decide if it has any.

    Before Kubernetes 1.37 empty pod-level resources decided, too.
    """
    if any(_is_of_pods(name) for kind in ("limits", "requests") for name in _part(spec, kind)):
        return qos_class([spec["resources"]])
    both = [*(spec.get("containers") or []), *(spec.get("initContainers") or [])]
    return qos_class([container.get("resources") for container in both])


_QOS_RESOURCES = ("cpu", "memory")
_HUGE = "hugepages-"
