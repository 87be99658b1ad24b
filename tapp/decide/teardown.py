"""Tears a TApp down: decides which children stay while the TApp is being deleted.

Entry point: `tear_down`. The spec may be invalid, because such a TApp must be deletable, too. The
decisions depend only on the observed objects, so a repeated call does no harm (docs/deletion.md):

- Pods are deleted first. Pods on silent nodes and pods on hold stay for a while.
- Claims follow when all pods are gone, if claims are deleted with the TApp.
- Services stay as long as pods exist, because clients may use them.
- ControllerRevisions and the PodDisruptionBudget are deleted at once.

The TApp may be removed when its pods, its ControllerRevisions and the claims to delete are gone.
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
from tapp.storage.services import is_ours
from tapp.words.groups import grouped
from tapp.words.kinds import DISRUPTION_BUDGET, SERVICE
from tapp.words.times import plausible_time, written
from tapp.words.vocabulary import PendingAction
from tapp.world import Options

_METACONTROLLER = "metacontroller.io/"  # Prefix of Metacontroller's finalizers
_GARBAGE_COLLECTOR = ("orphan", "foregroundDeletion")
RECHECK = 5.0  # Seconds until the next call; events of the children usually start one earlier
_PATIENT = 60.0  # Seconds until the next call if all remaining pods are on hold


@dataclass(frozen=True)
class Left:
    """The remaining objects of a TApp that is being deleted, for the conditions in its status."""

    namespace: str
    since: str  # when the deletion was requested, RFC 3339
    pods: Sequence[Pod]  # all pods that exist
    claims: Sequence[str]  # names of existing claims that are deleted with the TApp
    overdue: Overdue  # objects whose deletion is overdue
    finalizers: Sequence[str]  # other finalizers of the TApp, besides Metacontroller's


@dataclass(frozen=True)
class Teardown:
    """The decisions of a finalize call: Metacontroller sends one while a TApp is being deleted."""

    pods: Sequence[Pod]  # pods that stay for now
    claims: Sequence[ClaimObject]  # claims that stay
    revisions: Sequence[RevisionObject]  # ControllerRevisions that stay
    plain: Sequence[Manifest]  # Services and PodDisruptionBudgets that stay
    finalized: bool  # whether nothing is left to wait for, and the TApp may be removed
    # Name of a pod that stays -> markers to write
    marks: dict[str, Mark] = field(default_factory=dict)
    # Since when, RFC 3339 -> names of pods that cannot end because their nodes do not report
    silent: dict[str, list[str]] = field(default_factory=dict)
    # Name of a pod on hold -> since when its deletion is pending, RFC 3339 ("" if that cannot be
    # written to the pod), and a sentence about the hold for users
    held: dict[str, tuple[str, str]] = field(default_factory=dict)
    left: Left | None = None  # the remaining objects; None if the TApp is not being deleted
    recheck: float = RECHECK  # seconds until the next call


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
    """Decides which children of a TApp stay, and whether the TApp may be removed.

    Args:
        parent: the metadata of the TApp.
        policy: the part of the spec that says whether claims are deleted with the TApp.
        lost_policy: the part of the spec about pods on lost nodes.
        pods: all pods of the TApp.
        claims: all claims of the TApp.
        hold_policy: the part of the spec with the time limit of holds against deletion.
        revisions: all ControllerRevisions of the TApp.
        plain: all Services and PodDisruptionBudgets of the TApp.
        options: the operator's settings.
        now: the time of the call, in seconds since the epoch.
    """
    if parent.metadata.deletion_timestamp is None:
        # The TApp is not being deleted. It has lost the labels that this controller selects, and
        # another controller takes it over with all its children.
        return Teardown(pods, claims, revisions, plain, finalized=True)
    delete_claims = policy.persistent_volume_claim_retention_policy.when_deleted == "Delete"
    left = _left(parent, pods, claims if delete_claims else [], plain, now)
    if any(name in parent.metadata.finalizers for name in _GARBAGE_COLLECTOR):
        # The garbage collector deletes or releases the children. Metacontroller leaves them alone
        # only if its finalizer is removed now.
        return Teardown(pods, claims, revisions, plain, finalized=True, left=left)
    # Claims are deleted after the pods, which may still use them.
    staying = claims if pods or not delete_claims else []
    waiting, marks = list[Pod](), dict[str, Mark]()
    if lost_policy.force_delete_pod and not lost_policy.never_migrate:
        waiting, marks = _on_silent_nodes(parent, pods, options, now)
    # A ControllerRevision that is being deleted is not waited for.
    recorded = any(revision.metadata.deletion_timestamp is None for revision in revisions)
    done = not pods and not recorded and (not delete_claims or not claims)
    known = {pod.name for pod in waiting}
    on_hold, requests = _on_hold([pod for pod in pods if pod.name not in known], hold_policy, now)
    marks |= {pod.name: mark for pod in on_hold if (mark := _marked(pod, requests)) is not None}
    return Teardown(
        [*waiting, *on_hold],
        staying,
        [],
        [child for child in plain if not _is_own_budget(child)] if pods else [],
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


def _is_own_budget(child: Manifest) -> bool:
    """Returns True if a child is the PodDisruptionBudget that this service requested.

    The caller deletes this object at once: no instance should run any more, so the eviction of a
    pod on hold needs no budget.
    """
    return child.kind == DISRUPTION_BUDGET and is_ours(child)


def _left(
    parent: Parent,
    pods: Sequence[Pod],
    claims: Sequence[ClaimObject],
    plain: Sequence[Manifest],
    now: float,
) -> Left:
    """Returns the remaining objects of a TApp that is being deleted.

    Args:
        parent: the metadata of the TApp.
        pods: all pods of the TApp.
        claims: the claims that are deleted with the TApp.
        plain: the Services and PodDisruptionBudgets of the TApp; only the Services count.
        now: the time of the call, in seconds since the epoch.
    """
    services = [child for child in plain if child.kind == SERVICE]
    meta = parent.metadata
    return Left(
        meta.namespace,
        meta.deletion_timestamp or "",
        pods,
        [claim.metadata.name for claim in claims],
        overdue_of(pods, claims, services, now),
        [name for name in meta.finalizers if not name.startswith(_METACONTROLLER)],
    )


def _on_hold(
    pods: Iterable[Pod], policy: HoldPolicy, now: float
) -> tuple[list[Pod], dict[str, HoldRequest]]:
    """Returns the pods whose hold prevents their deletion, and the pending deletion of each.

    The second value maps the name of such a pod to the deletion that the hold delays and the time
    since when. Later the service writes both to the pod.
    """
    limit = policy.deletion_hold_timeout_seconds
    staying, requests = list[Pod](), dict[str, HoldRequest]()
    for pod in pods:
        request = hold_request_of(pod, PendingAction.DELETE, limit, now)
        if request is not None and request.held:
            staying.append(pod)
            requests[pod.name] = request
    return staying, requests


def _marked(pod: Pod, requests: Mapping[str, HoldRequest]) -> Mark | None:
    """Returns the write that tells a pod on hold that its deletion is pending.

    The write also removes a request that the pod leaves its Services. Returns None if the pod is
    unreadable, or needs no such write. `requests` maps the name of a pod to the pending deletion.
    """
    if pod.unreadable:
        return None
    hold, spec = due_markers(pod, requests[pod.name]), pod.spec
    if hold == carried_markers(pod) and not spec.drain:
        return None
    return Mark(pod, "", "", watched=bool(spec.served_gates), tolerate=False, hold=hold)


def _recheck(pods: Sequence[Pod], requests: Mapping[str, HoldRequest], now: float) -> float:
    """Returns the seconds until the next call.

    If all remaining pods are on hold, the next call can come later. The wait then ends with a time
    limit of a hold, or with a change of a pod, which starts a call by itself. `requests` maps the
    names of the pods on hold to their pending deletion.
    """
    if len(requests) < len(pods) or not requests:
        return RECHECK
    return max(RECHECK, min(_PATIENT, *(one.ends - now for one in requests.values())))


def _deleted_at(parent: Parent, now: float) -> float:
    """Returns when the deletion of the TApp was requested, in seconds since the epoch.

    This time counts if a pod does not show since when its node is silent, because the status of a
    TApp that is being deleted has no notes with that time.
    """
    return plausible_time(parent.metadata.deletion_timestamp, now, now)


def _silent(pods: Sequence[Pod], deleted: float, now: float) -> dict[str, list[str]]:
    """Returns time, RFC 3339 -> names of pods whose nodes have not reported since that time.

    Nodes that have been silent for less than `TROUBLE_AFTER` seconds are left out. `deleted` is
    when the deletion of the TApp was requested. It counts for a pod that does not show since when
    its node is silent.
    """
    found = grouped(
        (written(since), pod.name)
        for pod in pods
        if (since := silent_since(pod, now, deleted)) is not None and since + TROUBLE_AFTER <= now
    )
    return dict(sorted(found.items()))


def _on_silent_nodes(
    parent: Parent, pods: Sequence[Pod], options: Options, now: float
) -> tuple[list[Pod], dict[str, Mark]]:
    """Returns the pods on nodes that do not report, where a deletion could not end.

    The second value maps the name of a pod to the write that says that its node is lost.
    `Nodes.guarded` does not matter here. It protects instances from running twice, and no instance
    of a TApp that is being deleted starts again.
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
