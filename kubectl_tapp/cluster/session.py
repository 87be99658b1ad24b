"""The context of one run of the command: access to the cluster, the clock, and the output."""

import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TextIO, cast

from kubectl_tapp.base.errors import CommandError, Exit, UsageError, printable
from kubectl_tapp.base.global_options import GivenOptions, merged_options
from kubectl_tapp.base.observed import Observed
from kubectl_tapp.base.reading import deletion_message
from kubectl_tapp.base.streams import discard_output, note, unwritable_message
from kubectl_tapp.cluster.access import PODS, ClusterAccess
from kubectl_tapp.cluster.first_call import FirstCall
from kubectl_tapp.cluster.kubectl import Runner
from tapp.words.digits import whole

if TYPE_CHECKING:
    from rich.console import Console

POLL_INTERVAL = 1.0  # The least number of seconds between two polls
# Width in characters of output to a pipe or a file, if COLUMNS is not set: no table is cut
UNLIMITED_WIDTH = 10_000
_LEAST_WIDTH = 40  # Least width in characters for which tables are laid out


@dataclass
class Session:
    """The context of one run of the command, which all code of the command shares.

    A session gives access to the cluster, to the clock, and to the user: it prints, and it asks
    questions. Tests pass other functions for the clock and kubectl.
    """

    runner: Runner | None = None  # runs kubectl; None runs the program itself
    now: Callable[[], float] = time.time  # returns the time in seconds since the epoch
    global_options: GivenOptions = field(
        default_factory=dict
    )  # kubectl's global options of the command line
    sleep: Callable[[float], None] = time.sleep  # waits for a number of seconds
    # shared by all copies that `with_options` returns, so that only one call of kubectl logs in
    first_call: FirstCall = field(default_factory=FirstCall)

    def with_options(self, **more: Any) -> "Session":
        """Returns a copy of the session with further global options of kubectl, which override
        earlier ones.
        """
        return replace(self, global_options=merged_options(self.global_options, more))

    @cached_property
    def cluster(self) -> ClusterAccess:
        """Access to the cluster that the global options select.

        Creating the object calls no kubectl; only its methods do.
        """
        return ClusterAccess(self.global_options, self.runner, self.first_call)

    @cached_property
    def console(self) -> "Console":
        """A rich console that prints tables and styled text to standard output.

        Colors are used on a terminal only. Rich respects NO_COLOR and TERM=dumb.
        """
        from rich.console import Console  # noqa: PLC0415 - it costs start time

        _replace_unencodable()
        terminal = sys.stdout.isatty()
        return Console(
            file=sys.stdout, width=_width(terminal), highlight=False, soft_wrap=False, emoji=False,
            force_terminal=None if terminal else False,
        )  # fmt: skip

    @staticmethod
    def ignore_closed_output() -> None:
        """Lets the command continue when its output can no longer be written, for example to a
        closed pipe.

        With `-y` the user has asked for the write to the cluster, which matters more than the
        output.
        """
        sys.stdout = cast("TextIO", _ClosableOutput(sys.stdout))

    @property
    def interactive(self) -> bool:
        """True if the command can ask the user, because standard input and output are terminals."""
        return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()

    @staticmethod
    def ask(question: str) -> str:
        """Prints a question and returns the line that the user typed.

        Raises EOFError if there is no input.
        """
        _replace_unencodable()
        return input(question)

    def confirm(self, *, yes: bool) -> None:
        """Asks the user whether to write the change.

        If `yes` is True, because the user gave the option `-y`, the method asks nothing.

        Raises CommandError if the user does not confirm, and UsageError if there is no terminal to
        ask the question.
        """
        if yes:
            return
        if not self.interactive:
            raise UsageError(
                "the command cannot ask for confirmation without a terminal; nothing was written. "
                "Repeat it with -y"
            )
        try:
            answer = self.ask("\nApply? [y/N] ")
        except EOFError:
            answer = ""
        if answer.strip().lower() not in ("y", "yes"):
            raise CommandError("not confirmed; nothing was written", Exit.DECLINED)

    def observed(self, name: str, before: Observed | None = None) -> Observed:
        """Reads a TApp with everything that the service's decisions depend on.

        `before` is an earlier result for the same TApp, or None. With an earlier result, fewer
        objects are read if the TApp has not changed (`ClusterAccess.observe`). Raises CommandError
        if the TApp does not exist, is being deleted, or has unreadable pods.
        """
        found = self.cluster.observe(name, before=before)
        found.require_readable(PODS)
        if told := deletion_message(found.tapp):
            raise CommandError(f"TApp {name} is being deleted: {told}")
        return found

    def polls(self) -> Iterator[None]:
        """Yields None, without end, each time that a polling loop may read from the cluster.

        After each poll the generator sleeps for one second, or for three times the duration of the
        poll if that is longer.
        """
        while True:
            begun = self.now()
            yield
            self.sleep(max(POLL_INTERVAL, 3 * (self.now() - begun)))

    def say(self, text: str = "") -> None:
        """Prints a line to standard output, with control characters replaced."""
        _replace_unencodable()
        print(printable(text))

    @staticmethod
    def note(text: str) -> None:
        """Prints a line to standard error, because it does not belong to the result of the
        command.
        """
        _replace_unencodable()
        note(text)


class _ClosableOutput:
    """Replaces standard output by one that discards all further text after a failed write.

    A write fails if the reader of the pipe has ended, as `grep -q` does, or if the disk is full.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def write(self, text: str) -> int:
        with self._discarding_on_error():
            self._file.write(text)
        return len(text)

    def flush(self) -> None:
        with self._discarding_on_error():
            self._file.flush()

    @contextmanager
    def _discarding_on_error(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if not isinstance(error, BrokenPipeError):
                note(f"note: {unwritable_message(error)}; the command goes on")
            discard_output()


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ignores Ctrl-C while the `with` block runs. A kubectl that the block starts ignores it, too.

    Child processes inherit ignored signals. Python allows signal handlers only in the main thread,
    so in other threads the block runs without this protection.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _width(terminal: bool) -> int | None:
    """Returns the width of standard output in characters; None if rich has to ask the terminal for
    it.

    The value 0 of COLUMNS, which a terminal without a size has, counts as not set. `terminal` is
    True if standard output is a terminal.
    """
    text = os.environ.get("COLUMNS", "")
    if columns := whole(text):
        return max(columns, _LEAST_WIDTH)
    if not terminal:
        return UNLIMITED_WIDTH
    return shutil.get_terminal_size().columns if text else None


def _replace_unencodable() -> None:
    """Makes standard output and standard error print `?` for characters that the locale cannot
    encode.

    Otherwise such a character would raise an error.
    """
    streams: Sequence[object] = (sys.stdout, sys.stderr)
    for stream in streams:
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
