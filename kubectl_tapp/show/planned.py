"""The forecast of an edit as JSON values, for the dialog of the page.

`plan_model` is the entry point. The pictures are those of `kubectl tapp plan --html`.
"""

from typing import Any

from kubectl_tapp.base.words import instances_phrase, rounded_duration
from kubectl_tapp.decide.budget import are, domain_phrase
from kubectl_tapp.forecast.forecast import Forecast, TemplateChange
from kubectl_tapp.show.page_timeline import STATES, availability, timeline, used_states
from kubectl_tapp.show.plan import (
    EFFECTS,
    SIGNS,
    grouped_outcomes,
    headline,
    json_line,
    outcome_reason,
    rest_line,
)
from tapp.words.ranges import id_list

Model = dict[str, Any]


def plan_model(forecast: Forecast) -> Model:
    """Returns the values of a forecast that the page's dialog shows."""
    refused = bool(forecast.refused)
    notes = [*forecast.pace, *forecast.notes]
    if forecast.rest is not None:
        notes.append(f"The pictures show the simulated part; {rest_line(forecast.rest)}.")
    return {
        "headline": "this edit is refused" if refused else headline(forecast),
        "refused": forecast.refused,
        "stuck": forecast.stuck,
        "paused": forecast.paused,
        "changes": [
            *(_difference("", *each, "") for each in forecast.fields),
            *(each for change in forecast.templates for each in _template(change)),
        ],
        "instances": [
            {
                "sign": SIGNS[each.outcome][0],
                "kind": str(each.outcome).replace(" ", "-"),
                "ids": id_list(ids) + (f" ({len(ids)})" if len(ids) > 1 else ""),
                "outcome": str(each.outcome),
                "reason": outcome_reason(each),
            }
            for ids, each in grouped_outcomes(forecast.instances)
        ],
        "legend": [[state, STATES[state]] for state in used_states(forecast)],
        "pictures": [] if refused else _pictures(forecast),
        "budget": [] if refused else _budget(forecast),
        "conditions": [f"{type}: {text}" for type, text in forecast.refusals],
        "remarks": forecast.remarks,
        "notes": notes,
    }


def _difference(template: str, path: str, before: object, after: object, effect: str) -> Model:
    """Returns the values of one changed field that the dialog shows.

    `template` is the name of the template that has the field, or "" for a field outside the
    templates. `before` is None if the edit adds the field, and `after` is None if the edit removes
    it.
    """
    if before is None:
        sign, values = "plus", json_line(after)
    elif after is None:
        sign, values = "minus", json_line(before)
    else:
        sign, values = "tilde", f"{json_line(before)} → {json_line(after)}"
    where = f"{template}: " if template else ""
    return {"sign": sign, "text": f"{where}{path}: {values}", "effect": effect}


def _template(change: TemplateChange) -> list[Model]:
    if change.differences:
        return [
            _difference(
                f"template {change.name}", each.path, each.before, each.after, EFFECTS[each.effect]
            )
            for each in change.differences
        ]
    users = instances_phrase(change.instances) if change.instances else "no instance runs it"
    sign = {"added": "plus", "removed": "minus"}.get(change.how, "tilde")
    return [{"sign": sign, "text": f"template {change.name} {change.how}", "effect": users}]


def _pictures(forecast: Forecast) -> list[Model]:
    if not forecast.steps:
        return []
    drawn = (
        ("Timeline of the instances", timeline(forecast)),
        ("Unavailable instances over time", availability(forecast)),
    )
    return [{"title": title, "label": title, "svg": svg} for title, svg in drawn if svg]


def _budget(forecast: Forecast) -> list[str]:
    """Returns sentences about the number of unavailable instances, each budget, and the
    duration.
    """
    now, should_run = forecast.unavailable_before, forecast.should_run
    most = forecast.unavailable_worst
    lines = [
        f"At most {most} of {should_run} instances {are(most)} unavailable at a time; "
        f"{now} {are(now)} now."
    ]
    if not forecast.played:
        lines = [f"{now} of {should_run} instances {are(now)} unavailable now."]
    lines += [f"{each.sentence}." for each in forecast.limits]
    if domain := domain_phrase(forecast.domain):
        lines.append(f"Updates: {domain}.")
    if forecast.writes and not forecast.stuck and forecast.duration >= 1:
        lines.append(f"The change takes about {rounded_duration(forecast.duration)}.")
    return lines
