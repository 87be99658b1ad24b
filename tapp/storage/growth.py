"""Growth of claims: which claims a larger claim template enlarges, and what prevents the others.

Entry point: `grow`. It changes only `spec.resources.requests.storage` of a claim, and only upward:

    wanted = requests.storage of the claim template     has = requests.storage of the claim

    has >= wanted                                nothing (reported if the driver cannot expand)
    limits.storage of the claim < wanted         obstacle
    StorageClass without allowVolumeExpansion    obstacle
    otherwise                                    request `wanted`

A change that the API server would refuse is not tried (admission plugin
PersistentVolumeClaimResize, and ValidatePersistentVolumeClaimUpdate). A claim must be Bound, and
its StorageClass must have `allowVolumeExpansion: true`.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import msgspec

from tapp.declared.lookup import Templates
from tapp.declared.placeholders import UnfilledError
from tapp.kube.canonical import nano, quantity
from tapp.kube.objects import ClaimObject, ClaimResources, ClaimSpec, ClaimStatus, Storage
from tapp.kube.parts import map_in, map_of
from tapp.storage.claims import Claims
from tapp.storage.existing_claims import UNREADABLE, ExistingClaim, changeable
from tapp.words.quoted import quoted
from tapp.words.reasons import Reason
from tapp.words.vocabulary import STORAGE_CLASS
from tapp.world import World


@dataclass(frozen=True)
class Obstacle:
    """The reason why the claims of one claim template cannot be enlarged."""

    template: str  # Name of the claim template.
    wanted: str  # The storage that the claim template requests.
    has: str  # The storage that the claims request.
    reason: Reason  # Reason of the TApp's condition.
    why: str  # The obstacle, and what to do about it, for the condition's message.


@dataclass(frozen=True)
class Growth:
    """The claims to enlarge in this sync, and the obstacles to the growth of others."""

    to: dict[str, str] = field(default_factory=dict)  # Name of a claim -> storage to request.
    # Obstacle -> instances whose claims cannot grow because of it.
    obstacles: dict[Obstacle, list[int]] = field(default_factory=dict)


NO_GROWTH = Growth()


def grow(world: World, claims: Sequence[ExistingClaim]) -> Growth:
    """Decides which claims request more storage now, because their claim template does.

    All these claims grow at the same time, because no pod has to restart for that. `claims` are
    the claims of the TApp's instances that are not deleted in this sync.
    """
    if not claims or not world.declared.growing_claims:
        return NO_GROWTH
    own, growth, sizes = Claims(world), Growth(), dict[tuple[str, int], str | None]()
    for claim, name, number, own_record in claims:
        # Without placeholders the result is the same for all instances.
        key = name, -1 if own_record is None and not own.differ else number
        if key not in sizes:
            sizes[key] = _wanted(own, name, number, own_record)
        size = sizes[key]
        if size is None:
            continue
        found = _judged(claim, name, size, world.storage_classes)
        if isinstance(found, Obstacle):
            growth.obstacles.setdefault(found, []).append(number)
        elif found is not None:
            growth.to[claim.metadata.name] = found
    return growth


def _wanted(own: Claims, name: str, instance: int, recorded: Templates | None) -> str | None:
    """Returns the storage that an instance's claim template requests.

    Returns None if it requests none, or if its quantity or its placeholders are invalid.

    Args:
        own: finds the claim templates of the instance.
        name: the name of the claim template.
        instance: the number of the instance.
        recorded: the older spec at which a partition keeps the instance; None if no partition keeps
            it.
    """
    with suppress(UnfilledError):
        found = own.filled(name, instance, recorded)
        return None if found is None else _storage_of(found["spec"])
    return None


def _storage_of(spec: Mapping[str, Any]) -> str | None:
    """Returns the storage that the spec of a claim template requests, in the API server's notation.

    Returns None if the request is missing or is no valid quantity. The API server rewrites a number
    with an exponent, so such a number would differ from the stored one and be written in every
    sync.
    """
    size = map_in(map_in(spec, "resources"), "requests").get("storage")
    # In Python, True is an integer. The API server refuses it as a quantity.
    if isinstance(size, bool) or not isinstance(size, str | int | float):
        return None
    text = str(size)
    billionths = nano(text)
    if billionths is None:
        return None
    return str(quantity(text if text.endswith("i") else f"{billionths}n"))


def _judged(
    claim: ClaimObject, template: str, wanted: str, classes: Mapping[str, bool] | None
) -> str | Obstacle | None:
    """Returns the storage to request for a claim, or the obstacle to its growth.

    Returns None if the claim stays as it is: it is large enough, is being deleted, is not Bound or
    cannot be read.

    Args:
        claim: the claim.
        template: the name of its claim template.
        wanted: the storage that the claim template requests.
        classes: StorageClass -> True if its claims may grow; None if the request has none.
    """
    found = changeable(claim)
    if found is None:
        return None
    spec, status = found
    resources = spec.resources or ClaimResources()
    text, limit = _written(resources.requests), _written(resources.limits)
    has, most, to = nano(text), nano(limit), nano(wanted)
    if has is None or to is None:
        return None
    if has >= to:
        # The claim already requests this size, but the volume may not have it: the driver tries on.
        why = _said_by_driver(status)
        return Obstacle(template, wanted, text, Reason.INFEASIBLE, why) if why else None
    if most is not None and most < to:
        why = f"limits.storage of the claims is {limit}, and cannot be changed; {_GIVE_UP}"
    else:
        why = _class_obstacle(_class_of(claim, spec), classes)
    return Obstacle(template, wanted, text, Reason.NOT_EXPANDABLE, why) if why else wanted


def _written(resources: Storage | None) -> str:
    """Returns the storage in the requests or limits of a claim as text; "" if there is none."""
    size = None if resources is None else resources.storage
    return "" if size is None else str(size)


_GIVE_UP = "set the size in the claim template back, or move the data to new claims"


def _class_of(claim: ClaimObject, spec: ClaimSpec) -> str:
    """Returns the name of a claim's StorageClass, or an empty string if the claim has none.

    The deprecated annotation takes precedence over `storageClassName`, as in Kubernetes
    (component-helpers, GetPersistentVolumeClaimClass). `spec` is the spec of the claim.
    """
    annotations: Any = None
    with suppress(*UNREADABLE):
        annotations = msgspec.json.decode(claim.metadata.annotations)
    older = map_of(annotations).get(STORAGE_CLASS)
    return older if isinstance(older, str) else spec.storage_class_name or ""


def _class_obstacle(name: str, classes: Mapping[str, bool] | None) -> str:
    """Returns why claims of a StorageClass cannot grow, or an empty string if they can.

    Args:
        name: the name of the StorageClass; an empty string if the claims have none.
        classes: StorageClass -> True if its claims may grow; None if the request has none.
    """
    if not name:
        return f"the claims have no StorageClass, so their volumes cannot be expanded; {_GIVE_UP}"
    if classes is None:
        return (
            "the TApp service has not seen the StorageClasses yet; Metacontroller sends them after "
            "the next change of the TApp's spec, or within 20 minutes"
        )
    if name not in classes:
        return f"there is no StorageClass {quoted(name)}; create it, or {_GIVE_UP}"
    if classes[name]:
        return ""
    return (
        f"StorageClass {quoted(name)} does not let volumes grow; set allowVolumeExpansion: true in "
        f"it if its driver can expand volumes, or {_GIVE_UP}"
    )


def _said_by_driver(status: ClaimStatus) -> str:
    """Returns why the storage driver cannot grow a claim, or "" if it has reported no failure."""
    status_word = (status.allocated_resource_statuses or {}).get("storage", "")
    # The values are ControllerResizeInfeasible and NodeResizeInfeasible.
    if not status_word.endswith("ResizeInfeasible"):
        return ""
    return "their storage driver has reported that this size is infeasible"
