"""The end of a TApp: which children stay while it goes, and when it is done.

Never needs a valid spec: a TApp that makes no sense must still be deletable (docs/design.md,
"Finalize").
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tapp.decide.changes import Mark
from tapp.decide.overdue import Overdue, overdue_of
from tapp.decide.pod_holds import (
    HoldRequest,
    carried_markers,
    due_markers,
    hold_request_of,
    sentence,
)
from tapp.declared.model import ClaimPolicy, HoldPolicy, LostPolicy, Parent
from tapp.kube.objects import ClaimObject, RevisionObject
from tapp.pod.lost import limit_of, lost_in, silent_since
from tapp.pod.manifest import Manifest
from tapp.pod.pod import Pod
from tapp.pod.trouble import TROUBLE_AFTER
from tapp.words.groups import grouped
from tapp.words.times import plausible_time, written
from tapp.words.vocabulary import PendingAction
from tapp.world import Options

_METACONTROLLER = "metacontroller.io/"  # How the names of its finalizers begin
_GARBAGE_COLLECTOR = ("orphan", "foregroundDeletion")
RECHECK = 5.0  # Seconds after which to look again; the children's own events usually come first
_PATIENT = 60.0  # The same where somebody holds all pods that are left


@dataclass(frozen=True)
class Left:
    """The rest of a TApp that is being deleted, which its status describes."""

    namespace: str
    since: str  # when the deletion was requested, RFC 3339
    pods: Sequence[Pod]  # all pods that are there
    claims: Sequence[str]  # names of claims that go with the TApp and are there
    overdue: Overdue  # objects that should be gone
    finalizers: Sequence[str]  # other finalizers of the TApp, besides Metacontroller's


@dataclass(frozen=True)
class Teardown:
    """The answer of a finalize call."""

    pods: Sequence[Pod]  # pods that stay for now
    claims: Sequence[ClaimObject]  # claims that stay
    revisions: Sequence[RevisionObject]  # ControllerRevisions that stay
    plain: Sequence[Manifest]  # Services and their like that stay: as long as there are pods
    finalized: bool  # whether the TApp may go
    marks: dict[str, Mark] = field(default_factory=dict)  # name of a pod that stays -> its mark
    # since when, RFC 3339 -> names of pods that hold it up, because nothing is heard of their nodes
    silent: dict[str, list[str]] = field(default_factory=dict)
    # name of a pod that is on hold -> since when it is told to go, "" where it cannot be, and a
    # sentence
    held: dict[str, tuple[str, str]] = field(default_factory=dict)
    left: Left | None = None  # what is left of the TApp; None if the TApp is not being deleted
    recheck: float = RECHECK  # seconds after which to look again


def tear_down(  # noqa: PLR0913 - what was observed, and what was asked for
    parent: Parent,
    policy: ClaimPolicy,
    lost_policy: LostPolicy,
    pods: Sequence[Pod],
    claims: Sequence[ClaimObject],
    *,
    hold_policy: HoldPolicy,
    revisions: Sequence[RevisionObject],
    plain: Sequence[Manifest],
    options: Options,
    now: float,
) -> Teardown:
    """Decides from what is observed, never from what was asked for earlier."""
    if parent.metadata.deletion_timestamp is None:
        # It is not going: its labels have left what the controller that asks selects. Another one
        # takes over, and finds everything as it is.
        return Teardown(pods, claims, revisions, plain, finalized=True)
    delete_claims = policy.persistent_volume_claim_retention_policy.when_deleted == "Delete"
    left = _left(parent, pods, claims if delete_claims else [], plain, now)
    if any(name in parent.metadata.finalizers for name in _GARBAGE_COLLECTOR):
        # The garbage collector owns this deletion; Metacontroller leaves the children alone only
        # if its finalizer goes now.
        return Teardown(pods, claims, revisions, plain, finalized=True, left=left)
    staying = claims if pods or not delete_claims else []
    waiting, marks = list[Pod](), dict[str, Mark]()
    if lost_policy.force_delete_pod and not lost_policy.never_migrate:
        waiting, marks = _on_silent_nodes(parent, pods, options, now)
    # One that is on its way out holds up nothing.
    recorded = any(revision.metadata.deletion_timestamp is None for revision in revisions)
    done = not pods and not recorded and (not delete_claims or not claims)
    known = {pod.name for pod in waiting}
    on_hold, requests = _on_hold([pod for pod in pods if pod.name not in known], hold_policy, now)
    marks |= {pod.name: mark for pod in on_hold if (mark := _marked(pod, requests)) is not None}
    return Teardown(
        [*waiting, *on_hold],
        staying,
        [],
        plain if pods else [],
        finalized=done,
        marks=marks,
        silent=_silent(pods, _deleted_at(parent, now), now),
        held={
            pod.name: (requests[pod.name].since, sentence(pod, requests[pod.name]))
            for pod in on_hold
        },
        recheck=min([_recheck(pods, requests, now), *left.overdue.waits]),
        left=left,
    )


def _left(
    parent: Parent,
    pods: Sequence[Pod],
    claims: Sequence[ClaimObject],
    plain: Sequence[Manifest],
    now: float,
) -> Left:
    meta = parent.metadata
    return Left(
        meta.namespace,
        meta.deletion_timestamp or "",
        pods,
        [claim.metadata.name for claim in claims],
        overdue_of(pods, claims, plain, now),
        [name for name in meta.finalizers if not name.startswith(_METACONTROLLER)],
    )


def _on_hold(
    pods: Iterable[Pod], policy: HoldPolicy, now: float
) -> tuple[list[Pod], dict[str, HoldRequest]]:
    """Pods that somebody holds, and what they are told."""
    limit = policy.deletion_hold_timeout_seconds
    staying, requests = list[Pod](), dict[str, HoldRequest]()
    for pod in pods:
        request = hold_request_of(pod, PendingAction.DELETE, limit, now)
        if request is not None and request.held:
            staying.append(pod)
            requests[pod.name] = request
    return staying, requests


def _marked(pod: Pod, requests: Mapping[str, HoldRequest]) -> Mark | None:
    if pod.unreadable:
        return None
    hold, spec = due_markers(pod, requests[pod.name]), pod.spec
    if hold == carried_markers(pod) and not spec.drain:
        return None
    return Mark(pod, "", "", watched=bool(spec.served_gates), tolerate=False, hold=hold)


def _recheck(pods: Sequence[Pod], requests: Mapping[str, HoldRequest], now: float) -> float:
    """Delays the next call where only holds are waited for: a change of a pod ends the wait."""
    if len(requests) < len(pods) or not requests:
        return RECHECK
    return max(RECHECK, min(_PATIENT, *(one.ends - now for one in requests.values())))


def _deleted_at(parent: Parent, now: float) -> float:
    """Returns since when the TApp is being deleted: a pod that does not tell is silent since then.

    Nothing is noted in the status of a TApp that is being deleted.
    """
    return plausible_time(parent.metadata.deletion_timestamp, now, now)


def _silent(pods: Sequence[Pod], deleted: float, now: float) -> dict[str, list[str]]:
    """Pods of which nobody can say that they have ended: kept until then, or half deleted."""
    found = grouped(
        (written(since), pod.name)
        for pod in pods
        if (since := silent_since(pod, now, deleted)) is not None and since + TROUBLE_AFTER <= now
    )
    return dict(sorted(found.items()))


def _on_silent_nodes(
    parent: Parent, pods: Sequence[Pod], options: Options, now: float
) -> tuple[list[Pod], dict[str, Mark]]:
    """Pods whose deletion would never end; once their node is lost they are marked, and go.

    Without a guard: it keeps instances from running twice, and here none is started anew.
    """
    limit, _ = limit_of(parent.metadata.annotations, options.lost_node_seconds)
    waiting, marks = [], {}
    for pod in pods:
        since = silent_since(pod, now, _deleted_at(parent, now))
        left = lost_in(since, limit, now)
        if since is None or left is None or pod.unreadable or pod.terminating:
            continue
        waiting.append(pod)
        if left == 0 and not (pod.spec.lost == written(since) and pod.spec.is_watched):
            marks[pod.name] = Mark(
                pod, "", written(since), watched=True, tolerate=False, hold=carried_markers(pod)
            )
    return waiting, marks
