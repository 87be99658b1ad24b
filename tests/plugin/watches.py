"""Runs `status -w`, a watch that ends with Ctrl-C."""

from collections.abc import Callable, Iterator

import pytest

from kubectl_tapp.main import run
from simulator.objects.clock import EPOCH
from tests.plugin.fake_kubectl import StandIn
from tests.scenarios.life import Life


class Enough(KeyboardInterrupt):
    """Ctrl-C of the simulated user, after the expected output."""


def watched(life: Life, steps: list[Callable[[], object]], standin: StandIn | None = None) -> int:
    """Runs `status web -w` and returns its exit code.

    At each pause one of `steps` is called. After the last step the user presses Ctrl-C. `standin`
    is the fake kubectl; None for a new one.
    """
    standin = standin or StandIn(life.world)
    rest: Iterator[Callable[[], object]] = iter(steps)

    def sleep(seconds: float) -> None:
        life.world.run(seconds)
        step = next(rest, None)
        if step is None:
            raise Enough
        step()

    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("COLUMNS", "140")
        return run(
            ["status", "web", "-w"],
            standin,
            clock=lambda: EPOCH.timestamp() + life.world.clock.now,
            sleep=sleep,
        )
