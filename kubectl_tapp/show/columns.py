"""Builds tables that fit the width of the terminal.

`fitted_table` shrinks or removes columns in a given order until the table fits. `plain_table` lets
rich, the library that prints tables, choose the widths.
"""

from collections.abc import Iterable, Mapping, Sequence

from rich.table import Table
from rich.text import Text

from kubectl_tapp.base.errors import printable

GAP = 2  # Blanks between two columns
ShrinkStep = tuple[
    str, int
]  # The heading of a column, and the width in characters to which the column shrinks; 0 removes it
# Columns whose cells are shortened at the beginning, because the tag of an image stands at its end
_SHORTENED_AT_START = frozenset({"IMAGE", "IMAGES"})


def plain_table(heads: Mapping[str, bool], rows: Iterable[Sequence[str | Text]]) -> Table:
    """Returns a table with these headings and rows.

    `heads` maps each heading to True if the cells of its column may be wrapped into several lines,
    or to False if they are cut.
    """
    result = Table(box=None, pad_edge=False, header_style="bold")
    for head, breaks in heads.items():
        result.add_column(head, no_wrap=not breaks, overflow="fold" if breaks else "ellipsis")
    for row in rows:
        result.add_row(*(cell if isinstance(cell, Text) else Text(printable(cell)) for cell in row))
    return result


def fitted_table(
    heads: Sequence[str],
    rows: Sequence[Mapping[str, Text]],
    width: int,
    steps: Sequence[ShrinkStep],
) -> Table:
    """Returns a table of these rows that is at most `width` characters wide.

    Args:
        heads: the headings of the columns.
        rows: heading -> cell, for each row.
        width: the width of the terminal, in characters.
        steps: which columns shrink or disappear, one after the other, until the table fits. A
            column without a step is never shortened, so the table can stay too wide.
    """
    widths = _widths(heads, rows, width, steps)
    result = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
    for head, most in widths.items():
        result.add_column(head, no_wrap=True, overflow="ellipsis", width=most)
    for row in rows:
        result.add_row(*(_shortened(row[head], most, head) for head, most in widths.items()))
    return result


def _widths(
    heads: Sequence[str],
    rows: Sequence[Mapping[str, Text]],
    width: int,
    steps: Sequence[ShrinkStep],
) -> dict[str, int]:
    widths = {
        head: max(len(head), *(row[head].cell_len for row in rows)) if rows else len(head)
        for head in heads
    }
    for head, most in steps:
        if sum(widths.values()) + GAP * (len(widths) - 1) <= width:
            break
        if most:
            widths[head] = min(widths[head], most)
        else:
            del widths[head]
    return widths


def _shortened(cell: Text, most: int, head: str) -> Text:
    if head not in _SHORTENED_AT_START or len(cell) <= most:
        return cell
    return Text(f"...{cell.plain[3 - most :]}", style=cell.style)
