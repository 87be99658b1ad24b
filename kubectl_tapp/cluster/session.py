"""The session of a command: the cluster that is asked for, and where to print."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TextIO, cast

from kubectl_tapp.base.errors import CommandError, Exit, UsageError, plain
from kubectl_tapp.base.observed import Observed
from kubectl_tapp.base.reading import deletion_of
from kubectl_tapp.base.streams import discard_output, note, unwritable
from kubectl_tapp.base.targets import Given, together
from kubectl_tapp.cluster.access import PODS, ClusterAccess
from kubectl_tapp.cluster.first_call import FirstCall
from kubectl_tapp.cluster.kubectl import Runner

if TYPE_CHECKING:
    from rich.console import Console

INTERVAL = 1.0  # Seconds between two looks at the same, at least
WIDTH = 10_000  # Columns of a pipe or a file, if nobody says: its reader wants all of it


@dataclass
class Session:
    """One call of the command."""

    runner: Runner | None = None  # what runs kubectl; None for the program itself
    now: Callable[[], float] = time.time  # the time, in seconds since the epoch
    targets: Given = field(default_factory=dict)  # kubectl's own options that were given
    sleep: Callable[[float], None] = time.sleep  # lets so many seconds pass
    first_call: FirstCall = field(default_factory=FirstCall)  # shared by all that is narrowed

    def narrowed(self, **targets: Any) -> "Session":
        """The same with further options, which stand behind those that it has."""
        return replace(self, targets=together(self.targets, targets))

    @cached_property
    def cluster(self) -> ClusterAccess:
        """The cluster that is asked for; nothing is called before it is used."""
        return ClusterAccess(self.targets, self.runner, self.first_call)

    @cached_property
    def console(self) -> "Console":
        """Standard output: colours on a terminal only; NO_COLOR and TERM=dumb are honoured."""
        from rich.console import Console  # noqa: PLC0415 - it costs start time

        _printable()
        terminal = sys.stdout.isatty()
        width = None if terminal or "COLUMNS" in os.environ else WIDTH
        return Console(
            file=sys.stdout, width=width, highlight=False, soft_wrap=False, emoji=False,
            force_terminal=None if terminal else False,
        )  # fmt: skip

    @staticmethod
    def ignore_closed_output() -> None:
        """Goes on where nobody reads any more: who said `-y` asked for the write, not the text."""
        sys.stdout = cast("TextIO", _ClosableOutput(sys.stdout))

    @property
    def interactive(self) -> bool:
        """Tell whether there is a person to ask."""
        return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()

    @staticmethod
    def ask(question: str) -> str:
        """A person's answer, as it was typed; raises an EOFError where there is none."""
        _printable()
        return input(question)

    def confirm(self, *, yes: bool) -> None:
        """Goes on only if a person says yes, or `-y` did. CommandError: no, or nobody to ask."""
        if yes:
            return
        if not self.interactive:
            raise UsageError(
                "there is no terminal to ask on: repeat it with -y; nothing was written"
            )
        try:
            answer = self.ask("\nApply? [y/N] ")
        except EOFError:
            answer = ""
        if answer.strip().lower() not in ("y", "yes"):
            raise CommandError("not applied; nothing was written", Exit.DECLINED)

    def observed(self, name: str, before: Observed | None = None) -> Observed:
        """A TApp with all that decisions need; CommandError: not there, going, unreadable."""
        found = self.cluster.observe(name, before=before)
        found.require(PODS)
        if told := deletion_of(found.tapp):
            raise CommandError(f"TApp {name} is being deleted: {told}")
        return found

    def looks(self) -> Iterator[None]:
        """The times to look at something: now, then after a second, or three times a long look."""
        while True:
            begun = self.now()
            yield
            self.sleep(max(INTERVAL, 3 * (self.now() - begun)))

    def say(self, text: str = "") -> None:
        """A line on standard output, as it is."""
        _printable()
        print(plain(text))

    @staticmethod
    def note(text: str) -> None:
        """A line on standard error: what is not part of the answer."""
        _printable()
        note(text)


class _ClosableOutput:
    """Standard output that may become unwritable; the rest goes nowhere then.

    Its reader may go away, as `grep -q` does, and the disk of its file may be full.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def write(self, text: str) -> int:
        with self._or_nowhere():
            self._file.write(text)
        return len(text)

    def flush(self) -> None:
        with self._or_nowhere():
            self._file.flush()

    @contextmanager
    def _or_nowhere(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if not isinstance(error, BrokenPipeError):
                note(f"note: {unwritable(error)}; the command goes on")
            discard_output()


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ctrl-C is not heard meanwhile, and kubectl does not hear it either: it inherits that."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _printable() -> None:
    """A character that the locale lacks becomes a `?`, not an error."""
    streams: Sequence[object] = (sys.stdout, sys.stderr)
    for stream in streams:
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
