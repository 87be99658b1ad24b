"""Starts programs of the user, such as a browser, that run apart from the plugin."""

import subprocess
import threading
from collections.abc import Sequence


def start_detached(words: Sequence[str]) -> "subprocess.Popen[bytes]":
    """Starts a program in a session of its own, without the terminal, and returns its process.

    So the program cannot read what the user types, its output is dropped, and Ctrl-C does not end
    it. `words` are the program and its arguments. Raises OSError if it cannot be started.
    """
    none = subprocess.DEVNULL
    process = subprocess.Popen(  # noqa: S603 - the user's own program, no shell
        words, stdin=none, stdout=none, stderr=none, start_new_session=True
    )
    # Reaps the process when it ends.
    threading.Thread(target=process.wait, daemon=True).start()
    return process
