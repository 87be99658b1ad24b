"""Standard input, output and error of the process: closed, full, or without a reader."""

import os
import sys
from contextlib import suppress
from typing import TextIO

from kubectl_tapp.base.errors import plain

PIPE_CLOSED = 141  # The exit code that a shell reports if the reader went away (SIGPIPE)
_NUMBERS = (0, 1, 2)


def open_closed() -> None:
    """Gives the process the standard streams that its caller has closed.

    Without them the next file that is opened would get such a number, and be written to. A closed
    standard output fails at the first write, a closed standard error swallows what it is given.
    """
    for number in _NUMBERS:
        try:
            os.fstat(number)
        except OSError:
            # The lowest free number is the one that is missing. Standard output is opened for
            # reading, so that a write to it fails.
            os.open(os.devnull, os.O_WRONLY if number == _NUMBERS[-1] else os.O_RDONLY)
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


def output_error() -> OSError | None:
    """Flushes standard output; returns the error if it cannot be written, and None otherwise.

    What could not be written is discarded, so that Python does not complain of it at its exit.
    """
    try:
        sys.stdout.flush()
    except OSError as error:
        discard_output()
        return error
    return None


def note(text: str) -> None:
    """Writes a line to standard error; it is dropped if standard error cannot be written."""
    try:
        print(plain(text), file=sys.stderr, flush=True)
    except OSError:
        _discard(sys.stderr)


def discard_output() -> None:
    """Redirects standard output to nowhere, with what it still holds."""
    _discard(sys.stdout)


def _discard(stream: TextIO) -> None:
    with suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def unwritable(error: OSError) -> str:
    """Returns the sentence that says why standard output cannot be written."""
    return f"standard output cannot be written: {error.strerror or error}"
