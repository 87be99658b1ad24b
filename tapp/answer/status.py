"""The TApp's status: counts, a word per instance, and conditions that say what waits for what.

A report on what was observed. The time of a condition's change is the newest time that the request
itself shows; the sync's own time stands only where something is noted since when (`notCreated`,
`notOwned`, `notExposed`, `settling`, `progressed`).
"""

from dataclasses import replace
from typing import Any

from tapp.answer.kept import kept_back
from tapp.answer.kstatus import for_kstatus
from tapp.answer.noted import failures, settling, turned, undated
from tapp.answer.refusals import refusals
from tapp.decide.instances import Instance
from tapp.decide.judge import Action
from tapp.decide.partition import Partition
from tapp.decide.pulls import pulled_where
from tapp.decide.rollout import BUDGET_REASONS, is_update
from tapp.plan import Plan
from tapp.words.conditions import HARMLESS, Finding, Type
from tapp.words.groups import grouped
from tapp.words.notes import encode_groups, encoded
from tapp.words.ranges import id_list, joined, ranges
from tapp.words.reasons import Disposition, Reason
from tapp.words.times import SKEW, is_written, written
from tapp.words.vocabulary import CONTROLLER_UID, PULLER, InstanceStatus

Document = dict[str, Any]

_CHANGING = (Action.UPDATE, Action.RECREATE, Action.ADOPT)
_ASKING = (Reason.DRAINING, Reason.MARKS_CHANGED, Reason.TEMPLATE_CHANGED)
"""Reasons of marks for an update; others tell a pod of a hold, or that its node is lost."""
_UPDATING = (Reason.RESTART_WAITS, Reason.RESIZING, Reason.RESIZE_DEFERRED)
"""Reasons why nothing is written now for an update that goes on."""
_COUNTS = ("replicas", "readyReplicas", "updatedReplicas")
_SHOWN = 5  # Broken instances that a message describes before it says how many more there are


def summarize(plan: Plan) -> Document:
    """`status` as it is written; Metacontroller adds `observedGeneration`."""
    wanted = [instance for instance in plan.instances if instance.wanted]
    by_template: dict[str, list[int]] = {}
    for instance in plan.instances:
        pod = instance.pod
        if pod is None or pod.completed or not instance.wanted:
            continue
        counts = by_template.get(instance.template.name)
        if counts is None:
            counts = by_template[instance.template.name] = [0, 0, 0]
        counts[0] += 1
        counts[1] += pod.ready is True and pod.running
        counts[2] += instance.updated and not instance.kept
    outdated = ranges(
        instance.id
        for instance, _ in plan.cases
        if instance.should_run
        and instance.pod is not None
        and not (instance.updated or instance.kept)
    )
    noted = {
        "outdated": outdated,
        "held": ranges(i.id for i, decision in plan.cases if decision.reason is Reason.HELD),
        "replacing": plan.replacing,
        "failures": failures(plan, wanted),
        "settling": settling(plan),
        "pulling": encoded(plan.pulls.since),
        "resizing": encoded(plan.resizes.since),
        "turned": turned(plan),
        "unserved": {**plan.marks.unserved_since, **undated(plan)},
        "notCreated": encode_groups(plan.not_created),
        "notOwned": encode_groups(plan.not_owned),
        "notExposed": encode_groups(plan.not_exposed),
        "kept": encode_groups(plan.partition.kept),
        "progressed": encoded(plan.roll.progressed),
    }
    total = [sum(column) for column in zip(*by_template.values(), strict=True)] or [0, 0, 0]
    return {
        "ready": f"{total[1]}/{plan.budgets.should_run}",
        **dict(zip(_COUNTS, total, strict=True)),
        "availableReplicas": len(plan.available),
        **_revisions(plan.partition),
        "scaleLabelSelector": _selector(plan),
        "appStatus": plan.app_status,
        "statuses": {
            str(instance.id): instance.status
            for instance in wanted
            if instance.pod is not None or instance.id not in plan.waiting
        },
        "templates": {
            name: dict(zip(_COUNTS, by_template[name], strict=True)) for name in sorted(by_template)
        },
        **{key: value for key, value in noted.items() if value},
        "conditions": _conditions(plan, wanted),
    }


def _revisions(partition: Partition) -> dict[str, str]:
    found = {"currentRevision": partition.current, "updateRevision": partition.update}
    return {key: revision for key, revision in found.items() if revision}


def _selector(plan: Plan) -> str:
    ours = f"{CONTROLLER_UID}={plan.world.tapp.metadata.uid}"
    pulls = plan.world.tapp.spec.update_strategy.in_place_update_strategy.pre_pull
    return f"{ours},!{PULLER}" if pulls else ours


def _conditions(plan: Plan, wanted: list[Instance]) -> list[Document]:
    refused = refusals(plan)
    degraded = _degraded(refused, _broken(plan, wanted))
    kept = kept_back(plan)
    progressing = _unless_degraded(_progress(plan, refused, kept), degraded, kept)
    ready = _ready(progressing, degraded, kept)
    findings = [_available(plan), progressing, ready, degraded, *refused]
    if not plan.roll.late:
        findings += for_kstatus(progressing, degraded, plan.roll.patience)
    before = {condition.type: condition for condition in plan.world.tapp.status.conditions}
    same = [f.type in before and before[f.type].status == f.status for f in findings]
    newest = "" if all(same) else _newest_time(plan)
    return [
        finding.document(before[finding.type].last_transition_time if unchanged else newest)
        for finding, unchanged in zip(findings, same, strict=True)
    ]


def _newest_time(plan: Plan) -> str:
    """Returns the newest time in the request, of the parent's writes and its pods; "" for none.

    RFC 3339 sorts. A time that is far ahead of the clock, or is none, is no time of a change.
    """
    tapp = plan.world.tapp
    times = [tapp.metadata.creation_timestamp]
    times += [entry.time for entry in tapp.metadata.managed_fields]
    times += [condition.last_transition_time for condition in tapp.status.conditions]
    for pod in plan.world.pods.values():
        times += (pod.ready_since, pod.created)
    latest = written(plan.now + SKEW)
    told = sorted({time for time in times if time <= latest}, reverse=True)
    return next((time for time in told if is_written(time)), "")


def _available(plan: Plan) -> Finding:
    should_run, available = plan.budgets.should_run, len(plan.available)
    rolling = plan.budgets.rolling
    least = rolling.least if rolling.least is not None else should_run
    enough = available >= max(least, min(1, should_run))
    return Finding(
        Type.AVAILABLE,
        "True" if enough else "False",
        Reason.ENOUGH if enough else Reason.TOO_FEW,
        f"{available} of {should_run} instances that should run are available",
    )


def _progress(plan: Plan, refused: list[Finding], kept: str) -> Finding:
    """Returns Progressing; its message names the instances that a partition keeps, too."""
    found = _under_way(plan, refused)
    if not kept or found.reason == Reason.PROGRESS_DEADLINE_EXCEEDED:
        return found
    if found.reason == Reason.COMPLETE:
        total = [instance for instance in plan.instances if instance.should_run]
        done = sum(not instance.kept for instance in total)
        return replace(found, message=f"{done} of {len(total)} updated; {kept}")
    return replace(found, message=f"{found.message}; {kept}")


def _under_way(plan: Plan, refused: list[Finding]) -> Finding:
    for finding in refused:
        if finding.type is Type.STALLED:
            return Finding(Type.PROGRESSING, "False", finding.reason, finding.message)
    numbers: dict[Reason, list[int]] = {}
    updating, deleting, creating = [], [], []
    for instance, verdict in plan.cases:
        numbers.setdefault(verdict.reason, []).append(instance.id)
        marked = verdict.action is Action.MARK and verdict.reason in _ASKING
        later = verdict.reason is Reason.WAITING_FOR_TURN and instance.pod is not None
        if verdict.action in _CHANGING or marked or later or verdict.reason in _UPDATING:
            updating.append(instance.id)
        elif (
            verdict.action is Action.DELETE
            or verdict.reason == Reason.NODE_LOST
            or (verdict.reason == Reason.NODE_SILENT and not instance.should_run)
            or (instance.pod is not None and instance.pod.terminating)
        ):
            deleting.append(instance.id)
        elif verdict.reason is Reason.WAITING_FOR_TURN:
            creating.append(instance.id)
    stuck = [
        instance.id
        for instance, verdict in plan.cases
        if verdict.reason.disposition is Disposition.BLOCKED
    ]
    nothing_there = {i.id for i, verdict in plan.cases if verdict.action is Action.ABSENT}
    unavailable = [
        instance
        for instance in plan.instances
        if instance.should_run
        and instance.id not in plan.available
        and instance.id not in nothing_there
    ]
    resuming = [i.id for i in unavailable if i.status is InstanceStatus.UPDATING]
    updating = list(dict.fromkeys([*updating, *resuming]))
    waiting = numbers.get(Reason.WAITING_FOR_BUDGET, []) + numbers.get(Reason.SPEC_JUST_CHANGED, [])
    doing = {
        Reason.CREATING: numbers.get(Reason.NO_POD, []) + creating,
        Reason.UPDATING: updating,
        Reason.PULLING: numbers.get(Reason.PULLING, []),
        Reason.DELETING: deleting,
        Reason.WAITING_FOR_BUDGET: waiting,
        Reason.WAITING_FOR_INSTANCES: [instance.id for instance in unavailable],
        Reason.HELD: numbers.get(Reason.HELD, []),
        Reason.WAITING_FOR_ORDER: numbers.get(Reason.WAITING_FOR_ORDER, []),
    }
    paused = numbers.get(Reason.PAUSED, [])
    active = {reason: ids for reason, ids in doing.items() if ids}
    if active:
        sentences = [
            f"{_PHRASES.get(reason, reason.lower())}: {id_list(ids)}"
            + (f" ({pulled_where(plan.pulls.going)})" if reason is Reason.PULLING else "")
            + (_arithmetic(plan) if reason is Reason.WAITING_FOR_BUDGET else "")
            + (_waits(plan, unavailable) if reason is Reason.WAITING_FOR_INSTANCES else "")
            for reason, ids in active.items()
        ]
        return Finding(Type.PROGRESSING, "True", next(iter(active)), "; ".join(sentences))
    if paused:
        message = f"updates are paused for instances {id_list(paused)}"
        return Finding(Type.PROGRESSING, "False", Reason.PAUSED, message)
    if stuck:
        message = f"nothing can be done for instances {id_list(stuck)}; see Degraded"
        return Finding(Type.PROGRESSING, "False", Reason.STUCK, message)
    message = "every instance is as the spec asks"
    return Finding(Type.PROGRESSING, "False", Reason.COMPLETE, message)


def _waits(plan: Plan, unavailable: list[Instance]) -> str:
    """Returns what unavailable instances wait for, in brackets, or "" if no pod tells."""
    silent = [item.id for item in unavailable if item.status is InstanceStatus.UNKNOWN]
    parts = [f"nothing is heard of the nodes of {id_list(silent)}"] if silent else []
    waits = grouped(
        (found.waiting, item.id)
        for item in unavailable
        if item.id not in silent
        and (found := plan.troubles.get(item.id)) is not None
        and found.waiting
    )
    parts += [
        f"instance{'s'[: len(ids) != 1]} {id_list(ids)}: {text}" for text, ids in waits.items()
    ]
    return f" ({joined(parts)})" if parts else ""


_PHRASES = {
    Reason.PULLING: "their images are pulled first",
    Reason.WAITING_FOR_BUDGET: "waiting for the budget",
    Reason.WAITING_FOR_INSTANCES: "not yet available",
    Reason.HELD: "on hold",
    Reason.WAITING_FOR_ORDER: "waiting for those before them",
}


def _arithmetic(plan: Plan) -> str:
    """The budget that updates wait for: ` (maxUnavailable 1 of 6; unavailable: 1)`."""
    budgets, rolling_name = plan.budgets, plan.world.tapp.spec.rolling_name
    groups = {
        instance.template.name == rolling_name
        for instance, verdict in plan.cases
        if verdict.reason in BUDGET_REASONS
    }
    limits = [
        f"{budget.name.removeprefix('spec.updateStrategy.')} {budget.value}"
        for rolling, budget in ((False, budgets.force), (True, budgets.rolling))
        if rolling in groups
    ]
    limits = list(dict.fromkeys(limits))
    taken = [i.id for i, verdict in plan.cases if is_update(verdict)]
    unavailable = budgets.should_run - len(plan.available - set(taken))
    return f" ({', '.join(limits)} of {budgets.should_run}; unavailable: {unavailable})"


def _unless_degraded(progressing: Finding, degraded: Finding, kept: str) -> Finding:
    """Points to Degraded where nothing is left to be done, and not all is as the spec asks."""
    if progressing.reason == Reason.COMPLETE and degraded.status == "True":
        message = "nothing is left to be done, or waited for; see Degraded"
        message += f"; {kept}" if kept else ""
        return Finding(Type.PROGRESSING, "False", Reason.COMPLETE, message)
    return progressing


def _ready(progressing: Finding, degraded: Finding, kept: str) -> Finding:
    """The summary that kubectl, kstatus and Argo CD read; its reason names the trouble, if any."""
    if progressing.reason == Reason.COMPLETE and degraded.status == "False":
        reason = Reason.REACHED if kept else Reason.AS_SPECIFIED
        return Finding(Type.READY, "True", reason, progressing.message)
    trouble = degraded if degraded.status == "True" else progressing
    return Finding(Type.READY, "False", trouble.reason, trouble.message)


def _degraded(refused: list[Finding], broken: list[str]) -> Finding:
    harmful = [finding for finding in refused if finding.type not in HARMLESS]
    # That a roll is stalled comes last: what is broken tells why.
    if harmful and not (broken and harmful[0].type is Type.STALLED):
        message = "; ".join(finding.message for finding in harmful)
        return Finding(Type.DEGRADED, "True", harmful[0].type, message)
    if broken:
        more = f" and {len(broken) - _SHOWN} more" if len(broken) > _SHOWN else ""
        return Finding(Type.DEGRADED, "True", Reason.BROKEN, "; ".join(broken[:_SHOWN]) + more)
    message = "nothing is refused and nothing is known to be broken"
    return Finding(Type.DEGRADED, "False", Reason.AS_EXPECTED, message)


def _broken(plan: Plan, wanted: list[Instance]) -> list[str]:
    result = []
    for instance in wanted:
        if instance.status is InstanceStatus.FAILED:
            quote = instance.pod.message if instance.pod is not None else ""
            result.append(f"instance {instance.id} has failed" + (f" ({quote})" if quote else ""))
        elif (found := plan.troubles.get(instance.id)) is not None and found.text:
            result.append(f"instance {instance.id}: {found.text}{_next_pod(instance)}")
    return result


def _next_pod(instance: Instance) -> str:
    if instance.pace is None or instance.pace.is_due:
        return ""
    at = written(instance.pace.due + 1)
    return f"; failed pods in a row: {instance.pace.failures}, the next one follows at {at}"
