"""Draws what the dashboard's panels show as an SVG: its layout and its queries, but not Grafana."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from tests.monitoring.shipped import DASHBOARD, Document, panels

from .prometheus import SECONDS, Points, Prometheus

Series = list[tuple[str, Points]]

COLUMN, ROW, MARGIN, GAP, HEAD = 42, 25, 10, 6, 52
"""The grid's cell, the space around all and between panels, and the height of the heading."""
LEFT, TOP, BOTTOM, LEGEND = 70, 32, 26, 17
"""Of a panel: what is beside, above and below the plot; and a line of the legend."""
LETTER = 7.2
"""Width of a letter of the legend, about."""
COLOURS = (
    *("#1f6fd0", "#e0752d", "#2c8a3d", "#c4162a", "#8f3bb8", "#a07a00", "#0f8b8d", "#6b7280"),
)
STATES = {"blue": "#1f6fd0", "green": "#2c8a3d", "orange": "#d9730d", "red": "#c4162a"}
PAGE = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">
<title>{title}</title>
<style>
text {{ font: 12px system-ui, "DejaVu Sans", sans-serif; fill: #24292f }}
.h {{ font-size: 17px; font-weight: 600 }} .t {{ font-weight: 600 }}
.n {{ font-size: 40px; font-weight: 600; text-anchor: middle }}
.s {{ fill: #57606a }} .y {{ fill: #57606a; text-anchor: end }}
.x {{ fill: #57606a; text-anchor: middle }}
.card {{ fill: #fff; stroke: #d0d7de }} .grid {{ stroke: #e4e8ec }}
polyline {{ fill: none; stroke-linejoin: round }}
</style>
<rect width="100%" height="100%" rx="8" fill="#f3f5f7"/>
{parts}
</svg>
"""


@dataclass(frozen=True)
class Box:
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float


def draw(
    prometheus: Prometheus, queries: Mapping[str, str], begin: float, end: float, words: str
) -> str:
    """The dashboard over a time; queries by panel and letter, and what is said above all."""
    parts = [text(MARGIN + 4, 23, DASHBOARD["title"], "h"), text(MARGIN + 4, 42, words, "s")]
    for panel in DASHBOARD["panels"]:
        at = box(panel)
        if panel["type"] == "row":
            parts.append(text(at.x + 1, at.y + 16, panel["title"], "h"))
    for panel in panels():
        at = box(panel)
        size = f'width="{at.width}" height="{at.height}"'
        parts.append(f'<rect class="card" rx="4" x="{at.x}" y="{at.y}" {size}/>')
        parts.append(text(at.x + 9, at.y + 19, panel["title"], "t"))
        asked = [(each, queries[f"{panel['title']} {each['refId']}"]) for each in panel["targets"]]
        if panel["type"] == "stat":
            parts += stat(panel, at, prometheus.value(asked[0][1], end))
        elif panel["type"] == "table":
            parts += table(at, [labels for labels, _ in prometheus.at(asked[0][1], end)])
        else:
            series = [
                (named(target["legendFormat"], labels), points)
                for target, query in asked
                for labels, points in prometheus.over(query, begin, end)
            ]
            parts += plot(panel, at, series, (begin, end))
    bottom = max(box(panel).y + box(panel).height for panel in panels()) + MARGIN
    return PAGE.format(
        width=24 * COLUMN + 2 * MARGIN, height=bottom, title=escape(words), parts="\n".join(parts)
    )


def box(panel: Document) -> Box:
    """The place of a panel."""
    at = panel["gridPos"]
    x, y = MARGIN + at["x"] * COLUMN, HEAD + at["y"] * ROW
    return Box(x + GAP / 2, y + GAP / 2, at["w"] * COLUMN - GAP, at["h"] * ROW - GAP)


def text(x: float, y: float, words: str, style: str, more: str = "") -> str:
    """A line of text."""
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}"{more}>{escape(words)}</text>'


def named(legend: str, labels: Mapping[str, str]) -> str:
    """A series' name in the legend."""
    return re.sub(r"{{(\w+)}}", lambda found: labels.get(found[1], ""), legend)


def stat(panel: Document, at: Box, value: float | None) -> list[str]:
    """A number in the colour of its threshold."""
    defaults = panel["fieldConfig"]["defaults"]
    shown = f"{value:g}" if value is not None else defaults["noValue"]
    steps = defaults["thresholds"]["steps"]
    colour = [s["color"] for s in steps if s["value"] is None or float(shown) >= s["value"]][-1]
    style = f' style="fill: {STATES[colour]}"'
    return [text(at.x + at.width / 2, at.y + at.height / 2 + 24, shown, "n", style)]


def table(at: Box, rows: Sequence[Mapping[str, str]]) -> list[str]:
    """Labels in columns."""
    parts, names = [], sorted({name for row in rows for name in row})
    for column, name in enumerate(names):
        x = at.x + 12 + column * at.width / len(names)
        parts.append(text(x, at.y + 46, name, "t"))
        parts += [text(x, at.y + 70 + 24 * n, row[name], "v") for n, row in enumerate(rows)]
    parts.append(line(at.x + 8, at.y + 53, at.x + at.width - 8))
    return parts


def line(x: float, y: float, end: float) -> str:
    """A thin line from left to right."""
    return f'<path class="grid" d="M{x:.1f} {y:.1f}H{end:.1f}"/>'


def plot(panel: Document, at: Box, series: Series, times: tuple[float, float]) -> list[str]:
    """Lines over time, with axes and a legend."""
    custom = panel["fieldConfig"]["defaults"].get("custom", {})
    lines, parts = legend(at, [name for name, _ in series])
    area = Box(
        at.x + LEFT, at.y + TOP, at.width - LEFT - 12, at.height - TOP - BOTTOM - LEGEND * lines
    )
    if "stacking" in custom:
        series = stacked(series)
    values = [value for _, points in series for _, value in points]
    unit = panel["fieldConfig"]["defaults"]["unit"]
    logarithmic = custom.get("scaleDistribution", {}).get("type") == "log"
    marks = doublings(values) if logarithmic else ticks(max(values, default=0), unit)
    scale: Callable[[float], float] = math.log2 if logarithmic else float
    low, high = scale(marks[0]), scale(marks[-1])
    begin, end = times

    def x(moment: float) -> float:
        return area.x + area.width * (moment - begin) / (end - begin)

    def y(value: float) -> float:
        return area.y + area.height * (1 - (scale(value) - low) / (high - low))

    for mark in marks:
        parts.append(line(area.x, y(mark), area.x + area.width))
        parts.append(text(area.x - 6, y(mark) + 4, written(mark, unit), "y"))
    for second in range(0, int(end - begin), 10):
        parts.append(text(x(begin + second), area.y + area.height + 16, f"{second} s", "x"))
    for number, (_, points) in enumerate(series):
        colour = COLOURS[number % len(COLOURS)]
        # What lies below is wider, so that equal lines are all seen.
        width = 1.6 + 1.1 * min(len(series) - 1 - number, 4)
        for piece in pieces(points):
            drawn = " ".join(f"{x(moment):.1f},{y(value):.1f}" for moment, value in piece)
            if "stacking" in custom:
                foot = f"{x(piece[-1][0]):.1f},{y(0):.1f} {x(piece[0][0]):.1f},{y(0):.1f}"
                parts.append(f'<polygon fill="{colour}" opacity=".2" points="{drawn} {foot}"/>')
            style = f'stroke="{colour}" stroke-width="{width:.1f}"'
            parts.append(f'<polyline {style} points="{drawn}"/>')
    return parts


def pieces(points: Points) -> list[Points]:
    """The points without the gaps between them, where nothing was scraped."""
    found: list[Points] = []
    for point in points:
        if not found or point[0] - found[-1][-1][0] > SECONDS:
            found.append([])
        found[-1].append(point)
    return found


def legend(at: Box, names: Sequence[str]) -> tuple[int, list[str]]:
    """The number of its lines, and it."""
    places, x, row = [], 0.0, 0
    for name in names:
        width = 20 + LETTER * len(name)
        if x and x + width > at.width - 20:
            x, row = 0.0, row + 1
        places.append((x, row))
        x += width
    parts = []
    for number, (name, (left, below)) in enumerate(zip(names, places, strict=True)):
        start, base = at.x + 12 + left, at.y + at.height - 9 - LEGEND * (row - below)
        colour = COLOURS[number % len(COLOURS)]
        parts.append(
            f'<rect x="{start:.1f}" y="{base - 6:.1f}" width="9" height="4" fill="{colour}"/>'
        )
        parts.append(text(start + 13, base, name, "l"))
    return row + 1, parts


def stacked(series: Series) -> Series:
    """Each series upon those before it."""
    height: dict[float, float] = {}
    found = []
    for name, points in series:
        height |= {moment: height.get(moment, 0) + value for moment, value in points}
        found.append((name, [(moment, height[moment]) for moment, _ in points]))
    return found


def ticks(most: float, unit: str) -> list[float]:
    """Round numbers from 0 to just above the largest value."""
    most = most or 1
    base = 1024.0 ** int(math.log(most, 1024)) if unit == "bytes" else 1.0
    power = 10.0 ** math.floor(math.log10(most / base / 4))
    step = next(s for s in (1, 2, 5, 10) if s * power * 4 >= most / base) * power * base
    step = max(step, 1) if unit == "none" else step
    return [step * number for number in range(math.ceil(most / step) + 1)]


def doublings(values: Sequence[float]) -> list[float]:
    """Powers of two around all values, four or five of them."""
    low, high = math.floor(math.log2(min(values))), math.ceil(math.log2(max(values)))
    step = max(1, math.ceil((high - low) / 4))
    return [2.0**power for power in range(low, high + step, step)]


def written(value: float, unit: str) -> str:
    """A value in its unit, as Grafana writes it."""
    if unit == "bytes":
        power = int(math.log(value, 1024)) if value >= 1 else 0
        return f"{value / 1024**power:g} {('B', 'KiB', 'MiB', 'GiB')[power]}"
    if unit == "s":
        return f"{value * 1000:g} ms" if 0 < value < 1 else f"{value:g} s"
    return f"{value:g}{ {'reqps': ' req/s', 'ops': ' ops/s'}.get(unit, '') }"
