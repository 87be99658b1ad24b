"""The long run: `python -m tests.fuzz --inputs 1000000 --processes 2 --out build/fuzz`.

Each input has its own seed: a finding is repeated with `--seed SEED --inputs 1`. Findings are
written to `--out`, one file each; the exit code is 1 if there are any.
"""

import argparse
import json
import multiprocessing
import sys
from collections import Counter
from pathlib import Path

from tests.fuzz.run import work


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1, help="of the first input")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3600, help="at most")
    parser.add_argument("--out", type=Path, default=Path("build/fuzz"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    share = -(-options.inputs // options.processes)
    jobs = [
        (options.seed + index * share, share, options.seconds, options.out)
        for index in range(options.processes)
    ]
    if len(jobs) == 1:
        reports = [work(*jobs[0])]
    else:
        with multiprocessing.get_context("spawn").Pool(len(jobs)) as pool:
            reports = pool.starmap(work, jobs)
    codes: Counter[int] = sum((report.pop("codes") for report in reports), Counter())
    total = {key: sum(report[key] for report in reports) for key in ("inputs", "findings")}
    result = {**total, "codes": dict(sorted(codes.items())), "processes": reports}
    sys.stdout.write(json.dumps(result, indent=1) + "\n")
    (options.out / f"report-{options.seed}.json").write_text(json.dumps(result, indent=1))
    return 1 if total["findings"] else 0


if __name__ == "__main__":
    sys.exit(main())
