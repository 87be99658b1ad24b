"""The figures as tables for a person; `python -m bench.tables FILE` writes them as Markdown."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

Row = dict[str, Any]
Columns = dict[str, str | Callable[[Row], str]]
"""Title -> the cell, as a format of the row's figures or made of the row."""

RATIOS = {
    "REF": ("handlerToRef", "{:.2f}"),
    "echo": ("handlerToEcho", "{:.2f} of echo"),
    "full REF": ("handlerToFullRef", "{:.2f} of full REF"),
    "bytes": ("bytesPerPod", "{:,} bytes a pod"),
}
"""What a stream is compared with -> the figure, and how it is said."""


def all_of(figures: Row) -> Iterator[Table]:
    """A table for each part that was measured."""
    for part in _TABLES:
        if part in figures:
            yield table(part, figures[part])


def table(part: str, figures: Row | list[Row]) -> Table:
    """The table of a part, by its key in the file of all figures; empty is what a row lacks."""
    title, columns = _TABLES[part]
    made = Table(title=title)
    for name in columns:
        made.add_column(name, justify="left" if name in ("situation", "stream") else "right")
    for row in figures if isinstance(figures, list) else [figures]:
        made.add_row(*(_cell(column, row) for column in columns.values()))
    return made


def _cell(column: str | Callable[[Row], str], row: Row) -> str:
    try:
        return column.format_map(row) if isinstance(column, str) else column(row)
    except KeyError:
        return ""


def _target(row: Row) -> str:
    limit = f"{row['targetMs']:g} ms" if "targetMs" in row else f"{row['target']:g}"
    return _judged(f"<= {limit}", met=row["met"])


def _stream_target(row: Row) -> str:
    """The ratio is in a column of its own, unless it is to something else than REF."""
    if row["against"] == "REF":
        return _target(row)
    key, said = RATIOS[row["against"]]
    return _judged(f"{said.format(row[key])} <= {row['target']:,g}", met=row["met"])


def _judged(text: str, *, met: bool) -> str:
    return f"{text} [green]met[/]" if met else f"{text} [bold red]missed[/]"


_TABLES: dict[str, tuple[str, Columns]] = {
    "stream": (
        "Stream: requests of one TApp as a cluster sends them, against REF of the same bodies",
        {
            "stream": "{stream}",
            "pods": "{pods:,}",
            "templates": "{templates}",
            "changed": lambda row: "some" if row["changed"] is None else str(row["changed"]),
            "syncs": "{syncs}",
            "MB": lambda row: f"{row['bytes'] / 1e6:.2f}",
            "REF ms": "{refMs:.3f}",
            "handler ms": "{handlerMs:.3f}",
            "/ REF": "{handlerToRef:.2f}",
            "target": _stream_target,
            "growth": lambda row: _judged(f"{row['growth']:.1f}", met=row["growthMet"]),
        },
    ),
    "overHttp": (
        "Over HTTP: one pod changed, gunicorn as shipped with two workers, keep-alive connections",
        {
            "instances": "{instances:,}",
            "connections": "{connections}",
            "requests": "{requests}",
            "p50 ms": "{p50Ms:.2f}",
            "p99 ms": "{p99Ms:.2f}",
            "req/s": "{perSecond:,.1f}",
            "REF ms": "{refMs:.2f}",
            "p50 / REF": "{p50ToRef:.2f}",
            "target": _target,
        },
    ),
    "healthz": (
        "/healthz by a new connection, four syncs in flight on two workers",
        {
            "instances": "{instances:,}",
            "probes": "{probes}",
            "p50 ms": "{p50Ms:.1f}",
            "p99 ms": "{p99Ms:.1f}",
            "max ms": "{maxMs:.1f}",
            "target of p99": _target,
            "a sync's p50 ms": "{syncP50Ms:.0f}",
        },
    ),
    "memory": (
        "Memory of a worker (resident MiB), one sync at a time",
        {
            "instances": "{instances:,}",
            "situation": "{situation}",
            "body": "{bodyMiB}",
            "idle": "{idleMiB}",
            "peak": "{peakMiB}",
            "after": "{afterMiB}",
            "(peak - idle) / body": "{peakOverIdleToBody:.2f}",
            "target": _target,
        },
    ),
    "podStatus": (
        "/pod-status that changes nothing, one worker; echo: a Flask route with a ready answer",
        {
            "bytes": "{bytes:,}",
            "connections": "{connections}",
            "requests": "{requests:,}",
            "p50 ms": "{p50Ms:.2f}",
            "p99 ms": "{p99Ms:.2f}",
            "req/s": "{perSecond:,.0f}",
            "echo req/s": "{echoPerSecond:,.0f}",
            "time / echo": "{timeToEcho:.2f}",
        },
    ),
}


if __name__ == "__main__":
    for each in all_of(json.loads(Path(sys.argv[1]).read_text())):
        each.box, each.title = box.MARKDOWN, None
        Console(width=200, color_system=None).print(each)
