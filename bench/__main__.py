"""`python -m bench`: ratios of the real application to parsing and writing the same JSON.

REF is `orjson.loads` of the request and `orjson.dumps` of the answer, FLOOR a minimal typed decode
and a spliced encode. All are measured interleaved in one process with the collector off; medians.
"""

import argparse
import gc
import io
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import orjson
from rich.console import Console
from rich.table import Table

from bench.requests import situations
from hooks.app import create_app
from hooks.settings import Settings

TARGETS = {10: 1.25, 100: 0.75, 1_000: 0.30, 10_000: 0.45}
"""handler / REF with nothing to do; half as much again in the middle of a roll."""


class _Meta(msgspec.Struct, gc=False):
    name: str


class _Condition(msgspec.Struct, gc=False):
    type: str
    status: str


class _Status(msgspec.Struct, gc=False):
    phase: str | None = None
    conditions: list[_Condition] = []


class _Pod(msgspec.Struct, gc=False):
    metadata: _Meta
    status: _Status | None = None


class _Request(msgspec.Struct):
    parent: msgspec.Raw
    children: dict[str, dict[str, _Pod]]


_floor_decode = msgspec.json.Decoder(_Request).decode


def measure(rounds: int, sizes: list[int]) -> list[dict[str, Any]]:
    """One row for each size and situation: milliseconds and ratios."""
    app = create_app(Settings(log_level="ERROR"))
    rows = []
    for n in sizes:
        for name, (path, body) in situations(n).items():
            answer = _call(app, path, body)
            tree = orjson.loads(answer)
            raws = [msgspec.Raw(orjson.dumps(child)) for child in tree["children"]]
            status = msgspec.Raw(orjson.dumps(tree["status"]))
            spliced = {"status": status, "children": raws}
            candidates: dict[str, Callable[[], object]] = {
                "ref": lambda body=body, tree=tree: (orjson.loads(body), orjson.dumps(tree)),
                "floor": lambda body=body, spliced=spliced: (
                    _floor_decode(body),
                    msgspec.json.encode(spliced),
                ),
                "handler": lambda path=path, body=body: _call(app, path, body),
            }
            medians = _medians(candidates, rounds if n > 1_000 else rounds * 3, n)
            rows.append(
                {
                    "instances": n,
                    "situation": name,
                    "bytes": len(body),
                    **{f"{key}Ms": round(value * 1e3, 3) for key, value in medians.items()},
                    "handlerToRef": round(medians["handler"] / medians["ref"], 3),
                    "handlerToFloor": round(medians["handler"] / medians["floor"], 2),
                }
            )
    return rows


def _medians(candidates: dict[str, Callable[[], object]], rounds: int, n: int) -> dict[str, float]:
    repeat = max(1, 300 // n)
    times: dict[str, list[float]] = {name: [] for name in candidates}
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for name, run in candidates.items():
                started = time.perf_counter()
                for _ in range(repeat):
                    run()
                times[name].append((time.perf_counter() - started) / repeat)
    finally:
        gc.enable()
    return {name: statistics.median(values) for name, values in times.items()}


def _call(app: Callable[..., Any], path: str, body: bytes) -> bytes:
    """One request through the WSGI application, without a test client's overhead."""
    environ = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": path,
        "SERVER_NAME": "bench",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "CONTENT_TYPE": "application/json",
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.input": io.BytesIO(body),
        "wsgi.url_scheme": "http",
        "wsgi.errors": io.StringIO(),
    }
    codes: list[str] = []
    answer = b"".join(app(environ, lambda status, _headers: codes.append(status)))
    if codes != ["200 OK"]:
        raise SystemExit(f"{path} answered {codes}: {answer[:200]!r}")
    return answer


def show(rows: list[dict[str, Any]]) -> None:
    """The rows as a table, with the growth from one size to the next."""
    table = Table(title="In process: the WSGI application against REF (orjson) and FLOOR (msgspec)")
    for title in ("instances", "situation", "MB", "REF ms", "FLOOR ms", "handler ms"):
        table.add_column(title, justify="left" if title == "situation" else "right")
    for title in ("/ REF", "target", "/ FLOOR", "growth"):
        table.add_column(title, justify="right")
    before: dict[str, dict[str, Any]] = {}
    for row in rows:
        last = before.get(row["situation"])
        growth = f"{row['handlerMs'] / last['handlerMs']:.1f}" if last else ""
        before[row["situation"]] = row
        table.add_row(
            str(row["instances"]),
            row["situation"],
            f"{row['bytes'] / 1e6:.2f}",
            f"{row['refMs']:.2f}",
            f"{row['floorMs']:.2f}",
            f"{row['handlerMs']:.2f}",
            f"{row['handlerToRef']:.2f}",
            _target(row),
            f"{row['handlerToFloor']:.1f}",
            growth,
        )
    Console(width=130).print(table)


def _target(row: dict[str, Any]) -> str:
    limit = TARGETS.get(row["instances"])
    if limit is None or row["situation"] == "finalize":
        return ""
    if row["situation"] == "create all":
        return "<= 1.00" if row["instances"] == 1_000 else ""  # noqa: PLR2004
    if row["situation"] == "middle of a roll":
        limit *= 1.5
    return f"<= {limit:.2f}"


def main() -> None:
    """Reads the command line and runs."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="rounds per measurement")
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=[10, 100, 1_000, 10_000], help="instances"
    )
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    arguments = parser.parse_args()
    rows = measure(arguments.rounds, arguments.sizes)
    show(rows)
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps({"inProcess": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
