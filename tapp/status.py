"""The TApp's status: counts, a word per instance, and conditions that say what waits for what.

A report on what was observed, by design section 2. No clock: the time of a condition's change is
the newest time that the request itself shows, so the same request always gives the same bytes.
"""

from typing import Any

from tapp.judge import CURRENT, Action, Instance
from tapp.plan import Plan
from tapp.refusals import SHOWN, Finding, refusals, some
from tapp.vocabulary import CONTROLLER_UID, InstanceStatus

Document = dict[str, Any]

_BROKEN = {
    "CrashLoopBackOff": "CrashLoopBackOff",
    "ImagePullBackOff": "ImagePullBackOff",
    "ErrImagePull": "ImagePullBackOff",  # the two alternate; one word keeps the status still
    "InvalidImageName": "InvalidImageName",
    "ErrImageNeverPull": "ErrImageNeverPull",
    "CreateContainerConfigError": "CreateContainerConfigError",
    "CreateContainerError": "CreateContainerError",
    "RunContainerError": "RunContainerError",
}
_COUNTS = ("replicas", "readyReplicas", "updatedReplicas")
_HARMLESS = {"UnusedTemplates", "ForceDeleteUnsupported"}
"""Refusals that leave every instance as it should be."""


def summarize(plan: Plan) -> Document:
    """`status` as it is written; Metacontroller adds `observedGeneration`."""
    wanted = [instance for instance in plan.instances if instance.wanted]
    by_template: dict[str, list[int]] = {}
    for instance, verdict in zip(plan.instances, plan.verdicts, strict=True):
        pod = instance.pod
        if pod is None or pod.completed or not instance.wanted:
            continue
        counts = by_template.get(instance.template.name)
        if counts is None:
            counts = by_template[instance.template.name] = [0, 0, 0]
        counts[0] += 1
        counts[1] += pod.ready is True and pod.running
        counts[2] += verdict is CURRENT or instance.updated
    replacing = plan.replacing
    total = [sum(column) for column in zip(*by_template.values(), strict=True)] or [0, 0, 0]
    return {
        **dict(zip(_COUNTS, total, strict=True)),
        "availableReplicas": len(plan.available),
        "scaleLabelSelector": f"{CONTROLLER_UID}={plan.world.tapp.metadata.uid}",
        "appStatus": plan.app_status,
        "statuses": {str(instance.id): instance.status for instance in wanted},
        "templates": {
            name: dict(zip(_COUNTS, by_template[name], strict=True)) for name in sorted(by_template)
        },
        **({"replacing": replacing} if replacing else {}),
        "conditions": _conditions(plan, wanted),
    }


def _conditions(plan: Plan, wanted: list[Instance]) -> list[Document]:
    refused = refusals(plan)
    broken = _broken(wanted)
    findings = [
        _available(plan),
        *_progress(plan),
        _degraded(refused, broken),
        *refused,
    ]
    before = {condition.type: condition for condition in plan.world.tapp.status.conditions}
    same = [f.type in before and before[f.type].status == f.status for f in findings]
    newest = "" if all(same) else _newest_time(plan)
    return [
        _written(finding, before[finding.type].last_transition_time if unchanged else newest)
        for finding, unchanged in zip(findings, same, strict=True)
    ]


def _written(finding: Finding, changed_at: str) -> Document:
    """A condition with the time of its last change, as far as any time was observed."""
    document = {
        "type": finding.type,
        "status": finding.status,
        "reason": finding.reason,
        "message": finding.message,
    }
    return {**document, "lastTransitionTime": changed_at} if changed_at else document


def _newest_time(plan: Plan) -> str:
    """The newest time in the request, of the parent's writes and its pods (RFC 3339 sorts)."""
    tapp = plan.world.tapp
    times = [tapp.metadata.creation_timestamp]
    times += [entry.time for entry in tapp.metadata.managed_fields]
    times += [condition.last_transition_time for condition in tapp.status.conditions]
    for pod in plan.world.pods.values():
        times += (pod.ready_since, pod.created)
    return max((time for time in times if time.endswith("Z")), default="")


def _available(plan: Plan) -> Finding:
    should_run, available = plan.budgets.should_run, len(plan.available)
    rolling = plan.budgets.rolling
    least = rolling.least if rolling.least is not None else should_run
    enough = available >= max(least, min(1, should_run))
    return Finding(
        "Available",
        "True" if enough else "False",
        "MinimumInstancesAvailable" if enough else "MinimumInstancesUnavailable",
        f"{available} of {should_run} instances that should run are available",
    )


def _progress(plan: Plan) -> list[Finding]:
    """`Progressing`, and `Ready` (which kstatus and Argo CD read) as its summary."""
    numbers: dict[str, list[int]] = {}
    updating, deleting = [], []
    for instance, verdict in plan.open_cases:
        numbers.setdefault(verdict.reason, []).append(instance.id)
        if verdict.action in (Action.UPDATE, Action.RECREATE, Action.ADOPT):
            updating.append(instance.id)
        elif verdict.action is Action.DELETE or (
            instance.pod is not None and instance.pod.terminating
        ):
            deleting.append(instance.id)
    unavailable = [
        instance
        for instance in plan.instances
        if instance.should_run and instance.id not in plan.available
    ]
    updating += [
        instance.id
        for instance in unavailable
        if instance.status is InstanceStatus.UPDATING and instance.id not in updating
    ]
    doing = {
        "Creating": numbers.get("NoPod", []),
        "Updating": sorted(updating),
        "Deleting": deleting,
        "WaitingForBudget": numbers.get("WaitingForBudget", [])
        + numbers.get("SpecJustChanged", []),
        "WaitingForInstances": [instance.id for instance in unavailable],
    }
    paused = numbers.get("Paused", [])
    stuck = [
        id
        for reason in ("TemplateNotFound", "InvalidBudget", "UnreadablePod", "Blocked")
        for id in numbers.get(reason, [])
    ]
    active = {reason: ids for reason, ids in doing.items() if ids}
    if active:
        reason = next(iter(active))
        message = "; ".join(f"{_words(reason)}: {some(ids)}" for reason, ids in active.items())
        progressing = Finding("Progressing", "True", reason, message)
    elif paused:
        message = f"updates are paused for instances {some(paused)}"
        progressing = Finding("Progressing", "False", "Paused", message)
    elif stuck:
        message = f"nothing can be done for instances {some(sorted(stuck))}; see Degraded"
        progressing = Finding("Progressing", "False", "Stuck", message)
    else:
        message = "every instance is as the spec asks"
        progressing = Finding("Progressing", "False", "Complete", message)
    ready = progressing.reason == "Complete"
    return [
        progressing,
        Finding(
            "Ready",
            "True" if ready else "False",
            "AsSpecified" if ready else progressing.reason,
            progressing.message,
        ),
    ]


def _words(reason: str) -> str:
    return {
        "WaitingForBudget": "waiting for the update budget",
        "WaitingForInstances": "not yet available",
    }.get(reason, reason.lower())


def _degraded(refused: list[Finding], broken: list[str]) -> Finding:
    harmful = [finding for finding in refused if finding.type not in _HARMLESS]
    if harmful:
        message = "; ".join(finding.message for finding in harmful)
        return Finding("Degraded", "True", harmful[0].type, message)
    if broken:
        more = f" and {len(broken) - SHOWN} more" if len(broken) > SHOWN else ""
        return Finding("Degraded", "True", "InstancesBroken", "; ".join(broken[:SHOWN]) + more)
    return Finding("Degraded", "False", "AsExpected", "nothing is refused and nothing is broken")


def _broken(wanted: list[Instance]) -> list[str]:
    """A sentence per instance that will not get well by waiting alone."""
    result = []
    for instance in wanted:
        pod = instance.pod
        if instance.status is InstanceStatus.FAILED:
            result.append(f"instance {instance.id} has failed")
        elif pod is not None and pod.ready is not True and not pod.completed:
            for container in pod.containers:
                waiting = container.state.waiting if container.state is not None else None
                reason = _BROKEN.get(waiting.reason or "") if waiting is not None else None
                if reason:
                    result.append(f"instance {instance.id}: container {container.name}: {reason}")
    return result
