"""All cases, or those whose name has a text: `python -m tests.cost --only image --part 0/2`.

Prints each finding with its curve; the exit code is 1 if there are any. `--table` prints the cost
at the largest size of each case instead.
"""

import argparse
import os
import sys
from multiprocessing import get_context

from tests.cost.cases import SIZES, Case, every_case, findings, not_counted, some_cases


def _judged(case: Case) -> list[str]:
    return [text for text in (*findings(case), not_counted(case)) if text]


def _costs(case: Case) -> list[str]:
    cost = case.cost(SIZES[-1])
    return [f"{cost.ms:8.0f} ms {cost.peak:6.0f} MB {cost.kb:7.0f} KB {cost.pods:5} {case}"]


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.cost", description=__doc__)
    parser.add_argument("--only", default="", help="part of the name of a case")
    parser.add_argument("--some", action="store_true", help="each shape of a field in one world")
    parser.add_argument("--every", type=int, default=1, help="one of so many cases")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--table", action="store_true", help="costs instead of findings")
    options = parser.parse_args()
    os.nice(5)
    cases = some_cases() if options.some else every_case()
    cases = [case for case in cases if options.only in str(case)][:: options.every]
    found = 0
    with get_context("fork").Pool(options.processes) as pool:
        for texts in pool.imap_unordered(_costs if options.table else _judged, cases):
            found += len(texts)
            sys.stdout.write("".join(f"{text}\n" for text in texts))
            sys.stdout.flush()
    if options.table:
        return 0
    sys.stdout.write(f"{len(cases)} cases, {found} findings\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
