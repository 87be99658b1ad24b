"""The end of a TApp: which children stay while it goes, and when it is done.

Never needs a valid spec: a TApp that makes no sense must still be deletable (docs/design.md,
"Finalize").
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tapp.model import ClaimPolicy, Parent
from tapp.objects import ClaimObject
from tapp.pod import Pod

_GARBAGE_COLLECTOR = ("orphan", "foregroundDeletion")
RECHECK = 5.0
"""Seconds after which to look again; the children's own events usually come first."""


@dataclass(frozen=True)
class Teardown:
    """What a finalize call answers.

    Attributes:
        pods: pods that stay for now.
        claims: claims that stay.
        finalized: whether the TApp may go.
    """

    pods: Sequence[Pod]
    claims: Sequence[ClaimObject]
    finalized: bool


def tear_down(
    parent: Parent, policy: ClaimPolicy, pods: Sequence[Pod], claims: Sequence[ClaimObject]
) -> Teardown:
    """Decides from what is observed, never from what was asked for earlier."""
    if any(name in parent.metadata.finalizers for name in _GARBAGE_COLLECTOR):
        # The garbage collector owns this deletion; Metacontroller leaves the children alone only
        # if its finalizer goes now.
        return Teardown(pods, claims, finalized=True)
    delete_claims = policy.persistent_volume_claim_retention_policy.when_deleted == "Delete"
    staying = claims if pods or not delete_claims else []
    return Teardown([], staying, finalized=not pods and (not delete_claims or not claims))
