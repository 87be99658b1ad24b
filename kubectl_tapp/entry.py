"""The programs `kubectl-tapp` and `kubectl_complete-tapp`: Ctrl-C is no error while they load."""

import importlib
import sys

_INTERRUPTED = 130


def main() -> None:
    """`kubectl-tapp`."""
    _start("kubectl_tapp.main")


def complete() -> None:
    """`kubectl_complete-tapp`."""
    _start("kubectl_tapp.complete_command")


def _start(module: str) -> None:
    try:
        importlib.import_module(module).main()  # what takes its time
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
