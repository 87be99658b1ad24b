"""The existing claims that belong to claim templates and to instances of a TApp.

Entry points: `existing_claims` and `changeable`. `growth.py` and `attributes.py` compare these
claims with their claim templates.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from tapp.declared.claims_and_service import claim_templates
from tapp.declared.lookup import Templates
from tapp.kube import objects
from tapp.kube.objects import ClaimObject, ClaimSpec, ClaimStatus
from tapp.storage.claims import instance_number
from tapp.world import World

# Errors of decoding JSON that somebody else has written.
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class ExistingClaim(NamedTuple):
    """An existing claim with the names of its claim template and of its instance."""

    claim: ClaimObject
    template: str  # Name of the claim template, in the current or in a recorded spec.
    instance: int  # Number of the instance, below `replicas`.
    recorded: Templates | None  # The older spec at which a partition keeps the instance, or None.


def existing_claims(
    world: World, claims: Sequence[ClaimObject], recorded: Mapping[int, Templates]
) -> list[ExistingClaim]:
    """Returns those of the given claims that belong to a claim template and to an instance.

    Claims of instances beyond `replicas` are left out: they change only when `replicas` includes
    these instances again.

    Args:
        world: the TApp with its children.
        claims: the claims that are not deleted in this sync.
        recorded: instance number -> the older spec at which a partition keeps the instance. It
            counts for claim templates that the current spec lacks.
    """
    spec, app = world.tapp.spec, world.tapp.metadata.name
    specs = [spec, *{id(each): each.spec for each in recorded.values()}.values()]
    names = {f"{name}-{app}-": name for each in specs for name in claim_templates(each)}
    found = []
    for claim in claims:
        prefix = claim.metadata.name.rpartition("-")[0] + "-"
        template = names.get(prefix)
        if template is None:
            continue
        number = instance_number(claim.metadata.name, prefix)
        if number is not None and number < spec.replicas:
            found.append(ExistingClaim(claim, template, number, recorded.get(number)))
    return found


def changeable(claim: ClaimObject) -> tuple[ClaimSpec, ClaimStatus] | None:
    """Returns the spec and the status of a claim whose size and class may change now.

    The API server accepts such a change only for a Bound claim (Kubernetes v1.37.2,
    pkg/apis/core/validation/validation.go, ValidatePersistentVolumeClaimUpdate). Returns None if
    the claim is not Bound, is being deleted or cannot be read.
    """
    if claim.metadata.deletion_timestamp is not None:
        return None
    try:
        spec = objects.decode_claim_spec(claim.spec) or ClaimSpec()
        status = objects.decode_claim_status(claim.status) or ClaimStatus()
    except UNREADABLE:
        return None
    return (spec, status) if status.phase == "Bound" else None
