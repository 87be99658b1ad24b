"""Phrases and blocks of lines that `status`, `why` and the page share."""

from collections.abc import Iterable

from kubectl_tapp.base.hints import tapp_command
from kubectl_tapp.base.words import instances_phrase, plural, short_duration
from kubectl_tapp.decide.budget import are, domain_phrase, eviction_limit, limits
from kubectl_tapp.decide.inspection import Inspection, Row
from tapp.answer.partition_sentence import kept_back
from tapp.decide.cases import ids_of
from tapp.words.advice import advice_on
from tapp.words.quoted import quoted
from tapp.words.ranges import name_list
from tapp.words.reasons import Reason


def age_range(rows: Iterable[Row], now: float) -> str:
    """Returns how long the instances of `rows` have been in their state: one age such as `3m`, or a
    range such as `10s..3m`.

    Returns "" if no row has a time. `now` is in seconds since the epoch.
    """
    ages = sorted(now - row.since for row in rows if row.since is not None)
    if not ages:
        return ""
    first, last = short_duration(ages[0]), short_duration(ages[-1])
    return first if first == last else f"{first}..{last}"


def node_phrase(rows: Iterable[Row]) -> str:
    """Returns the name of the node on which the pods of these rows run, or the number of nodes if
    there are several.

    Returns "" if no row has a node.
    """
    nodes = {row.node for row in rows if row.node}
    return next(iter(nodes), "") if len(nodes) <= 1 else f"{len(nodes)} nodes"


def budget_lines(view: Inspection) -> list[str]:
    """Returns the numbers of the budgets as sentences, one line each.

    The first line says how many instances should run and how many are available. The other lines
    say how many more instances may become unavailable, by updates under each budget and by
    evictions.
    """
    plan = view.plan
    unavailable = [i.id for i in plan.instances if i.should_run and i.id not in plan.available]
    count = len(plan.available)
    text = f"{count} of {plan.budgets.should_run} instances {are(count)} available"
    if unavailable:
        text += f" ({instances_phrase(unavailable)} {are(len(unavailable))} not)"
    if view.updated_now:
        updated = list(view.updated_now)
        text += f", {instances_phrase(updated)} {are(len(updated))} being updated now"
    if plan.budgets.strategy.paused:
        text += "; updates are paused"
    rolling, force = limits(plan)
    name = plan.world.tapp.spec.rolling_name
    lines = [text]
    if rolling.instances or not force.instances:
        lines.append(f"template {quoted(name)}: {rolling.sentence_now(view.serving)}")
    if domain := domain_phrase(plan.world.tapp.spec.update_strategy.domain):
        lines.append(f"updates: {domain}")
    others = sorted({i.template_name for i in plan.instances if i.should_run} - {name})
    if others:
        names = name_list([quoted(each) for each in others])
        who = f"{plural(len(others), 'template')} {names}"
        lines.append(f"{who}: {force.sentence_now(view.serving)}")
    if (evictions := eviction_limit(plan)) is not None:
        lines.append(f"evictions: {evictions.sentence_now(view.serving)}")
    return lines


def budget_block(view: Inspection) -> list[str]:
    """Returns the sentences of `budget_lines` as lines for a terminal, preceded by an empty
    line.
    """
    first, *rest = budget_lines(view)
    return ["", f"budget: {first}", *(f"  {line}" for line in rest)]


def continuation_block(view: Inspection) -> list[str]:
    """Returns lines with the commands that continue updates which a partition or a pause holds
    back.

    The first line is empty. The list is empty if no update is held back.
    """
    plan = view.plan
    found = [f"partition: {kept}"] if (kept := kept_back(plan)) else []
    paused = ids_of(case for case in plan.notable if case.decision.reason is Reason.PAUSED)
    if paused:
        verb = "waits" if len(paused) == 1 else "wait"
        found.append(
            f"paused: {instances_phrase(paused)} {verb} for updates. "
            + " ".join(
                advice_on(Reason.PAUSED).sentences(lambda it: tapp_command(view.observed.tapp, it))
            )
        )
    return ["", *found] if found else []


def refused_block(view: Inspection) -> list[str]:
    """Returns the refusals that no line of an instance mentions, preceded by an empty line.

    The list is empty if the lines of instances mention all refusals.
    """
    found = [f"{each.type}: {each.message}" for each in view.refusals_beyond_instances]
    return ["", *found] if found else []
