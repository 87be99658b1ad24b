"""VolumeAttributesClasses of existing claims: which claims get the class of their claim template.

Entry point: `modify`. A VolumeAttributesClass holds attributes of a volume that may change while
the volume is in use, such as its throughput. No pod restarts for another class:

    wanted = volumeAttributesClassName of the claim template     has = that of the claim

    claim not Bound, being deleted or unreadable    nothing
    wanted is not set, has is set                   remove the class, if the API server allows it
    has = wanted                                    report a modification that has not finished
    otherwise                                       request `wanted`

For a kept instance, the claim template of its own revision counts, because the class belongs to
that revision. The API server removes a class only while `status.currentVolumeAttributesClassName`
is not set (Kubernetes v1.37.2, pkg/apis/core/validation/validation.go,
ValidatePersistentVolumeClaimUpdate).
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum

import msgspec

from tapp.declared.placeholders import UnfilledError
from tapp.kube.parts import map_in
from tapp.storage.claims import Claims
from tapp.storage.existing_claims import ExistingClaim, changeable
from tapp.world import World


class Progress(Enum):
    """The progress of a storage driver that changes the VolumeAttributesClass of a volume.

    The values are those of a claim's `status.modifyVolumeStatus.status`.
    """

    NOT_STARTED = ""  # No driver has reported anything about this class yet.
    PENDING = "Pending"  # Something is missing, for example the class itself.
    IN_PROGRESS = "InProgress"
    INFEASIBLE = "Infeasible"  # The driver has refused the class.


@dataclass(frozen=True)
class Unfinished:
    """A class that the claims of one claim template request, and that their volumes lack."""

    template: str  # Name of the claim template.
    wanted: str  # Name of the VolumeAttributesClass.
    progress: Progress


@dataclass(frozen=True)
class Modification:
    """The claims that get another VolumeAttributesClass in this sync, and unfinished changes."""

    # Name of a claim -> VolumeAttributesClass to request; None removes the class of the claim.
    to: dict[str, str | None] = field(default_factory=dict)
    # Unfinished change -> instances whose volumes wait for it.
    unfinished: dict[Unfinished, list[int]] = field(default_factory=dict)


NO_MODIFICATION = Modification()


def modify(world: World, claims: Sequence[ExistingClaim]) -> Modification:
    """Decides which claims request another VolumeAttributesClass now.

    All these claims change at the same time, because no pod has to restart for that. Returns
    NO_MODIFICATION if Metacontroller does not update claims (`world.declared.growing_claims`).
    """
    if not claims or not world.declared.growing_claims:
        return NO_MODIFICATION
    own, result = Claims(world), Modification()
    classes: dict[tuple[str, int], str | None] = {}
    for existing in claims:
        # Without placeholders the class is the same for all instances of the current spec.
        differs = own.differ or existing.recorded is not None
        key = existing.template, existing.instance if differs else -1
        if key not in classes:
            classes[key] = _wanted(own, existing)
        wanted = classes[key]
        if wanted is None:
            continue
        found = _judged(world, existing, wanted)
        if isinstance(found, Unfinished):
            result.unfinished.setdefault(found, []).append(existing.instance)
        elif found is not None:
            result.to[existing.claim.metadata.name] = found or None
    return result


def _wanted(own: Claims, existing: ExistingClaim) -> str | None:
    """Returns the class that the claim template of a claim names; "" if it names none.

    Returns None if the claim has to keep its class: its revision has no such claim template, or a
    placeholder of the template cannot be filled in. `own` finds the claim templates.
    """
    with suppress(UnfilledError):
        found = own.filled_at_revision(existing.template, existing.instance, existing.recorded)
        if found is not None:
            wanted = map_in(found, "spec").get("volumeAttributesClassName")
            return wanted if isinstance(wanted, str) else ""
    return None


def _judged(world: World, existing: ExistingClaim, wanted: str) -> str | Unfinished | None:
    """Returns the class to request for a claim, or a change that has not finished.

    Returns "" if the claim's class has to be removed, and None if the claim stays as it is.

    Args:
        world: the TApp with its children.
        existing: the claim.
        wanted: the class that its claim template names; "" if it names none.
    """
    claim = existing.claim
    # Most claims have no class, and then there is nothing to decode.
    if not wanted and b"volumeAttributesClassName" not in bytes(claim.spec):
        return None
    found = changeable(claim)
    if found is None:
        return None
    spec, status = found
    has, current = spec.volume_attributes_class_name or "", status.current_volume_attributes_class
    if not wanted:
        # A class that somebody else has set stays: Metacontroller did not write it.
        kept = msgspec.json.decode(world.unchanged_claims[claim.metadata.name])
        is_ours = "volumeAttributesClassName" in map_in(kept, "spec")
        return "" if has and is_ours and not current else None
    if has != wanted:
        return wanted
    if current == wanted:
        return None
    modifying, progress = status.modify_volume_status, Progress.NOT_STARTED
    if modifying is not None and modifying.target_volume_attributes_class_name == wanted:
        with suppress(ValueError):
            progress = Progress(modifying.status or "")
    return Unfinished(existing.template, wanted, progress)
