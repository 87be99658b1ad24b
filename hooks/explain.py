"""The decisions of a sync for a person: `POST /plan`, and the counts in the log."""

from collections import Counter

import msgspec

from tapp.answer.refusals import refusals
from tapp.decide.changes import Mark
from tapp.decide.judge import UP_TO_DATE, Action
from tapp.decide.pod_holds import WISHES, carried_marks
from tapp.plan import Plan
from tapp.words.kinds import SERVICE
from tapp.words.quoted import short
from tapp.words.vocabulary import InstanceStatus

_LONGEST = 1_000  # Characters of a text in it that quotes its author, once for each instance


class _Part(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A part of the explanation; its keys are its fields' names in camel case."""


class InstancePlan(_Part, frozen=True):
    """One instance, its verdict, and whether it is available."""

    id: int
    status: InstanceStatus
    template: str
    available: bool
    action: Action
    reason: str
    message: str


class BudgetPlan(_Part, frozen=True):
    """Both budgets; null stands for one that makes no sense."""

    should_run: int
    available: int
    rolling_template: str
    rolling_must_stay_available: int | None
    force_must_stay_available: int | None
    paused: bool


class ClaimsPlan(_Part, frozen=True, omit_defaults=True):
    """Names of the claims that stay, are made, and go; of those that stay, which grow to what."""

    keep: list[str]
    create: list[str]
    delete: list[str]
    grow: dict[str, str] = {}


class RevisionsPlan(_Part, frozen=True):
    """Names of the ControllerRevisions that stay, are made, and go."""

    keep: list[str]
    create: list[str]
    delete: list[str]


class ServicesPlan(_Part, frozen=True):
    """Names of the Services that stay as they are, are made or brought to the template, and go."""

    keep: list[str]
    apply: list[str]
    delete: list[str]


class Refused(_Part, frozen=True):
    """Something that is refused or ignored, as the condition says it."""

    type: str
    reason: str
    message: str


class Explanation(_Part, frozen=True, omit_defaults=True):
    """The answer of `POST /plan`; `services` where the registration has them."""

    instances: list[InstancePlan]
    budget: BudgetPlan
    claims: ClaimsPlan
    revisions: RevisionsPlan
    refused: list[Refused]
    services: ServicesPlan | None = None


def explain(plan: Plan) -> Explanation:
    """Every instance's verdict, the budgets, and what becomes of claims and revisions."""
    budgets, claims, history = plan.budgets, plan.claims, plan.history
    return Explanation(
        instances=[
            InstancePlan(
                id=instance.id,
                status=instance.status,
                template=short(instance.template.name, _LONGEST),
                available=instance.id in plan.available,
                action=verdict.action,
                reason=verdict.reason,
                message=short(verdict.message, _LONGEST),
            )
            for instance, verdict in zip(plan.instances, plan.decisions, strict=True)
        ],
        budget=BudgetPlan(
            should_run=budgets.should_run,
            available=len(plan.available),
            rolling_template=plan.world.tapp.spec.rolling_name,
            rolling_must_stay_available=budgets.rolling.least,
            force_must_stay_available=budgets.force.least,
            paused=budgets.strategy.paused,
        ),
        claims=ClaimsPlan(
            keep=[claim.metadata.name for claim in claims.keep],
            create=[claim.name for claim in claims.create],
            delete=[claim.metadata.name for claim in claims.delete],
            grow=plan.growth.to,
        ),
        revisions=RevisionsPlan(
            keep=[revision.metadata.name for revision in history.keep],
            create=[record.name for record in history.create],
            delete=[revision.metadata.name for revision in history.delete],
        ),
        refused=[Refused(found.type, str(found.reason), found.message) for found in refusals(plan)],
        services=_services(plan) if SERVICE in plan.world.declared.plain else None,
    )


def _services(plan: Plan) -> ServicesPlan:
    found = plan.services
    return ServicesPlan(
        keep=[service.name for service in found.keep],
        apply=[service["metadata"]["name"] for service in found.apply.values()],
        delete=found.delete,
    )


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
