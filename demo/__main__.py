"""Plays the story; exits with 0 only if every act reached its goals.

`python -m demo`, or `make demo`: the acts that show why TApp exists; the whole story with --all, or
`make demo ALL=1`. With --film FILE it writes what would be seen as a moving picture. With --web, or
`make demo WEB=1`, it serves the page of `kubectl tapp web` instead.
"""

import argparse
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import NoReturn

from rich.console import Console

from demo.film import Film
from demo.screen import Screen
from demo.service import ServiceError, serve
from demo.stage import Act, Goal, Play, Stage
from demo.story import ACTS
from simulator.metacontroller.hook_client import HookError
from simulator.world import UnsettledError

WIDTH = 80
INTERRUPTED = 130


def play(stage: Stage, act: Act, number: int, screen: Screen) -> list[Goal]:
    """One act: change the spec, let the cluster come to rest, show what happened."""
    screen.title(number, act)
    before = stage.spec
    running = act.play(stage)
    spec = next(running)
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
        goals = outcome(running)
    screen.chart(stage)
    screen.reasons(stage)
    screen.goals(goals)
    return goals


def outcome(running: Play) -> list[Goal]:
    """The goals, which an act returns at its end."""
    try:
        next(running)
    except StopIteration as end:
        goals: list[Goal] = end.value
        return goals
    raise AssertionError("an act changes the spec once")


def main(*, everything: bool = False, film: Path | None = None) -> int:
    """Plays the brief acts, or all; `film` is where to write an SVG instead. The exit code."""
    signal.signal(signal.SIGTERM, _leave)
    started = time.monotonic()
    # A line that the terminal wraps would break the animation.
    console = Console(width=min(WIDTH, Console().width))
    acts = [act for act in ACTS if everything or act.brief]
    screen = Screen(console) if film is None else Film(film)
    missed: list[str] = []
    try:
        with serve() as url:
            stage = Stage(url)
            screen.open(url)
            for number, act in enumerate(acts, 1):
                goals = play(stage, act, number, screen)
                missed += [f"{act.title}: {goal.text}" for goal in goals if not goal.reached]
                if missed:
                    break
    except (ServiceError, HookError) as error:
        console.print(str(error), style="red", markup=False)
        return 1
    except KeyboardInterrupt:
        console.print("\nStopped.")
        return INTERRUPTED
    screen.close(stage, missed, time.monotonic() - started, left_out=len(ACTS) - len(acts))
    return 1 if missed else 0


def _leave(number: int, _frame: FrameType | None) -> NoReturn:
    """Unwinds, so that the service is stopped, too."""
    sys.exit(128 + number)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m demo")
    parser.add_argument("--all", action="store_true", help="all acts, not only the first few")
    parser.add_argument("--film", type=Path, metavar="FILE", help="write an SVG; print nothing")
    parser.add_argument("--web", action="store_true", help="serve the page to play with")
    options = parser.parse_args()
    if options.web:
        from demo.web import main as serve_page

        try:
            sys.exit(serve_page())
        except (ServiceError, HookError) as error:
            sys.exit(str(error))
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED)
    sys.exit(main(everything=options.all, film=options.film))
