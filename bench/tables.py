"""The figures as tables for a person; `python -m bench.tables FILE` writes them as Markdown."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from bench.inprocess import GROWTH_TARGET

Row = dict[str, Any]
Column = tuple[str, Callable[[Row], str]]


def all_of(figures: Row) -> Iterator[Table]:
    """A table for each part that was measured."""
    if "stream" in figures:
        yield stream(figures["stream"])
    if "overHttp" in figures:
        yield over_http(figures["overHttp"])
        yield probes(figures["healthz"])
        yield memory(figures["memory"])
    if "podStatus" in figures:
        yield pod_status(figures["podStatus"])


def stream(rows: Iterable[Row]) -> Table:
    """Ratios for requests as a cluster sends them."""
    return _table(
        "Stream: requests of one TApp as a cluster sends them, against REF of the same bodies",
        rows,
        ("stream", lambda row: str(row["stream"])),
        ("pods", lambda row: f"{row['pods']:,}"),
        ("templates", lambda row: str(row["templates"])),
        ("changed", _timed(lambda row: "some" if row["changed"] is None else str(row["changed"]))),
        ("syncs", _timed(lambda row: str(row["syncs"]))),
        ("MB", _timed(lambda row: f"{row['bytes'] / 1e6:.2f}")),
        ("REF ms", _timed(lambda row: f"{row['refMs']:.3f}")),
        ("handler ms", _timed(lambda row: f"{row['handlerMs']:.3f}")),
        ("/ REF", _timed(lambda row: f"{row['handlerToRef']:.2f}")),
        ("target", _stream_target),
        ("growth", _growth),
    )


def over_http(rows: Iterable[Row]) -> Table:
    """Latency and throughput by connections."""
    return _table(
        "Over HTTP: one pod changed, gunicorn as shipped with two workers, keep-alive connections",
        rows,
        ("instances", lambda row: f"{row['instances']:,}"),
        ("connections", lambda row: str(row["connections"])),
        ("requests", lambda row: str(row["requests"])),
        ("p50 ms", lambda row: f"{row['p50Ms']:.2f}"),
        ("p99 ms", lambda row: f"{row['p99Ms']:.2f}"),
        ("req/s", lambda row: f"{row['perSecond']:,.1f}"),
        ("REF ms", lambda row: f"{row['refMs']:.2f}"),
        ("p50 / REF", lambda row: f"{row['p50ToRef']:.2f}"),
        ("target", _target),
    )


def probes(row: Row) -> Table:
    """`/healthz` under load."""
    return _table(
        "/healthz by a new connection, four syncs in flight on two workers",
        [row],
        ("instances", lambda row: f"{row['instances']:,}"),
        ("probes", lambda row: str(row["probes"])),
        ("p50 ms", lambda row: f"{row['p50Ms']:.1f}"),
        ("p99 ms", lambda row: f"{row['p99Ms']:.1f}"),
        ("max ms", lambda row: f"{row['maxMs']:.1f}"),
        ("target of p99", _target),
        ("a sync's p50 ms", lambda row: f"{row['syncP50Ms']:.0f}"),
    )


def memory(rows: Iterable[Row]) -> Table:
    """Resident memory of one worker, MiB."""
    return _table(
        "Memory of a worker (resident MiB), one sync at a time",
        rows,
        ("instances", lambda row: f"{row['instances']:,}"),
        ("situation", lambda row: str(row["situation"])),
        ("body", lambda row: str(row["bodyMiB"])),
        ("idle", lambda row: str(row["idleMiB"])),
        ("peak", lambda row: str(row["peakMiB"])),
        ("after", lambda row: str(row["afterMiB"])),
        ("(peak - idle) / body", lambda row: f"{row['peakOverIdleToBody']:.2f}"),
        ("target", _target),
    )


def pod_status(row: Row) -> Table:
    """Calls of the decorator's hook."""
    return _table(
        "/pod-status that changes nothing, one worker; echo: a Flask route with a ready answer",
        [row],
        ("bytes", lambda row: f"{row['bytes']:,}"),
        ("connections", lambda row: str(row["connections"])),
        ("requests", lambda row: f"{row['requests']:,}"),
        ("p50 ms", lambda row: f"{row['p50Ms']:.2f}"),
        ("p99 ms", lambda row: f"{row['p99Ms']:.2f}"),
        ("req/s", lambda row: f"{row['perSecond']:,.0f}"),
        ("echo req/s", lambda row: f"{row['echoPerSecond']:,.0f}"),
        ("time / echo", lambda row: f"{row['timeToEcho']:.2f}"),
    )


def _table(title: str, rows: Iterable[Row], *columns: Column) -> Table:
    table = Table(title=title)
    for name, _ in columns:
        table.add_column(name, justify="left" if name in ("situation", "stream") else "right")
    for row in rows:
        table.add_row(*(cell(row) for _, cell in columns))
    return table


def _target(row: Row) -> str:
    if "met" not in row:
        return ""
    limit = f"{row['targetMs']:g} ms" if "targetMs" in row else f"{row['target']:g}"
    return _judged(f"<= {limit}", met=row["met"])


def _timed(cell: Callable[[Row], str]) -> Callable[[Row], str]:
    """The cell is empty for what has no times."""
    return lambda row: cell(row) if "handlerMs" in row else ""


_AGAINST = {
    "echo": ("handlerToEcho", "{:.2f} of echo"),
    "full REF": ("handlerToFullRef", "{:.2f} of full REF"),
    "bytes": ("bytesPerPod", "{:,} bytes a pod"),
}


def _stream_target(row: Row) -> str:
    """The ratio is in a column of its own, unless it is to something else than REF."""
    if row["against"] not in _AGAINST:
        return _target(row)
    key, said = _AGAINST[row["against"]]
    return _judged(f"{said.format(row[key])} <= {row['target']:,g}", met=row["met"])


def _growth(row: Row) -> str:
    if "growth" not in row:
        return ""
    return _judged(f"{row['growth']:.1f}", met=row["growth"] <= GROWTH_TARGET)


def _judged(text: str, *, met: bool) -> str:
    return f"{text} [green]met[/]" if met else f"{text} [bold red]missed[/]"


if __name__ == "__main__":
    for table in all_of(json.loads(Path(sys.argv[1]).read_text())):
        table.box, table.title = box.MARKDOWN, None
        Console(width=200, color_system=None).print(table)
