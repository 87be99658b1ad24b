"""Finds objects that a TApp needs and that are not in its sync request.

These are pods, claims, Services and the PodDisruptionBudget. A hook receives only objects that have
the label of the TApp and belong to the TApp (docs/troubleshooting.md, "Lost ownership"). An object
that is missing in one request may just not be in the cache yet. An object that is missing for long
is a problem, so the status notes since when it is missing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tapp.decide.instances import Instance
from tapp.pod.trouble import TROUBLE_AFTER
from tapp.storage.claims import Claims
from tapp.words.groups import grouped
from tapp.words.notes import decode_since
from tapp.words.ranges import instance_list
from tapp.words.times import seconds, written
from tapp.world import World

Since = dict[str, list[int]]  # Since when an object is missing, RFC 3339 -> instances that lack it


@dataclass
class MissingObjects:
    """The instances that lack a pod, a claim or a Service, grouped by the time since when.

    `disruption_budget` has the time since when the TApp lacks its PodDisruptionBudget.
    """

    pods: Since = field(default_factory=dict)  # pods that were requested and do not appear
    claims: Since = field(default_factory=dict)  # claims that a pod uses and the TApp lacks
    services: Since = field(default_factory=dict)  # Services that are missing or not as requested
    # Since when the PodDisruptionBudget of the TApp is missing -> an empty list. Empty if the
    # PodDisruptionBudget exists or is not needed
    disruption_budget: Since = field(default_factory=dict)
    # Instance -> since when its pod is missing, in seconds since the epoch
    pods_since: dict[int, float] = field(init=False)

    def __post_init__(self) -> None:
        self.pods_since = {id: seconds(at) for at, ids in self.pods.items() for id in ids}


def missing_since(noted: Mapping[str, str], ids: list[int], now: float) -> Since:
    """Returns the instances that lack an object, grouped by the time since when it is missing.

    Args:
        noted: the times that earlier syncs have noted in the status: time -> ranges of instances.
        ids: the numbers of the instances that lack the object now.
        now: the time of this sync, in seconds since the epoch. It counts for an instance without a
            noted time.
    """
    if not ids:
        return {}
    known = decode_since(noted, now)
    found = grouped((known.get(id) or written(now), id) for id in ids)
    return dict(sorted(found.items()))


def waits_for(found: Since, now: float) -> list[float]:
    """Returns the seconds until missing objects count as trouble, for those that do not yet.

    An object counts as trouble when it has been missing for `TROUBLE_AFTER` seconds.
    """
    return [left for time in found if (left := seconds(time) + TROUBLE_AFTER - now) > 0]


def overdue(found: Since, now: float) -> Since:
    """Returns the entries of `found` whose objects have been missing for too long.

    These are the objects that have been missing for at least `TROUBLE_AFTER` seconds.
    """
    return {since: ids for since, ids in found.items() if now - seconds(since) >= TROUBLE_AFTER}


def unseen_claims(world: World, own: Claims, instance: Instance) -> list[str]:
    """Returns the claims that an instance's pod uses and that the request does not contain.

    Only claims that this TApp creates for the instance are included. A pod gets a node only when
    its claims exist. So a claim of a pod with a node exists. If this claim is not in the request,
    it has another label or another owner. The result is empty for a pod without a node, a pod that
    has ended, and a pod that is being deleted.

    Args:
        world: the TApp with its children.
        own: finds the claims of each instance.
        instance: the instance.
    """
    pod = instance.pod
    if pod is None or not pod.spec.claims or not pod.node or pod.completed or pod.terminating:
        return []
    unseen = [name for name in pod.spec.claims if name not in world.claims]
    return own.own_among(instance.source, unseen) if unseen else []


def without_claim(world: World, instances: Iterable[Instance]) -> list[int]:
    """Returns the instances below `spec.replicas` whose pods use claims that the request lacks."""
    own = Claims(world)
    return [
        item.id
        for item in instances
        if item.wanted and item.pod is not None and item.pod.spec.claims
        if unseen_claims(world, own, item)
    ]


def since_text(found: Since) -> str:
    """Returns a text such as `instances 0-3 since 2026-01-01T00:00:00Z`.

    `found` maps each time to the instances that have lacked an object since then.
    """
    return "; ".join(f"{instance_list(ids)} since {since}" for since, ids in found.items())
