"""`kubectl_complete-tapp`: what kubectl calls to complete the words behind `kubectl tapp`.

kubectl passes the words of the line, the last one unfinished, and reads a choice a line, with a tab
and a description where there is one, and on the last line a directive of cobra's. Source: kubectl's
pkg/cmd/plugin/plugin_completion.go; cobra's ShellCompDirective.
"""

import os
import shlex
import sys
from collections.abc import Sequence

from kubectl_tapp.base.streams import open_closed
from kubectl_tapp.cluster.kubectl import Runner
from kubectl_tapp.main import PROGRAM, finished, run

_WORDS_ONLY, _FILES_TOO = 4, 0
_WITH_FILE = ("-f", "--filename", "--kubeconfig", "--html")


def complete(words: Sequence[str], runner: Runner | None = None) -> int:
    """Prints the choices for the last of these words, which is unfinished, or empty.

    Returns the exit code, which is not 0 only if standard output cannot be written.
    """
    *before, last = words or [""]
    # The protocol of typer's own scripts for fish, which have the same form of choices.
    line = f"{shlex.join([PROGRAM, *before])} {shlex.quote(last) if last else ''}"
    os.environ["_KUBECTL_TAPP_COMPLETE"] = "complete_fish"
    os.environ["_TYPER_COMPLETE_FISH_ACTION"] = "get-args"
    os.environ["_TYPER_COMPLETE_ARGS"] = line
    code = run([], runner)
    print(f":{_FILES_TOO if before and before[-1] in _WITH_FILE else _WORDS_ONLY}")
    return finished(code)


def main() -> None:
    """The program `kubectl_complete-tapp`."""
    open_closed()
    sys.exit(complete(sys.argv[1:]))
