"""The forecast of an edit as one HTML page, for `kubectl tapp plan --html`.

`page` is the entry point. The page contains its styles and pictures, has no scripts and loads
nothing. Its Content-Security-Policy enforces that.
"""

from collections import Counter
from collections.abc import Iterable
from html import escape

from kubectl_tapp.base.words import instances_phrase, rounded_duration
from kubectl_tapp.forecast.forecast import Forecast, Outcome, Step, TemplateChange
from kubectl_tapp.show.page_style import STYLE
from kubectl_tapp.show.page_timeline import availability, legend, timeline
from kubectl_tapp.show.plan import (
    EFFECTS,
    ORDER,
    grouped_outcomes,
    headline,
    json_line,
    outcome_reason,
    rest_line,
    writes_by_kind,
)
from tapp.words.ranges import id_list

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_MAX_STEPS = 60  # Number of steps in the table; the pictures show all steps


def page(forecast: Forecast) -> str:
    """Returns the text of an HTML page that shows a forecast."""
    name = f"{forecast.namespace}/{forecast.name}"
    refused = notes_section(forecast.refused, "The edit is refused", "")
    body = refused or "".join(_sections(forecast))
    line = "this edit is refused" if forecast.refused else headline(forecast)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Plan of TApp {escape(name)}</title><style>{STYLE}</style></head>"
        f"<body><main><header><p>Plan of TApp</p><h1>{escape(name)}</h1>"
        f'<p class="headline">{escape(line)}</p></header>{body}'
        "<footer>A forecast: the decisions of the TApp service, run forward on a simulated "
        "cluster. It does not know whether nodes have room for new pods, whether a new image "
        "exists, or what else changes in the meantime.</footer></main></body></html>\n"
    )


def _sections(forecast: Forecast) -> list[str]:
    return [
        _cards(forecast),
        notes_section(forecast.stuck, "Stuck", ""),
        notes_section(forecast.paused, "Paused", "warn"),
        notes_section(
            [f"{type}: {text}" for type, text in forecast.refusals], "Conditions", "warn"
        ),
        notes_section(forecast.remarks, "Note", "note"),
        _changes(forecast),
        _pictures(forecast),
        _instances(forecast),
        _steps(forecast),
        notes_section(
            [*forecast.pace, *forecast.notes], "Sources of the times, and assumptions", "note"
        ),
    ]


def _cards(forecast: Forecast) -> str:
    counts = Counter(each.outcome for each in forecast.instances)
    allowed = [limit.allowed for limit in forecast.limits if limit.allowed is not None]
    numbers = " and ".join(str(number) for number in dict.fromkeys(allowed))
    budget = f"the budget allows {numbers}" if allowed else "no budget applies"
    cards = [
        ("", rounded_duration(forecast.duration), "until nothing more changes"),
        (
            "",
            f"{forecast.unavailable_worst} of {forecast.should_run}",
            f"unavailable at most; {forecast.unavailable_before} are now, {budget}",
        ),
    ]
    cards += [
        ("bad" if outcome in _BAD_OUTCOMES else "", str(counts[outcome]), str(outcome))
        for outcome in reversed(ORDER)
        if counts[outcome]
    ]
    stuck = len(forecast.stuck)
    cards.append(("bad", str(stuck), "stuck") if stuck else ("good", "none", "stuck"))
    items = "".join(
        f'<div class="number {kind}"><b>{escape(text)}</b><span>{escape(what)}</span></div>'
        for kind, text, what in cards
    )
    return f'<div class="numbers">{items}</div>'


_BAD_OUTCOMES = (Outcome.RECREATED, Outcome.DELETED, Outcome.WAITING)


def notes_section(lines: Iterable[str], title: str, kind: str) -> str:
    """Returns an HTML section with a paragraph for each line; "" if there are no lines.

    `kind` is the CSS class of the section.
    """
    items = "".join(f'<p class="told {kind}">{escape(line)}</p>' for line in lines)
    return f"<section><h2>{escape(title)}</h2>{items}</section>" if items else ""


def _changes(forecast: Forecast) -> str:
    rows = [_change("", path, before, after, "") for path, before, after in forecast.fields]
    for change in forecast.templates:
        rows += _template(change)
    head = "<tr><th>Template</th><th>Field</th><th>Change</th><th>Effect</th></tr>"
    return table_section("Changes", head, rows)


def _template(change: TemplateChange) -> list[str]:
    users = instances_phrase(change.instances) if change.instances else "no instance runs it"
    if not change.differences:
        return [
            f"<tr><td>{escape(change.name)}</td><td></td><td>{escape(change.how)}</td>"
            f"<td>{escape(users)}</td></tr>"
        ]
    return [
        _change(change.name, item.path, item.before, item.after, EFFECTS[item.effect])
        for item in change.differences
    ]


def _change(template: str, path: str, before: object, after: object, means: str) -> str:
    old = f"<del><code>{escape(json_line(before))}</code></del>" if before is not None else ""
    new = f"<ins><code>{escape(json_line(after))}</code></ins>" if after is not None else ""
    between = " → " if old and new else ""
    return (
        f"<tr><td>{escape(template)}</td><td><code>{escape(path)}</code></td>"
        f"<td>{old}{between}{new}</td><td>{escape(means)}</td></tr>"
    )


def _pictures(forecast: Forecast) -> str:
    if not forecast.steps:
        return ""
    parts = [
        "<section><h2>Timeline of the instances</h2>",
        f'<div class="scroll" tabindex="0">{legend(forecast)}{timeline(forecast)}</div></section>',
    ]
    picture = availability(forecast)
    if picture:
        parts.append("<section><h2>Unavailable instances over time</h2>")
        parts.append(f'<div class="scroll" tabindex="0">{picture}</div></section>')
    if forecast.rest is not None:
        told = rest_line(forecast.rest)
        parts.append(
            notes_section(
                [f"The pictures show the simulated part; {told}"], "Rest of the rollout", "note"
            )
        )
    return "".join(parts)


def _instances(forecast: Forecast) -> str:
    rows = []
    for ids, each in grouped_outcomes(forecast.instances):
        kind = str(each.outcome).replace(" ", "-")
        count = f" ({len(ids)})" if len(ids) > 1 else ""
        rows.append(
            f"<tr><td>{escape(id_list(ids))}{count}</td>"
            f'<td><span class="fate {kind}">{escape(each.outcome)}</span></td>'
            f"<td>{escape(outcome_reason(each))}</td></tr>"
        )
    head = "<tr><th>Instances</th><th>Outcome</th><th>Why</th></tr>"
    return table_section("Instances", head, rows)


def _steps(forecast: Forecast) -> str:
    rows = [_step(step) for step in forecast.steps[:_MAX_STEPS]]
    more = len(forecast.steps) - _MAX_STEPS
    if more > 0:
        rows.append(f'<tr><td></td><td colspan="2">and {more} more steps</td></tr>')
    if forecast.rest is not None:
        text = f"{escape(rest_line(forecast.rest))}: {escape(id_list(forecast.rest.instances))}"
        rows.append(f'<tr><td></td><td colspan="2">{text}</td></tr>')
    head = '<tr><th class="right">After</th><th>Writes</th><th class="right">'
    return table_section("Order", f"{head}Unavailable</th></tr>", rows)


def _step(step: Step) -> str:
    text = (
        ", ".join(f"{word} {id_list(ids)}" for word, ids in writes_by_kind(step)) or "labels only"
    )
    return (
        f'<tr><td class="right">{escape(rounded_duration(step.at))}</td><td>{escape(text)}</td>'
        f'<td class="right">{step.unavailable}</td></tr>'
    )


def table_section(title: str, head: str, rows: list[str]) -> str:
    """Returns an HTML section with a table; "" if there are no rows.

    `head` is the HTML of the heading row, and `rows` are the HTML of the other rows.
    """
    if not rows:
        return ""
    return (
        f'<section><h2>{escape(title)}</h2><div class="scroll" tabindex="0"><table><thead>{head}'
        f"</thead><tbody>{''.join(rows)}</tbody></table></div></section>"
    )
