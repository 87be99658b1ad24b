"""The figures as a Markdown table: what a terminal shows is what docs/performance.md takes."""

import io
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

Row = dict[str, Any]
"""Title of a column -> figure. A row is one measurement, in the table and in the JSON file."""


def shown(rows: list[Row]) -> str:
    """The rows; empty is what a row lacks."""
    table = Table(box=box.MARKDOWN)
    titles = list(dict.fromkeys(title for row in rows for title in row))
    for title in titles:
        words = any(isinstance(row.get(title), str) for row in rows)
        table.add_column(title, justify="left" if words else "right")
    for row in rows:
        table.add_row(*(_cell(row.get(title, "")) for title in titles))
    text = io.StringIO()
    Console(file=text, width=200, color_system=None).print(table)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines() if line.strip())


def _cell(figure: object) -> str:
    if isinstance(figure, float):
        return f"{figure:,.2f}"
    return f"{figure:,}" if isinstance(figure, int) else str(figure)


def judged(figure: float, limit: float | None, unit: str = "") -> dict[str, str]:
    """The column of a figure's target, where it has one."""
    if limit is None:
        return {}
    return {"target": f"<= {limit:g}{unit} {'met' if figure <= limit else 'missed'}"}
