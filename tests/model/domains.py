"""Judges failure domains: an update takes no instance while one of another domain is out.

`check` is the entry point. The domain of an instance is the label of its pod, as the sync that
decided on the update has seen the pod. An instance without a pod, or whose pod has no node, has no
known domain, so no update may take an instance beside it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from simulator.objects.objects import labels_of
from tests.invariants import ViolationError
from tests.model.snapshots import Snapshot


def check(
    name: str, id: int, out: Collection[int], snapshot: Snapshot, counts: Counter[str]
) -> None:
    """Raises ViolationError if instances of different domains are out because of updates.

    Args:
        name: the name of the TApp.
        id: the instance that an update takes.
        out: the instances that are out or unavailable, including `id`.
        snapshot: the sync that has decided on the update.
        counts: counters of what the judge has seen.
    """
    key = snapshot.spec["updateStrategy"].get("domain")
    if not key or not snapshot.group(id):
        return
    counts["updates in a domain"] += 1
    mine = _domain(name, id, key, snapshot)
    others = {other: _domain(name, other, key, snapshot) for other in out if other != id}
    counts["updates beside others of the same domain"] += bool(others)
    mixed = {other: domain for other, domain in others.items() if domain != mine}
    if mixed:
        raise ViolationError(
            f"{name}-{id} of domain {mine} is taken at {snapshot.time}, and of other domains "
            f"{mixed} are out"
        )


def _domain(name: str, id: int, key: str, snapshot: Snapshot) -> str | int | None:
    """Returns the value of the label, the number of an instance without it, or None if the domain
    is unknown.
    """
    pod = snapshot.pods.get(f"{name}-{id}")
    if pod is None:
        return None
    return labels_of(pod).get(key) or (id if pod["spec"].get("nodeName") else None)
