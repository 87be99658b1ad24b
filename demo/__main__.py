"""Plays the story; exits with 0 only if every act reached its goals.

`python -m demo`, or `make demo`.
"""

import signal
import sys
import time
from types import FrameType
from typing import NoReturn

from rich.console import Console

from demo.screen import Screen
from demo.service import ServiceError, serve
from demo.stage import Stage
from demo.story import ACTS, Act, Goal, Play
from simulator.hook_client import HookError
from simulator.world import UnsettledError

WIDTH = 100
INTERRUPTED = 130


def play(stage: Stage, act: Act, number: int, screen: Screen) -> list[Goal]:
    """One act: change the spec, let the cluster come to rest, show what happened."""
    screen.title(number, act)
    before = stage.spec
    story = act.play(stage)
    spec = next(story)
    screen.change(before, spec)
    stage.begin()
    if spec is None:
        stage.delete()
    else:
        stage.apply(spec)
    try:
        stage.settle()
    except UnsettledError as error:
        goals = [Goal(f"the cluster comes to rest: {error}", reached=False)]
    else:
        goals = outcome(story)
    screen.chart(stage)
    screen.reasons(stage)
    screen.goals(goals)
    return goals


def outcome(story: Play) -> list[Goal]:
    """What the act returns at its end."""
    try:
        next(story)
    except StopIteration as end:
        goals: list[Goal] = end.value
        return goals
    raise AssertionError("an act changes the spec once")


def main() -> int:
    """Plays all acts."""
    signal.signal(signal.SIGTERM, _leave)
    started = time.monotonic()
    console = Console(width=WIDTH)
    screen = Screen(console)
    missed: list[str] = []
    try:
        with serve() as base:
            stage = Stage(base)
            screen.open(base)
            for number, act in enumerate(ACTS, 1):
                goals = play(stage, act, number, screen)
                missed += [f"{act.title}: {goal.words}" for goal in goals if not goal.reached]
                if missed:
                    break
    except (ServiceError, HookError) as error:
        console.print(str(error), style="red", markup=False)
        return 1
    except KeyboardInterrupt:
        console.print("\nStopped.")
        return INTERRUPTED
    screen.close(stage, missed, time.monotonic() - started)
    return 1 if missed else 0


def _leave(number: int, _frame: FrameType | None) -> NoReturn:
    """Unwinds, so that the service is stopped, too."""
    sys.exit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
