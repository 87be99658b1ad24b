"""Starts programs of the user, such as a browser, that run independently of the plugin."""

import subprocess
import threading
from collections.abc import Sequence


def start_detached(words: Sequence[str]) -> "subprocess.Popen[bytes]":
    """Starts a program in a process session of its own, without the terminal, and returns its
    process.

    So the program cannot read the user's input, its output is discarded, and Ctrl-C does not end
    it. `words` are the program and its arguments. Raises OSError if it cannot be started.
    """
    none = subprocess.DEVNULL
    process = subprocess.Popen(  # noqa: S603 - the user's own program, no shell
        words, stdin=none, stdout=none, stderr=none, start_new_session=True
    )
    # The thread waits for the end of the process, which would otherwise stay a zombie.
    threading.Thread(target=process.wait, daemon=True).start()
    return process
