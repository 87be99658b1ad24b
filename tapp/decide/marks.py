"""The small writes on pods that stay: a drain, a lost node, and what is wanted of one on hold.

docs/design.md, "Pod status", "Lost nodes" and "Hold". Here the verdicts of `judge` and `rollout`
become steps: an update of a pod that serves begins with a drain, a pod of a lost node is marked
before it goes, and what was asked for and is not wanted any more is taken back.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tapp.decide.changes import Mark, Resize, Update
from tapp.decide.instances import Instance
from tapp.decide.judge import Action, Verdict
from tapp.decide.pod_holds import HoldRequest, carried_marks, due_marks
from tapp.decide.resizes import restarts_soon
from tapp.declared.model import TApp
from tapp.pod import gate
from tapp.pod.lost import Nodes, limit_of, lost_in, nodes_of
from tapp.pod.pod import Pod
from tapp.pod.trouble import TROUBLE_AFTER
from tapp.words.reasons import Reason
from tapp.words.times import UNKNOWN, noted_since, written
from tapp.world import Options

_GOING = (Action.DELETE, Action.RECREATE)


@dataclass
class Marks:
    """Steps that are asked of pods first, and pods that wait for somebody else."""

    steps: dict[int, Verdict] = field(default_factory=dict)  # instance -> what is asked of its pod
    waits: list[float] = field(default_factory=list)  # seconds after which to look again
    # instance -> since when its pod's status should say something else, RFC 3339: its gate is not
    # served, or nobody acts on its mark
    unserved_since: dict[str, str] = field(default_factory=dict)
    unserved: list[int] = field(default_factory=list)  # those of them for which that has lasted
    nodes: Nodes = field(default_factory=Nodes)  # the nodes of the TApp's pods, where that matters
    lost_seconds_problem: str = ""  # what is wrong with the TApp's own limit, or ""


def mark(  # noqa: PLR0913, PLR0917 - what was decided, and for whom
    tapp: TApp,
    instances: Sequence[Instance],
    verdicts: Sequence[Verdict],
    options: Options,
    now: float,
    asked: Mapping[str, HoldRequest],
) -> Marks:
    """Turns verdicts into steps, after the budget, where pods are drained, on hold or may be lost.

    `asked` says what pods that somebody holds are told that is wanted, by their names.
    """
    pods = [instance.pod for instance in instances if instance.pod is not None]
    if not tapp.spec.force_delete_pod and True not in [pod.spec.marked for pod in pods]:
        return Marks()
    return _Marking(tapp, options, instances, now, asked).all(instances, verdicts)


class _Marking:
    def __init__(
        self,
        tapp: TApp,
        options: Options,
        instances: Sequence[Instance],
        now: float,
        asked: Mapping[str, HoldRequest],
    ) -> None:
        self.tapp, spec = tapp, tapp.spec
        self.moves = spec.force_delete_pod
        self.grace = spec.update_strategy.in_place_update_strategy.grace_period_seconds
        self.before = tapp.status.unserved
        self.now, self.asked = now, asked
        self.limit, problem = limit_of(tapp.metadata.annotations, options.lost_node_seconds)
        self.found = Marks(lost_seconds_problem=problem if self.moves else "")
        if self.moves:
            pods = (i.pod for i in instances if i.pod is not None)
            self.found.nodes = nodes_of(pods, now)

    def all(self, instances: Sequence[Instance], verdicts: Sequence[Verdict]) -> Marks:
        for instance, verdict in zip(instances, verdicts, strict=True):
            pod = instance.pod
            if pod is None or pod.unreadable or pod.terminating or pod.completed:
                continue
            self._look_at_gate(instance, pod)
            step = self._lost(instance, pod, verdict) or self._drain(instance, pod, verdict)
            step = step or self._kept(pod, verdict)
            if step is not None:
                self.found.steps[instance.id] = step
        return self.found

    def _lost(self, instance: Instance, pod: Pod, verdict: Verdict) -> Verdict | None:
        """A pod whose node is not heard of waits until it is lost, and is marked then."""
        since, left = instance.silent_since, lost_in(instance.silent_since, self.limit, self.now)
        if not self.moves or instance.never_migrate or since is None or left is None:
            return None
        if left == 0 and not self.found.nodes.guarded:
            return self._mark_lost(instance, pod, since)
        if left:
            self.found.waits.append(left + gate.SECOND)
        if verdict.action not in _GOING or instance.seen_since != UNKNOWN:
            return None  # what is to go waits for no time that the pod does not tell
        # Its deletion would never end: nobody on the node could answer.
        when = f", and is lost at {written(since + self.limit)}" if left else ""
        message = f"{verdict.message}; its node is not heard of{when}"
        return self._step(pod, Reason.NODE_SILENT, message)

    def _mark_lost(self, instance: Instance, pod: Pod, since: float) -> Verdict:
        when = written(since)
        if pod.spec.lost == when and pod.spec.is_watched:
            overdue = since + self.limit + TROUBLE_AFTER - self.now
            if overdue <= 0:
                self._note_unserved(instance)
            else:
                self.found.waits.append(overdue + gate.SECOND)
        message = f"its node is not heard of since {when}: it is to start elsewhere"
        return self._step(pod, Reason.NODE_LOST, message, lost=when)

    def _drain(self, instance: Instance, pod: Pod, verdict: Verdict) -> Verdict | None:
        """An update of a pod that serves waits until it is out of its Services."""
        change = verdict.change
        if not isinstance(change, Update | Resize) or not _restarts(instance, change):
            return self._resized(instance, pod, verdict)
        if not self.grace or not pod.spec.served_gates:
            return None
        left = gate.drained_in(pod, self.grace, self.now)
        broken = pod.ready is not True and not gate.only_its_gate_keeps_it_out(pod)
        if broken and (left is None or not pod.spec.drains):
            return None  # it does not serve
        if left == 0:
            return None
        if left is not None:
            self.found.waits.append(left)
        elif pod.spec.drains and not gate.has_closed_gate(pod):
            self._note_unserved(instance)
        to = change.template.revision
        if to == pod.spec.template_hash:
            to = f"{to}-again"  # what stays its revision would ask for nothing
        message = f"it leaves its Services for {self.grace} s, then {verdict.message}"
        return self._step(
            pod, Reason.DRAINING, message, drain=pod.spec.drain if pod.spec.drains else to
        )

    def _resized(self, instance: Instance, pod: Pod, verdict: Verdict) -> Verdict | None:
        """A pod that was drained for a resize stays so until that has restarted its containers."""
        if verdict.action in _GOING or not pod.spec.drains:
            return None
        if not restarts_soon(instance, self.tapp, self.now):
            return None
        message = "its kubelet starts containers again for other resources"
        return self._step(pod, Reason.DRAINING, message, drain=pod.spec.drain)

    def _look_at_gate(self, instance: Instance, pod: Pod) -> None:
        """Whoever should open the pod's gate does not."""
        if not pod.spec.served_gates or pod.ready is True or not pod.spec.is_watched:
            return
        # The gate's hook sees the pod alone, and no status of the TApp.
        left = gate.unserved_in(pod, gate.update_of(pod, self.now), TROUBLE_AFTER, self.now)
        if left == 0:
            self._note_unserved(instance)
        elif left is not None:
            self.found.waits.append(left)

    def _note_unserved(self, instance: Instance) -> None:
        """Nobody writes the pod's status, as it seems: a condition follows when that has lasted."""
        id = str(instance.id)
        since, at = noted_since(self.before.get(id, ""), self.now)
        self.found.unserved_since[id] = since
        left = at + TROUBLE_AFTER - self.now
        if left <= 0:
            self.found.unserved.append(instance.id)
        else:
            self.found.waits.append(left)

    def _kept(self, pod: Pod, verdict: Verdict) -> Verdict | None:
        """A pod that stays: without marks that are not wanted any more.

        What it is told of a hold asks nothing of it: the decision is the same. A resize is no
        write on the pod, and may be refused again and again: what it is told comes first.
        """
        if isinstance(verdict.change, Resize) and not self._is_told(pod):
            change = self._change(pod, pod.spec.drain, pod.spec.lost)
            return Verdict(Action.MARK, verdict.reason, verdict.message, change)
        change = self._change(pod) if verdict.action is Action.KEEP else None
        if change is None:
            return None
        if not self._asks(pod):
            return Verdict(Action.MARK, verdict.reason, verdict.message, change)
        message = f"what is asked of its pod has changed; {verdict.message}"
        return Verdict(Action.MARK, Reason.MARKS_CHANGED, message, change)

    def _step(self, pod: Pod, reason: Reason, message: str, **marks: str) -> Verdict:
        """Writes these marks on the pod, and only these; keeps it where it has them."""
        change = self._change(pod, **marks)
        return Verdict(Action.KEEP if change is None else Action.MARK, reason, message, change)

    def _change(self, pod: Pod, drain: str = "", lost: str = "") -> Mark | None:
        """The mark that the pod is to carry; None where it does."""
        if not self._asks(pod, drain, lost) and self._is_told(pod):
            return None
        spec, told = pod.spec, due_marks(pod, self.asked.get(pod.name))
        watched, tolerate = bool(spec.served_gates or lost), self._tolerates(pod)
        over = pod.update_over and not spec.requests  # which the record says to be met
        return Mark(pod, drain, lost, watched, tolerate, forget=tolerate and over, told=told)

    def _asks(self, pod: Pod, drain: str = "", lost: str = "") -> bool:
        spec = pod.spec
        known = spec.is_watched or not (lost or drain or gate.has_closed_gate(pod))
        return (drain, lost) != (spec.drain, spec.lost) or not known or self._tolerates(pod)

    def _is_told(self, pod: Pod) -> bool:
        """True if it carries what it is told of a hold on it."""
        return due_marks(pod, self.asked.get(pod.name)) == carried_marks(pod)

    def _tolerates(self, pod: Pod) -> bool:
        """True if it is to tolerate a node that is not heard of without limit, and does not."""
        return self.moves and pod.spec.evicted_in_time and pod.spec.is_ours


def _restarts(instance: Instance, change: Update | Resize) -> bool:
    if isinstance(change, Update):
        return bool(change.images)
    return instance.resize is not None and bool(instance.resize.restarts)
