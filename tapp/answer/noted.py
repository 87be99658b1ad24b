"""The notes in the TApp's status: data of this sync that later syncs need.

Decisions depend only on the request, never on the memory of a worker. So any replica of the service
may handle the next sync. `tapp/words/notes.py` defines the form of each note.
"""

from typing import Any

from tapp.answer.kstatus import waits_of
from tapp.decide.cases import Case, ids_of
from tapp.decide.instances import Instance
from tapp.decide.rollout import BUDGET_REASONS
from tapp.decide.serving import ServingState
from tapp.decide.verdicts import Action
from tapp.plan import Plan
from tapp.words.notes import (
    ReadyNote,
    RolledBackNote,
    UpdateNote,
    encode_groups,
    encode_names,
    encode_rolled_back,
    encoded,
)
from tapp.words.ranges import ranges
from tapp.words.reasons import Reason
from tapp.words.times import UNKNOWN, noted_since, written


def notes_of(plan: Plan) -> dict[str, Any]:
    """Returns the notes of this sync, as fields of the TApp's status.

    Notes without content are left out.
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
        "rolledBack": encode_rolled_back(_rolled_back(plan)),
    }
    return {key: value for key, value in notes.items() if value}


def _rolled_back(plan: Plan) -> list[RolledBackNote]:
    """Returns the notes about rollbacks, with that of the rollback that this sync decides."""
    rollback = plan.rollback
    # The rollout has just completed.
    if rollback.active is None and plan.partition.current == rollback.update:
        return []
    begun = [RolledBackNote(rollback.update, written(plan.now), waits_of(plan))]
    return [*rollback.notes.values(), *(begun if rollback.begins else [])]


def _outdated(plan: Plan) -> str:
    """Returns the instances that should be updated: their pod runs an older revision.

    Instances that a partition keeps at an older revision are not included, nor are those that a
    rollback has brought back. The result has ranges of
    instance numbers, such as `0-3,7`.
    """
    return ranges(
        case.instance.id
        for case in plan.notable
        if case.instance.should_run
        and case.instance.pod is not None
        and not (case.instance.updated or _stays(case.instance))
    )


def _stays(instance: Instance) -> bool:
    """Returns True if an instance is kept at the older revision that its pod runs.

    During a rollback, an instance that still has to return to the older revision does not stay.
    """
    return instance.kept != "" and not instance.is_rolled_back


def _replacing(plan: Plan) -> dict[str, str]:
    """Returns instance number -> uid of its pod, for pods that are replaced while not available.

    The entry stays while the instance waits for the budget, because later requests may not show the
    deletion of its pod yet. The entry of a completed pod also stays if a user kills its instance.
    If the user starts the instance again before its old pod is gone, the completed pod must not
    make the instance count as finished.
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
    """Returns True if this sync does not carry out the verdict on an instance.

    The verdict has to wait if:

    - the instance waits for the budget, for another failure domain or for the end of a hold, or
    - the service first writes a label or annotation to its pod (`case.step`).
    """
    delay = case.delay
    return case.step is not None or (
        delay is not None
        and delay.reason in (*BUDGET_REASONS, Reason.WAITING_FOR_DOMAIN, Reason.HELD)
    )


def _failures(plan: Plan) -> dict[str, int]:
    """Returns instance number -> number of its pods that failed one after the other.

    Only instances that should run have an entry, and only in two cases:

    - The pod of the instance ended soon after its creation and waits to be replaced. This pod
      counts.
    - The instance has no pod, or its pod is being deleted. The number in the observed status stays.
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
    """Returns update in place -> time of the first sync that waited for its completion.

    The status of some pods cannot show that an update is complete. Only updates of these pods are
    included. Each of them counts as complete some time after the noted time. A key is an encoded
    `UpdateNote`: instance number and generation of the pod.
    """
    noted = plan.world.tapp.status.settling
    keys = [
        UpdateNote(instance.id, instance.pod.generation).encode()
        for instance in plan.instances
        if instance.update.start_clock and instance.pod is not None and instance.wanted
    ]
    return {key: noted_since(noted.get(key, ""), plan.now)[0] for key in keys}


def _undated(plan: Plan) -> dict[str, str]:
    """Returns instance and status of Ready -> time of the first sync that saw this status.

    Only pods whose condition Ready has no usable time are included. A key is an encoded
    `ReadyNote`.
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

    The kubelet has observed the newest pod spec, but the status still shows the old containers. A
    key is an encoded `UpdateNote`: instance number and generation of the pod.
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
