"""`kubectl_complete-tapp`, which kubectl calls to complete the words after `kubectl tapp`.

kubectl passes the words of the command line, the unfinished word last. It reads one choice per
line, optionally followed by a tab and a description. The last line is a directive of cobra. Source:
kubectl's pkg/cmd/plugin/plugin_completion.go; cobra's ShellCompDirective.
"""

import os
import shlex
import sys
from collections.abc import Sequence

from kubectl_tapp.base.streams import open_closed_streams
from kubectl_tapp.cluster.kubectl import Runner
from kubectl_tapp.main import PROGRAM, exit_code_after_flush, exit_on_signals, run

_WORDS_ONLY, _FILES_TOO = 4, 0  # Values of cobra's ShellCompDirective
# The options whose value is a file name, which the shell completes.
_WITH_FILE = ("-f", "--filename", "--kubeconfig", "--html")


def complete(words: Sequence[str], runner: Runner | None = None) -> int:
    """Prints the choices for the last word of a command line, which is unfinished or empty.

    `words` are the words after `kubectl tapp`. `runner` runs kubectl; None runs the program itself.
    Returns the exit code, which is 0 unless standard output cannot be written.
    """
    *before, last = words or [""]
    # In typer's protocol for the fish shell, the choices have the form that kubectl reads.
    line = f"{shlex.join([PROGRAM, *before])} {shlex.quote(last) if last else ''}"
    os.environ["_KUBECTL_TAPP_COMPLETE"] = "complete_fish"
    os.environ["_TYPER_COMPLETE_FISH_ACTION"] = "get-args"
    os.environ["_TYPER_COMPLETE_ARGS"] = line
    code = run([], runner)
    print(f":{_FILES_TOO if before and before[-1] in _WITH_FILE else _WORDS_ONLY}")
    return exit_code_after_flush(code)


def main() -> None:
    """Runs the program `kubectl_complete-tapp`."""
    open_closed_streams()
    exit_on_signals()
    sys.exit(complete(sys.argv[1:]))
