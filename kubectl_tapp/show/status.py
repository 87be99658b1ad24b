"""Shows looks at a TApp: a table, the budget, what waits for what; and what has changed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from kubectl_tapp.base.errors import plain
from kubectl_tapp.base.observed import Observed
from kubectl_tapp.base.reading import generation_seen
from kubectl_tapp.decide.events import failing_syncs
from kubectl_tapp.decide.from_status import counts_of_status, rows_of_status, sentences_of_status
from kubectl_tapp.decide.look import Look, Row
from kubectl_tapp.decide.phrases import budget_block, places, refused_block, span
from kubectl_tapp.show.columns import Step, fitted
from tapp.words.groups import grouped
from tapp.words.ranges import ranges, some
from tapp.words.times import written
from tapp.words.vocabulary import InstanceStatus

FEW = 24
"""Up to so many instances have a line each; of more, equal ones share one."""
_IMAGE = 48
_HEADS = ("ID", "TEMPLATE", "REVISION", "IMAGE", "STATE", "READY", "RESTARTS", "NODE", "SINCE")
_GIVE_WAY: Sequence[Step] = (
    *(("IMAGE", 22), ("NODE", 16), ("IMAGE", 14), ("RESTARTS", 0), ("NODE", 0), ("SINCE", 0)),
    *(("TEMPLATE", 14), ("IMAGE", 0), ("STATE", 14), ("READY", 0), ("STATE", 8), ("TEMPLATE", 0)),
    *(("STATE", 7), ("REVISION", 0)),
)
"""Columns that yield on a narrow terminal. The number stays whole, and the revision to the last."""
_GOOD = ("Running", "Succ")
_NEUTRAL = (
    "Held",
    "Killed",
    "Terminating",
    "Killing",
    "Pending",
    "Updating",
    "Draining",
    "NotCreated",
)
_SHOWN = 10
_REVISION = len("v1-") + 8
"""Enough of a hash to tell two apart; `-o json` has all of it."""


def shown(look: Look, console: Console, *, unfold: bool = False) -> RenderableType:
    """All of it, as wide as the console.

    Args:
        look: the TApp.
        console: where it will be shown.
        unfold: a line for each instance, however many there are.
    """
    unfold = unfold or len(look.rows) <= FEW
    rows = table(look.rows, look.plan.now, console.width, unfold=unfold)
    return _together(headline(look), rows, sentences(look))


def shown_told(observed: Observed, console: Console, *, unfold: bool = False) -> RenderableType:
    """Shows the TApp's own words, where its pods may not be read."""
    namespace = observed.tapp["metadata"]["namespace"]
    head = f"{namespace}/{observed.name}: {', '.join(counts_of_status(observed))}"
    rows = rows_of_status(observed)
    found = table(rows, 0.0, console.width, unfold=unfold or len(rows) <= FEW)
    return _together(head, found, ["", *sentences_of_status(observed)])


def _together(head: str, rows: Table, lines: Iterable[str]) -> Group:
    parts = [rows] if rows.row_count else []
    return Group(Text(plain(head), style="bold"), *parts, *(Text(plain(line)) for line in lines))


def headline(look: Look) -> str:
    """The TApp in a line: how many instances run, and how many of them are as they should be."""
    ready = sum(row.state in ("Running", "Held") and _runs(look, row.id) for row in look.rows)
    outdated = [row.id for row in look.rows if row.outdated]
    parts = [
        f"{look.namespace}/{look.name}: {look.plan.app_status}",
        f"{ready}/{look.plan.budgets.should_run} running",
        f"{len(look.plan.available)} available",
    ]
    instances = [instance for instance, _ in look.cases.values()]
    kept = [instance.id for instance in instances if instance.kept]
    if outdated:
        parts.append(f"outdated: {some(outdated)}")
    if kept:
        parts.append(f"kept: {some(kept)}")
    elif not outdated and all(each.updated for each in instances if each.should_run):
        parts.append("all up to date")
    seen = generation_seen(look.observed.tapp)
    if not seen:
        parts.append("no controller has looked at it yet")
    elif seen != look.observed.tapp["metadata"].get("generation"):
        parts.append("its newest spec has not been looked at yet")
    if look.observed.tapp["metadata"].get("deletionTimestamp"):
        parts.append("it is being deleted")
    return ", ".join(parts)


def _runs(look: Look, id: int) -> bool:
    instance, _ = look.cases[id]
    return instance.should_run and instance.status is InstanceStatus.RUNNING


def table(rows: Iterable[Row], now: float, width: int, *, unfold: bool) -> Table:
    """A line a row, or a line for all rows that are equal."""
    groups = grouped((row.id if unfold else _equal(row), row) for row in rows).values()
    lines = [{head: _cell(cell) for head, cell in _cells(group, now).items()} for group in groups]
    return fitted(_HEADS, lines, width, _GIVE_WAY)


def _cells(group: list[Row], now: float) -> dict[str, Any]:
    first = group[0]
    return {
        "ID": some([row.id for row in group]),
        "TEMPLATE": first.template,
        "REVISION": _revision(first),
        "IMAGE": _image(first.image),
        "STATE": Text(plain(first.state), style=_style(first)),
        "READY": first.ready,
        "RESTARTS": str(first.restarts) if first.ready else "",
        "NODE": places(group),
        "SINCE": span(group, now),
    }


def _cell(value: Any) -> Text:
    """No markup, and nothing that a terminal obeys: templates may be called anything."""
    return value if isinstance(value, Text) else Text(plain(value))


def _equal(row: Row) -> tuple[object, ...]:
    return (row.template, row.revision, row.outdated, row.image, row.state, row.ready, row.restarts)


def _revision(row: Row) -> str:
    short = row.revision[:_REVISION]
    return f"{short} (old)".lstrip() if row.outdated else short


def _image(image: str) -> str:
    """The end of an image's name tells more than its beginning."""
    return image if len(image) <= _IMAGE else f"...{image[3 - _IMAGE :]}"


def _style(row: Row) -> str:
    full = row.ready.partition("/")
    if row.state in _GOOD:
        return "green" if full[0] == full[2] or row.state == "Succ" else "yellow"
    return "yellow" if row.state in _NEUTRAL else "red"


def sentences(look: Look) -> list[str]:
    """Below the table: the budget, what waits for what, what is refused, what could not be read."""
    lines = budget_block(look)
    waits = waiting(look)
    if waits:
        lines.append("")
        lines += [f"{some(ids)}: {text}" for text, ids in waits[:_SHOWN]]
        if len(waits) > _SHOWN:
            others = [id for _, ids in waits[_SHOWN:] for id in ids]
            lines.append(f"{some(others)}: see `kubectl tapp why {look.name} {ranges(others)}`")
    return [*lines, *refused_block(look), *(f"note: {text}" for text in failing_syncs(look))]


def waiting(look: Look) -> list[tuple[str, list[int]]]:
    """Sentences about instances that are not as they should be, and of which."""
    return [*grouped((x.text, x.id) for x in look.standings.values() if x.text).items()]


class Changes:
    """The changes since the last look, which it remembers: for who has no terminal."""

    def __init__(self, look: Look) -> None:
        """`look` has been shown already."""
        self._rows = {row.id: _told(row) for row in look.rows}
        self._waits = {text for text, _ in waiting(look)}
        self._head = headline(look)

    def until(self, look: Look) -> Iterator[str]:
        """A line for all instances that changed alike, for each new reason, and for the whole."""
        at = written(look.plan.now)
        rows = {row.id: _told(row) for row in look.rows}
        for ids, before, after in changed(self._rows, rows):
            change = f"{before} -> {after or 'gone'}" if before else after
            yield f"{at}  {some(ids)}: {change}"
        waits = waiting(look)
        yield from (f"{at}  {some(ids)}: {text}" for text, ids in waits if text not in self._waits)
        head = headline(look)
        if head != self._head:
            yield f"{at}  {head}"
        self._rows, self._waits, self._head = rows, {text for text, _ in waits}, head


def changed(
    before: Mapping[int, str], after: Mapping[int, str]
) -> Iterator[tuple[list[int], str, str]]:
    """Instances that changed alike, with their words before and after; "" where there are none."""
    pairs = (((before.get(id, ""), after.get(id, "")), id) for id in sorted({*before, *after}))
    groups = grouped((texts, id) for texts, id in pairs if texts[0] != texts[1])
    yield from ((ids, *texts) for texts, ids in groups.items())


def _told(row: Row) -> str:
    """The part of a row that is worth a line when it changes."""
    parts = [row.state, f"{row.ready} ready" if row.ready else "", row.image]
    return ", ".join(part for part in parts if part)
