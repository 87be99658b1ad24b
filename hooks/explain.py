"""Explains the decisions of a sync: the response of `POST /plan`, and counts for the log."""

from collections import Counter
from typing import Any

from tapp.answer.refusals import refusals
from tapp.decide.changes import Mark
from tapp.decide.pod_holds import PENDING_ACTIONS, carried_markers
from tapp.decide.verdicts import UP_TO_DATE
from tapp.plan import Plan
from tapp.words.kinds import DISRUPTION_BUDGET, SERVICE
from tapp.words.quoted import short

_LONGEST = 1_000  # Characters of a text that quotes the author, which is there for each instance


def explain(plan: Plan) -> dict[str, Any]:
    """Returns the response of `POST /plan` (docs/endpoints.md).

    An invalid budget is null. `services` exists if the CompositeController declares Services, and
    `disruptionBudgets` if it declares PodDisruptionBudgets. `claims.grow` exists if a claim grows,
    and `claims.modify` if a claim gets another VolumeAttributesClass (null if it loses its class).
    """
    budgets, storage = plan.budgets, plan.findings.storage
    claims, history, services = storage.claims, storage.history, storage.services
    grow = {"grow": storage.growth.to} if storage.growth.to else {}
    modify = {"modify": storage.modification.to} if storage.modification.to else {}
    answer: dict[str, Any] = {
        "instances": [
            {
                "id": case.instance.id,
                "status": case.instance.status,
                "template": short(case.instance.template_name, _LONGEST),
                "available": case.instance.id in plan.available,
                "action": case.decision.action,
                "reason": case.decision.reason,
                "message": short(case.decision.message, _LONGEST),
            }
            for case in plan.cases
        ],
        "budget": {
            "shouldRun": budgets.should_run,
            "available": len(plan.available),
            "rollingTemplate": plan.world.tapp.spec.rolling_name,
            "rollingMustStayAvailable": budgets.rolling.least,
            "forceMustStayAvailable": budgets.force.least,
            "paused": budgets.strategy.paused,
        },
        "claims": {
            "keep": [claim.metadata.name for claim in claims.keep],
            "create": [claim.name for claim in claims.create],
            "delete": [claim.metadata.name for claim in claims.delete],
            **grow,
            **modify,
        },
        "revisions": {
            "keep": [revision.metadata.name for revision in history.keep],
            "create": [record.name for record in history.create],
            "delete": [revision.metadata.name for revision in history.delete],
        },
        "refused": [
            {"type": found.type, "reason": found.reason, "message": found.message}
            for found in refusals(plan)
        ],
    }
    if SERVICE in plan.world.declared.plain:
        answer["services"] = {
            "keep": [service.name for service in services.keep],
            "apply": [service["metadata"]["name"] for service in services.apply.values()],
            "delete": services.delete,
        }
    if DISRUPTION_BUDGET in plan.world.declared.plain:
        evictions = storage.disruption_budget
        applied = [] if evictions.apply is None else [evictions.apply]
        answer["disruptionBudgets"] = {
            "keep": [budget.name for budget in evictions.keep],
            "apply": [budget["metadata"]["name"] for budget in applied],
            "delete": evictions.delete,
        }
    return answer


def counts(plan: Plan) -> dict[str, dict[str, int]]:
    """Returns how many instances have each action, and how many have each reason of a decision."""
    actions = Counter([case.decision.action.value for case in plan.notable])
    reasons = Counter({reason: len(cases) for reason, cases in plan.by_reason.items()})
    current = len(plan.cases) - len(plan.notable)
    if current:
        actions[UP_TO_DATE.action.value] += current
        reasons[UP_TO_DATE.reason] += current
    return {"actions": dict(sorted(actions.items())), "reasons": dict(sorted(reasons.items()))}


def holds(plan: Plan) -> dict[str, int]:
    """Counts pods on hold, for the metrics.

    Returns `asked` -> pods to which a delayed action is written for the first time. Returns
    `expired` -> pods that are changed because the time limit of their hold has passed.
    """
    found, requests = {"asked": 0, "expired": 0}, plan.findings.holds.requests
    for case in plan.notable if requests else ():
        pod, decision = case.instance.pod, case.decision
        request = None if pod is None else requests.get(pod.name)
        if request is None or pod is None:
            continue
        if isinstance(decision.change, Mark):
            found["asked"] += request.action != carried_markers(pod).wanted
        elif decision.action in PENDING_ACTIONS:
            found["expired"] += request.expired
    return found
