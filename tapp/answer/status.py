"""The TApp's status: counts, a state for each instance, notes for later syncs, and conditions.

The status depends only on the request, so a repeated sync writes the same status. That is why a
changed condition gets the newest time in the request. Only notes about the time since when a
situation exists contain the time of the sync (`noted.py`).
"""

from typing import Any

from tapp.answer.conditions import Conditions
from tapp.answer.noted import notes_of
from tapp.decide.partition import Partition
from tapp.plan import Plan
from tapp.words.times import SKEW, is_written, written
from tapp.words.vocabulary import CONTROLLER_UID, PULLER

Document = dict[str, Any]

_COUNTS = ("replicas", "readyReplicas", "updatedReplicas")


def status_of(plan: Plan, conditions: Conditions) -> Document:
    """Returns the new status of the TApp. Metacontroller adds `observedGeneration`.

    Args:
        plan: the decisions of this sync.
        conditions: the conditions of this sync.
    """
    by_template: dict[str, list[int]] = {}
    for instance in plan.instances:
        pod = instance.pod
        if pod is None or pod.completed or not instance.wanted:
            continue
        counts = by_template.get(instance.template_name)
        if counts is None:
            counts = by_template[instance.template_name] = [0, 0, 0]
        counts[0] += 1
        counts[1] += pod.ready is True and pod.running
        counts[2] += instance.updated and not instance.kept
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
            for instance in plan.instances
            if instance.wanted
            # An instance without a pod that waits for its turn (OrderedReady) is left out, because
            # the service has not requested its pod yet.
            and (instance.pod is not None or not plan.findings.is_created_later(instance.id))
        },
        "templates": {
            name: dict(zip(_COUNTS, by_template[name], strict=True)) for name in sorted(by_template)
        },
        **notes_of(plan),
        "conditions": _documents(plan, conditions),
    }


def _revisions(partition: Partition) -> dict[str, str]:
    """Returns the fields `currentRevision` and `updateRevision` of the status.

    A field is left out if its revision is not known.
    """
    found = {"currentRevision": partition.current, "updateRevision": partition.update}
    return {key: revision for key, revision in found.items() if revision}


def _selector(plan: Plan) -> str:
    """Returns the label selector of the instances' pods, for HorizontalPodAutoscalers.

    With `prePull`, the selector excludes pullers, the pods that only pull images.
    """
    ours = f"{CONTROLLER_UID}={plan.world.tapp.metadata.uid}"
    pulls = plan.world.tapp.spec.update_strategy.in_place_update_strategy.pre_pull
    return f"{ours},!{PULLER}" if pulls else ours


def _documents(plan: Plan, conditions: Conditions) -> list[Document]:
    """Returns the conditions as JSON, with the times of their last changes.

    A condition whose status has not changed keeps its time. A changed condition gets the newest
    time in the request (`_newest_time`).
    """
    findings = conditions.all
    before = {condition.type: condition for condition in plan.world.tapp.status.conditions}
    same = [f.type in before and before[f.type].status == f.status for f in findings]
    newest = "" if all(same) else _newest_time(plan)
    return [
        finding.document(before[finding.type].last_transition_time if unchanged else newest)
        for finding, unchanged in zip(findings, same, strict=True)
    ]


def _newest_time(plan: Plan) -> str:
    """Returns the newest time in the request at which the TApp or one of its pods changed.

    Times are RFC 3339, so they are compared as texts. Invalid times and times far in the future are
    ignored. Returns an empty string if no time is left.
    """
    tapp = plan.world.tapp
    times = [tapp.metadata.creation_timestamp]
    times += [entry.time for entry in tapp.metadata.managed_fields]
    times += [condition.last_transition_time for condition in tapp.status.conditions]
    for pod in plan.world.pods.values():
        times += (pod.ready_since, pod.created)
    latest = written(plan.now + SKEW)
    candidates = sorted({time for time in times if time <= latest}, reverse=True)
    return next((time for time in candidates if is_written(time)), "")
