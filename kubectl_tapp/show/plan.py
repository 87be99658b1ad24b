"""Prints a forecast of an edit as text, and returns it as an object for `-o json` and `-o yaml`.

`print_plan` is the entry point for text, `as_document` for programs. Instances with the same
outcome for the same reason share a line.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import msgspec
from rich.console import Console
from rich.markup import escape as unmarked
from rich.table import Table

from kubectl_tapp.base.errors import printable
from kubectl_tapp.base.words import instances_phrase, plural, rounded_duration
from kubectl_tapp.decide.budget import domain_phrase
from kubectl_tapp.forecast.forecast import (
    Forecast,
    InstanceForecast,
    Outcome,
    Rest,
    Step,
    TemplateChange,
)
from tapp.declared.differences import Effect
from tapp.words.groups import grouped
from tapp.words.quoted import short
from tapp.words.ranges import id_list, ranges

# Numbers of steps that are printed at the beginning and at the end of a long list
FIRST_STEPS, LAST_STEPS = 8, 2
MAX_VALUE_CHARACTERS = 60  # Characters of a value in a difference
_COUNTED_ABOVE = 2  # Lists of more than this many instances are followed by their count
SIGNS = {
    Outcome.UNCHANGED: ("·", "dim"), Outcome.LABELLED: ("~", "cyan"),
    Outcome.IN_PLACE: ("~", "yellow"), Outcome.RECREATED: ("±", "red"),
    Outcome.CREATED: ("+", "green"), Outcome.DELETED: ("-", "red"),
    Outcome.WAITING: ("!", "magenta"),
}  # fmt: skip
EFFECTS = {
    Effect.RECREATE: "replaces the pods",
    Effect.RESOURCES: "replaces the pods that do not have it yet",
    Effect.RESIZE: "in place, if the pod can be resized",
    Effect.IN_PLACE: "in place",
    Effect.METADATA: "labels and annotations only, nothing restarts",
    Effect.SAME: "the pods stay as they are",
    Effect.NEW_PODS: "for new pods only",
}
ORDER = tuple(SIGNS)


def escape(text: str) -> str:
    """Returns the text without a terminal's control characters, and escaped so that rich prints it
    as it is.
    """
    return unmarked(printable(text))


def print_plan(console: Console, forecast: Forecast, folded: bool = True) -> None:
    """Prints a forecast as text.

    If `folded` is True, instances with equal outcome and reason share a line. Otherwise each
    instance has a line of its own.
    """
    title = f"TApp {forecast.namespace}/{forecast.name}"
    if forecast.refused:
        console.print(f"[bold]{escape(title)}[/]: [red]this edit is refused[/]")
        for message in forecast.refused:
            console.print(f"  [red]{escape(message)}[/]")
        _print_notes(console, "Note", forecast.remarks)
        return
    console.print(f"[bold]{escape(title)}[/]: {escape(headline(forecast))}")
    _print_changes(console, forecast)
    _print_instances(console, forecast, folded=folded)
    _print_steps(console, forecast)
    _print_budget(console, forecast)
    for name, lines in (
        ("Stuck", forecast.stuck),
        ("Paused", forecast.paused),
        ("Conditions", [f"{type}: {text}" for type, text in forecast.refusals]),
        ("Note", forecast.remarks),
        ("Assumed", forecast.notes),
    ):
        _print_notes(console, name, lines)


def _print_notes(console: Console, name: str, lines: Iterable[str]) -> None:
    style = _STYLES.get(name, "dim")
    for number, line in enumerate(lines):
        if not number:
            console.print(f"\n[bold]{name}[/]")
        console.print(f"  [{style}]{escape(line)}[/]", soft_wrap=True)


_STYLES = {"Stuck": "red", "Paused": "yellow", "Conditions": "yellow", "Note": "default"}


def headline(forecast: Forecast) -> str:
    """Returns one line about a forecast: the number of instances with each outcome, and the
    duration.
    """
    parts = [
        f"{len(found)} {outcome}"
        for outcome in ORDER
        if outcome is not Outcome.UNCHANGED and (found := forecast.of(outcome))
    ]
    for what, became in (("claim", forecast.claims), ("Service", forecast.services)):
        hows = Counter(how for how in became.values() if how != "kept")
        parts += [f"{number} {plural(number, what)} {how}" for how, number in hows.items()]
    if forecast.disruption_budget:
        parts.append(forecast.disruption_budget)
    if not parts:
        # Below the headline the plan lists the fields that change, such as a budget.
        what = "no instance changes" if forecast.fields or forecast.templates else "nothing changes"
        tail = ", although not all instances are as the spec asks" if forecast.stuck else ""
        return what + tail
    at_once = f", {forecast.at_once}" if forecast.at_once else ""
    if forecast.stuck:
        # The edit never completes, so the time until it gets stuck is not its duration.
        return f"{', '.join(parts)}{at_once}, and the rollout gets stuck"
    tail = f", in about {rounded_duration(forecast.duration)}" if forecast.duration >= 1 else ""
    end = ", then the rest waits until updates are resumed" if forecast.paused else ""
    return ", ".join(parts) + tail + at_once + end


def _print_changes(console: Console, forecast: Forecast) -> None:
    if not (forecast.templates or forecast.fields):
        return
    console.print("\n[bold]What changes[/]")
    for path, before, after in forecast.fields:
        _print_difference(console, path, before, after, "")
    for change in forecast.templates:
        _print_template(console, change)


def _print_template(console: Console, change: TemplateChange) -> None:
    who = instances_phrase(change.instances) if change.instances else "no instance runs it"
    console.print(f"  template [bold]{escape(change.name)}[/] {change.how} ({who})")
    for item in change.differences:
        _print_difference(console, item.path, item.before, item.after, EFFECTS[item.effect], "  ")


def _print_difference(  # noqa: PLR0913, PLR0917
    console: Console, path: str, before: Any, after: Any, effect: str, indent: str = ""
) -> None:
    if before is None:
        sign, style, values = "+", "green", json_line(after)
    elif after is None:
        sign, style, values = "-", "red", json_line(before)
    else:
        sign, style, values = "~", "yellow", f"{json_line(before)} → {json_line(after)}"
    tail = f"  [dim]# {escape(effect)}[/]" if effect else ""
    line = f"  {indent}[{style}]{sign}[/] {escape(path)}: {escape(values)}{tail}"
    console.print(line, soft_wrap=True)


def json_line(value: Any) -> str:
    """Returns a value as one line of JSON, shortened to `MAX_VALUE_CHARACTERS` characters."""
    return short(msgspec.json.encode(value).decode(), MAX_VALUE_CHARACTERS)


def _print_instances(console: Console, forecast: Forecast, *, folded: bool) -> None:
    if not forecast.instances:
        return
    console.print("\n[bold]Instances[/]")
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1), show_edge=False)
    for _ in range(4):
        table.add_column(overflow="fold")
    each_alone = [([each.id], each) for each in forecast.instances]
    for ids, each in grouped_outcomes(forecast.instances) if folded else each_alone:
        sign, style = SIGNS[each.outcome]
        text = f"{id_list(ids)}" + (f" ({len(ids)})" if len(ids) > 1 else "")
        table.add_row(
            f"  [{style}]{sign}[/]",
            text,
            f"[{style}]{each.outcome}[/]",
            escape(outcome_reason(each)),
        )
    console.print(table)


def grouped_outcomes(
    instances: Iterable[InstanceForecast],
) -> list[tuple[list[int], InstanceForecast]]:
    """Returns groups of instances with equal outcome and reason: the numbers of all, and the
    forecast of the first.

    The groups with the most disruptive outcomes come first.
    """
    groups = grouped(((each.outcome, outcome_reason(each)), each) for each in instances)
    ordered = sorted(groups.values(), key=lambda group: -ORDER.index(group[0].outcome))
    return [([each.id for each in group], group[0]) for group in ordered]


def outcome_reason(each: InstanceForecast) -> str:
    """Returns the reason for the outcome of an instance, and what happens to its claims.

    Returns "" if there is nothing to say.
    """
    parts = []
    match each.outcome:
        case Outcome.IN_PLACE if each.containers:
            parts.append(f"template {each.template}: restarts {', '.join(each.containers)}")
        case Outcome.RECREATED if each.fields:
            more = f" and {len(each.fields) - 3} more" if len(each.fields) > 3 else ""  # noqa: PLR2004
            fields = ", ".join(each.fields[:3])
            parts.append(f"template {each.template}: replaced because of {fields}{more}")
        case _ if each.message:
            parts.append(each.message)
        case _:
            pass
    if each.waits_for and each.waits_for not in parts:
        parts.append(f"at the end: {each.waits_for}" if parts else each.waits_for)
    hows: dict[str, int] = defaultdict(int)
    for how in each.claims.values():
        hows[how] += each.outcome is not Outcome.UNCHANGED or how != "kept"
    parts += [f"{plural(number, 'claim')} {how}" for how, number in hows.items() if number]
    return "; ".join(parts)


def _print_steps(console: Console, forecast: Forecast) -> None:
    if not forecast.steps:
        return
    console.print("\n[bold]Order[/]")
    steps = list(forecast.steps)
    hidden = steps[FIRST_STEPS:-LAST_STEPS] if len(steps) > FIRST_STEPS + LAST_STEPS + 1 else []
    for step in steps[:FIRST_STEPS] if hidden else steps:
        console.print(f"  {escape(step_line(step))}", soft_wrap=True)
    if hidden:
        until = rounded_duration(hidden[-1].at)
        console.print(f"  [dim]… {len(hidden)} more steps like these, until {until}[/]")
        for step in steps[-LAST_STEPS:]:
            console.print(f"  {escape(step_line(step))}", soft_wrap=True)
    if forecast.rest is not None:
        console.print(f"  [dim]… {rest_line(forecast.rest)}[/]")


def rest_line(rest: Rest) -> str:
    """Returns a sentence about the remaining updates of a long rollout, which were not simulated:
    their number, and an estimate of the time.
    """
    count, seconds = len(rest.instances), rounded_duration(rest.seconds)
    verb = "follows" if count == 1 else "follow"
    return f"{count} more {plural(count, 'instance')} {verb} in the same way, about {seconds}"


def step_line(step: Step) -> str:
    """Returns one line about a step: its time, its writes, and the number of unavailable
    instances.
    """
    parts = [
        f"{word} {id_list(ids)}" + (f" ({len(ids)})" if len(ids) > _COUNTED_ABOVE else "")
        for word, ids in writes_by_kind(step)
    ]
    away = f"  ({step.unavailable} unavailable)" if step.unavailable else ""
    return f"{'+' + rounded_duration(step.at):>9}  {', '.join(parts) or 'labels only'}{away}"


def writes_by_kind(step: Step) -> list[tuple[str, tuple[int, ...]]]:
    """Returns each kind of write that a step contains, with the numbers of the instances."""
    groups = (
        ("update in place", step.updated),
        ("recreate", step.recreated),
        ("delete", step.deleted),
        ("create", step.created),
    )
    return [(word, ids) for word, ids in groups if ids]


def _print_budget(console: Console, forecast: Forecast) -> None:
    lines = [_budget_line(forecast)]
    if forecast.writes:
        lines.append(_time_line(forecast))
        lines += forecast.pace
    console.print(f"\n[bold]Budget{' and time'[: 9 * forecast.played]}[/]")
    for line in lines:
        console.print(f"  {escape(line)}", soft_wrap=True)


def _time_line(forecast: Forecast) -> str:
    """Returns a phrase that says how long the edit takes, or, if it gets stuck, when its last
    change happens.
    """
    text = rounded_duration(forecast.duration) if forecast.duration >= 1 else "1 s"
    if forecast.stuck:
        return f"nothing more happens after about {text}: see Stuck below"
    if forecast.paused:
        return f"nothing more happens after about {text}, until updates are resumed"
    return f"about {text} in all"


def _budget_line(forecast: Forecast) -> str:
    now, should_run = forecast.unavailable_before, forecast.should_run
    text = f"at most {forecast.unavailable_worst} unavailable at a time ({now} are now)"
    if not forecast.played:
        text = f"{now} of {should_run} are unavailable now"
    domain = domain_phrase(forecast.domain)
    sentences = [text, *(limit.sentence for limit in forecast.limits), *filter(None, [domain])]
    return "; ".join(sentences)


def as_document(forecast: Forecast) -> dict[str, Any]:
    """Returns a forecast as plain JSON values with camelCase keys, for `-o json` and `-o yaml`."""
    document = asdict(forecast)
    document["templates"] = [
        {
            "name": change.name,
            "how": change.how,
            "instances": ranges(change.instances),
            "differences": msgspec.to_builtins(change.differences),
        }
        for change in forecast.templates
    ]
    if forecast.rest is not None:
        document["rest"]["instances"] = ranges(forecast.rest.instances)
    document["fields"] = [
        {"path": path, "before": before, "after": after} for path, before, after in forecast.fields
    ]
    document["refusals"] = [
        {"type": type, "message": message} for type, message in forecast.refusals
    ]
    document["states"] = {
        str(id): [{"at": at, "state": state} for at, state in spans]
        for id, spans in forecast.states.items()
    }
    document["unavailable"] = [{"at": at, "instances": count} for at, count in forecast.unavailable]
    for part in ("instances", "limits"):
        document[part] = [_with_camel_case(each) for each in document[part]]
    document["summary"] = headline(forecast) if not forecast.refused else "refused"
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(_with_camel_case(document)))
    return plain


def _with_camel_case(fields: dict[str, Any]) -> dict[str, Any]:
    """Returns the mapping with its keys in camelCase, as in Kubernetes' APIs."""
    return {re.sub("_(.)", lambda it: it[1].upper(), key): each for key, each in fields.items()}
