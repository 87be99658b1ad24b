"""The text of `kubectl tapp why`: each instance's decision, with its reason.

`why_lines` is the entry point. It explains each instance with its containers and Events
(`explain_instances`), and puts instances with equal explanations into one block. Lines about the
whole TApp follow: the budget, refusals, failed syncs, and how to continue updates that a person has
stopped.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from kubectl_tapp.base.hints import tapp_command
from kubectl_tapp.base.observed import Document
from kubectl_tapp.base.reading import (
    conditions_by_type,
    container_statuses,
    deletion_message,
    pending_probes,
)
from kubectl_tapp.base.words import instances_phrase, plural, short_duration
from kubectl_tapp.decide.events import describe, failing_syncs, of_instance
from kubectl_tapp.decide.inspection import Inspection, Row
from kubectl_tapp.decide.phrases import age_range, budget_block, node_phrase, refused_block
from kubectl_tapp.show.next_steps import next_step_block
from kubectl_tapp.show.reminders import reminders_block
from tapp.decide.verdicts import Action
from tapp.words.groups import grouped
from tapp.words.quoted import quoted
from tapp.words.ranges import about, ranges
from tapp.words.reasons import Reason
from tapp.words.remedies import Remedy
from tapp.words.times import UNKNOWN, seconds

# With more blocks than this, instances that share verdict, state and template share a block
_MAX_BLOCKS = 24


@dataclass(frozen=True)
class Explanation:
    """The explanation of one instance that `why` prints: its state, the decision, and all
    problems.
    """

    row: Row  # the instance's row in the table of `kubectl tapp status`
    action: str  # the action of the verdict
    reason: str  # the reason of the verdict
    available: bool  # True if the instance counts as available
    text: str  # the verdict as a sentence, with the problem of the pod, if any
    containers: Sequence[str]  # a sentence for each problem of the pod or its containers
    events: Sequence[str]  # a sentence for each warning Event of the pod and its claims
    # a sentence about an obstacle to the next action that the service cannot see; empty if none is
    # known
    obstacle: str = ""
    hold: str = ""  # the beginning of the line about the pod's hold; empty without a hold

    @property
    def is_fine(self) -> bool:
        """True if the instance is up to date and available, and no problem or hold is known."""
        return (
            self.reason == Reason.UP_TO_DATE
            and self.available
            and not (self.events or self.obstacle or self.hold)
        )


def explain_instances(view: Inspection, ids: Iterable[int]) -> list[Explanation]:
    """Returns the explanations of the instances with these numbers, in the given order."""
    rows = {row.id: row for row in view.rows}
    found = []
    for id in ids:
        verdict = view.cases[id].decision
        pod = view.pod(id)
        action, reason = verdict.action.value, verdict.reason.value
        if view.plan.world.tapp.metadata.deletion_timestamp is not None:
            action = Action.ABSENT if pod is None else Action.DELETE
            reason = Reason.DELETING
        found.append(
            Explanation(
                row=rows[id],
                action=action,
                reason=reason,
                available=id in view.plan.available,
                text=view.standings[id].text or f"{verdict.reason}: {verdict.message}",
                containers=_problems_of_pod(view, id, pod),
                events=[describe(event, view.plan.now) for event in of_instance(view, id)],
                obstacle=view.obstacles.by_instance.get(id, ""),
                hold=_hold_line_start(view, id),
            )
        )
    return found


def _hold_line_start(view: Inspection, id: int) -> str:
    """Returns the beginning of the line about the hold of an instance's pod; "" without a hold.

    The caller appends the command that removes the hold. The line has no reason of the hold if the
    hold delays an action now, because the sentence about the decision has it already.
    """
    instance, decision = view.cases[id].instance, view.cases[id].decision
    hold = None if instance.pod is None else instance.pod.spec.hold
    if hold is None or not hold.reason:
        return ""
    if decision.reason is Reason.HELD:
        return "hold: "
    return f"hold: {hold.reason!r}; this delays nothing now; "


def _problems_of_pod(view: Inspection, id: int, pod: Document | None) -> list[str]:
    if pod is None:
        return []
    trouble = view.plan.troubles.get(id)
    well = id in view.plan.available and not (trouble and trouble.text)
    return pod_problems(pod, view.plan.now, well=well)


def why_lines(view: Inspection, ids: Sequence[int], *, everyone: bool) -> list[str]:
    """Returns the output of `why`: a block for each group of equal instances, then the whole TApp.

    `ids` are the instances to explain. `everyone` is True if the user named no instances. Instances
    that are up to date and available then share a single line.
    """
    known = explain_instances(view, ids)
    fine = [case.row.id for case in known if case.is_fine] if everyone else []
    others = [case for case in known if case.row.id not in set(fine)]
    groups = grouped((_grouping_key(case), case) for case in others)
    if len(groups) > _MAX_BLOCKS:
        groups = grouped(((case.text, case.row.state, case.row.template), case) for case in others)
    going = deletion_message(view.observed.tapp)
    result = [f"TApp {view.name} is being deleted", f"    {going}"] if going else []
    result += [view.idle] if view.idle else []
    result += [] if known else [f"TApp {view.name} has no instance: spec.replicas is 0"]
    result += [_fine_line(fine)] if fine else []
    for group in groups.values():
        result += _block(view, group)
    if not going:
        result += budget_block(view) + refused_block(view)
    result += [f"event: {text}" for text in failing_syncs(view)]
    if not going:
        result += next_step_block(view, without=(Remedy.WHY,))
    return result if going else result + reminders_block(view, holds=False)


def _fine_line(ids: Sequence[int]) -> str:
    match = "its pod matches its template and is"
    match = match if len(ids) == 1 else "their pods match their templates and are"
    return f"{instances_phrase(ids)}: UpToDate: {match} available"


def _grouping_key(case: Explanation) -> Hashable:
    """Returns a key for an explanation; instances with equal keys share a block of the output."""
    texts = (case.text, case.hold, *case.containers, None, *case.events)
    return (texts, case.row.state, case.row.ready, case.row.template, case.row.revision)


def _block(view: Inspection, group: Sequence[Explanation]) -> list[str]:
    first, rows = group[0], [case.row for case in group]
    result = [about((row.id for row in rows), first.text)]
    result.append(f"    {_pod_line(view, rows)}")
    if any(_grouping_key(case) != _grouping_key(first) for case in group):
        result.append(f"    for example {first.row.id}:")
    if first.hold:
        held = ranges([case.row.id for case in group if case.hold == first.hold])
        ends = tapp_command(view.observed.tapp, "release", held)
        result.append(f"    {first.hold}{ends} removes the hold")
    result += [f"    {text}" for text in first.containers]
    return result + [f"    event: {text}" for text in first.events]


def _pod_line(view: Inspection, rows: Sequence[Row]) -> str:
    first = rows[0]
    instance = view.cases[first.id].instance
    if instance.pod is None:
        return f"no pod ({first.state}); template {quoted(first.template)}"
    where = f" on {node}" if (node := node_phrase(rows)) else ""
    how_long = f" for {text}" if (text := age_range(rows, view.plan.now)) else ""
    # The line with the verdict above says already that the pod is on hold.
    state = "Running" if first.state == "Held" else first.state
    text = f"{plural(len(rows), 'pod')} {state}{where}{how_long}, {first.ready} containers ready"
    text += f"; template {quoted(first.template)}"
    if first.outdated and instance.template is not None:
        old, new = first.revision or "an unknown revision", instance.template.revision
        text += f"; old revision {old}, new revision {new}"
    return text


def pod_problems(pod: Document, now: float, *, well: bool = False) -> list[str]:
    """Returns a line for each problem that the status of a pod shows: deletion, node, containers.

    `now` is in seconds since the epoch. `well` is True for an available pod, whose earlier failures
    are over: then the lines do not say how containers terminated before their last restart.
    """
    status, metadata = pod.get("status") or {}, pod["metadata"]
    due = seconds(metadata.get("deletionTimestamp"))
    late = (
        [f"pod: should have been deleted {short_duration(now - due)} ago"]
        if UNKNOWN < due < now
        else []
    )
    if due != UNKNOWN and (held := metadata.get("finalizers")):
        late.append(f"pod: its deletion waits for the finalizers {', '.join(held)}")
    why = [status.get("reason"), status.get("message")]
    result = [*late, *([f"pod: {': '.join(text for text in why if text)}"] if any(why) else [])]
    scheduled = conditions_by_type(pod).get("PodScheduled") or {}
    if scheduled.get("status") == "False":
        result.append(f"pod: no node: {_reason_and_message(scheduled)}")
    probes = pending_probes(pod)
    for each in container_statuses(pod):
        texts = _container_problems(each, now, probes.get(each.get("name", ""), ""), well=well)
        result += [f"container {each.get('name')}: {text}" for text in texts]
    return result


def _container_problems(status: Document, now: float, probe: str, *, well: bool) -> list[str]:
    state, before = status.get("state") or {}, status.get("lastState") or {}
    result = []
    if waiting := state.get("waiting"):
        result.append(f"waiting: {_reason_and_message(waiting)}")
    if ended := state.get("terminated"):
        if ended.get("exitCode") or not status.get("ready", True):
            result.append(f"terminated {_termination(ended, now)}")
    elif state.get("running") and not status.get("ready"):
        started = short_duration(now - seconds(state["running"].get("startedAt")))
        why = f": its {probe} probe has not passed" if probe else ""
        result.append(f"has run for {started} and is not ready{why}")
    restarts = status.get("restartCount") or 0
    if restarts and not well and (last := before.get("terminated")):
        times = f"restarted {restarts} {plural(restarts, 'time')}"
        result.append(f"{times}; the last time, it terminated {_termination(last, now)}")
    return result


def _reason_and_message(waiting: Document) -> str:
    parts = [waiting.get("reason"), " ".join((waiting.get("message") or "").split())]
    return ": ".join(part for part in parts if part)


def _termination(ended: Document, now: float) -> str:
    reason = f" ({ended['reason']})" if ended.get("reason") else ""
    when = f" {short_duration(now - seconds(at))} ago" if (at := ended.get("finishedAt")) else ""
    text = " ".join((ended.get("message") or "").split())
    return f"with exit code {ended.get('exitCode')}{reason}{when}" + (f": {text}" if text else "")
