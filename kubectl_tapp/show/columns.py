"""A table that fits its terminal: what identifies a row stays, the rest shrinks or goes first."""

from collections.abc import Iterable, Mapping, Sequence

from rich.table import Table
from rich.text import Text

from kubectl_tapp.base.errors import plain

GAP = 2  # Blanks between two columns
Step = tuple[str, int]  # A head, and from here on its column's characters; 0 leaves it out
_ENDS = frozenset({"IMAGE", "IMAGES"})  # Of these the end tells more than the beginning


def plain_table(heads: Mapping[str, bool], rows: Iterable[Sequence[str | Text]]) -> Table:
    """A table of these cells; head -> whether its column may break lines."""
    result = Table(box=None, pad_edge=False, header_style="bold")
    for head, breaks in heads.items():
        result.add_column(head, no_wrap=not breaks, overflow="fold" if breaks else "ellipsis")
    for row in rows:
        result.add_row(*(cell if isinstance(cell, Text) else Text(plain(cell)) for cell in row))
    return result


def fitted(
    heads: Sequence[str], rows: Sequence[Mapping[str, Text]], width: int, steps: Sequence[Step]
) -> Table:
    """A table of these rows, in so many characters.

    The steps give way one after the other until all fits; what none names is never shortened.
    """
    widths = _widths(heads, rows, width, steps)
    result = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
    for head, most in widths.items():
        result.add_column(head, no_wrap=True, overflow="ellipsis", width=most)
    for row in rows:
        result.add_row(*(_cut(row[head], most, head) for head, most in widths.items()))
    return result


def _widths(
    heads: Sequence[str], rows: Sequence[Mapping[str, Text]], width: int, steps: Sequence[Step]
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


def _cut(cell: Text, most: int, head: str) -> Text:
    if head not in _ENDS or len(cell) <= most:
        return cell
    return Text(f"...{cell.plain[3 - most :]}", style=cell.style)
