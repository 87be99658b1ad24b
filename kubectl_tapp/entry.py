"""The programs `kubectl-tapp` and `kubectl_complete-tapp`: Ctrl-C is no error while they load."""

import sys
from collections.abc import Callable

_INTERRUPTED = 130


def main() -> None:
    """`kubectl-tapp`."""

    def load() -> Callable[[], None]:
        from kubectl_tapp.main import main as command  # noqa: PLC0415 - what takes its time

        return command

    _start(load)


def complete() -> None:
    """`kubectl_complete-tapp`."""

    def load() -> Callable[[], None]:
        from kubectl_tapp.complete_command import main as command  # noqa: PLC0415 - likewise

        return command

    _start(load)


def _start(load: Callable[[], Callable[[], None]]) -> None:
    try:
        load()()
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
