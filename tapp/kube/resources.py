"""Resources that a container asks for, as far as two spellings of it mean the same."""

from collections.abc import Callable, Iterable
from typing import Any

from tapp.kube.canonical import comparable, nano, quantity
from tapp.kube.parts import map_in

RESIZABLE = ("cpu", "memory")  # The resources that a container may be given others of while it runs
Sizes = dict[tuple[str, str], int]  # `limits` or `requests`, resource -> billionths; -1: no size


def asked_for(resources: Any) -> Any:
    """A container's `resources` in the one form of all that mean the same; {} for none.

    What has a limit and no request asks for the limit (core/v1, SetDefaults_Pod), so a pod has
    requests that its template need not name.
    """
    found = comparable({"resources": resources}).get("resources") or {}
    return with_requests(found)


def with_requests(resources: Any) -> Any:
    """A container's `resources` with the requests that its limits stand for."""
    limits = resources.get("limits") if isinstance(resources, dict) else None
    if not isinstance(limits, dict):
        return resources
    requests = resources.get("requests")
    return {**resources, "requests": {**limits, **(requests if isinstance(requests, dict) else {})}}


def rounded(amount: Any) -> Any:
    """An amount of a resource in whole thousandths, up (SetDefaults_ResourceList)."""
    billionths = nano(str(amount)) if isinstance(amount, str | int | float) else None
    if not billionths or billionths % 10**6 == 0:
        return amount
    return quantity(f"{-(-billionths // 10**6)}m")


def with_pod_resources(spec: dict[str, Any]) -> dict[str, Any]:
    """A pod's spec with what its own `resources` leave out, where it has any.

    Limits of huge pages are those of its containers; requests are theirs, else its limits
    (defaultHugePagePodLimits, defaultPodRequests).
    """
    resources = spec.get("resources")
    if not isinstance(resources, dict):
        return spec
    limits, requests = (dict(_part(spec, kind)) for kind in ("limits", "requests"))
    if limits or requests:
        found = _of_containers(spec, "limits", lambda name: name.startswith(_HUGE))
        limits = {**{name: size for name, size in found.items() if name not in requests}, **limits}
    if limits:
        found = _of_containers(spec, "requests", lambda name: name in _OF_QUALITY)
        whole = {name: size for name, size in limits.items() if _is_of_pods(name)}
        requests = {**whole, **found, **requests}
    parts = {"limits": limits, "requests": requests}
    return {
        **spec,
        "resources": {**resources, **{kind: part for kind, part in parts.items() if part}},
    }


def with_pod_limits(spec: dict[str, Any]) -> dict[str, Any]:
    """A stored pod's spec with what Kubernetes 1.37 and newer add to its own `resources` when made.

    Requests are those of its containers where it has no limits, too; a limit is what all containers
    may have, if each of them has one, and no less than the request (DefaultPodLevelResources). No
    two specs are told apart by that which `with_pod_resources` makes the same.
    """
    limits, requests = _part(spec, "limits"), _part(spec, "requests")
    if not limits and not requests:
        return spec
    requests = {**_of_containers(spec, "requests", lambda name: name in _OF_QUALITY), **requests}
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
    """-1, 0 or 1: which of two amounts is the larger one; what is none counts as nothing."""
    first, second = _size(left), _size(right)
    return (first > second) - (first < second)


def is_amount(value: Any) -> bool:
    """True for what an API server can read as a quantity."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return False
    return nano(str(value).strip()) is not None


def _size(amount: Any) -> int:
    return nano(str(amount)) or 0


def _part(holder: Any, kind: str) -> dict[str, Any]:
    return map_in(holder.get("resources"), kind)


def _is_of_pods(name: str) -> bool:
    return name in _OF_QUALITY or name.startswith(_HUGE)


def _of_containers(
    spec: dict[str, Any], kind: str, is_meant: Callable[[str], bool]
) -> dict[str, str | float]:
    """Resources that all containers of a pod ask for (component-helpers, AggregateContainer...).

    Init containers run before the others, one after another, and sidecars beside all that follow.
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
    return {name: one.get(name, 0) + other.get(name, 0) for name in one | other}


def taken_away(old: Sizes, new: Sizes) -> list[tuple[str, str]]:
    """Sizes that a container has and is not to have: no resize takes any (ValidatePodResize)."""
    return sorted(old.keys() - new.keys())


def fixed(old: Sizes, new: Sizes) -> list[tuple[str, str]]:
    """Sizes that are to be others, of resources that no resize changes."""
    return [key for key in sorted(new) if key[1] not in RESIZABLE and old.get(key) != new[key]]


def beyond_limits(sizes: Sizes) -> list[str]:
    """Resources of which a container requests more than its limit; no pod may have that."""
    return [
        name
        for (kind, name), size in sorted(sizes.items())
        if kind == "requests" and size > sizes.get(("limits", name), size)
    ]


def sizes_of(resources: Any) -> Sizes:
    """All sizes of a container's `resources`; none where it has none."""
    found: Sizes = {}
    for kind in ("limits", "requests"):
        for name, value in _part({"resources": resources}, kind).items():
            size = nano(str(value))
            found[kind, name] = -1 if size is None else size
    return found


def quality(containers: Iterable[Any]) -> str:
    """The QoS class of a pod whose containers have these resources (GetPodQOS)."""
    whole: Sizes = {}
    guaranteed = True
    for resources in containers:
        sizes = {k: v for k, v in sizes_of(resources).items() if k[1] in _OF_QUALITY and v > 0}
        guaranteed = guaranteed and all(("limits", name) in sizes for name in _OF_QUALITY)
        for key, size in sizes.items():
            whole[key] = whole.get(key, 0) + size
    if not whole:
        return "BestEffort"
    same = all(whole.get(("limits", n)) == whole.get(("requests", n)) for n in _OF_QUALITY)
    return "Guaranteed" if guaranteed and same else "Burstable"


def quality_of(spec: dict[str, Any]) -> str:
    """The QoS class of a pod with this spec: by the pod's own resources, if it has any.

    Before Kubernetes 1.37 also by empty ones.
    """
    if any(_is_of_pods(name) for kind in ("limits", "requests") for name in _part(spec, kind)):
        return quality([spec["resources"]])
    both = [*(spec.get("containers") or []), *(spec.get("initContainers") or [])]
    return quality([container.get("resources") for container in both])


_OF_QUALITY = ("cpu", "memory")
_HUGE = "hugepages-"
