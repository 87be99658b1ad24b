"""Entry points of the programs, which exit quietly on Ctrl-C even while they import modules."""

import importlib
import sys

_INTERRUPTED = 130


def main() -> None:
    """Runs the program `kubectl-tapp`."""
    _start("kubectl_tapp.main")


def complete() -> None:
    """Runs the program `kubectl_complete-tapp`."""
    _start("kubectl_tapp.complete_command")


def _start(module: str) -> None:
    try:
        importlib.import_module(module).main()  # The import takes most of the start time
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
