"""A rehearsal as one HTML page, for `kubectl tapp rehearse --html`.

`rehearsal_page` is the entry point. The page has no scripts and loads nothing, as the page of a
plan.
"""

from collections.abc import Iterable, Sequence
from html import escape

from kubectl_tapp.forecast.rehearsal import Rehearsal
from kubectl_tapp.show.page import POLICY, notes_section, table_section
from kubectl_tapp.show.page_style import STYLE
from kubectl_tapp.show.rehearsal import (
    WHAT_IT_IS,
    by_kind,
    clock,
    faults_line,
    headline,
    sections,
    summary,
)

_MAX_LINES = 400  # Largest number of lines of the timeline


def rehearsal_page(found: Rehearsal) -> str:
    """Returns the text of an HTML page that shows a rehearsal."""
    name = f"{found.namespace}/{found.name}"
    line = "this edit is refused" if found.refused else headline(found)
    body = notes_section(found.refused, "The edit is refused", "") or "".join(_sections(found))
    footer = " ".join(WHAT_IT_IS)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Rehearsal of TApp {escape(name)}</title><style>{STYLE}</style></head>"
        f"<body><main><header><p>Rehearsal of TApp</p><h1>{escape(name)}</h1>"
        f'<p class="headline">{escape(line)}</p></header>{body}'
        f"<footer>{escape(footer)}</footer></main></body></html>\n"
    )


def _sections(found: Rehearsal) -> list[str]:
    kinds = {"red": "", "green": "note"}
    parts = [
        table_section("Result", _head("", "Undisturbed", "Worst run", ""), _rows(summary(found))),
        *(notes_section(lines, name, kinds[style]) for name, lines, style in sections(found)),
    ]
    head = _head("Kind of fault", "Runs", "Fewest serving", "Longest", "Stuck")
    parts.append(table_section("By kind of fault", head, _rows(by_kind(found))))
    if found.worst is not None:
        moments = found.worst.timeline[:_MAX_LINES]
        rows = _rows((clock(each.at), each.kind, each.text) for each in moments)
        title = f"The run of seed {found.worst.seed}"
        parts.append(table_section(title, _head("After", "", "What happens"), rows))
    parts.append(notes_section([*found.notes, faults_line(found)], "Assumptions", "note"))
    return parts


def _head(*names: str) -> str:
    return f"<tr>{''.join(f'<th>{escape(name)}</th>' for name in names)}</tr>"


def _rows(rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows]
