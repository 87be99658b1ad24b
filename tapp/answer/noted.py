"""The notes in the TApp's status: data of this sync that later syncs need.

Nothing that a decision depends on stays in the memory of a worker, so any replica of the service
may handle the next sync. `tapp/words/notes.py` defines the form of each note.
"""

from typing import Any

from tapp.decide.cases import Case, ids_of
from tapp.decide.rollout import BUDGET_REASONS
from tapp.decide.serving import ServingState
from tapp.decide.verdicts import Action
from tapp.plan import Plan
from tapp.words.notes import ReadyNote, UpdateNote, encode_groups, encode_names, encoded
from tapp.words.ranges import ranges
from tapp.words.reasons import Reason
from tapp.words.times import UNKNOWN, noted_since, written


def notes_of(plan: Plan) -> dict[str, Any]:
    """Returns data of this sync that later syncs need, as fields of the status.

    Empty fields are left out.
    """
    findings = plan.findings
    notes = {
        "outdated": _outdated(plan),
        "held": ranges(ids_of(plan.by_reason.get(Reason.HELD, []))),
        "replacing": _replacing(plan),
        "failures": _failures(plan),
        "settling": _settling(plan),
        "pulling": encoded(findings.pulls.since),
        "resizing": encoded(findings.resizes.since),
        "turned": _turned(plan),
        "unserved": {**findings.markers.unserved_since, **_undated(plan)},
        "notCreated": encode_groups(findings.missing.pods),
        "notOwned": encode_groups(findings.missing.claims),
        "notExposed": encode_groups(findings.missing.services),
        "unguarded": next(iter(findings.missing.disruption_budget), ""),
        "kept": encode_groups(plan.partition.kept),
        "progressed": encoded(findings.rollout.progressed),
    }
    return {key: value for key, value in notes.items() if value}


def _outdated(plan: Plan) -> str:
    """Returns the instances whose pod runs an older revision although no partition keeps it.

    The instances are written as ranges of numbers, such as `0-3,7`.
    """
    return ranges(
        case.instance.id
        for case in plan.notable
        if case.instance.should_run
        and case.instance.pod is not None
        and not (case.instance.updated or case.instance.kept)
    )


def _replacing(plan: Plan) -> dict[str, str]:
    """Returns instance number -> uid of its pod, for pods that are replaced while not available.

    The entry stays while the instance waits for the budget, because the requests may not show the
    deletion of its pod yet. A killed instance keeps the entry of its completed pod, too. If a user
    starts the instance again before that pod is gone, the pod does not make the instance finished.
    """
    return {
        str(instance.id): instance.pod.uid
        for case in plan.notable
        if (instance := case.instance).pod is not None
        and instance.pod.uid
        and instance.id not in plan.available
        and (
            case.decision.action is Action.RECREATE
            or instance.leaving
            or (
                plan.serving.states.get(instance.id) is ServingState.DELETION_UNCONFIRMED
                and _waits(case)
            )
        )
    }


def _waits(case: Case) -> bool:
    """Returns True if the verdict on an instance is not carried out in this sync.

    That is so if the instance waits for the budget or for the end of a hold, or if a label or
    annotation is written to its pod first.
    """
    delay = case.delay
    return case.step is not None or (
        delay is not None and delay.reason in (*BUDGET_REASONS, Reason.HELD)
    )


def _failures(plan: Plan) -> dict[str, int]:
    """Returns instance number -> number of its failed pods in a row.

    Only instances that should run and have failures are included: those whose completed pod waits
    for its replacement, and those that have no pod at the moment.
    """
    noted, result = plan.world.tapp.status.failures, {}
    for instance in plan.instances:
        if not instance.should_run:
            continue
        if instance.pace is not None:
            result[str(instance.id)] = instance.pace.failures
        elif noted and (instance.pod is None or instance.pod.terminating):
            before = noted.get(str(instance.id), 0)
            if before > 0:
                result[str(instance.id)] = before
    return result


def _settling(plan: Plan) -> dict[str, str]:
    """Returns update in place -> time of the first sync that had to wait for its completion.

    Only elapsed time can show that these updates are complete, and it counts from that sync. A key
    is an encoded `UpdateNote`: instance number and generation of the pod.
    """
    noted = plan.world.tapp.status.settling
    keys = [
        UpdateNote(instance.id, instance.pod.generation).encode()
        for instance in plan.instances
        if instance.update.start_clock and instance.pod is not None and instance.wanted
    ]
    return {key: noted_since(noted.get(key, ""), plan.now)[0] for key in keys}


def _undated(plan: Plan) -> dict[str, str]:
    """Returns instance and state of Ready -> time of the first sync that saw this state.

    A key is an encoded `ReadyNote`. Only pods whose condition Ready has no usable time are
    included.
    """
    return encoded(
        {
            ReadyNote(instance.id, instance.pod.ready is True): written(instance.seen_since)
            for instance in plan.instances
            if instance.seen_since != UNKNOWN and instance.pod is not None
        }
    )


def _turned(plan: Plan) -> dict[str, str]:
    """Returns update in place -> names of the containers that the kubelet is about to restart.

    The kubelet has seen the newest spec, and the containers were still the old ones. A key is an
    encoded `UpdateNote`: instance number and generation of the pod.
    """
    return encoded(
        {
            UpdateNote(instance.id, instance.pod.generation): encode_names(
                instance.update.seen_by_kubelet
            )
            for instance in plan.instances
            if instance.update.seen_by_kubelet and instance.pod is not None and instance.wanted
        }
    )
