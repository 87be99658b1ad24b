"""Handles standard streams of the process that are closed, full, or without a reader."""

import os
import sys
from contextlib import suppress
from typing import TextIO

from kubectl_tapp.base.errors import printable

PIPE_CLOSED = 141  # 128 + SIGPIPE: the exit code in a shell if the reader of a pipe has ended
_NUMBERS = (0, 1, 2)


def open_closed_streams() -> None:
    """Opens each standard stream that the caller of this process has closed.

    Otherwise the next file that the process opens would get the file descriptor of such a stream,
    and the process's output would overwrite that file. After this call, writes to a standard output
    that was closed raise an error. Writes to a standard error that was closed are discarded.
    """
    for number in _NUMBERS:
        try:
            os.fstat(number)
        except OSError:
            # The system gives the null device the lowest free descriptor, which is that of the
            # closed stream. Standard output is opened for reading only, so that writes fail and the
            # command reports an error.
            os.open(os.devnull, os.O_WRONLY if number == _NUMBERS[-1] else os.O_RDONLY)
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


def flush_output() -> OSError | None:
    """Flushes standard output. Returns the error if the flush fails, and None after a success.

    After an error the buffered output is discarded, so that Python does not report the error again
    when it exits.
    """
    try:
        sys.stdout.flush()
    except OSError as error:
        discard_output()
        return error
    return None


def note(text: str) -> None:
    """Writes a line to standard error. Ignores the error if standard error cannot be written."""
    try:
        print(printable(text), file=sys.stderr, flush=True)
    except OSError:
        _discard(sys.stderr)


def discard_output() -> None:
    """Redirects standard output to the null device, so that buffered and later text is
    discarded.
    """
    _discard(sys.stdout)


def _discard(stream: TextIO) -> None:
    with suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def unwritable_message(error: OSError) -> str:
    """Returns a sentence that says why standard output cannot be written.

    `error` is the error of a write or a flush.
    """
    return f"standard output cannot be written: {error.strerror or error}"
