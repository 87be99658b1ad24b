"""What a container asks for, as far as two spellings of it mean the same."""

from collections.abc import Iterable
from typing import Any

from tapp.kube.canonical import comparable, nano

Sizes = dict[tuple[str, str], int]
"""`limits` or `requests`, and the resource -> how much, in billionths; -1 for what is no size."""


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


def sizes_of(resources: Any) -> Sizes:
    """All sizes of a container's `resources`; none where it has none."""
    found: Sizes = {}
    for kind in ("limits", "requests"):
        part = resources.get(kind) if isinstance(resources, dict) else None
        for name, value in (part if isinstance(part, dict) else {}).items():
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


_OF_QUALITY = ("cpu", "memory")
