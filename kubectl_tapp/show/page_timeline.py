"""The two pictures of the plan's page, as SVG.

`timeline` draws a bar for each group of instances that pass through the same states at the same
times. `availability` draws the number of unavailable instances over time, with the budgets as
lines.
"""

from html import escape

from kubectl_tapp.base.words import rounded_duration, short_duration
from kubectl_tapp.forecast.forecast import Forecast
from tapp.words.groups import grouped
from tapp.words.ranges import id_list

WIDTH, LEFT, RIGHT = 1100.0, 112.0, 24.0
ROW, BAR, TOP = 26.0, 16.0, 30.0
MAX_LABEL_CHARACTERS = 15  # Characters of a label that fit to the left of a row
MAX_ROWS = 250  # A picture with more rows than this would not be readable
STATES = {
    "available": "available", "updating": "restarts in place", "stopping": "stops",
    "missing": "has no pod yet", "starting": "starts", "broken": "does not start",
    "ended": "has completed",
}  # fmt: skip
_TICK_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)
_MAX_TICKS = 9
Spans = tuple[tuple[float, str], ...]


class Scale:
    """The horizontal axis of a picture, which converts seconds to coordinates."""

    def __init__(self, seconds: float) -> None:
        """Creates an axis whose left end is 0 seconds and whose right end is `seconds`."""
        self.seconds = seconds
        self.end = max(seconds * 1.04, 1.0)

    def x(self, at: float) -> float:
        """Returns the horizontal coordinate of a time; `at` is in seconds from the left end."""
        return LEFT + (WIDTH - LEFT - RIGHT) * min(at, self.end) / self.end

    def ticks(self) -> list[float]:
        """Returns the times, in seconds from the left end, at which the axis has a line and a
        label.
        """
        step = next(
            (step for step in _TICK_STEPS if self.end / step <= _MAX_TICKS), self.end / _MAX_TICKS
        )
        return [step * number for number in range(int(self.end / step) + 1)]


def grouped_rows(forecast: Forecast) -> list[tuple[list[int], Spans]]:
    """Returns the rows of the timeline: instance numbers, and the states that these instances
    share.

    Instances share a row if they pass through the same states at the same times. The rows are
    sorted by their lowest number. Instances that were not simulated are left out.
    """
    later = () if forecast.rest is None else forecast.rest.instances
    states = {id: spans for id, spans in forecast.states.items() if id not in set(later)}
    groups = grouped((_shape(spans), id) for id, spans in states.items())
    return sorted(((ids, spans) for spans, ids in groups.items()), key=lambda each: each[0][0])


def _shape(spans: Spans) -> Spans:
    return tuple((0.0 if number == 0 else round(at, 1), state)
                 for number, (at, state) in enumerate(spans))  # fmt: skip


def simulated_seconds(forecast: Forecast) -> float:
    """Returns the seconds that the simulated part of the rollout takes, without the
    estimated part.
    """
    return forecast.duration if forecast.rest is None else forecast.rest.at


def timeline(forecast: Forecast) -> str:
    """Returns the picture of the states of all instances over time, as HTML with an SVG.

    Returns "" if the forecast has no states.
    """
    found = grouped_rows(forecast)
    if not found:
        return ""
    shown, scale = found[:MAX_ROWS], Scale(simulated_seconds(forecast))
    height = TOP + ROW * len(shown) + 8
    parts = [_axis(scale, height)]
    for number, (ids, spans) in enumerate(shown):
        parts.append(_row(ids, spans, TOP + ROW * number, scale, striped=bool(number % 2)))
    count = sum(len(ids) for ids, _ in found)
    label = f"Timeline of {count} instances over {rounded_duration(scale.seconds)}"
    more = len(found) - len(shown)
    note = f'<p class="legend">and {more} more rows that are not shown</p>' if more else ""
    return _svg(label, height, parts) + note


def _row(ids: list[int], spans: Spans, y: float, scale: Scale, *, striped: bool) -> str:
    name = id_list(ids)
    name = name if len(name) <= MAX_LABEL_CHARACTERS else f"{name[: MAX_LABEL_CHARACTERS - 1]}…"
    parts = []
    if striped:
        wide = WIDTH - RIGHT
        parts.append(f'<rect class="stripe" x="0" y="{y:.1f}" width="{wide:.0f}" height="{ROW}"/>')
    middle = y + ROW / 2
    parts.append(
        f'<text class="row" x="{LEFT - 12:.0f}" y="{middle + 4:.1f}" text-anchor="end">'
        f"{escape(name)}</text>"
    )
    ends = [at for at, _ in spans[1:]] + [scale.end]
    for (at, state), end in zip(spans, ends, strict=True):
        if state not in STATES or end <= at:
            continue
        left, right = scale.x(at), scale.x(end)
        title = f"{name}: {STATES[state]} from {rounded_duration(at)}"
        title += f" to {rounded_duration(end)}" if end < scale.end else " on"
        parts.append(
            f'<rect class="s-{state}" x="{left:.1f}" y="{middle - BAR / 2:.1f}" rx="2" '
            f'width="{max(right - left - 0.8, 0.8):.1f}" height="{BAR:.0f}">'
            f"<title>{escape(title)}</title></rect>"
        )
    return "".join(parts)


def availability(forecast: Forecast) -> str:
    """Returns the picture of the number of unavailable instances over time, as an SVG.

    Returns "" if no instance is ever unavailable.
    """
    points, most = forecast.unavailable, forecast.unavailable_worst
    if not most:
        return ""
    limits = {
        limit.name.removeprefix("spec.updateStrategy."): limit.allowed
        for limit in forecast.limits
        if limit.allowed is not None and limit.allowed <= 2 * most
    }
    tallest = max([most, *limits.values()])
    scale, height, base = Scale(simulated_seconds(forecast)), 170.0, 148.0

    def y(count: float) -> float:
        return base - (base - TOP - 12) * count / tallest

    path = f"M{scale.x(0):.1f},{base:.1f}"
    ends = [at for at, _ in points[1:]] + [scale.end]
    for number, ((at, count), end) in enumerate(zip(points, ends, strict=True)):
        left = scale.x(at if number else 0.0)
        path += f"L{left:.1f},{y(count):.1f}L{scale.x(end):.1f},{y(count):.1f}"
    path += f"L{scale.x(scale.end):.1f},{base:.1f}Z"
    wide = f'x1="{LEFT:.0f}" x2="{WIDTH - RIGHT:.0f}"'
    parts = [_axis(scale, base)]
    parts += [
        f'<text x="{LEFT - 12:.0f}" y="{y(count) + 4:.1f}" text-anchor="end">{count}</text>'
        f'<line class="grid" {wide} y1="{y(count):.1f}" y2="{y(count):.1f}"/>'
        for count in sorted({0, most, *limits.values()})
    ]
    parts.append(f'<path class="area" d="{path}"/>')
    parts += [
        f'<line class="limit" {wide} y1="{y(allowed):.1f}" y2="{y(allowed):.1f}"/>'
        f'<text x="{WIDTH - RIGHT - 4:.0f}" y="{y(allowed) - 5:.1f}" text-anchor="end">'
        f"{escape(name)}</text>"
        for name, allowed in limits.items()
    ]
    return _svg(f"Unavailable instances over time, at most {most}", height, parts)


def legend(forecast: Forecast) -> str:
    """Returns the legend of the colors that the timeline of a forecast uses, as an HTML list."""
    items = [
        f'<li><i class="s-{state}"></i>{escape(STATES[state])}</li>'
        for state in used_states(forecast)
    ]
    return f'<ul class="legend">{"".join(items)}</ul>'


def used_states(forecast: Forecast) -> list[str]:
    """Returns the keys of `STATES` that the timeline of a forecast shows, in the order of
    `STATES`.
    """
    used = {state for spans in forecast.states.values() for _, state in spans}
    return [state for state in STATES if state in used]


def _axis(scale: Scale, height: float) -> str:
    parts = []
    for at in scale.ticks():
        x = scale.x(at)
        text = "now" if at == 0 else f"+{short_duration(at)}"
        parts.append(
            f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 6:.0f}" y2="{height:.0f}"/>'
            f'<text x="{x:.1f}" y="{TOP - 12:.0f}" text-anchor="middle">{text}</text>'
        )
    return "".join(parts)


def _svg(label: str, height: float, parts: list[str]) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH:.0f} {height:.0f}" role="img" aria-label="{escape(label)}">'
        f"{''.join(parts)}</svg>"
    )
