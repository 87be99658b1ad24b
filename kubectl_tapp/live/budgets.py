"""The budget on the page: the numbers of its bar, and a sentence for each field that sets a
budget.
"""

from typing import Any

from kubectl_tapp.base.words import instances_phrase
from kubectl_tapp.decide.budget import Limit, are, domain_phrase, eviction_limit, limits
from kubectl_tapp.decide.inspection import Inspection
from tapp.words.ranges import id_list, name_list


def budget_model(view: Inspection) -> dict[str, Any]:
    """Returns the numbers of the rolling budget for its bar, and sentences about all budgets that
    apply.
    """
    plan, serving = view.plan, view.serving
    rolling, other = limits(plan)
    updated = set(view.updated_now)
    gone = [
        each.id
        for each in plan.instances
        if each.should_run and (each.id not in plan.available or each.id in updated)
    ]
    spec = plan.world.tapp.spec
    sentences = []
    if rolling.instances or not other.instances:
        sentences.append(_sentence(rolling, f"template {spec.rolling_name}", serving))
    if domain := domain_phrase(spec.update_strategy.domain):
        sentences.append(f"Updates: {domain}.")
    names = sorted({i.template_name for i in plan.instances if i.should_run} - {spec.rolling_name})
    if names:
        several = "template" if len(names) == 1 else "templates"
        sentences.append(_sentence(other, f"{several} {name_list(names)}", serving))
    if (evictions := eviction_limit(plan)) is not None:
        sentences.append(_sentence(evictions, "evictions", serving))
    if gone:
        verb = "uses" if len(gone) == 1 else "use"
        who = f"{instances_phrase(gone).capitalize()} {are(len(gone))} unavailable"
        sentences.append(f"{who} and {verb} up the budget: {rolling.allowance(serving)}.")
    elif rolling.should_run:
        number = "The instance is" if rolling.should_run == 1 else "All instances are"
        sentences.append(f"{number} available: {rolling.allowance(serving)}.")
    return {
        "of": rolling.should_run,
        "must": rolling.must_stay_available,
        "may": rolling.may_become_unavailable(serving),
        "gone": len(gone),
        "ids": id_list(gone),
        "have": serving,
        "allowed": rolling.allowed or 0,
        "sentences": sentences,
    }


def _sentence(limit: Limit, whose: str, serving: int) -> str:
    """Returns a sentence about a budget: its field, its value, and how many have to stay available.

    `whose` is a phrase that names the templates under this budget, or says that the budget is for
    evictions. `serving` is the number of available instances.
    """
    if limit.allowed is None:
        return limit.problem
    name = limit.name.removeprefix("spec.updateStrategy.")
    value = f"{limit.value}" if limit.value == limit.allowed else f"{limit.value} ({limit.allowed})"
    most = min(limit.allowed, limit.should_run)
    must = limit.must_stay_available
    keeps = f"{must} must stay available" if must else "none has to stay available"
    return (
        f"{name} {value} of {limit.should_run} (for {whose}): at most {most} may be unavailable at "
        f"a time, so {keeps}; {serving} {are(serving)} available now."
    )
