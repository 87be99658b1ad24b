"""The text of `kubectl tapp status`: a headline, a table of instances, the budget, and reasons.

`status_text` is the entry point. If the user may not read pods, `status_text_from_status` shows
only the TApp's status. `Changes` finds the changes between two inspections, for `--watch` without a
terminal.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from kubectl_tapp.base.errors import printable
from kubectl_tapp.base.hints import tapp_command
from kubectl_tapp.base.observed import Observed
from kubectl_tapp.base.reading import deletion_message, unobserved
from kubectl_tapp.base.words import instances_phrase, plural
from kubectl_tapp.decide.budget import are
from kubectl_tapp.decide.events import failing_syncs
from kubectl_tapp.decide.inspection import (
    Inspection,
    Row,
    counts_of_status,
    rows_of_status,
    sentences_of_status,
)
from kubectl_tapp.decide.phrases import age_range, budget_block, node_phrase, refused_block
from kubectl_tapp.edit.revisions import SHORT_HASH
from kubectl_tapp.show.columns import ShrinkStep, fitted_table
from kubectl_tapp.show.next_steps import next_step_block
from kubectl_tapp.show.reminders import reminders_block
from tapp.words.groups import grouped
from tapp.words.ranges import about, id_list, ranges
from tapp.words.times import written
from tapp.words.vocabulary import InstanceStatus

_MAX_UNFOLDED = 24  # In TApps with more than this many instances, equal instances share a line
_IMAGE_WIDTH = 48
_HEADINGS = ("ID", "TEMPLATE", "REVISION", "IMAGE", "STATE", "READY", "RESTARTS", "NODE", "SINCE")
_SHRINK_STEPS: Sequence[ShrinkStep] = (
    *(("IMAGE", 22), ("NODE", 16), ("IMAGE", 14), ("RESTARTS", 0), ("NODE", 0), ("SINCE", 0)),
    *(("TEMPLATE", 14), ("IMAGE", 0), ("STATE", 14), ("READY", 0), ("STATE", 8), ("TEMPLATE", 0)),
    *(("STATE", 7), ("REVISION", 0)),
)
"""Columns in the order in which they shrink or disappear on a narrow terminal. The instance number
is never shortened, and the revision disappears last."""
_GOOD_STATES = ("Running", "Succ")
_NEUTRAL_STATES = (
    "Held", "Killed", "Terminating", "Killing", "Pending", "Updating", "LeavingServices",
    "NotCreated",
)  # fmt: skip
_MAX_REASONS = 10


def status_text(view: Inspection, console: Console, *, unfold: bool = False) -> RenderableType:
    """Returns the complete output of `status`, for the width of the console.

    If `unfold` is True, each instance has a line. Otherwise equal instances of a large TApp share a
    line.
    """
    unfold = unfold or len(view.rows) <= _MAX_UNFOLDED
    rows = table(view.rows, view.plan.now, console.width, unfold=unfold)
    return _stacked(headline(view), rows, lines_below_table(view))


def status_text_from_status(
    observed: Observed, console: Console, *, unfold: bool = False
) -> RenderableType:
    """Returns the output of `status` from the status of the TApp alone, if its pods cannot be read.

    If `unfold` is True, each instance has a line. Otherwise equal instances of a large TApp share a
    line.
    """
    namespace = observed.tapp["metadata"]["namespace"]
    head = f"{namespace}/{observed.name}: {', '.join(counts_of_status(observed))}"
    rows = rows_of_status(observed)
    found = table(rows, 0.0, console.width, unfold=unfold or len(rows) <= _MAX_UNFOLDED)
    return _stacked(head, found, ["", *sentences_of_status(observed)])


def _stacked(head: str, rows: Table, lines: Iterable[str]) -> Group:
    parts = [rows] if rows.row_count else []
    return Group(
        Text(printable(head), style="bold"), *parts, *(Text(printable(line)) for line in lines)
    )


def headline(view: Inspection) -> str:
    """Returns one line: the state of the TApp, and the numbers of running and available
    instances.
    """
    ready = sum(row.state in ("Running", "Held") and _runs(view, row.id) for row in view.rows)
    outdated = [row.id for row in view.rows if row.outdated]
    should_run, available = view.plan.budgets.should_run, len(view.plan.available)
    parts = [
        f"TApp {view.namespace}/{view.name} is {view.plan.app_status}: "
        f"{ready} of {should_run} {plural(should_run, 'instance')} {_run(ready)}",
        f"{available} {are(available)} available",
    ]
    instances = [case.instance for case in view.cases.values()]
    kept = [each.id for each in instances if each.kept and not each.is_rolled_back]
    back = [each.id for each in instances if each.is_rolled_back and each.updated]
    if outdated:
        parts.append(f"{instances_phrase(outdated)} {_run(len(outdated))} an old revision")
    if kept:
        parts.append(f"the partition keeps {instances_phrase(kept)} at an old revision")
    if back:
        parts.append(f"a rollback keeps {instances_phrase(back)} at an old revision")
    if not (kept or back or outdated) and all(
        each.updated for each in instances if each.should_run
    ):
        parts.append("all are up to date")
    parts += [clause] if (clause := unobserved(view.observed.tapp)) else []
    if view.observed.tapp["metadata"].get("deletionTimestamp"):
        parts.append("the TApp is being deleted")
    namespace = (view.observed.namespace or {}).get("metadata") or {}
    if namespace.get("deletionTimestamp"):
        parts.append("its namespace is being deleted, so no pod can be created")
    return ", ".join(parts)


def _run(number: int) -> str:
    return "runs" if number == 1 else "run"


def _runs(view: Inspection, id: int) -> bool:
    instance = view.cases[id].instance
    return instance.should_run and instance.status is InstanceStatus.RUNNING


def table(rows: Iterable[Row], now: float, width: int, *, unfold: bool) -> Table:
    """Returns the table of instances: a line for each row, or for each group of equal rows.

    Args:
        rows: the rows of the instances.
        now: the time for the ages, in seconds since the epoch.
        width: the width of the terminal, in characters.
        unfold: True for a line for each row; False if equal rows share a line.
    """
    groups = grouped((row.id if unfold else _folding_key(row), row) for row in rows).values()
    lines = [{head: _cell(cell) for head, cell in _cells(group, now).items()} for group in groups]
    return fitted_table(_HEADINGS, lines, width, _SHRINK_STEPS)


def _cells(group: list[Row], now: float) -> dict[str, Any]:
    first = group[0]
    return {
        "ID": id_list([row.id for row in group]),
        "TEMPLATE": first.template,
        "REVISION": _revision(first),
        "IMAGE": _image(first.image),
        "STATE": Text(printable(first.state), style=_style(first)),
        "READY": first.ready,
        "RESTARTS": str(first.restarts) if first.ready else "",
        "NODE": node_phrase(group),
        "SINCE": age_range(group, now),
    }


def _cell(value: Any) -> Text:
    """Returns a cell of the table as text without markup and control characters.

    Names and states may contain such characters.
    """
    return value if isinstance(value, Text) else Text(printable(value))


def _folding_key(row: Row) -> tuple[object, ...]:
    return (row.template, row.revision, row.outdated, row.image, row.state, row.ready, row.restarts)


def _revision(row: Row) -> str:
    short = row.revision[:SHORT_HASH]
    return f"{short} (old)".lstrip() if row.outdated else short


def _image(image: str) -> str:
    """Returns the name of an image, shortened at its beginning if it is long, because its end has
    the tag.
    """
    return image if len(image) <= _IMAGE_WIDTH else f"...{image[3 - _IMAGE_WIDTH :]}"


def _style(row: Row) -> str:
    full = row.ready.partition("/")
    if row.state in _GOOD_STATES:
        return "green" if full[0] == full[2] or row.state == "Succ" else "yellow"
    return "yellow" if row.state in _NEUTRAL_STATES else "red"


def lines_below_table(view: Inspection) -> list[str]:
    """Returns the lines below the table: budget, waiting instances, refusals and failed syncs.

    If the TApp is being deleted, the lines name the objects that the deletion waits for, instead of
    the budget.
    """
    going = deletion_message(view.observed.tapp)
    lines = ["", going] if going else [*(["", view.idle] if view.idle else []), *budget_block(view)]
    waits = reasons_by_instances(view)
    if waits:
        lines.append("")
        lines += [about(ids, text) for text, ids in waits[:_MAX_REASONS]]
        if len(waits) > _MAX_REASONS:
            others = [id for _, ids in waits[_MAX_REASONS:] for id in ids]
            why = tapp_command(view.observed.tapp, "why", ranges(others))
            lines.append(f"{instances_phrase(others)}: see {why}")
    refused = [] if going else refused_block(view)
    lines += [*refused, *(f"note: {text}" for text in failing_syncs(view))]
    return lines if going else lines + next_step_block(view) + reminders_block(view, holds=True)


def reasons_by_instances(view: Inspection) -> list[tuple[str, list[int]]]:
    """Returns the reasons why instances are not as the spec asks, each with the instance
    numbers.
    """
    return [*grouped((x.text, x.id) for x in view.standings.values() if x.text).items()]


class Changes:
    """Finds the changes of a TApp since the previous inspection, for `status --watch` without a
    terminal.
    """

    def __init__(self, view: Inspection) -> None:
        """Remembers the state of the TApp in `view`, which the caller has already shown
        completely.
        """
        self._rows = {row.id: _row_text(row) for row in view.rows}
        self._waits = {text for text, _ in reasons_by_instances(view)}
        self._head = headline(view)

    def lines_since_last_look(self, view: Inspection) -> Iterator[str]:
        """Yields a line for each group of equal changes of instances, and for each new reason for
        waiting.

        The next call compares with the state in `view`.
        """
        at = written(view.plan.now)
        rows = {row.id: _row_text(row) for row in view.rows}
        for ids, before, after in grouped_changes(self._rows, rows):
            change = f"{before} -> {after or 'gone'}" if before else after
            yield f"{at}  {instances_phrase(ids)}: {change}"
        waits = reasons_by_instances(view)
        yield from (
            f"{at}  {instances_phrase(ids)}: {text}"
            for text, ids in waits
            if text not in self._waits
        )
        head = headline(view)
        if head != self._head:
            yield f"{at}  {head}"
        self._rows, self._waits, self._head = rows, {text for text, _ in waits}, head


def grouped_changes(
    before: Mapping[int, str], after: Mapping[int, str]
) -> Iterator[tuple[list[int], str, str]]:
    """Groups the instances whose text changed from the same old text to the same new text.

    Yields the instance numbers, the old text and the new text of each group.

    `before` and `after` map instance numbers to texts. The old text is empty for a new instance,
    and the new text is empty for an instance that is gone.
    """
    pairs = (((before.get(id, ""), after.get(id, "")), id) for id in sorted({*before, *after}))
    groups = grouped((texts, id) for texts, id in pairs if texts[0] != texts[1])
    yield from ((ids, *texts) for texts, ids in groups.items())


def _row_text(row: Row) -> str:
    parts = [row.state, f"{row.ready} ready" if row.ready else "", row.image]
    return ", ".join(part for part in parts if part)
