"""What has changed between two looks at a TApp, for readers that are no terminal."""

from collections.abc import Iterator

from kubectl_tapp.decide.look import Look, Row
from kubectl_tapp.show.status import headline, waiting
from tapp.words.groups import grouped
from tapp.words.ranges import some
from tapp.words.times import written


class Changes:
    """Remembers the last look."""

    def __init__(self, look: Look) -> None:
        """`look` has been shown already."""
        self._rows = {row.id: _shown(row) for row in look.rows}
        self._waits = {text for text, _ in waiting(look)}
        self._head = headline(look)

    def until(self, look: Look) -> Iterator[str]:
        """A line for all instances that changed alike, for each new reason, and for the whole."""
        at = written(look.plan.now)
        rows = {row.id: _shown(row) for row in look.rows}
        changed = grouped(
            ((self._rows.get(id, ""), rows.get(id, "gone")), id)
            for id in sorted({*rows, *self._rows})
            if rows.get(id) != self._rows.get(id)
        )
        for (before, after), ids in changed.items():
            change = f"{before} -> {after}" if before else after
            yield f"{at}  {some(ids)}: {change}"
        waits = waiting(look)
        yield from (f"{at}  {some(ids)}: {text}" for text, ids in waits if text not in self._waits)
        head = headline(look)
        if head != self._head:
            yield f"{at}  {head}"
        self._rows, self._waits, self._head = rows, {text for text, _ in waits}, head


def _shown(row: Row) -> str:
    """What is worth a line when it changes."""
    parts = [row.state, f"{row.ready} ready" if row.ready else "", row.image]
    return ", ".join(part for part in parts if part)
