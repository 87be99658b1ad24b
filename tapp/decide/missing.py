"""Claims that pods run with and that are not the TApp's, Services that it lacks, and since when.

A hook is shown only what carries its label and belongs to its TApp (docs/mend.md, "Lost
ownership"). That a claim is missing once says nothing: the cache may lag. That it is missing again
and again does, so the status notes since when. Pods that do not come to be: `turns.py`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tapp.decide.instances import Instance
from tapp.pod.trouble import TROUBLE_AFTER
from tapp.storage.claims import Claims
from tapp.words.groups import grouped
from tapp.words.notes import decode_since
from tapp.words.times import seconds, written
from tapp.world import World

Since = dict[str, list[int]]  # Since when, RFC 3339 -> instances


@dataclass(frozen=True)
class Missing:
    """Things that instances lack."""

    since: Since  # since when -> the instances
    waits: tuple[float, ...]  # seconds after which one of them has lasted


def missing(noted: Mapping[str, str], ids: list[int], now: float) -> Missing:
    """Since when each of these instances lacks something: as the status has it noted, or now."""
    if not ids:
        return Missing({}, ())
    known = decode_since(noted, now)
    found = grouped((known.get(id) or written(now), id) for id in ids)
    waits = tuple(left for time in found if (left := seconds(time) + TROUBLE_AFTER - now) > 0)
    return Missing(dict(sorted(found.items())), waits)


def overdue(found: Since, now: float) -> dict[str, list[int]]:
    """The part of it that has lasted for so long that it is trouble."""
    return {since: ids for since, ids in found.items() if now - seconds(since) >= TROUBLE_AFTER}


def unseen_claims(world: World, own: Claims, instance: Instance) -> list[str]:
    """Names of the claims that an instance's pod runs with and that the TApp does not have.

    A pod is bound to a node only when its claims are there. One that is not shown carries another
    label, or belongs to somebody else.
    """
    pod = instance.pod
    if pod is None or not pod.spec.claims or not pod.node or pod.completed or pod.terminating:
        return []
    unseen = [name for name in pod.spec.claims if name not in world.claims]
    return own.own_among(instance.made, unseen) if unseen else []


def without_claim(world: World, instances: Iterable[Instance]) -> list[int]:
    """Instances whose pods run with claims that are not the TApp's."""
    own = Claims(world)
    return [item.id for item in instances if item.wanted and unseen_claims(world, own, item)]
