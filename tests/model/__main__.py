"""Plays many random lives of a TApp: `python -m tests.model --steps 200000 --seed 1`.

Prints the numbers of steps, the seeds, and the violations of safety properties. Lives are played in
batches. Each batch has its own seed, counted up from `--seed`, and can be repeated alone. The exit
status is 1 if a batch has found a violation.
"""

import argparse
import sys
import time
import traceback
from collections import Counter

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.model.machine import Model


def play(number: int, lives: int, steps: int, *, shrink: bool) -> str:
    """Plays one batch of lives and returns the traceback of its first violation, or "" without a
    violation.

    Args:
        number: the seed of the batch.
        lives: the number of lives in the batch.
        steps: the number of events in each life.
        shrink: True if hypothesis searches for the shortest life with the violation.
    """
    phases = [Phase.generate, Phase.shrink] if shrink else [Phase.generate]
    try:
        run_state_machine_as_test(
            seed(number)(Model),
            settings=settings(
                max_examples=lives,
                stateful_step_count=steps,
                deadline=None,
                database=None,
                phases=phases,
                print_blob=False,
                report_multiple_bugs=False,
                suppress_health_check=list(HealthCheck),
            ),
        )
    except Exception:  # noqa: BLE001 - whatever it was, it is the finding
        return traceback.format_exc()
    return ""


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.model", description=__doc__)
    parser.add_argument("--steps", type=int, default=200_000, help="stop after so many steps")
    parser.add_argument("--seed", type=int, default=1, help="seed of the first batch")
    parser.add_argument("--lives", type=int, default=50, help="lives in a batch")
    parser.add_argument("--length", type=int, default=60, help="steps in a life")
    parser.add_argument("--shrink", action="store_true", help="minimise what is found")
    options = parser.parse_args()
    started, violations, number = time.monotonic(), [], options.seed
    totals: Counter[str] = Counter()
    while totals["steps"] < options.steps:
        Model.totals.clear()
        found = play(number, options.lives, options.length, shrink=options.shrink)
        totals.update(Model.totals)
        if found:
            violations.append(number)
            say(f"seed {number}: {found}")
        if number % 10 == 0:
            say(f"seed {number}: {totals['steps']} steps so far")
        number += 1
    say(
        f"{totals['steps']} steps in {totals['lives']} lives and {totals['syncs']} syncs, "
        f"seeds {options.seed}..{number - 1}, {time.monotonic() - started:.0f} s: "
        f"{len(violations)} violations {violations or ''}"
    )
    for name, count in sorted(totals.items()):
        say(f"  {name}: {count}")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
