"""Measures all cases, or only cases whose name contains a text: `python -m tests.cost --only
image`.

Prints each finding with the costs at growing sizes. The exit code is 1 if there is a finding.
"""

import argparse
import os
import sys
from multiprocessing import get_context

from tests.cost.cases import Case, every_case, findings, not_counted


def _judged(case: Case) -> list[str]:
    return [text for text in (*findings(case), not_counted(case)) if text]


def main() -> int:
    """Measures the cases that the command line selects, and returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.cost", description=__doc__)
    parser.add_argument("--only", default="", help="part of the name of a case")
    parser.add_argument("--every", type=int, default=1, help="one of so many cases")
    options = parser.parse_args()
    os.nice(5)
    cases = [case for case in every_case() if options.only in str(case)][:: options.every]
    found = 0
    with get_context("fork").Pool(2) as pool:
        for texts in pool.imap_unordered(_judged, cases):
            found += len(texts)
            sys.stdout.write("".join(f"{text}\n" for text in texts))
            sys.stdout.flush()
    sys.stdout.write(f"{len(cases)} cases, {found} findings\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
