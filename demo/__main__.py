"""Plays the acts of the demo, and exits with 0 only if every act reaches its goals.

- `python -m demo` or `make demo` plays the acts that show why TApp exists.
- `--all` or `make demo ALL=1` plays all acts.
- `--film FILE` writes the output as an animated SVG, and prints nothing.
- `--web` or `make demo WEB=1` plays no act. It serves the page of `kubectl tapp web` on the
  embedded cluster.
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
    """Plays one act: changes the TApp's spec, runs the cluster until it is at rest, prints the
    result.

    Returns the goals of the act, each with whether the act has reached it.

    Args:
        stage: the cluster with the TApp.
        act: the act.
        number: the number of the act, for its title.
        screen: prints the result.
    """
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
        goals = goals_of(running)
    screen.chart(stage)
    screen.reasons(stage)
    screen.goals(goals)
    return goals


def goals_of(running: Play) -> list[Goal]:
    """Resumes the generator of an act after the cluster has settled, and returns its goals."""
    try:
        next(running)
    except StopIteration as end:
        goals: list[Goal] = end.value
        return goals
    raise AssertionError("an act changes the spec once")


def main(*, everything: bool = False, film: Path | None = None) -> int:
    """Plays the acts of the demo, and returns the exit code.

    The exit code is 1 if a goal was missed.

    Args:
        everything: True to play all acts; False to play only the acts with `brief`.
        film: the SVG file to write instead of printing to the terminal; None prints.
    """
    signal.signal(signal.SIGTERM, _exit_on_signal)
    started = time.monotonic()
    # If the terminal wrapped a line, the animation would overwrite the wrong lines.
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


def _exit_on_signal(number: int, _frame: FrameType | None) -> NoReturn:
    """Ends the process by SystemExit, so that the service is stopped.

    The exit code is the one that stands for the signal `number`.
    """
    sys.exit(128 + number)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m demo")
    parser.add_argument(
        "--all", action="store_true", help="play all acts, not only the most important ones"
    )
    parser.add_argument(
        "--film", type=Path, metavar="FILE", help="write an animated SVG instead of printing"
    )
    parser.add_argument(
        "--web", action="store_true", help="serve the web page on the embedded cluster"
    )
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
