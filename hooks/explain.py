"""The decisions of a sync for a person: `POST /plan`, and the counts in the log."""

from collections import Counter
from typing import Any

from tapp.answer.refusals import refusals
from tapp.decide.changes import Mark
from tapp.decide.judge import UP_TO_DATE
from tapp.decide.pod_holds import WISHES, carried_marks
from tapp.plan import Plan
from tapp.words.kinds import SERVICE
from tapp.words.quoted import short

_LONGEST = 1_000  # Characters of a text in it that quotes its author, once for each instance


def explain(plan: Plan) -> dict[str, Any]:
    """The answer of `POST /plan` (docs/protocol.md): verdicts, budgets, what becomes of children.

    A budget that makes no sense is null; `services` are there where the registration has them, and
    `claims.grow`, name -> storage, where any of those that stay grows.
    """
    budgets, claims, history, services = plan.budgets, plan.claims, plan.history, plan.services
    grow = {"grow": plan.growth.to} if plan.growth.to else {}
    answer: dict[str, Any] = {
        "instances": [
            {
                "id": instance.id,
                "status": instance.status,
                "template": short(instance.template.name, _LONGEST),
                "available": instance.id in plan.available,
                "action": verdict.action,
                "reason": verdict.reason,
                "message": short(verdict.message, _LONGEST),
            }
            for instance, verdict in zip(plan.instances, plan.decisions, strict=True)
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
    return answer


def counts(plan: Plan) -> dict[str, dict[str, int]]:
    """Counts of instances by action and by reason: for the log and the metrics."""
    actions = Counter([verdict.action.value for _, verdict in plan.cases])
    reasons = Counter([verdict.reason for _, verdict in plan.cases])
    current = len(plan.decisions) - len(plan.cases)
    if current:
        actions[UP_TO_DATE.action.value] += current
        reasons[UP_TO_DATE.reason] += current
    return {"actions": dict(sorted(actions.items())), "reasons": dict(sorted(reasons.items()))}


def holds(plan: Plan) -> dict[str, int]:
    """Holds on pods, for the metrics: pods that are told what is wanted, and limits that passed."""
    found = {"asked": 0, "expired": 0}
    for instance, decision in plan.cases:
        pod = instance.pod
        asked = None if pod is None else plan.pod_holds.asked.get(pod.name)
        if asked is None or pod is None:
            continue
        if isinstance(decision.change, Mark):
            found["asked"] += asked.wish != carried_marks(pod).wanted
        elif decision.action in WISHES:
            found["expired"] += asked.expired
    return found
