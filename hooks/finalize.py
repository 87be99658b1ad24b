"""The finalize hook: what is left of a TApp that is going -> what may stay for now."""

from typing import Any

from hooks.wire import Request
from tapp.model import Parent
from tapp.render import kept_claim
from tapp.teardown import RECHECK, Teardown, tear_down


def finalize(request: Request[Parent]) -> tuple[dict[str, Any], Teardown]:
    """Answers a finalize call; the spec need not be valid.

    Returns:
        The answer (`status` as it was, `children` that stay, `finalized`) and the decision.
    """
    decided = tear_down(
        request.parent,
        request.claim_policy,
        [request.seen[name].pod for name in sorted(request.seen)],
        [request.claims[name] for name in sorted(request.claims)],
    )
    answer: dict[str, Any] = {
        "status": request.status,
        "children": [
            *(kept_claim(claim) for claim in decided.claims),
            *(request.kept(pod, None) for pod in decided.pods),
        ],
        "finalized": decided.finalized,
    }
    if not decided.finalized:
        answer["resyncAfterSeconds"] = RECHECK
    return answer, decided
