"""The decisions of a sync for a person: `POST /plan`, and the counts in the log."""

from collections import Counter
from typing import Any

from tapp.judge import CURRENT
from tapp.plan import Plan
from tapp.refusals import refusals


def explain(plan: Plan) -> dict[str, Any]:
    """Every instance's verdict with its reason, the budgets, and what becomes of the claims."""
    budgets = plan.budgets
    return {
        "instances": [
            {
                "id": instance.id,
                "status": instance.status.value,
                "template": instance.template.name,
                "available": instance.id in plan.available,
                "action": verdict.action.value,
                "reason": verdict.reason,
                "message": verdict.message,
            }
            for instance, verdict in zip(plan.instances, plan.verdicts, strict=True)
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
            "keep": [claim.metadata.name for claim in plan.claims.keep],
            "create": [claim.name for claim in plan.claims.create],
            "delete": [claim.metadata.name for claim in plan.claims.delete],
        },
        "refused": [
            {"type": found.type, "reason": found.reason, "message": found.message}
            for found in refusals(plan)
        ],
    }


def counts(plan: Plan) -> dict[str, dict[str, int]]:
    """How many instances each action and each reason has: for the log and the metrics."""
    actions = Counter([verdict.action.value for _, verdict in plan.open_cases])
    reasons = Counter([verdict.reason for _, verdict in plan.open_cases])
    current = len(plan.verdicts) - len(plan.open_cases)
    if current:
        actions[CURRENT.action.value] += current
        reasons[CURRENT.reason] += current
    return {"actions": dict(sorted(actions.items())), "reasons": dict(sorted(reasons.items()))}
