"""Markers: labels and annotations on pods by which the service requests an action.

A marker never restarts a container (docs/leaving-services.md, docs/lost-nodes.md, docs/hold.md).
The first of these rules that applies to a pod gives the step, a write that comes before the
verdict:

1. The node of the pod is silent: the pod waits, and gets a marker when the node counts as lost.
2. An update restarts containers of a pod that serves requests: the pod first leaves its Services.
3. The pod stays as it is: markers that no rule needs any more are removed, and a pod on hold gets
   its pending action.

The hook `/pod-status` acts on the markers of the first two rules. That hook may be missing or fail.
So the status notes since when a pod waits for the hook (`unserved`), and a condition reports it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tapp.decide.cases import Case
from tapp.decide.changes import Mark, Resize, Update
from tapp.decide.instances import Instance
from tapp.decide.pod_holds import HoldRequest, carried_markers, due_markers
from tapp.decide.resizes import restarts_soon
from tapp.decide.verdicts import Action, Verdict
from tapp.declared.model import TApp
from tapp.pod import gate
from tapp.pod.lost import Nodes, limit_of, lost_in, nodes_of
from tapp.pod.pod import Pod
from tapp.pod.trouble import TROUBLE_AFTER
from tapp.words.quoted import short
from tapp.words.reasons import Reason
from tapp.words.times import UNKNOWN, noted_since, written
from tapp.world import Options

_GOING = (Action.DELETE, Action.RECREATE)  # Actions that delete the pod


class Drain(NamedTuple):
    """The request that a pod leaves its Services before an update restarts its containers."""

    revision: str  # the revision that the update brings
    is_restart: bool  # True if the pod already has that revision, and containers only restart

    def encode(self) -> str:
        """Returns the value of the annotation that takes the pod out of its Services.

        The hook `/pod-status` ignores an annotation that names the pod's own revision, because such
        an update is done. So the value for a restart at the same revision has a suffix.
        """
        return f"{self.revision}-again" if self.is_restart else self.revision


@dataclass
class Markers:
    """The labels and annotations (markers) that one sync writes to pods to request an action.

    Also holds the instances that wait for the action: for their pod to leave the Services, or for
    their lost node to be confirmed.
    """

    steps: dict[int, Verdict] = field(
        default_factory=dict
    )  # instance -> the step before its verdict
    waits: list[float] = field(default_factory=list)  # seconds until another sync is needed
    # Instance -> since when it waits for the hook `/pod-status` to act on its pod, RFC 3339
    unserved_since: dict[str, str] = field(default_factory=dict)
    # Instances that have waited for the hook `/pod-status` for more than `TROUBLE_AFTER` seconds
    unserved: list[int] = field(default_factory=list)
    nodes: Nodes = field(default_factory=Nodes)  # counted if the TApp leaves lost nodes
    lost_seconds_problem: str = ""  # why the TApp's own time limit for lost nodes is invalid, or ""


def plan_markers(
    tapp: TApp,
    cases: Sequence[Case],
    options: Options,
    now: float,
    requests: Mapping[str, HoldRequest],
) -> Markers:
    """Decides which pods get or lose markers: labels and annotations that request an action.

    The caller has already spent the budget, so the decisions in `cases` are final.

    Args:
        tapp: the TApp.
        cases: all instances with the decisions on them.
        options: the operator's settings.
        now: the time of this sync, in seconds since the epoch.
        requests: name of a pod -> its pending action: what the service will do with the pod when a
            hold is removed.
    """
    pods = [case.instance.pod for case in cases if case.instance.pod is not None]
    # Most TApps have no marker and need none.
    if not tapp.spec.force_delete_pod and True not in [pod.spec.marked for pod in pods]:
        return Markers()
    return _Marking(tapp, options, pods, now, requests).all(cases)


class _Marking:
    """Decides for all pods of one sync on markers: labels and annotations that request an action.

    `all` is the entry point.
    """

    def __init__(
        self,
        tapp: TApp,
        options: Options,
        pods: Sequence[Pod],
        now: float,
        requests: Mapping[str, HoldRequest],
    ) -> None:
        self.tapp, spec = tapp, tapp.spec
        self.moves = spec.force_delete_pod
        self.grace = spec.update_strategy.in_place_update_strategy.grace_period_seconds
        self.before = tapp.status.unserved
        self.now, self.requests = now, requests
        self.limit, problem = limit_of(tapp.metadata.annotations, options.lost_node_seconds)
        self.found = Markers(lost_seconds_problem=problem if self.moves else "")
        if self.moves:
            self.found.nodes = nodes_of(pods, now)

    def all(self, cases: Sequence[Case]) -> Markers:
        """Returns the markers that pods get or lose, and the instances that wait for an action.

        Markers are labels and annotations on pods that request an action. `cases` are all instances
        with the decisions on them.
        """
        for case in cases:
            instance, pod, decision = case.instance, case.instance.pod, case.decision
            if pod is None or pod.unreadable or pod.terminating or pod.completed:
                continue
            self._check_gate(instance, pod)
            step = self._lost(instance, pod, decision) or self._drain(instance, pod, decision)
            step = step or self._kept(pod, decision)
            if step is not None:
                self.found.steps[instance.id] = step
        return self.found

    def _lost(self, instance: Instance, pod: Pod, decision: Verdict) -> Verdict | None:
        """Returns the step for a pod whose node has stopped reporting, or None.

        The step is a verdict that comes before `decision`:

        - If the node has been silent for the time limit, the node counts as lost. The step writes
          the annotation that says so.
        - If the node may come back, and `decision` would delete the pod, the step keeps the pod.

        The result is None in all other cases, and `decision` is carried out. In particular it is
        None if the node reports, or if the TApp does not leave lost nodes (`forceDeletePod`).

        Args:
            instance: the instance of the pod.
            pod: the pod.
            decision: the decision of this sync on the instance so far.
        """
        since, left = instance.silent_since, lost_in(instance.silent_since, self.limit, self.now)
        if not self.moves or instance.never_migrate or since is None or left is None:
            return None
        if left == 0 and not self.found.nodes.guarded:
            return self._mark_lost(instance, pod, since)
        # Times in a status are cut to the second, so the silence may have begun a second later.
        if left:
            self.found.waits.append(left + gate.SECOND)
        if decision.action not in _GOING or instance.seen_since != UNKNOWN:
            return None  # without a time in the pod, nothing tells when its node will be lost
        # The API server would keep a deleted pod, because no kubelet could confirm its end.
        when = f", and counts as lost at {written(since + self.limit)}" if left else ""
        message = f"{decision.message}; node {short(pod.node)} has stopped reporting{when}"
        return self._step(pod, Reason.NODE_SILENT, message)

    def _mark_lost(self, instance: Instance, pod: Pod, since: float) -> Verdict:
        """Returns the step that writes to a pod since when its lost node has not reported.

        The hook `/pod-status` should then set the pod's phase to Failed. If that has not happened
        `TROUBLE_AFTER` seconds after the time limit, the instance is noted as one that waits for
        the hook. `since` is when the node stopped reporting, in seconds since the epoch.
        """
        when = written(since)
        if pod.spec.lost == when and pod.spec.is_watched:
            overdue = since + self.limit + TROUBLE_AFTER - self.now
            if overdue <= 0:
                self._note_unserved(instance)
            else:
                self.found.waits.append(overdue + gate.SECOND)
        message = (
            f"node {short(pod.node)} has not reported since {when} and counts as lost, so the "
            "instance starts on another node"
        )
        return self._step(pod, Reason.NODE_LOST, message, lost=when)

    def _drain(self, instance: Instance, pod: Pod, decision: Verdict) -> Verdict | None:
        """Returns the step that takes a pod out of its Services before an update, or None.

        The result is None, so that the update may begin, in these cases:

        - The pod has been out of its Services for the grace period, or the grace period is 0.
        - The pod has no readiness gate of this service.
        - The pod serves no requests.

        If `decision` restarts no container, the result is the step of `_resized`.
        """
        change = decision.change
        if not isinstance(change, Update | Resize) or not _restarts(instance, change):
            return self._resized(instance, pod, decision)
        if not self.grace or not pod.spec.served_gates:
            return None
        left = gate.drained_in(pod, self.grace, self.now)
        broken = pod.ready is not True and not gate.is_unready_by_gate_only(pod)
        if broken and (left is None or not pod.spec.drains):
            return None  # the pod serves no request that could be lost
        if left == 0:
            # The pod is out of its Services for the grace period: the update may begin.
            return None
        if left is not None:
            self.found.waits.append(left)
        elif pod.spec.drains and not gate.has_closed_gate(pod):
            self._note_unserved(instance)
        revision = change.template.revision
        drain = Drain(revision, is_restart=revision == pod.spec.template_hash).encode()
        message = (
            f"its pod leaves its Services {self.grace} s before its update: {decision.message}"
        )
        # A drain that has begun goes on, also for another template: the pod is out already.
        drain = pod.spec.drain if pod.spec.drains else drain
        return self._step(pod, Reason.DRAINING, message, drain=drain)

    def _resized(self, instance: Instance, pod: Pod, decision: Verdict) -> Verdict | None:
        """Returns the step that keeps a pod out of its Services until a resize has restarted it.

        Returns None if no such restart is expected, if the pod is in its Services, or if `decision`
        deletes the pod.
        """
        if decision.action in _GOING or not pod.spec.drains:
            return None
        if not restarts_soon(instance, self.tapp, self.now):
            return None
        message = (
            "the kubelet restarts its containers for a resize, so its pod stays out of its Services"
        )
        return self._step(pod, Reason.DRAINING, message, drain=pod.spec.drain)

    def _check_gate(self, instance: Instance, pod: Pod) -> None:
        """Notes an instance if the hook `/pod-status` does not open its pod's readiness gate.

        The hook has `TROUBLE_AFTER` seconds from the time at which the gate may open. If they are
        not over, the function notes after how many seconds another sync has to check again.
        """
        if not pod.spec.served_gates or pod.ready is True or not pod.spec.is_watched:
            return
        # The pod-status hook does not see the status of the TApp. So the pod alone decides here,
        # too: an open gate is expected only when that hook would open it.
        left = gate.unserved_in(pod, gate.update_of(pod, self.now), TROUBLE_AFTER, self.now)
        if left == 0:
            self._note_unserved(instance)
        elif left is not None:
            self.found.waits.append(left)

    def _note_unserved(self, instance: Instance) -> None:
        """Notes since when an instance waits for the hook `/pod-status` to change its pod's status.

        A condition reports an instance that has waited for `TROUBLE_AFTER` seconds.
        """
        id = str(instance.id)
        since, at = noted_since(self.before.get(id, ""), self.now)
        self.found.unserved_since[id] = since
        left = at + TROUBLE_AFTER - self.now
        if left <= 0:
            self.found.unserved.append(instance.id)
        else:
            self.found.waits.append(left)

    def _kept(self, pod: Pod, decision: Verdict) -> Verdict | None:
        """Returns the step that corrects the markers of a pod that stays; None if they are correct.

        Markers are labels and annotations that request an action.

        - If `decision` keeps the pod, all its markers are corrected: those that request no action
          any more are removed, and those about a hold on the pod are updated.
        - If `decision` resizes the pod, only the markers about a hold on the pod are corrected,
          before the resize. The API server may refuse the resize again and again, which must not
          keep these markers back.
        - Otherwise the result is None.
        """
        if isinstance(decision.change, Resize) and not self._has_hold_markers(pod):
            change = self._change(pod, pod.spec.drain, pod.spec.lost)
            return Verdict(Action.MARK, decision.reason, decision.message, change)
        change = self._change(pod) if decision.action is Action.KEEP else None
        if change is None:
            return None
        if not self._differs(pod):
            # Only markers about the hold change. They do not affect the decision.
            return Verdict(Action.MARK, decision.reason, decision.message, change)
        message = f"the TApp service changes labels or annotations of its pod; {decision.message}"
        return Verdict(Action.MARK, Reason.MARKS_CHANGED, message, change)

    def _step(self, pod: Pod, reason: Reason, message: str, **markers: str) -> Verdict:
        """Returns the step that gives a pod the given markers, and changes nothing else of the pod.

        The markers are the annotations `drain` and `lost`, which request an action. If the pod
        already has them as given, the step is a verdict that keeps the pod as it is.

        Args:
            pod: the pod.
            reason: the reason of the verdict.
            message: the sentence for users.
            markers: the values of `drain` and `lost`, as in `Mark`. A marker that is not given is
                removed.
        """
        change = self._change(pod, **markers)
        return Verdict(Action.KEEP if change is None else Action.MARK, reason, message, change)

    def _change(self, pod: Pod, drain: str = "", lost: str = "") -> Mark | None:
        """Returns the write that gives a pod the desired markers; None if the pod has them already.

        The markers about a hold on the pod are included.

        Args:
            pod: the pod.
            drain: the value of the annotation that takes the pod out of its Services; an empty
                string removes the annotation.
            lost: since when the node of the pod is lost, RFC 3339; an empty string removes the
                annotation.
        """
        if not self._differs(pod, drain, lost) and self._has_hold_markers(pod):
            return None
        spec, hold = pod.spec, due_markers(pod, self.requests.get(pod.name))
        watched, tolerate = bool(spec.served_gates or lost), self._tolerates(pod)
        # The record shows that a requested restart has been done, so it has to stay.
        over = pod.update_over and not spec.restart_requests
        return Mark(pod, drain, lost, watched, tolerate, forget=tolerate and over, hold=hold)

    def _differs(self, pod: Pod, drain: str = "", lost: str = "") -> bool:
        """Returns True if a pod lacks a marker, has a wrong one, or has one too many.

        These are the annotations `drain` and `lost`, the label that selects the pod for the hook
        `/pod-status`, and a toleration. The markers about a hold on the pod are not compared.

        Args:
            pod: the pod.
            drain: the desired annotation that takes the pod out of its Services; "" for none.
            lost: the desired annotation about a lost node; "" for none.
        """
        spec = pod.spec
        known = spec.is_watched or not (lost or drain or gate.has_closed_gate(pod))
        return (drain, lost) != (spec.drain, spec.lost) or not known or self._tolerates(pod)

    def _has_hold_markers(self, pod: Pod) -> bool:
        """Returns True if the pod's label and annotations about a hold are as they should be."""
        return due_markers(pod, self.requests.get(pod.name)) == carried_markers(pod)

    def _tolerates(self, pod: Pod) -> bool:
        """Returns True if a pod has to get a toleration of a node that does not report.

        The pod tolerates such a node only for a limited time. After that time Kubernetes would
        delete the pod, and the instance would start elsewhere before the node counts as lost.
        """
        return self.moves and pod.spec.evicted_in_time and pod.spec.is_ours


def _restarts(instance: Instance, change: Update | Resize) -> bool:
    """Returns True if an update in place or a resize restarts at least one container."""
    if isinstance(change, Update):
        return bool(change.images)
    return instance.resize is not None and bool(instance.resize.wanted.restarts)
