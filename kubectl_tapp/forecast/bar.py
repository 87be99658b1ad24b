"""A progress bar for what takes longer than a moment: on standard error, and only on a terminal."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

MOMENT = 1.0
"""Seconds before which nothing is shown."""
Tell = Callable[[int, int], None]
"""Is told how much is done, of how much."""


@contextmanager
def bar(what: str, clock: Callable[[], float] = time.monotonic) -> Iterator[Tell]:
    """Gives what is to be told of the progress.

    Args:
        what: is under way.
        clock: seconds, from whenever.
    """
    if not sys.stderr.isatty():
        yield lambda _done, _of: None
        return
    columns = TextColumn(what), BarColumn(), MofNCompleteColumn()
    shown = Progress(*columns, console=Console(stderr=True), transient=True)
    task, begun = shown.add_task(what, total=None), clock()

    def tell(done: int, of: int) -> None:
        if clock() - begun >= MOMENT:
            shown.start()
            shown.update(task, completed=done, total=of)

    try:
        yield tell
    finally:
        shown.stop()
