"""The finalize hook: decides which children stay while a TApp is being deleted."""

from typing import Any

from hooks.wire.request import Request
from tapp.answer.children import Child
from tapp.answer.ending import status_of
from tapp.answer.render import kept_plain, kept_revision, marked_pod, unchanged_pod
from tapp.decide.teardown import Teardown, tear_down
from tapp.declared.model import ClaimPolicy, HoldPolicy, LostPolicy, Parent
from tapp.pod.pod import Pod
from tapp.world import Options


def finalize(
    request: Request[Parent], options: Options, now: float
) -> tuple[dict[str, Any], Teardown]:
    """Handles a finalize call, which Metacontroller sends while a TApp is being deleted.

    Returns the response with `status`, the `children` that stay, and `finalized`; and the
    decisions. `now` is the time in seconds since the epoch.
    """
    decided = tear_down(
        request.parent,
        request.part_of_spec(ClaimPolicy),
        request.part_of_spec(LostPolicy),
        [request.pods[name].pod for name in sorted(request.pods)],
        [request.claims[name] for name in sorted(request.claims)],
        hold_policy=request.part_of_spec(HoldPolicy),
        revisions=[request.revisions[name] for name in sorted(request.revisions)],
        plain=[found[name] for found in request.plain.values() for name in sorted(found)],
        options=options,
        now=now,
    )
    numbers = {
        name: str(found.number) for name, found in request.pods.items() if found.number is not None
    }
    answer: dict[str, Any] = {
        "status": status_of(decided, request.status, numbers),
        "children": [
            *(kept_revision(revision) for revision in decided.revisions),
            *(request.unchanged_claims[claim.metadata.name] for claim in decided.claims),
            *(kept_plain(child) for child in decided.plain),
            *(_child(request, decided, pod) for pod in decided.pods),
        ],
        "finalized": decided.finalized,
    }
    if not decided.finalized or (decided.left is not None and decided.left.pods):
        answer["resyncAfterSeconds"] = decided.recheck
    return answer, decided


def _child(request: Request[Parent], decided: Teardown, pod: Pod) -> Child:
    """Returns a pod that stays as JSON, with the labels and annotations that are written to it."""
    mark, manifests = decided.marks.get(pod.name), request.manifests
    if mark is None:
        return unchanged_pod(pod, manifests)
    return marked_pod(manifests[pod.name], mark)
